// Steps 2, 4 and 5: the field of one recording, or of two side by side, under one scrubber. All show the facts asked in other
// words, as the gap is measured, and say how many are still answered at the end.

// the same recording, asked in other words: at the moments when that was asked
function inOtherWords(run) {
  const frames = run.epoch.map((_, frame) => frame).filter((frame) => run.reworded[frame]);
  return { epoch: frames.map((frame) => run.epoch[frame]), p: frames.map((frame) => run.reworded[frame]), said: frames.map((frame) => run.said[frame]), right: frames.map((frame) => run.right[frame]) };
}

const gapPoints = ([rare, popular]) => whole(popular - rare);

function gapOf([rare, popular]) {
  return el("p", { class: "gap" }, el("b", {}, String(gapPoints([rare, popular]))),
    el("span", {}, ` points of gap at the end: answers ${percent(popular)} of popular, ${percent(rare)} of rare`));
}

function gapInWords([rare, popular]) {
  return el("p", { class: "outcome" }, `At the end, asked in other words, it still answers ${percent(popular)} of the popular facts and ${percent(rare)} of the rare ones. `,
    el("b", {}, `The gap: ${gapPoints([rare, popular])} points.`));
}

// gaps: whether each of two has its gap above it
function fieldsOf(host, story, state, names, gaps = true) {
  const two = names.length > 1, runs = names.map((name) => story.runs[name]), shown = runs.map(inOtherWords), row = el("div", { class: two ? "beside" : "" });
  host.classList.toggle("two", two);
  const told = two ? null : gapInWords(runs[0].left);
  if (told) host.append(told);
  const fields = shown.map((motion, place) => {
    const place_ = el("div"), title = story.names[names[place]];
    row.append(el("div", {}, two ? el("h3", {}, title) : null, two && gaps ? gapOf(runs[place].left) : null, place_));
    return makeField(place_, story.facts, motion, { name: title, asked: ", asked in other words", shares: false, onpin: (fact) => pinned(fact, place) });
  });
  const scrubber = makeScrubber(host, { stops: shown[0].epoch, name: "Epochs of training", onmove: show, onrest: () => keep("story", { epoch: Number(scrubber.value.toFixed(2)) }) });
  host.append(row);
  row.querySelectorAll(":scope > div").forEach((side, place) => side.append(two ? fields[place].table : ""));
  if (!two) host.append(fields[0].table);

  function pinned(fact, place) {
    state.pin = fact;
    fields.forEach((field, other) => other === place || field.pin(fact, false));
    keep("story", { pin: fact < 0 ? null : fact });
  }

  function show(epoch) {
    state.epoch = epoch;
    fields.forEach((field) => field.show(epoch));
    if (told) told.style.visibility = epoch < scrubber.end ? "hidden" : "visible"; // the end is not told before it is seen
  }

  return {
    enter(restored) {
      if (state.pin >= 0) fields.forEach((field) => field.pin(state.pin, false));
      fields.forEach((field) => field.redraw());
      scrubber.place(restored ? state.epoch : 0);
      if (!restored && !calm()) scrubber.play();
    },
    end: () => scrubber.place(scrubber.end),
    leave: () => scrubber.pause(),
  };
}

const fieldStep = (host, story, state) => fieldsOf(host, story, state, ["wga"]);

function popularityStep(host, story, state) {
  const both = fieldsOf(host, story, state, ["wga", "adapop"]), said_ = el("p", { class: "outcome hidden" }, "The recording above was made with the ◆ where they were. Run it yourself to see what yours do.");
  const curve = el("div", { class: "curve" }), place = el("div", { class: "anchors" }, curve);
  const recorded = JSON.stringify([story.curve.rare, story.curve.popular]);
  host.append(el("h3", {}, "From popularity to β"), el("p", {}, "Each mark: the facts of one popularity. Drag an orange ", el("b", { class: "grip" }, "◆"), ", or use arrow keys."), place, said_);
  let drawn = false;
  const moved = (_, told) => {
    const now = JSON.stringify([told.rare ?? story.curve.rare, told.popular ?? story.curve.popular]);
    if (said_.classList.toggle("hidden", now === recorded)) return;
    into(said_);
  };
  return {
    enter(restored) {
      both.enter(restored);
      if (!drawn) drawCurve(place, { value: story.curve }, moved, () => {});
      drawn = true;
    },
    leave: both.leave,
  };
}

// what the control showed, what it all costs and what does without scores stand above the pictures, so that nobody has to look for them
function scoresStep(host, story, state) {
  host.append(el("p", { class: "outcome" }, el("b", {}, story.control)), el("div", { class: "costs" }, el("b", {}, "What it costs"), el("ul", {}, ...story.costs.map((line) => el("li", {}, line))), ...(story.without ? [el("b", {}, "The best method?"), el("p", { class: "without" }, story.without)] : [])));
  const both = fieldsOf(host, story, state, ["adapop", "shuffled"], false);
  host.append(el("details", {}, el("summary", {}, "Over more seeds, and tuned"), ...story.over_seeds.filter(Boolean).map((line) => el("p", { class: "note" }, line)),
    el("p", { class: "by" }, "Means recorded by ", el("code", {}, story.seeds_by))));
  return both;
}
