// The beta curve with two anchors that can be dragged, by pointer or by arrow keys. Runs inside a gr.HTML, which gives
// `element`, `props`, `trigger` and `watch`. props.value: see adapop/ui/run/pressure.py. Text goes in as text, never as HTML.
const NS = "http://www.w3.org/2000/svg", EDGE = { left: 46, right: props.value?.fixed ? 58 : 14, top: 26, bottom: 44 }, HEIGHT = props.value?.fixed ? 178 : 350; // fixed: the handles move up and down alone, from least to most, on the axis of the field above
const APART = 1.5, STEP = 1.1, BETA_STEP = 0.05, REST_MS = 500;
const untold = new Set(); // handles moved since the last message to the server
let anchors, range, later, focused = -1;

function make(parent, tag, attributes, text) {
  const node = parent.appendChild(document.createElementNS(NS, tag));
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function beta(score) {
  const { low, high, constant } = props.value;
  if (constant !== null) return constant;
  const [[rare, top], [popular, bottom]] = anchors, b = Math.log(top / bottom) / Math.log(popular / rare);
  return Math.min(Math.max(score > 0 ? top * (score / rare) ** -b : high, low), high);
}

function scoreAt(value) {
  const [[rare, top], [popular, bottom]] = anchors, b = Math.log(top / bottom) / Math.log(popular / rare);
  return b > 0 ? rare * (value / top) ** (-1 / b) : NaN;
}

const x = (score) => EDGE.left + (range.width * Math.log(Math.max(score, range.min) / range.min)) / Math.log(range.max / range.min);
const y = (value) => EDGE.top + range.height * (1 - value / range.top);
const scoreOf = (px) => range.min * (range.max / range.min) ** ((px - EDGE.left) / range.width);
const betaOf = (py) => range.top * (1 - (py - EDGE.top) / range.height);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const shown = (score) => score.toLocaleString("en-US", { maximumSignificantDigits: 3 });

function build() {
  const value = props.value, host = element.querySelector(".curve");
  if (!value || !host || !host.clientWidth) return;
  host.replaceChildren();
  // an answer to an earlier event must not undo a move that is not sent yet; a drag ends, as its handle is gone
  if (value.fixed) untold.clear();
  if (untold.size) tellSoon();
  anchors = [value.rare, value.popular].map((told, which) => (untold.has(which) ? anchors[which] : [...told]));
  const scores = value.points.map((point) => point[0]).filter((score) => score > 0);
  // a loop and not Math.min(...scores): thousands of arguments overflow the stack
  const min = scores.reduce((a, b) => Math.min(a, b), Math.min(30, value.rare[0] / 1.5));
  const max = scores.reduce((a, b) => Math.max(a, b), Math.max(9000, value.popular[0] * 1.5));
  range = { ...(value.fixed ? { min: 0.85 * scores.reduce((a, b) => Math.min(a, b)), max: 1.18 * scores.reduce((a, b) => Math.max(a, b)) } : { min, max }), top: Math.max(2.1, value.high * 1.05), width: host.clientWidth - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
  const svg = make(host, "svg", { width: host.clientWidth, height: HEIGHT, role: "group", "aria-label": value.label });
  axes(svg);
  make(svg, "rect", { class: "clip high" });
  make(svg, "rect", { class: "clip low" });
  make(svg, "line", { class: "wga", x1: EDGE.left, x2: EDGE.left + range.width, y1: y(1), y2: y(1) });
  const wide = range.width > 480;
  if (value.fixed) make(svg, "text", { x: EDGE.left + range.width, y: y(1) - 6, "text-anchor": "end" }, "β = 1: equal pressure (WGA)");
  else if (wide) make(svg, "text", { x: EDGE.left + 6, y: y(1) + 16 }, "β = 1: equal pressure (WGA)");
  for (const [words, below] of value.fixed ? [] : [["↑ pressure fades early", -8], ["↓ pressure lasts", 17]])
    make(svg, "text", { class: "plain", x: EDGE.left + range.width, y: y(1) + below, "text-anchor": "end" }, words);
  make(svg, "path", { class: "beta" });
  for (const [, , tier, name] of value.points) {
    const mark = { rare: ["circle", { r: 5 }], middle: ["rect", { x: -4.5, y: -4.5, width: 9, height: 9 }], popular: ["path", { d: "M0-6.5 6.5 0 0 6.5-6.5 0Z" }] }[tier];
    make(make(svg, mark[0], { ...mark[1], class: "fact " + tier }), "title", {}, name);
  }
  if (value.constant === null) for (const which of [0, 1]) handle(svg, which);
  update();
  // the answer to a key draws everything anew: focus the handle again, so that the next key works too
  if (document.activeElement === document.body) svg.querySelectorAll(".anchor")[focused]?.focus({ preventScroll: true });
}

function axes(svg) {
  for (const value of [0, 0.5, 1, 1.5, 2]) {
    make(svg, "line", { class: "grid", x1: EDGE.left, x2: EDGE.left + range.width, y1: y(value), y2: y(value) });
    make(svg, "text", { class: "tick", x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, value);
  }
  const decades = Math.log10(range.max / range.min), steps = decades < 4 && range.width > 420 ? [1, 3] : [1];
  for (let power = Math.floor(Math.log10(range.min)); power <= Math.log10(range.max); power++)
    for (const step of steps) {
      const score = step * 10 ** power;
      if (score < range.min || score > range.max) continue;
      make(svg, "line", { class: "grid", x1: x(score), x2: x(score), y1: EDGE.top, y2: y(0) });
      make(svg, "text", { class: "tick", x: x(score), y: y(0) + 18, "text-anchor": "middle" }, shown(score));
    }
  make(svg, "text", { class: "tick", x: EDGE.left + range.width / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "popularity (score s) →");
  make(svg, "text", { class: "tick", x: 4, y: 14 }, "β: the higher, the sooner the pressure fades");
  if (props.value.constant === null && !props.value.fixed) make(svg, "text", { class: "drag", x: EDGE.left + range.width, y: 14, "text-anchor": "end" }, "drag a ◆");
}

function handle(svg, which) {
  const grip = make(svg, "g", { class: "anchor", role: "slider", tabindex: 0, "aria-label": which ? "Popular anchor" : "Rare anchor", "aria-valuemin": range.min, "aria-valuemax": range.max });
  make(grip, "circle", { class: "hit", r: 20 });
  make(grip, "path", { d: "M0-11 11 0 0 11-11 0Z" });
  make(grip, "text", { class: "grip-label", y: -18, "text-anchor": which ? "end" : "start" });
  const move = (event) => {
    const frame = svg.getBoundingClientRect(), zoom = frame.height / HEIGHT; // Present zooms the page
    place(which, scoreOf((event.clientX - frame.left) / zoom), betaOf((event.clientY - frame.top) / zoom));
  };
  grip.addEventListener("focus", () => (focused = which));
  grip.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    grip.focus();
    grip.setPointerCapture(event.pointerId);
    grip.addEventListener("pointermove", move);
  });
  const drop = () => {
    grip.removeEventListener("pointermove", move);
    if (untold.size) tell();
  };
  grip.addEventListener("pointerup", drop);
  grip.addEventListener("pointercancel", drop);
  grip.addEventListener("keydown", (event) => {
    const [score, value] = anchors[which], to = (props.value.fixed && /Left|Right/.test(event.key) ? {} : { ArrowLeft: [score / STEP, value], ArrowRight: [score * STEP, value], ArrowUp: [score, value + BETA_STEP], ArrowDown: [score, value - BETA_STEP] })[event.key];
    if (!to) return;
    event.preventDefault();
    place(which, ...to);
    tellSoon();
  });
}

function place(which, score, value) {
  const [rare, popular] = anchors, { low, high, least = low, most = high } = props.value;
  score = which ? clamp(score, rare[0] * APART, range.max) : clamp(score, range.min, popular[0] / APART);
  value = which ? clamp(value, least, rare[1]) : clamp(value, popular[1], most);
  anchors[which] = [props.value.fixed ? anchors[which][0] : Number(score.toPrecision(3)), Number(value.toFixed(2))];
  untold.add(which);
  update();
  if (typeof moved === "function") moved(anchors);
}

function tellSoon() {
  clearTimeout(later);
  later = setTimeout(tell, REST_MS);
}

function tell() {
  clearTimeout(later);
  // a button may have moved the other handle meanwhile: only the moved handle is sent
  const [rare, popular] = anchors.map((anchor, which) => (untold.has(which) ? anchor : null));
  untold.clear();
  trigger("release", { rare, popular });
}

function update() {
  const { low, high, points, constant } = props.value, svg = element.querySelector(".curve svg"), steps = 160;
  const line = Array.from({ length: steps + 1 }, (_, i) => range.min * (range.max / range.min) ** (i / steps));
  svg.querySelector(".beta").setAttribute("d", "M" + line.map((score) => x(score).toFixed(1) + " " + y(beta(score)).toFixed(1)).join("L"));
  const marks = svg.querySelectorAll(".fact");
  points.forEach(([score, used], i) => marks[i].setAttribute("transform", `translate(${x(score).toFixed(1)} ${y(beta(used)).toFixed(1)})`));
  const zones = constant === null ? [[".high", range.min, scoreAt(high)], [".low", scoreAt(low), range.max]] : [];
  for (const [zone, from, to] of zones) {
    const left = x(clamp(from, range.min, range.max)), right = x(clamp(to, range.min, range.max)), rect = svg.querySelector(".clip" + zone);
    for (const [name, size] of Object.entries({ x: left || 0, y: EDGE.top, width: Math.max(0, right - left) || 0, height: range.height })) rect.setAttribute(name, size);
  }
  svg.querySelectorAll(".anchor").forEach((grip, i) => {
    const text = `score ${shown(anchors[i][0])}, β ${anchors[i][1]}`;
    grip.setAttribute("transform", `translate(${x(anchors[i][0])} ${y(anchors[i][1])})`);
    grip.setAttribute("aria-valuenow", anchors[i][0]);
    grip.setAttribute("aria-valuetext", text);
    const label = grip.querySelector("text");
    const named = range.width > 480 ? ["rare: ", "popular: "][i] : ""; // narrower, it would cover facts
    label.textContent = `${named}${shown(anchors[i][0])} → β ${anchors[i][1]}`;
    // in a narrow picture the words end at its edge, further up: left of the handle they would cover facts
    if (i) for (const [name, to] of Object.entries(range.width > 480 ? { x: 0, y: -18 } : { x: EDGE.left + range.width - x(anchors[i][0]), y: -32 })) label.setAttribute(name, to);
  });
}

watch("value", build);
for (const left of ["pointerdown", "focusin"])
  document.addEventListener(left, (event) => element.contains(event.target) || (focused = -1));
new ResizeObserver(build).observe(element);
build();
