// The fields of a race's contestants side by side, under one scrubber and one switch: all at the same epoch, or each at the
// epoch with the same recall as the others. props.value: see `panels` in adapop/ui/compare/fields.py. A new value may draw the template anew.
const picture = el("div");
let drawn = "", mode = "Equal epochs"; // the switch keeps its position when a run is added

function build() {
  const host = element.querySelector(".race-fields"), runs = props.value ?? [];
  if (!host) return;
  if (picture.parentElement !== host) host.replaceChildren(picture);
  const now = JSON.stringify(runs.map((run) => [run.title, run.motion.epoch.length, run.shares]));
  if (now === drawn) return;
  drawn = now;
  picture.replaceChildren();
  if (!runs.length) return;
  const panels = runs.map((run) => {
    const when = el("span", { class: "when" }), place = el("div"), box = el("section", { "aria-label": run.title }, el("h3", {}, run.title, " ", when), place);
    const form = run.shares.some((one) => one.reworded.all === null) ? "direct" : "reworded";
    return { box, place, when, run, form, ends: run.shares.map((one) => one.epoch), left: run.shares.map((one) => one[form].all) };
  });
  const switches = el("div", { class: "ways", role: "group", "aria-label": "Compare at" }), scrubbing = el("div");
  picture.append(el("div", { class: "steer" }, switches, scrubbing), el("div", { class: "pair" }, ...panels.map((panel) => panel.box)));
  for (const panel of panels) panel.field = makeField(panel.place, panel.run.facts, panel.run.motion, { name: panel.run.title });
  const last = Math.max(...runs.map((run) => run.motion.epoch.at(-1))), epochs = [...new Set(runs.flatMap((run) => run.motion.epoch))].sort((a, b) => a - b);
  const most = Math.min(...panels.map((panel) => panel.left[0])), least = Math.max(...panels.map((panel) => Math.min(...panel.left)));
  const stops = Array.from({ length: 11 }, (_, i) => i);
  const modes = { "Equal epochs": { stops: epochs, label: moment, at: (panel, to) => Math.min(to, panel.run.motion.epoch.at(-1)) },
    "Equal forgetting": { stops, label: (to) => `${percent(leftAt(to))} answered`, at: (panel, to) => reached(panel, leftAt(to)) } };
  const leftAt = (to) => most + ((least - most) * to) / 10;
  // needs a measurement after each epoch; else the values between are unknown
  if (!panels.every(({ ends, run }) => run.motion.epoch.every((epoch) => !Number.isInteger(epoch) || ends.includes(epoch)))) delete modes["Equal forgetting"];
  choose(modes[mode] ? mode : "Equal epochs");

  // the first epoch at which a panel's recall falls to a share; measured at the ends of epochs, interpolated linearly between them
  function reached({ ends, left }, share) {
    const frame = left.findIndex((value) => value <= share + 1e-9);
    if (frame <= 0) return ends[Math.max(frame, 0)];
    const apart = clamp((left[frame - 1] - share) / (left[frame - 1] - left[frame] || 1), 0, 1); // rounding may put the share slightly outside
    return ends[frame - 1] + apart * (ends[frame] - ends[frame - 1]);
  }

  // recall at that moment, approximate between two epochs; the dots show probabilities
  function answeredAt({ run, form, ends }, epoch) {
    const [from, apart] = between({ epoch: ends }, epoch), [now, next] = [run.shares[from], run.shares[from + 1]].map((one) => one?.[form]);
    const told = ["rare", "popular"].filter((tier) => now[tier] !== null).map((tier) => `${tier} ${percent(now[tier] + (apart ? apart * (next[tier] - now[tier]) : 0))}`);
    return `${apart ? "≈ " : ""}${told.join(", ")} answered`;
  }

  function choose(name) {
    const { stops, label, at } = modes[name];
    switches.replaceChildren(...Object.keys(modes).map((one) => el("button", { type: "button", "aria-pressed": String(one === name), onclick: () => choose((mode = one)) }, one)));
    scrubbing.replaceChildren();
    // dots of one kind: the questions of the result only where every contestant has been asked them
    const isAsked = ({ run: { motion } }, epoch) => Boolean(motion.answered[motion.epoch.indexOf(epoch)]);
    const show = (to) => panels.forEach((panel) => {
      const epoch = at(panel, to);
      panel.field.show(epoch, panels.every((one) => isAsked(one, at(one, to))));
      panel.when.textContent = name === "Equal epochs" ? moment(epoch) : `${moment(epoch)}: ${answeredAt(panel, epoch)}`;
    });
    const scrubber = makeScrubber(scrubbing, { stops, name: "All contestants", label, onmove: show });
    scrubber.place(name === "Equal epochs" ? last : 10);
  }
}

watch("value", () => {
  document.querySelector("#joining")?.remove();
  build();
});
build();
