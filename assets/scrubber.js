// Play, pause and scrub over the moments of a recording. stops: the recorded moments, rising. It moves smoothly between
// them; with reduced motion, and by the arrow keys, it jumps from one to the next. onend: called when it played to the end;
// onrest: called when it comes to rest, there or where the visitor put it. rest: where playing stops, if not at the end.
const CALM_MS = 800, SNAP = 0.012; // share of the slider's length

function makeScrubber(host, { stops, name, seconds = 6, label = moment, onmove, rest = null, onend = () => {}, onrest = () => {} }) {
  let value = stops[0], playing = false, last = 0, following = true;
  const button = el("button", { type: "button", class: "play", onclick: () => (playing ? (pause(), onrest()) : play()) });
  const range = el("input", { type: "range", "aria-label": name, step: "any", oninput: () => (pause(), place(snapped(Number(range.value)))), onchange: () => onrest(), onkeydown: turn });
  const output = el("span", { class: "when", "aria-hidden": "true" });
  host.append(el("div", { class: "scrubber", role: "group", "aria-label": name }, button, range, output));
  // snaps: a pointer rarely hits the end of an epoch exactly
  const snapped = (to) => stops.find((stop) => Number.isInteger(stop) && Math.abs(stop - to) < SNAP * (end() - stops[0])) ?? to;
  const end = () => stops[stops.length - 1], goal = () => rest ?? end();

  function limits() {
    range.min = stops[0];
    range.max = end();
  }

  function place(to, told = true) {
    value = clamp(to, stops[0], end());
    following = value === end();
    range.value = value;
    range.style.setProperty("--done", `${(100 * (value - stops[0])) / (end() - stops[0] || 1)}%`);
    output.textContent = label(value);
    range.setAttribute("aria-valuetext", label(value));
    if (told) onmove(value);
  }

  function shown() {
    button.setAttribute("aria-label", playing ? "Pause" : "Play"); // its sign is drawn by the style sheet
  }

  function play() {
    if (value >= goal()) place(stops[0]);
    playing = true;
    last = 0;
    shown();
    requestAnimationFrame(step);
  }

  function pause() {
    playing = false;
    shown();
  }

  function step(now) {
    if (!playing) return;
    if (!host.isConnected || !host.checkVisibility()) return pause(); // it is no longer visible
    if (!last) last = now;
    if (!calm()) {
      place(Math.min(goal(), value + ((goal() - stops[0]) * (now - last)) / (1000 * seconds)));
      last = now;
    } else if (now - last >= CALM_MS) {
      place(stops.find((stop) => stop > value) ?? end());
      last = now;
    }
    if (value < goal()) return requestAnimationFrame(step);
    pause();
    onend();
    onrest();
  }

  function turn(event) {
    const to = {
      ArrowRight: () => stops.find((stop) => stop > value + 1e-9) ?? end(),
      ArrowUp: () => stops.find((stop) => stop > value + 1e-9) ?? end(),
      ArrowLeft: () => stops.findLast((stop) => stop < value - 1e-9) ?? stops[0],
      ArrowDown: () => stops.findLast((stop) => stop < value - 1e-9) ?? stops[0],
      Home: () => stops[0],
      End: end,
    }[event.key];
    if (event.key === " ") playing ? pause() : play();
    else if (to) (pause(), place(to()), onrest());
    else return;
    event.preventDefault();
  }

  // new frames: moves to the newest, unless the visitor has gone back
  function grow(more) {
    const newest = following && !playing;
    stops = more;
    limits();
    place(newest ? end() : value);
  }

  limits();
  place(value, false);
  shown();
  return { play, pause, grow, place, get value() { return value; }, get end() { return end(); }, get playing() { return playing; } };
}
