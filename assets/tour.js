// The tour's card: says to a screen reader where one is, brings what it talks about into view, and knows Escape and the
// arrow keys. Runs inside a gr.HTML, which gives `element`, `props` and `watch`. props.value: see adapop/ui/tour/card.py.
const GAP = 12, PATIENCE_MS = 20000, EVERY_MS = 120, CALM = 8, NEAR = 4;
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

// scrolls until the target stays where it can be seen: what is above it may still be drawn, and the card may grow
function bring(id) {
  clearInterval(looking);
  const until = Date.now() + PATIENCE_MS, calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let last, still = 0;
  looking = setInterval(() => {
    const target = document.getElementById(id);
    if (!panel() || Date.now() > until || still > CALM) return clearInterval(looking);
    if (!target || !target.offsetHeight) return; // its tab is still being drawn
    const top = covered() + GAP, frame = target.getBoundingClientRect(), moved = frame.top !== last;
    last = frame.top;
    still = moved ? 0 : still + 1;
    const fits = frame.top >= top - NEAR && Math.min(frame.bottom, frame.top + innerHeight - top) <= innerHeight + NEAR;
    if (!moved && !fits) scrollBy({ top: frame.top - top, behavior: calm ? "auto" : "smooth" });
  }, EVERY_MS);
}
for (const kind of ["wheel", "touchmove"]) addEventListener(kind, () => clearInterval(looking), { passive: true });

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

function leave(event) {
  if (event.key !== "Escape" || event.defaultPrevented || !panel()) return;
  const open = [...document.querySelectorAll("ul[role=listbox], [role=dialog], dialog[open]")];
  // Escape closes what is open first; the next one is for the tour
  if (!open.some((one) => one.checkVisibility()) && !document.fullscreenElement) document.getElementById("tour-skip")?.click();
}

if (!window.adapopTour) {
  window.adapopTour = true;
  window.addEventListener("keydown", leave, true); // before whatever is open hears of it, and is gone
}
watch("value", arrive);
arrive();
