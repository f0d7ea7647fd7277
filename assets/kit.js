// What the page's own pictures share. Text goes in as text, never as HTML.
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
// a share in percent as Python rounds it, a half to the even number, and as it prints it: `percent` in adapop/report/table.py
const whole = (share) => (Math.abs((100 * share) % 1) === 0.5 ? 2 * Math.round(50 * share) : Math.round(100 * share));
const percent = (share) => (share > 0 && share <= 0.005 ? "<1%" : `${whole(share)}%`);
// a share with one decimal, and the difference of two as these are shown: what stands side by side subtracts
const tenth = (share) => Math.round(1000 * share) / 10;
const exact = (share) => `${tenth(share).toFixed(1)}%`;
const apart = (high, low) => (tenth(high) - tenth(low)).toFixed(1).replace("-", "\u2212");
// the zoom of the page, above 1 in Present
const zoomOf = (node) => node.getBoundingClientRect().width / node.clientWidth || 1;
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

// scrolls an element into view once it is laid out, if it is not visible
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

// [the last reply for a fact, after which epoch it was given, whether it is right]; nulls if it was never asked
function said(motion, epoch, fact) {
  let [frame] = between(motion, epoch);
  while (frame > 0 && !motion.said[frame]) frame--;
  const reply = motion.said[frame]?.[fact] ?? null; // null: not asked
  return reply === null ? [null, null, null] : [reply || "nothing", motion.epoch[frame], motion.right[frame][fact]];
}

const mark = (right) => (right === null ? "" : right ? " ✓" : " ✗"); // null: not known
const moment = (epoch) => (epoch === 0 ? "before" : `${Number.isInteger(epoch) ? "after" : "in"} epoch ${Math.ceil(epoch)}`);

// changes the address's parameters without a reload; null removes one. entry: adds a history entry, for the browser's Back
function address(changes, entry = false) {
  const here = new URL(location.href);
  for (const [name, value] of Object.entries(changes))
    if (value === null) here.searchParams.delete(name);
    else here.searchParams.set(name, value);
  history[entry ? "pushState" : "replaceState"](history.state, "", here);
}

// which screen an address's epoch and pin belong to: Run if it names a run or that tab, the Story if it names no tab
const momentOf = (query) => (query.has("run") || query.get("tab") === "run" ? "run" : query.has("tab") ? null : "story");
const keep = (whose, changes) => momentOf(new URL(location.href).searchParams) === whose && address(changes);
