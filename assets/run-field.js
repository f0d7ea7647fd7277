// The field of the page's run, and everything else that shows one moment of it, under one scrubber. During a run it follows the
// newest frame, until the visitor goes back. props.value: see adapop/ui/run/field.py. A new value may draw the template anew,
// so the picture is inserted again. Epoch and pinned fact are in the address, and are read from it once.
const picture = el("div");
const given = new URL(location.href).searchParams, from = momentOf(given) === "run" ? given : new URLSearchParams();
let shown = null, pinned = -1, restored = false;

function build() {
  const host = element.querySelector(".run-field"), value = props.value;
  if (!host) return;
  if (picture.parentElement !== host) host.replaceChildren(picture);
  if (!value || !value.motion.epoch.length) {
    shown = null;
    cursor();
    stands(null);
    return picture.replaceChildren(el("p", { class: "note" }, value ? "No frames of this run yet." : "appears when a run starts"));
  }
  if (shown?.run === value.run) {
    Object.assign(shown.motion, value.motion);
    shown.shares.splice(0, Infinity, ...value.shares);
    return shown.scrubber.grow(value.motion.epoch);
  }
  picture.replaceChildren();
  pinned = -1;
  const { motion, shares, facts } = value, place = el("div"), last = motion.epoch[motion.epoch.length - 1];
  picture.append(place);
  const field = makeField(place, facts, motion, { name: "The facts of this run", hint: "click a dot to follow it", below: 150, onpin: (fact) => pin(fact) });
  const scrubber = makeScrubber(picture, { stops: motion.epoch, name: "Frames of this run", onmove: show, onrest: () => address({ epoch: Number(scrubber.value.toFixed(2)) }) });
  const beside = makeMoment(picture, facts, motion, shares);
  picture.append(field.table);
  shown = { run: value.run, motion, shares, scrubber };

  function pin(fact) {
    pinned = fact;
    follow(fact);
    address({ pin: fact < 0 ? null : fact });
    show(scrubber.value);
  }

  function show(epoch) {
    field.show(epoch);
    beside.show(epoch, pinned);
    cursor(epoch);
    stands(epoch);
  }

  const [epoch, fact] = restored ? [NaN, -1] : [parseFloat(from.get("epoch")), parseInt(from.get("pin") ?? -1)];
  if (restored) keep("run", { epoch: null, pin: null }); // they belong to the previous run
  restored = true;
  if (fact >= 0 && fact < facts.title.length) field.pin((pinned = fact), false);
  follow(pinned);
  scrubber.place(isFinite(epoch) ? epoch : last);
}

// the pinned fact comes along to Probe: see question-read.js
function follow(fact) {
  if (fact < 0) delete document.body.dataset.pinned;
  else document.body.dataset.pinned = fact;
}

// results measured at a single epoch ask for the scrubber's epoch: see set-back.js
function stands(epoch) {
  document.body.classList.toggle("moved-back", epoch !== null && epoch < shown.scrubber.end);
  if (epoch === null) delete document.body.dataset.epoch;
  else document.body.dataset.epoch = epoch;
  document.dispatchEvent(new Event("scrubbed"));
}

// marks the moment by a line in the recall chart, at a position from plotly's layout
function cursor(epoch = shown?.scrubber.value) {
  const recall = document.getElementById("recall-chart"); // laid out after the field
  const plot = recall?.querySelector(".js-plotly-plot .svg-container"), layout = recall?.querySelector(".js-plotly-plot")?._fullLayout;
  let line = recall?.querySelector(".cursor");
  if (epoch === undefined || !plot || !layout?.xaxis?._length) return line?.remove();
  if (line?.parentElement !== plot) plot.append((line = el("div", { class: "cursor", "aria-hidden": "true" })));
  const { range, _offset, _length } = layout.xaxis;
  line.style.left = `${_offset + (_length * (epoch - range[0])) / (range[1] - range[0])}px`;
  line.style.top = `${layout.yaxis._offset}px`;
  line.style.height = `${layout.yaxis._length}px`;
}

const charts = element.closest("#charts");
new MutationObserver(() => cursor()).observe(charts, { childList: true, subtree: true });
new ResizeObserver(() => setTimeout(cursor, 200)).observe(charts); // plotly follows a moment later
watch("value", build);
build();
