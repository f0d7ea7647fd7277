// What the page's own pictures share. Text goes in as text, never as HTML.
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
// a share in percent as Python rounds it, a half to the even number, and as it prints it: `percent` in adapop/report/table.py
const whole = (share) => (Math.abs((100 * share) % 1) === 0.5 ? 2 * Math.round(50 * share) : Math.round(100 * share));
const percent = (share) => (share > 0 && share < 0.005 ? "<\u00a01\u00a0%" : `${whole(share)}\u00a0%`);
// a difference of two shares with its sign and, if it has one, its interval: `signed` in adapop/report/table.py
const points = (share) => `${whole(share) < 0 ? "" : "+"}${whole(share) || 0}`;
const signed = ({ mean, low, high }) => `${points(mean)} point${Math.abs(whole(mean)) === 1 ? "" : "s"}${low < high ? ` (${points(low)} to ${points(high)})` : ""}`;
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

// [what the model said to a fact when it was last asked, after which epoch, whether that is right], nulls if it never was
function said(motion, epoch, fact) {
  let [frame] = between(motion, epoch);
  while (frame > 0 && !motion.said[frame]) frame--;
  const reply = motion.said[frame]?.[fact] ?? null; // null: not asked
  return reply === null ? [null, null, null] : [reply || "nothing", motion.epoch[frame], motion.right[frame][fact]];
}

const mark = (right) => (right === null ? "" : right ? " ✓" : " ✗"); // null: not known
const moment = (epoch) => (epoch === 0 ? "before" : `${Number.isInteger(epoch) ? "after" : "in"} epoch ${Math.ceil(epoch)}`);

// changes what the address says, without a new page; null takes a name out. entry: the browser's Back comes to the address before
function address(changes, entry = false) {
  const here = new URL(location.href);
  for (const [name, value] of Object.entries(changes))
    if (value === null) here.searchParams.delete(name);
    else here.searchParams.set(name, value);
  history[entry ? "pushState" : "replaceState"](history.state, "", here);
}

// whose epoch and pin an address has: Run's with a run or its tab in it, the Story's without any tab
const momentOf = (query) => (query.has("run") || query.get("tab") === "run" ? "run" : query.has("tab") ? null : "story");
const keep = (whose, changes) => momentOf(new URL(location.href).searchParams) === whose && address(changes);
