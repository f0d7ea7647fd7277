// The tour's card: says to a screen reader where one is, brings what it talks about into view, and knows Escape and the
// arrow keys. Runs inside a gr.HTML, which gives `element`, `props` and `watch`. props.value: see adapop/ui/tour.py.
const GAP = 12, PATIENCE_MS = 4000, EVERY_MS = 120;
let shown = null, looking;

function panel() {
  return document.getElementById("tour");
}

const strip = document.getElementById("strip-row");
// the strip grows with its words, and the card sticks right below it
new ResizeObserver(() => panel()?.style.setProperty("--strip", strip.offsetHeight + "px")).observe(strip);

function covered() {
  return strip.offsetHeight + panel().offsetHeight;
}

function bring(id) {
  clearInterval(looking);
  const until = Date.now() + PATIENCE_MS;
  looking = setInterval(() => {
    const target = document.getElementById(id);
    if (!panel() || Date.now() > until) return clearInterval(looking);
    if (!target || !target.offsetHeight) return; // its tab is still being drawn
    clearInterval(looking);
    const top = covered() + GAP, frame = target.getBoundingClientRect();
    const fits = frame.top >= top && Math.min(frame.bottom, frame.top + innerHeight - top) <= innerHeight;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!fits) scrollBy({ top: frame.top - top, behavior: calm ? "auto" : "smooth" });
  }, EVERY_MS);
}

function arrive() {
  const value = props.value, host = panel();
  if (!value || value.place === undefined || !host || value.place === shown) return;
  const first = shown === null;
  shown = value.place;
  host.setAttribute("role", "region");
  host.setAttribute("aria-label", `Tour, card ${value.number} of ${value.count}`);
  if (first) {
    host.addEventListener("keydown", turn);
    // the page takes a moment to put the card in
    setTimeout(() => element.querySelector("h2")?.focus({ preventScroll: true }), 60);
  }
  bring(value.ring);
}

function turn(event) {
  if (event.target.closest("input, textarea, select")) return;
  const button = { ArrowRight: "tour-forward", ArrowLeft: "tour-back" }[event.key];
  if (!button) return;
  event.preventDefault();
  document.getElementById(button)?.click();
}

if (!window.adapopTour) {
  window.adapopTour = true;
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && panel()) document.getElementById("tour-skip")?.click();
  });
}
watch("value", arrive);
arrive();
