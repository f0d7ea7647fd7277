// Steps 2, 4 and 5: clouds of recorded end states. Each dot is a fact; its height is the share of its held-out rewordings that
// are still answered. Between two recorded runs each dot is interpolated, and the text says so. States: see
// adapop/runs/states.py.
const FIRST_LETTER = 65;

const trainedFor = (epochs) => (epochs === 0 ? "before" : `after ${Number(epochs.toFixed(1))} epoch${epochs === 1 ? "" : "s"}`);

const sharesOf = (story, letters) => Array.from(letters, (letter) => (letter.charCodeAt(0) - FIRST_LETTER) / story.letters);

// the recorded states by length of training and by the β at both anchors; `mix` interpolates between them
function recordedStates(story) {
  const all = story.states.map((one) => ({ ...one, share: sharesOf(story, one.by_fact) }));
  const original = all.find((one) => !one.epochs), { betas, epochs: usual } = story.grid;
  const lengths = (name) => [original, ...all.filter((one) => one.name === name && !one.anchors).sort((a, b) => a.epochs - b.epochs)];
  const at = (rare, popular) => all.find((one) => one.anchors?.[0] === rare && one.anchors[1] === popular)
    ?? all.find((one) => one.name === "adapop" && one.epochs === usual && !one.anchors); // the preset's own pair

  // parts: [state, weight]s whose weights add up to 1
  function mix(parts) {
    const some = parts.filter(([, weight]) => weight > 1e-6), sum = (of) => some.reduce((total, [state, weight]) => total + weight * of(state), 0);
    const recorded = some.length === 1, [[first]] = some;
    return {
      recorded, share: recorded ? first.share : first.share.map((_, fact) => sum((state) => state.share[fact])),
      gap: recorded ? first.gap : { mean: sum((state) => state.gap.mean), low: 0, high: 0 },
      tiers: [0, 1, 2].map((tier) => sum((state) => state.tiers[tier])), left: sum((state) => state.left), holdout: sum((state) => state.holdout),
    };
  }

  // [place below, share of the way to the next] of a value in a rising list
  function cell(list, value) {
    let place = 0;
    while (place < list.length - 2 && list[place + 1] <= value) place++;
    return [place, clamp((value - list[place]) / (list[place + 1] - list[place]), 0, 1)];
  }

  function byLength(name, epochs) {
    const stops = lengths(name), [place, way] = cell(stops.map((one) => one.epochs), epochs);
    return mix([[stops[place], 1 - way], [stops[place + 1], way]]);
  }

  // β falls with popularity, so on the diagonal a cell is a triangle
  function byBetas(rare, popular) {
    const [i, u] = cell(betas, rare), [j, v] = cell(betas, popular), corner = (a, b) => at(betas[i + a], betas[j + b]);
    if (i === j) return mix([[corner(0, 0), 1 - u], [corner(1, 0), Math.max(0, u - v)], [corner(1, 1), Math.min(u, v)]]);
    return mix([[corner(0, 0), (1 - u) * (1 - v)], [corner(1, 0), u * (1 - v)], [corner(0, 1), (1 - u) * v], [corner(1, 1), u * v]]);
  }

  // the first length of training after which a method's recall is down to that share
  function lengthFor(name, left) {
    const stops = lengths(name), place = stops.findIndex((one, at) => at && one.left <= left);
    if (place < 0) return stops[stops.length - 1].epochs;
    const [before, after] = [stops[place - 1], stops[place]];
    return before.epochs + clamp((before.left - left) / (before.left - after.left || 1), 0, 1) * (after.epochs - before.epochs);
  }

  return { lengths, byLength, byBetas, lengthFor, mix, original };
}

// one cloud under its headline. name: of a recorded method. links: {onpin, onpoint}
function makeCloud(host, story, name, links) {
  const states = recordedStates(story), stops = states.lengths(name), replies = (part) => stops.map((one) => story.replies[name]?.[part][one.epochs] ?? null);
  const lengths = { epoch: stops.map((one) => one.epochs), p: stops.map((one) => one.share.map((share) => 1000 * share)), said: replies("said"), right: replies("right") };
  const motion = { ...lengths }, number = el("b"), range = el("span"), remains = el("p", { class: "kept" }), picture = el("div"), title = el("h3", {}, story.names[name]);
  host.append(el("div", { class: "cloud" }, title, el("p", { class: "gap", "aria-live": "off" }, number, range), picture, remains));
  const field = makeField(picture, story.facts, motion, { name: story.names[name], wordings: story.wordings, label: trainedFor, ...links });

  // mixed: from `recordedStates`; epochs: its length of training. alone: the state is none of `lengths`.
  function show(mixed, epochs, alone = false) {
    Object.assign(motion, alone ? { epoch: [epochs], p: [mixed.share.map((share) => 1000 * share)], said: [null], right: [null] } : lengths, { estimated: !mixed.recorded });
    const { mean, low, high } = mixed.gap;
    number.textContent = `${mixed.recorded ? "" : "≈ "}${points(mean)}`;
    range.replaceChildren(...(mixed.recorded ? [` points of gap${low < high ? ` (${points(low)} to ${points(high)})` : ""}`] : [" points · ", el("i", {}, "between recorded runs")]));
    remains.textContent = `${percent(mixed.left)} left, reworded; ${percent(mixed.holdout)} of others, as trained`;
    field.show(epochs);
  }

  return { ...field, states, title, show, length: (epochs) => show(states.byLength(name, epochs), epochs) };
}

// links clouds to highlight the same fact: place -> {onpin, onpoint}. others: called with the fact too
function linked(clouds, state, others = () => {}) {
  return (place) => ({
    onpin(fact) {
      state.pin = fact;
      clouds.forEach((cloud, other) => other === place || cloud.pin(fact, false));
      others(fact);
      keep("story", { pin: fact < 0 ? null : fact });
    },
    onpoint(fact) {
      clouds.forEach((cloud, other) => other === place || cloud.point(fact, false));
      others(fact < 0 ? state.pin : fact);
    },
  });
}

// what a step does with its clouds and scrubber when it is opened and left
function turns(clouds, scrubber, state, start = 0) {
  return {
    enter(restored) {
      clouds.forEach((cloud) => (state.pin >= 0 && cloud.pin(state.pin, false), cloud.redraw()));
      scrubber.place(restored ? state.epoch : start);
      if (!restored && !calm() && !start) scrubber.play();
    },
    leave: () => scrubber.pause(),
  };
}

const USUAL = (story) => story.grid.epochs;

function fieldStep(host, story, state) {
  const clouds = [], link = linked(clouds, state), steer = el("div"), picture = el("div", { class: "one" });
  host.append(steer, picture);
  clouds.push(makeCloud(picture, story, "wga", link(0)));
  const stops = clouds[0].states.lengths("wga").map((one) => one.epochs).filter((epochs) => epochs <= USUAL(story));
  const scrubber = makeScrubber(steer, { stops, name: "Epochs of training", label: trainedFor, onmove: (epochs) => clouds[0].length((state.epoch = epochs)), onrest: () => keep("story", { epoch: Number(scrubber.value.toFixed(2)) }) });
  picture.append(clouds[0].table);
  return turns(clouds, scrubber, state);
}

// the clouds of several methods under one scrubber, for Compare
function endsOf(host, story, state, names) {
  const clouds = [], link = linked(clouds, state), row = el("div", { class: "beside" }), steer = el("div");
  host.append(steer, row);
  names.forEach((name, place) => {
    const side = el("div");
    row.append(side);
    clouds.push(makeCloud(side, story, name, link(place)));
    side.append(clouds[place].table);
  });
  const stops = clouds[0].states.lengths(names[0]).map((one) => one.epochs);
  makeScrubber(steer, { stops, name: "Epochs of training", label: trainedFor, onmove: (epochs) => clouds.forEach((cloud) => cloud.length(epochs)) }).place(USUAL(story));
}
