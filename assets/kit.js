// What the page's own pictures share. Text goes in as text, never as HTML.
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
// how much larger the page is shown than it is laid out: to a class it is
const zoomOf = (node) => node.getBoundingClientRect().width / node.clientWidth || 1;
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  node.append(...children.filter((child) => child !== null).map((child) => (typeof child === "string" ? child.replaceAll(" %", "\u00a0%") : child))); // no line begins with %
  return node;
}

// brings what was just said into sight, if it is not; it is laid out a moment later
const into = (node) => setTimeout(() => node.scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" }));

// the frame at or before an epoch, and how far it is from there to the next, 0 to 1
function between(motion, epoch) {
  const at = motion.epoch;
  let frame = 0;
  while (frame < at.length - 1 && at[frame + 1] <= epoch) frame++;
  const apart = frame < at.length - 1 ? (epoch - at[frame]) / (at[frame + 1] - at[frame]) : 0;
  return [frame, clamp(apart, 0, 1)];
}

// the probability of a fact's right answer, 0 to 1, between the frames that have one of this kind
function probability(motion, epoch, fact, kind = "p") {
  let [from, apart] = between(motion, epoch);
  let to = Math.min(from + 1, motion.epoch.length - 1);
  while (from > 0 && !motion[kind][from]) from--;
  while (to < motion.epoch.length - 1 && !motion[kind][to]) to++;
  const early = motion[kind][from]?.[fact], late = motion[kind][to]?.[fact] ?? early;
  if (early === undefined) return null;
  const span = motion.epoch[to] - motion.epoch[from];
  apart = span ? clamp((epoch - motion.epoch[from]) / span, 0, 1) : 0;
  return (early + apart * (late - early)) / 1000;
}

// [what the model said to a fact when it was last asked, after which epoch]
function said(motion, epoch, fact) {
  let [frame] = between(motion, epoch);
  while (frame > 0 && !motion.said[frame]) frame--;
  return [motion.said[frame]?.[fact] ?? "", motion.epoch[frame]];
}

// how sure the model is of a tier's facts on average, 0 to 1
function meanOf(facts, motion, epoch, tier) {
  const found = facts.tier.map((each, fact) => (each === tier ? probability(motion, epoch, fact) : null)).filter((p) => p !== null);
  return found.reduce((a, b) => a + b, 0) / found.length;
}

const isRight = (reply, answer) => reply.toLowerCase().includes(answer.toLowerCase());
const moment = (epoch) => (epoch === 0 ? "before" : `after epoch ${Number(epoch.toFixed(1))}`);

// changes what the address says, without a new page; null takes a name out
function address(changes) {
  const here = new URL(location.href);
  for (const [name, value] of Object.entries(changes))
    if (value === null) here.searchParams.delete(name);
    else here.searchParams.set(name, value);
  history.replaceState(history.state, "", here);
}
