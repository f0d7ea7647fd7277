// The field of the page's run. While the run goes its scrubber follows the newest frame, until the visitor goes back.
// props.value: see adapop/ui/run/field.py. A new value may draw the template anew, so the picture is put in again.
const picture = el("div");
let shown = null;

function build() {
  const host = element.querySelector(".run-field"), value = props.value;
  if (!host) return;
  if (picture.parentElement !== host) host.replaceChildren(picture);
  if (!value || !value.motion.epoch.length) {
    shown = null;
    return picture.replaceChildren(el("p", { class: "note" }, value ? "This run has recorded no frames." : "appears when a run starts"));
  }
  if (shown?.run === value.run) {
    Object.assign(shown.motion, value.motion);
    return shown.scrubber.grow(value.motion.epoch);
  }
  picture.replaceChildren();
  const motion = value.motion, place = el("div");
  picture.append(place);
  const field = makeField(place, value.facts, motion, { name: "The facts of this run", across: "popularity score" });
  const scrubber = makeScrubber(picture, { stops: motion.epoch, name: "Frames of this run", onmove: field.show });
  picture.append(field.table);
  shown = { run: value.run, motion, scrubber };
  scrubber.place(motion.epoch[motion.epoch.length - 1]);
}

watch("value", build);
build();
