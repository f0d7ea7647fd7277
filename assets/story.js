// The Story: one article on one picture. Two clouds of dots stand side by side at equal size: the facts to forget, and
// held-out facts, which no training touches. The gap is seen in the first, its cost in the second. Scenes follow one another,
// by scrolling, by arrow keys, or one at a time in Present; the address has the current one, as ?story=3. All data: see
// adapop/ui/story/content.py. Compare draws the first cloud of two methods with `endsOf`.
const FIRST_LETTER = 65, MORPH_MS = 1400, FOOT = 64, ROOM = 24; // FOOT: pixels of the buttons at the foot of the window; ROOM: kept free above it
const NAMED = { rare: 0, middle: 1, popular: 2 };

const trainedFor = (epochs) => (epochs === 0 ? "before" : `after ${Number(epochs.toFixed(1))} epoch${epochs.toFixed(1) === "1.0" ? "" : "s"}`);
const sharesOf = (story, letters) => Array.from(letters, (letter) => (letter.charCodeAt(0) - FIRST_LETTER) / story.letters);
const stateOf = (story, one) => ({ ...one, share: sharesOf(story, one.by_fact), held: sharesOf(story, one.held_out) });
const USUAL = (story) => story.grid.epochs;

// the recorded states by length of training and by the β at both anchors; `mix` interpolates between them
function recordedStates(story) {
  const all = story.states.map((one) => stateOf(story, one));
  const original = all.find((one) => !one.epochs), { betas, epochs: usual } = story.grid;
  const lengths = (name) => [original, ...all.filter((one) => one.name === name && !one.anchors).sort((a, b) => a.epochs - b.epochs)];
  const at = (rare, popular) => all.find((one) => one.anchors?.[0] === rare && one.anchors[1] === popular)
    ?? all.find((one) => one.name === "adapop" && one.epochs === usual && !one.anchors); // the preset's own pair

  // parts: [state, weight]s whose weights add up to 1
  function mix(parts) {
    const some = parts.filter(([, weight]) => weight > 1e-6), sum = (of) => some.reduce((total, [state, weight]) => total + weight * of(state), 0);
    const recorded = some.length === 1, [[first]] = some, dots = (name) => (recorded ? first[name] : first[name].map((_, fact) => sum((state) => state[name][fact])));
    return {
      recorded, share: dots("share"), held: dots("held"), gap: recorded ? first.gap : { mean: sum((state) => state.gap.mean), low: 0, high: 0 },
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

  return { lengths, byLength, byBetas, lengthFor, mix, original, end: (name) => mix([[lengths(name).find((one) => one.epochs === usual) ?? lengths(name)[1], 1]]) };
}

// the height that a scene leaves to its clouds, so that all of it is seen at once
function tallIn(width, canvas) {
  const scene = canvas.closest(".scene"), most = Math.round(clamp(0.66 * width, 215, 380));
  if (!scene) return clamp(most, 215, clamp(innerHeight - 530, 215, 400));
  const zoom = zoomOf(canvas), plots = [...canvas.closest(".clouds").querySelectorAll("canvas")].map((one) => one.clientHeight);
  const box = scene.getBoundingClientRect(), above = document.body.classList.contains("presenting") ? box.top + scrollY : 0; // a slide stands below the tabs
  const others = (above + box.height) / zoom - Math.max(...plots);
  return clamp(Math.floor(innerHeight / zoom - FOOT - ROOM - others), width < 260 ? 200 : 170, most);
}

const UNTOLD = "\u00a0"; // where a number will stand: its line is there when the height that remains is measured
const gapWords = ({ recorded, gap: { mean, low, high }, tiers }) => [`${recorded ? "" : "≈ "}${apart(tiers[2], tiers[0])}`, " points", recorded ? (low < high ? ` (95% interval ${whole(low)} to ${whole(high)})` : "") : " (estimated from nearby runs)"];

// the cloud of the facts to forget under a headline and the gap. name: of a recorded method. named: whether the interval is named. more: {title, onpin, onpoint, bare}
function makeCloud(host, story, name, { title = story.names[name], named = true, ...more } = {}) {
  const states = recordedStates(story), lengths = {};
  // every recorded length of a method's training
  function lengthsOf(of) {
    const stops = states.lengths(of), replies = (part) => stops.map((one) => story.replies[of]?.[part][one.epochs] ?? null);
    return (lengths[of] ??= { epoch: stops.map((one) => one.epochs), p: stops.map((one) => one.share.map((share) => 1000 * share)), said: replies("said"), right: replies("right") });
  }
  const motion = { ...lengthsOf(name) }, number = el("b", {}, UNTOLD), range = el("span"), remains = el("p", { class: "kept" }, UNTOLD), plot = el("div", { class: "plot" }), heading = el("h3", {}, title);
  host.append(el("div", { class: "head" }, heading, el("p", { class: "gap", "aria-live": "off" }, "Gap: ", number, range)), plot, remains);
  const field = makeField(plot, story.facts, motion, { name: `Facts to forget, ${story.names[name]}`, wordings: story.wordings, label: trainedFor, tall: tallIn, ...more });

  // mixed: from `recordedStates`; epochs: its length of training. of: the method of which it is a length; null: of none
  function show(mixed, epochs, of = null) {
    Object.assign(motion, of ? lengthsOf(of) : { epoch: [epochs], p: [mixed.share.map((share) => 1000 * share)], said: [null], right: [null] }, { estimated: !mixed.recorded });
    const [value, ...rest] = gapWords(mixed);
    number.textContent = value;
    range.textContent = rest.join("").replace("95% interval ", named ? "95% interval " : ""); // said once a screen
    remains.textContent = `Still answered, asked in other words: ${exact(mixed.left)}`;
    field.show(epochs);
  }

  return { ...field, states, heading, show, length: (epochs, of = name) => show(states.byLength(of, epochs), epochs, of) };
}

// both clouds of a method. onpin, onpoint: called with a fact to forget
function makePair(host, story, name, { onpin = () => {}, onpoint = () => {} } = {}) {
  const sides = [0, 1].map(() => el("div", { class: "side" })), row = el("div", { class: "clouds" }, ...sides);
  host.append(row);
  const forget = makeCloud(sides[0], story, name, { title: "Facts to forget", onpin, onpoint });
  const held = makeHeld(sides[1], story);
  const show = (mixed, epochs, of) => (forget.show(mixed, epochs, of), held.show(mixed, epochs));
  for (const [table, of] of [[forget.table, "Facts to forget"], [held.table, "Held-out facts"]]) table.querySelector("summary").textContent = of;
  host.append(el("div", { class: "folded" }, el("details", {}, el("summary", {}, "Tables"), forget.table, held.table)));
  return { ...forget, show, fit: () => (forget.fit(), held.fit()), length: (epochs, of = name) => show(forget.states.byLength(of, epochs), epochs, of) };
}

// the cloud of the held-out facts, with the share of them that is still answered
function makeHeld(host, story) {
  const number = el("b", {}, UNTOLD), range = el("span"), plot = el("div", { class: "plot" }), motion = { epoch: [0], p: [story.held.score.map(() => 1000)], said: [null], right: [null] };
  host.append(el("div", { class: "head" }, el("h3", {}, "Held-out facts ", el("small", {}, "never trained on")), el("p", { class: "gap cost", "aria-live": "off" }, number, range)), plot);
  const field = makeField(plot, story.held, motion, { name: "Held-out facts", held: true, bare: innerWidth <= 640, label: trainedFor, tall: tallIn });
  const show = ({ recorded, held, holdout }, epochs) => {
    Object.assign(motion, { epoch: [epochs], p: [held.map((share) => 1000 * share)], estimated: !recorded });
    number.textContent = `${recorded ? "" : "≈ "}${exact(holdout)}`;
    range.textContent = " still answered";
    field.show(epochs);
  };
  return { ...field, show };
}

// moves a pair of clouds from one recorded state to another; the last call of a scene wins
function makeMorph(show) {
  let turning = 0;
  const morph = (states, from, to) => {
    const mine = ++turning, began = performance.now(), step = (now) => {
      if (mine !== turning) return;
      const way = calm() ? 1 : clamp((now - began) / MORPH_MS, 0, 1), eased = way * way * (3 - 2 * way);
      show(way < 1 ? states.mix([[from, 1 - eased], [to, eased]]) : to);
      if (way < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  };
  return Object.assign(morph, { stop: () => turning++ });
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

// what a scene does with its clouds and scrubber when it is opened and left
function turns(clouds, scrubber, state, start = 0) {
  return {
    enter(restored) {
      clouds.forEach((cloud) => state.pin >= 0 && cloud.pin(state.pin, false));
      scrubber.place(restored ? state.epoch : start);
      if (!restored && !calm() && !start) scrubber.play();
    },
    leave: () => scrubber.pause(),
    fit: () => clouds.forEach((cloud) => cloud.fit()),
  };
}

const keepEpoch = (scrubber) => keep("story", { epoch: Number(scrubber.value.toFixed(2)) });

// a row of buttons of which one is pressed. options: name -> words; onpick: called with a name
function makeChips(options, about, onpick) {
  const buttons = Object.entries(options).map(([name, words]) => [name, el("button", { type: "button", class: "chip", "aria-pressed": "false", onclick: () => (set(name), onpick(name)) }, words)]);
  const set = (name) => buttons.forEach(([other, button]) => button.setAttribute("aria-pressed", other === name));
  return { row: el("div", { class: "chips", role: "group", "aria-label": about }, ...buttons.map(([, button]) => button)), set };
}

// a small table. rows: lists of texts, the first a row's name
const tableOf = (head, rows, about) => el("div", { class: "real" }, el("table", { "aria-label": about }, el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, cell)))), el("tbody", {}, ...rows.map(([name, ...cells]) => el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((cell) => el("td", {}, cell)))))));

// a method's numbers as a row: gap, rare, popular, held-out
const numbersOf = ({ recorded, tiers, holdout }) => [apart(tiers[2], tiers[0]), exact(tiers[0]), exact(tiers[2]), exact(holdout)].map((text) => (recorded ? text : `≈ ${text}`));

// ---- the scenes, each as (host, story, state) -> {enter, leave} ----
// A guess on two facts, answered at once by the recording.
function guessScene(host, story) {
  const pair = story.pair, end = pair.stop, stops = pair.epoch.filter((epoch) => epoch <= end); // at `end` exactly one fact is lost
  let guess = null, told = false;
  const outcome = el("p", { class: "outcome", "aria-live": "polite" });
  const sides = [0, 1].map((fact) => {
    const bar = el("i"), sure = el("b", { class: "sure" }), says = el("span", { class: "says" }), again = el("span", { class: "again" });
    const button = el("button", { type: "button", class: "big choice", onclick: () => choose(fact) }, pair.title[fact]);
    const card = el("div", { class: `side ${pair.tier[fact]}` }, button, el("p", { class: "asked" }, pair.question[fact]),
      el("div", { class: "bar", "aria-hidden": "true" }, bar), el("p", { class: "reading" }, sure, " sure of the answer"), el("p", { class: "reading" }, says), el("p", { class: "reading again" }, again));
    return { card, button, bar, sure, says, again };
  });
  const control = el("div", { class: "hidden" }), cards = el("div", { class: "pair ask" }, ...sides.map((side) => side.card));
  host.append(cards, control, outcome);
  const scrubber = makeScrubber(control, { stops, name: "Epochs of forgetting two facts", seconds: 5, onmove: show, onend: answer });

  function choose(fact) {
    guess = fact;
    told = false;
    sides.forEach(({ button }, place) => {
      button.setAttribute("aria-pressed", place === fact);
      button.classList.toggle("chosen", place === fact);
    });
    control.classList.remove("hidden");
    cards.classList.remove("ask");
    cards.classList.add("played"); // from now on the bars follow the recording
    outcome.textContent = `You say ${pair.title[fact]}. Let’s see …`;
    if (outcome.getBoundingClientRect().bottom > innerHeight - FOOT) cards.scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
    scrubber.pause();
    scrubber.place(0);
    scrubber.play();
  }

  function answer() {
    told = true;
    const right = pair.first === null ? "A tie." : guess === pair.first ? "You were right." : "It was the other one.";
    into(outcome);
    outcome.replaceChildren(el("b", {}, guess === null ? "" : `${right} `), pair.outcome);
  }

  function show(epoch) {
    sides.forEach((side, fact) => {
      const sure = probability(pair, epoch, fact), reworded = probability(pair, epoch, fact, "reworded"), [reply, , right] = said(pair, epoch, fact);
      side.bar.style.width = `${100 * sure}%`;
      side.bar.style.opacity = 0.35 + 0.65 * sure;
      side.sure.textContent = percent(sure);
      side.says.replaceChildren("The model says: ", el("b", { class: right ? "right" : "wrong" }, `${reply}${mark(right)}`));
      side.again.textContent = reworded === null ? "" : `Asked in other words: ${percent(reworded)} sure`;
    });
    if (epoch >= end && !scrubber.playing && !told && guess !== null) answer();
  }

  return {
    // the first picture: both bars rise to how sure the model is
    enter() {
      if (guess !== null) return void (told || scrubber.play());
      for (const { bar } of sides) bar.style.width = "0";
      requestAnimationFrame(() => requestAnimationFrame(() => show(0)));
    },
    leave: () => scrubber.pause(),
  };
}

function fieldScene(host, story, state) {
  const clouds = [], link = linked(clouds, state), steer = el("div");
  host.append(steer);
  clouds.push(makePair(host, story, "wga", link(0)));
  const stops = clouds[0].states.lengths("wga").map((one) => one.epochs).filter((epochs) => epochs <= USUAL(story));
  const scrubber = makeScrubber(steer, { stops, name: "Epochs of training", label: trainedFor, onmove: (epochs) => clouds[0].length((state.epoch = epochs)), onrest: () => keepEpoch(scrubber) });
  return turns(clouds, scrubber, state);
}

// Why popular facts stay: pairs of a rare and a popular fact that begin equally sure, linked by lines, in a recorded run of
// equal pressure. The held-out facts beside them are those of that moment.
function whyScene(host, story, state) {
  const run = story.hill, pairs = story.pairs, reading = el("p", { class: "outcome" }), steer = el("div"), end = run.epoch[run.epoch.length - 1];
  const sides = [0, 1].map(() => el("div", { class: "side" })), plot = el("div", { class: "plot" }), states = recordedStates(story), number = el("b"), range = el("span");
  host.append(steer, el("div", { class: "clouds" }, ...sides), reading);
  sides[0].append(el("div", { class: "head" }, el("h3", {}, "Facts to forget"), el("p", { class: "gap" }, number, range)), plot);
  const held = makeHeld(sides[1], story), none = run.epoch.map(() => null);
  const field = makeField(plot, story.facts, { ...run, said: none, right: none }, { name: "Pairs of facts that start equally sure", pairs, label: moment, tall: tallIn, onpin: (fact) => (state.pin = fact) });
  const drawn = new DOMParser().parseFromString(story.method, "image/svg+xml").documentElement;
  host.append(el("div", { class: "folded" }, el("details", {}, el("summary", {}, "The method"), el("p", { class: "formula" }, "pressure on a fact = p", el("sup", {}, "β"), " · (1 − p)"), el("p", { class: "note" }, "p: how sure the model is of the answer. Equal pressure (WGA): β = 1 for every fact. AdaPop: β from the fact’s popularity."), el("div", { class: "whole", tabindex: 0 }, drawn)), field.table));
  const scrubber = makeScrubber(steer, { stops: run.epoch, name: "Epochs of equal pressure", seconds: 7, onmove: show });
  const mean = (of) => of.reduce((total, one) => total + one, 0) / of.length;

  function show(epoch) {
    const sure = pairs.map((pair) => pair.map((fact) => probability(run, epoch, fact))), [rare, popular] = [0, 1].map((side) => mean(sure.map((pair) => pair[side])));
    const surer = sure.filter(([seldom, often]) => often > seldom).length;
    field.show(epoch);
    held.show(states.byLength("wga", Math.min(epoch, USUAL(story))), epoch);
    number.textContent = `${surer} of ${pairs.length}`;
    range.textContent = " pairs: the model is surer of the popular fact";
    reading.replaceChildren(el("b", {}, epoch ? `${moment(epoch).replace(/^./, (letter) => letter.toUpperCase())}: ` : "Before training: "), `the model is ${percent(popular)} sure of the popular facts, ${percent(rare)} of the rare ones. `, epoch === end ? story.pairs_end : "");
  }

  return {
    enter(restored) {
      if (state.pin >= 0) field.pin(state.pin, false);
      scrubber.place(restored ? state.epoch : run.epoch[0]);
      if (!restored && !calm()) scrubber.play();
    },
    leave: () => scrubber.pause(),
    fit: () => (field.fit(), held.fit()),
  };
}

// The remedy: the curve below the first cloud is an input, on the same axis. Its handles move both clouds between recorded
// runs; "Run exactly this" starts a run with it, whose dots then take the estimate's place.
function popularityScene(host, story, state) {
  const clouds = [], link = linked(clouds, state, lit), usual = USUAL(story), methods = { wga: "Equal pressure (WGA)", adapop: "AdaPop" };
  const steer = el("div", { class: "steered" }), curve = el("div", { class: "curve" }), anchors = el("div", { class: "anchors" }, curve), numbers = el("div"), readout = el("div", { class: "readout" });
  const lock = el("input", { type: "checkbox", onchange: () => scrubber.place(scrubber.value) });
  const run = el("button", { type: "button", class: "big run", onclick: start }, "Run exactly this"), status = el("p", { class: "live", "aria-live": "polite" });
  let redraw = null, moved = null, running = null, shown = "adapop", dropped = "";
  const reset = el("button", { type: "button", class: "link reset", hidden: true, "aria-label": "Reset the curve", onclick: () => (back(), show(scrubber.value)) }, "Reset");
  const scrubbing = el("div"), chips = makeChips(methods, "Which method the clouds show", (name) => turn(name));
  steer.append(chips.row, scrubbing);
  host.append(steer);
  clouds.push(makePair(host, story, "adapop", link(0)));
  const [pair] = clouds, { states } = pair, morph = makeMorph((mixed) => pair.show(mixed, usual));
  anchors.append(reset);
  readout.append(numbers, el("div", { class: "live-row" }, run, el("label", { class: "lock" }, lock, " Compare at equal forgetting")), status);
  host.querySelector(".folded").before(el("div", { class: "under" }, anchors, readout));
  const stops = states.lengths("wga").map((one) => one.epochs), own = { rare: [...story.curve.rare], popular: [...story.curve.popular] };
  const scrubber = makeScrubber(scrubbing, { stops, name: "Epochs of training of both methods", rest: usual, label: told, onmove: show, onrest: () => keepEpoch(scrubber) });
  const order = [...story.facts.score.keys()].sort((a, b) => story.facts.score[a] - story.facts.score[b] || a - b);
  const props_ = { value: story.curve };
  // marks the same fact on the curve, whose marks are ordered by score
  function lit(fact) {
    curve.querySelectorAll(".fact").forEach((mark, place) => mark.classList.toggle("lit", order[place] === fact));
  }

  function lengthOf(name, epochs) {
    return name === "adapop" && lock.checked ? states.lengthFor("adapop", states.byLength("wga", epochs).left) : epochs;
  }

  // beside the scrubber: which dots are shown. At equal forgetting AdaPop's are of another length than the scrubber's
  function told(epochs) {
    return shown === "adapop" && lock.checked ? `AdaPop ${trainedFor(lengthOf(shown, epochs))}` : trainedFor(epochs);
  }

  // the numbers of both methods, also of the one whose clouds are not shown. ours: AdaPop's, or the curve's
  function tell(epochs, ours, words = "AdaPop") {
    const theirs = states.byLength("wga", epochs), length = lengthOf("adapop", epochs);
    const rows = [["wga", `WGA, ${trainedFor(epochs)}`, theirs], ["adapop", `${words}, ${trainedFor(length)}`, ours ?? states.byLength("adapop", length)]];
    numbers.replaceChildren(tableOf(["", "gap", "rare", "popular", "held-out"], rows.map(([, name, mixed]) => [name, ...numbersOf(mixed)]), "Answered after training, by method"));
    numbers.querySelectorAll("tbody tr").forEach((row, place) => row.classList.toggle("shown", rows[place][0] === shown));
  }

  function show(epochs) {
    morph.stop();
    state.epoch = epochs;
    if (moved) {
      back();
      dropped = `The curve is AdaPop’s own again: other curves were recorded only after ${usual} epochs.`;
    }
    pair.length(lengthOf(shown, epochs), shown);
    tell(epochs);
    status.textContent = lock.checked ? `${epochs ? `AdaPop, ${trainedFor(lengthOf("adapop", epochs))}, has forgotten as much as WGA ${trainedFor(epochs)}. ` : ""}${dropped}` : dropped;
  }

  // changes the method that the clouds show
  function turn(name) {
    const before = states.byLength(shown, lengthOf(shown, scrubber.value)), mine = name === "adapop" && moved?.mixed;
    shown = name;
    chips.set(name);
    scrubber.pause();
    scrubber.place(scrubber.value, false);
    const after = mine || states.byLength(name, lengthOf(name, scrubber.value));
    morph(states, before, after);
    tell(scrubber.value, moved?.mixed, moved?.words);
  }

  // resets the curve to that of the recorded lengths
  function back() {
    moved = null;
    reset.hidden = true;
    props_.value = { ...props_.value, rare: [...own.rare], popular: [...own.popular] };
    redraw?.();
  }

  function drag([[, rare], [, popular]]) {
    if (rare === (moved ?? own).rare[1] && popular === (moved ?? own).popular[1]) return;
    morph.stop();
    moved = { rare: [own.rare[0], rare], popular: [own.popular[0], popular], mixed: states.byBetas(rare, popular), words: "AdaPop, your curve" };
    reset.hidden = false;
    props_.value = { ...props_.value, rare: moved.rare, popular: moved.popular }; // keeps the handles when it is drawn anew
    lock.checked = false;
    dropped = "";
    shown = "adapop";
    chips.set(shown);
    scrubber.pause();
    scrubber.place(usual, false);
    pair.show(moved.mixed, usual);
    tell(usual, moved.mixed, moved.words);
    status.textContent = "";
  }

  // what rests on the slide is what runs: while it plays, where it will rest
  function start() {
    const { rare, popular } = moved ?? own, resting = scrubber.playing ? usual : scrubber.value;
    const epochs = Math.round(moved ? (moved.epochs ?? usual) : lengthOf("adapop", resting)) || usual;
    scrubber.pause();
    morph.stop();
    shown = "adapop";
    chips.set(shown);
    if (!moved) scrubber.place(lock.checked ? scrubber.value : epochs);
    running = { rare, popular, epochs };
    run.disabled = true;
    status.textContent = "Starting a run of your own …";
    state.trigger("release", running);
  }

  // messages of the server on the run started here
  document.addEventListener("adapop-live", ({ detail }) => {
    if (!running || !host.isConnected) return;
    status.textContent = detail.text;
    if (!detail.over) return;
    run.disabled = false;
    if (!detail.state) return;
    const { share, held, gap, tiers, left, holdout } = stateOf(story, detail.state), mixed = { recorded: true, share, held, gap, tiers, left, holdout };
    moved = { ...running, mixed, words: "AdaPop, your run" };
    reset.hidden = false;
    running = null;
    props_.value = { ...props_.value, rare: moved.rare, popular: moved.popular }; // the handles' places when the run was started
    redraw?.();
    shown = "adapop";
    chips.set(shown);
    if (!lock.checked) scrubber.place(moved.epochs, false);
    pair.show(mixed, moved.epochs);
    tell(scrubber.value, mixed, moved.words);
  });

  return {
    enter(restored) {
      if (!redraw) betaCurve(anchors, props_, () => {}, (_, build) => (redraw = build), drag);
      if (state.pin >= 0) pair.pin(state.pin, false);
      scrubber.place(restored ? state.epoch : usual);
      chips.set(shown);
      lit(state.pin);
      if (restored || calm() || moved) return;
      const [even, ours] = ["wga", "adapop"].map((name) => states.byLength(name, usual)); // what equal pressure left, and then the remedy
      pair.show(even, usual);
      setTimeout(() => shown === "adapop" && !moved && scrubber.value === usual && morph(states, even, ours), 900);
    },
    leave: () => (morph.stop(), scrubber.pause()),
    fit: pair.fit,
  };
}

// The control. Eight facts stand for all: their scores are dealt at random, as in the recorded control, and the clouds
// become that run's; or back.
function scoresScene(host, story, state) {
  const clouds = [], link = linked(clouds, state), deck = el("div", { class: "deck", "aria-hidden": "true" });
  const button = el("button", { type: "button", class: "big", "aria-pressed": "false", onclick: () => turn(!dealt) }), outcome = el("p", { class: "outcome", "aria-live": "polite" });
  host.append(el("div", { class: "ways deal" }, button, outcome), deck);
  clouds.push(makePair(host, story, "adapop", link(0)));
  const [pair] = clouds, { states } = pair, morph = makeMorph((mixed) => pair.show(mixed, USUAL(story)));
  const cards = story.deck.map(({ fact, given, dealt: other }) => {
    const score = el("b", {}, given.toLocaleString("en-US")), card = el("div", { class: `card ${story.facts.tier[fact]}` }, el("span", {}, story.facts.title[fact]), score);
    deck.append(card);
    return { card, score, given, other };
  });
  let dealt = false;

  // animates each card's score from its old place to its new one
  function deal() {
    const before = new Map(cards.map(({ score }) => [score.textContent, score.getBoundingClientRect()]));
    for (const { score, given, other } of cards) {
      score.textContent = (dealt ? other : given).toLocaleString("en-US");
      const from = before.get(score.textContent), to = score.getBoundingClientRect();
      if (from && !calm()) score.animate([{ transform: `translate(${from.left - to.left}px, ${from.top - to.top}px)` }, { transform: "none" }], { duration: MORPH_MS, easing: "ease-in-out" });
    }
  }

  function words() {
    button.textContent = dealt ? "Restore the true scores" : "Shuffle the scores";
    button.setAttribute("aria-pressed", dealt);
    outcome.replaceChildren(dealt ? el("b", {}, story.control) : "");
  }

  function turn(to) {
    dealt = to;
    deal();
    words();
    const [from, towards] = (dealt ? ["adapop", "shuffled"] : ["shuffled", "adapop"]).map(states.end);
    morph(states, from, towards);
  }

  return {
    enter() {
      if (state.pin >= 0) pair.pin(state.pin, false);
      deal();
      words();
      pair.show(states.end(dealt ? "shuffled" : "adapop"), USUAL(story));
    },
    leave: morph.stop,
    fit: pair.fit,
  };
}

// What it costs, and who does better: the same clouds under other methods.
function costScene(host, story, state) {
  const clouds = [], link = linked(clouds, state), reading = el("p", { class: "outcome", "aria-live": "polite" });
  const chips = makeChips(story.rivals, "Method", (name) => turn(name));
  host.append(chips.row, reading);
  clouds.push(makePair(host, story, "adapop", link(0)));
  const [pair] = clouds, { states } = pair, morph = makeMorph((mixed) => pair.show(mixed, USUAL(story))), names = Object.keys(story.rivals);
  let shown = "adapop";
  const rows = names.map((name) => [story.rivals[name], exact(states.end(name).left), ...numbersOf(states.end(name))]);
  host.querySelector(".folded").append(el("details", {}, el("summary", {}, "All numbers"), tableOf(["one run each", "forget set", "gap", "rare", "popular", "held-out"], rows, "Answered after training, by method"),
    el("ul", {}, ...[story.without, ...story.costs, ...story.over_seeds].filter(Boolean).map((line) => el("li", {}, line))), el("p", { class: "by" }, "Means recorded by ", el("code", {}, story.seeds_by)), el("p", { class: "note" }, story.beyond)));

  function tell() {
    const { left, holdout } = states.end(shown), ours = states.end("adapop");
    if (shown === "adapop") return reading.replaceChildren();
    reading.replaceChildren(el("b", {}, `${story.rivals[shown]}: `), `${exact(left)} of the forget set and ${exact(holdout)} of the held-out facts are still answered (AdaPop: ${exact(ours.left)} and ${exact(ours.holdout)}).`);
  }

  function turn(name) {
    const from = states.end(shown);
    shown = name;
    tell();
    morph(states, from, states.end(name));
  }

  return {
    enter() {
      if (state.pin >= 0) pair.pin(state.pin, false);
      chips.set(shown);
      tell();
      pair.show(states.end(shown), USUAL(story));
    },
    leave: morph.stop,
    fit: pair.fit,
  };
}

// A quiz on the model of equal pressure: the reader picks a fact and predicts whether it comes back; the recorded probes decide.
const FATES = ["Nothing", "Other words", "A trick"];
const WAYS = { direct: "Asked directly", reworded: "In other words", attack: "With a trick" };

function againScene(host, story) {
  let turn = 0, right = 0, asked = 0, chosen = null;
  const facts = el("div", { class: "pair", role: "group", "aria-label": "Choose a fact" }), fates = el("div", { class: "fates", role: "group", "aria-label": "Predict" });
  const result = el("div", { class: "result", "aria-live": "polite" }), score = el("p", { class: "score" });
  const more = el("button", { type: "button", class: "big", onclick: next }, "Try another pair");
  host.append(el("p", { class: "lead" }, "1. Choose a fact."), facts, el("p", { class: "lead" }, "2. What brings it back?"), fates, result, el("div", { class: "ways" }, more, score));

  function next() {
    turn++;
    deal();
    facts.querySelector("button")?.focus();
  }

  function deal() {
    chosen = null;
    result.replaceChildren();
    const pair = story.quiz[turn % story.quiz.length];
    facts.replaceChildren(...pair.map((entry) => {
      const button = el("button", { type: "button", class: `big choice ${story.facts.tier[entry.fact]}`, "aria-pressed": "false", onclick: () => choose(entry, button) },
        story.facts.title[entry.fact], el("small", {}, `${story.facts.tier[entry.fact]} · ${story.facts.question[entry.fact]}`));
      return button;
    }));
    const first = facts.firstChild; // the first choice
    fates.replaceChildren(...FATES.map((fate, which) => el("button", { type: "button", class: "big", disabled: true, onclick: () => judge(which) }, fate)));
    choose(pair[0], first);
  }

  function choose(entry, button) {
    chosen = entry;
    result.replaceChildren();
    mark(-1);
    for (const other of facts.children) {
      other.classList.toggle("chosen", other === button);
      other.setAttribute("aria-pressed", other === button);
    }
    for (const fate of fates.children) fate.disabled = false;
  }

  // which: index of the guessed outcome, -1 for none
  function mark(which) {
    [...fates.children].forEach((fate, other) => (fate.classList.toggle("chosen", other === which), fate.setAttribute("aria-pressed", other === which)));
  }

  function judge(which) {
    mark(which);
    asked++;
    right += which === chosen.outcome;
    for (const fate of fates.children) fate.disabled = true;
    facts.querySelector(".chosen").disabled = true; // it is known by now
    const answer = story.facts.answer[chosen.fact];
    const lines = chosen.shown.map((one) => el("li", { class: one.right ? "back" : "" }, el("b", {}, WAYS[one.way]), one.way === "direct" ? " " : ` (${one.back} of ${one.tried} bring it back) `,
      el("q", {}, one.prompt), " → ", el("b", {}, one.said || "nothing"), one.right ? " ✓" : " ✗"));
    result.replaceChildren(el("p", { class: "outcome" }, el("b", {}, which === chosen.outcome ? "Correct: " : `You guessed: ${FATES[which].toLowerCase()}. It was: `), `${FATES[chosen.outcome].toLowerCase()}. The right answer is ${answer}.`),
      el("ul", {}, ...lines), el("p", { class: "lead" }, story.end));
    score.textContent = `Your guesses: ${right} of ${asked} right`;
    into(result);
  }

  deal();
  return { enter() {}, leave() {} };
}

// On real models: the same two pictures, with a mark a method in place of dots: what is still answered of what the model
// knew, by tier, with 95% intervals over runs.
const MARKS = ["even", "ours", "dealt"], GROUPS = [["rare", "middle", "popular"], ["retain set", "held-out facts"]];

function realScene(host, story) {
  const { models, command, run } = story.real, names = Object.keys(models), sides = [0, 1].map(() => el("div", { class: "side" })), reading = el("p", { class: "outcome", "aria-live": "polite" });
  const chips = makeChips(Object.fromEntries(names.map((name) => [name, name])), "Model", (name) => show(name)), tables = el("details", {}, el("summary", {}, "Table")), plots = sides.map(() => el("div", { class: "plot marks" }));
  const legend = el("p", { class: "legend" }, ...models[names[0]].arms.map(({ name }, which) => el("span", { class: MARKS[which] }, name)));
  sides.forEach((side, place) => side.append(el("div", { class: "head" }, el("h3", {}, ["Facts to forget ", "Facts to keep "][place], el("small", {}, ["asked in other words", "asked directly"][place]))), plots[place]));
  host.append(el("div", { class: "steered" }, chips.row, legend), el("div", { class: "clouds" }, ...sides), reading, el("div", { class: "folded" }, tables));
  let shown = names[0], width = 0;

  function draw(plot, places) {
    const large = document.body.classList.contains("wide") ? 1.45 : 1;
    width = plots[0].clientWidth;
    const tall = Math.round(clamp(0.5 * width, 180, 270) * large), left = 46 * large, top = 14 * large, bottom = 30 * large, svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const draw = (tag, attributes, text) => {
      const node = svg.appendChild(document.createElementNS(svg.namespaceURI, tag));
      for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
      if (text !== undefined) node.textContent = text;
    };
    const y = (share) => top + (tall - top - bottom) * (1 - share), column = (plot.clientWidth - left - 20 * large) / places.length, aside = 0.3 * column;
    for (const [name, value] of Object.entries({ width: plot.clientWidth, height: tall, role: "img", style: `font-size: ${13 * large}px`, "aria-label": `${shown}: still answered, ${places.join(", ")}; see the table` })) svg.setAttribute(name, value);
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      draw("line", { class: "grid", x1: left, x2: plot.clientWidth, y1: y(share), y2: y(share) });
      draw("text", { x: left - 8, y: y(share) + 4, "text-anchor": "end" }, `${100 * share}%`);
    }
    places.forEach((place, at) => {
      const middle = left + column * (at + 0.5);
      draw("text", { class: "name", x: middle, y: tall - 8 * large, "text-anchor": "middle" }, place);
      models[shown].arms.forEach(({ shares }, which) => {
        const share = shares[place], x = middle + (which - 1) * aside, r = 6 * large;
        if (!share) return;
        draw("line", { class: `range ${MARKS[which]}`, x1: x, x2: x, y1: y(share.low), y2: y(share.high) });
        if (which === 1) draw("rect", { class: MARKS[which], x: x - r, y: y(share.mean) - r, width: 2 * r, height: 2 * r });
        else draw("circle", { class: MARKS[which], cx: x, cy: y(share.mean), r });
        if (aside > 31 * large) draw("text", { class: "value", x: x + r + 3, y: y(share.mean) + 4 }, Math.round(100 * share.mean)); // the axis has the %
      });
    });
    plot.replaceChildren(svg);
  }

  function show(name) {
    shown = name;
    chips.set(name);
    const { arms, words } = models[name], head = ["", ...GROUPS.flat()];
    reading.textContent = words;
    plots.forEach((plot, place) => draw(plot, GROUPS[place]));
    const cell = (share) => (share ? `${percent(share.mean)} (${percent(share.low)} to ${percent(share.high)})` : "");
    tables.replaceChildren(tables.firstChild, el("p", { class: "note" }, story.real.note), tableOf(head, arms.map((arm) => [arm.name, ...GROUPS.flat().map((place) => cell(arm.shares[place]))]), name), el("p", { class: "by" }, "Recorded by ", el("code", {}, command), ". ", el("a", { href: `?run=${encodeURIComponent(run)}` }, "Look at such a run of AdaPop")));
  }

  new ResizeObserver(() => plots[0].clientWidth && plots[0].clientWidth !== width && show(shown)).observe(plots[0]);
  return { enter: () => show(shown), leave() {} };
}

// The reader's own facts, in place: a run on what is typed here, and both clouds of it.
const SAMPLES = 8; // facts of either end that stand there at first

function yoursScene(host, story, state) {
  const { facts } = story, some = ["rare", "popular"].flatMap((tier) => facts.tier.flatMap((of, fact) => (of === tier ? [fact] : [])).slice(0, SAMPLES));
  const quoted = (cell) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const typed = el("textarea", { class: "typed", rows: 7, spellcheck: "false", "aria-label": "Facts, one a line: question, answer, popularity score" });
  typed.value = some.map((fact) => [facts.question[fact], facts.answer[fact], String(facts.score[fact])].map(quoted).join(", ")).join("\n");
  let method = Object.keys(story.own_methods)[0], running = false;
  const run = el("button", { type: "button", class: "big run", onclick: start }, "Run on these facts"), status = el("p", { class: "live", "aria-live": "polite" }), picture = el("div");
  const chips = makeChips(story.own_methods, "Method", (name) => (method = name));
  host.append(typed, el("div", { class: "live-row own" }, chips.row, run, el("button", { type: "button", class: "link", onclick: () => openTab("facts") }, "Go to Facts")), status, picture);
  chips.set(method);

  function start() {
    if (!typed.value.trim()) return void (status.textContent = "Type a fact first.");
    running = run.disabled = true;
    status.textContent = "Starting a run on these facts …";
    state.trigger("release", { typed: typed.value, method });
  }

  document.addEventListener("adapop-live", ({ detail }) => {
    if (!running || !host.isConnected) return;
    status.textContent = detail.text;
    if (!detail.over) return;
    running = run.disabled = false;
    if (detail.own) draw(detail.own);
  });

  // own: facts, held-out facts and both states of the run, see `own_clouds` in adapop/ui/story/screen.py
  function draw(own) {
    const [before, after] = own.states.map((one) => stateOf(story, one)), all = { ...story, ...own, replies: {}, names: { ...story.names, [after.name]: story.own_methods[after.name] } };
    picture.replaceChildren();
    host.classList.add("drawn");
    const pair = makePair(picture, all, after.name), ends = [before, after].map((one) => pair.states.mix([[one, 1]]));
    pair.fit();
    makeMorph((mixed) => pair.show(mixed, after.epochs))(pair.states, ...ends);
    into(picture);
  }

  return { enter() {}, leave() {} };
}

// ---- the article: its scenes, the buttons at the foot, the address ----
const SCENES = [guessScene, fieldScene, whyScene, popularityScene, scoresScene, costScene, againScene, realScene, yoursScene];

// props.value: see adapop/ui/story/content.py
function openStory(element, story, trigger) {
  const host = element.querySelector(".story"), COUNT = story.steps.length, REST = 140; // milliseconds without scrolling
  const given = new URL(location.href).searchParams;
  const mine = momentOf(given) === "story"; // ignores the moment of another tab
  const number = (name, low, high, query = given) => (query.has(name) && isFinite(query.get(name)) ? clamp(Number(query.get(name)), low, high) : null);
  const named = (query) => Math.round(number("story", 1, COUNT, query) ?? 1) - 1; // the scene that an address names
  const state = { trigger, epoch: (mine && number("epoch", 0, 100)) || 0, pin: mine ? Math.floor(number("pin", -1, story.facts.score.length - 1) ?? -1) : -1 };
  const presenting = () => document.body.classList.contains("presenting");
  let current = -1, going = false, resting = 0, arriving = 0, seen = false;

  const progress = el("nav", { class: "progress", "aria-label": "Scenes of the Story" }, ...story.steps.map(([headline], step) =>
    el("button", { type: "button", "aria-label": `Scene ${step + 1} of ${COUNT}: ${headline}`, title: headline, onclick: () => go(step) })));
  const back = el("button", { type: "button", class: "big back", onclick: () => go(current - 1) }, "Back");
  const forward = el("button", { type: "button", class: "big forward", onclick: () => go(current + 1) }, "Next");
  const known = new Set();
  // a scene's sentences; a word of the glossary is a button where it first stands, which opens what it means
  function glossed(words) {
    const fresh = Object.keys(story.glossary).filter((word) => RegExp(`\\b${word}\\b`).test(words) && !known.has(word) && known.add(word));
    const id = (word) => "word-" + word.replaceAll(/\W/g, "-"), meanings = fresh.map((word) => el("div", { class: "meaning", popover: "auto", id: id(word) }, el("b", {}, word), ": ", story.glossary[word]));
    const parts = fresh.length ? words.split(RegExp(`\\b(${fresh.join("|")})\\b`)) : [words], first = new Set(fresh);
    return [el("p", { class: "words" }, ...parts.map((part) => (first.delete(part) ? el("button", { type: "button", class: "word", popovertarget: id(part) }, part) : part))), ...meanings];
  }
  const scenes = story.steps.map(([headline, words], step) => {
    const picture = el("div", { class: "picture" }), from = story.from[step];
    const source = from && el("details", { class: "from" }, el("summary", {}, "Where this comes from"), el("p", { class: "by" }, from, " ", el("code", {}, story.commands[step]), ". ", el("button", { type: "button", class: "link", onclick: () => openTab("run") }, "Run it yourself")));
    const scene = el("div", { class: "scene" }, el("p", { class: from ? "count recorded" : "count" }, `${step + 1} of ${COUNT}`), el("h2", { tabindex: -1 }, headline), ...glossed(words), picture, source);
    return { section: el("section", { "aria-label": `Scene ${step + 1} of ${COUNT}` }, scene), picture, source, step };
  });
  host.replaceChildren(el("div", { class: "stage" }, ...scenes.map(({ section }) => section)), el("div", { class: "turn" }, back, progress, forward));

  // a scene's picture is made when it comes near
  function ready(scene) {
    if (scene.made) return scene.made;
    scene.made = SCENES[scene.step](scene.picture, story, state);
    if (scene.source) scene.picture.querySelector(":scope > .folded")?.append(scene.source); // one line at the foot
    scene.made.fit?.();
    return scene.made;
  }
  const near = new IntersectionObserver((entries) => entries.forEach(({ isIntersecting, target }) => isIntersecting && ready(scenes.find(({ section }) => section === target))), { rootMargin: "60% 0px" });
  scenes.forEach(({ section }) => near.observe(section));

  function enter(step, restored = false) {
    scenes[current]?.made?.leave();
    current = step;
    ready(scenes[step]).enter(restored);
    scenes[step].made.fit?.(); // with all of the scene's words there
    scenes.forEach(({ section }, other) => section.classList.toggle("here", other === step));
    element.dataset.step = document.body.dataset.story = step + 1;
    [...progress.children].forEach((button, other) => {
      button.classList.toggle("past", other <= step);
      button.setAttribute("aria-current", other === step ? "step" : "false");
    });
    back.disabled = step === 0;
    forward.disabled = step === COUNT - 1;
    forward.textContent = step === 0 ? `Next: ${story.facts.score.length.toLocaleString("en-US")} facts` : "Next";
  }

  // scrolls to the current scene; the first stands below the page's head
  function bring(smooth = true) {
    const behavior = smooth && !calm() && !presenting() ? "smooth" : "instant", to = current || presenting() ? scenes[current].section.getBoundingClientRect().top + scrollY : 0;
    going = Math.abs(to - scrollY) > 2 && !presenting();
    scrollTo({ top: to, behavior });
    clearTimeout(resting);
    clearTimeout(arriving);
    arriving = setTimeout(() => (going = false), 1500); // where no end of scrolling is told
  }

  function go(step) {
    step = clamp(step, 0, COUNT - 1);
    if (step === current) return bring();
    enter(step);
    address({ story: step + 1, tab: null }, named(new URL(location.href).searchParams) !== step); // Back returns to the previous scene
    keep("story", { epoch: null });
    scenes[step].section.querySelector("h2").focus({ preventScroll: true });
    bring();
  }

  // the scene in the middle of the window is the current one, once scrolling rests
  function scrolled() {
    if (going || presenting() || !host.checkVisibility()) return;
    clearTimeout(resting);
    resting = setTimeout(() => {
      if (going || presenting() || !host.checkVisibility()) return;
      const middle = innerHeight / 2, step = scenes.findIndex(({ section }) => section.getBoundingClientRect().bottom > middle);
      if (step < 0 || step === current) return;
      enter(step);
      address({ story: step + 1, tab: null });
      keep("story", { epoch: null });
    }, REST);
  }

  function turn(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !host.checkVisibility()) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, canvas, [role=tab], [role=slider], [contenteditable=true]")) return;
    const by = { ArrowRight: 1, ArrowLeft: -1, PageDown: presenting() && 1, PageUp: presenting() && -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    go(current + by);
  }

  addEventListener("scroll", scrolled, { passive: true });
  addEventListener("scrollend", () => (going = false));
  document.addEventListener("keydown", turn);
  addEventListener("popstate", () => {
    const query = new URL(location.href).searchParams, step = named(query);
    if (tabOf(query) !== "story" || step === current) return;
    enter(step);
    bring(false);
  });
  // the Story comes back where it was left, and another tab begins at its top
  new ResizeObserver(() => {
    const visible = host.checkVisibility();
    if (visible === seen) return;
    seen = visible;
    if (visible) bring(false);
    else if (host.isConnected) scrollTo({ top: 0, behavior: "instant" });
  }).observe(host);
  new MutationObserver(() => host.checkVisibility() && host.dataset.presenting !== String(presenting()) && ((host.dataset.presenting = presenting()), setTimeout(() => (scenes[current].made.fit?.(), bring(false)), 120))).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  host.dataset.presenting = presenting();
  host.addEventListener("toggle", (event) => event.target.open && into(event.target), true); // scrolls an unfolded part out from under the buttons
  // a copied address, or a reload, comes back to its tab
  if ([tabOf(given), "pressure"].includes(given.get("tab"))) openTab(tabOf(given), panelOf(given));
  history.scrollRestoration = "manual";
  enter(named(given), mine && given.has("epoch"));
  if (given.has("story")) address({ story: current + 1 });
}

// the first clouds of several methods under one scrubber, for Compare
function endsOf(host, story, state, names) {
  const clouds = [], link = linked(clouds, state), row = el("div", { class: "beside" }), steer = el("div");
  host.append(steer, row);
  names.forEach((name, place) => {
    const side = el("div", { class: "clouds one" });
    row.append(side);
    clouds.push(makeCloud(side, story, name, { ...link(place), named: !place }));
    side.append(clouds[place].table);
  });
  const stops = clouds[0].states.lengths(names[0]).map((one) => one.epochs);
  makeScrubber(steer, { stops, name: "Epochs of training", label: trainedFor, onmove: (epochs) => clouds.forEach((cloud) => cloud.length(epochs)) }).place(USUAL(story));
}

// Shows the Story before Gradio has loaded, and of another address what is being opened. Gradio mounts nothing until some 75 files have come, but the Story's data is in
// the page itself, and its script too. So it is laid out at once, in a copy of the page's look; its elements move into
// Gradio's page once that is visible: nothing is made twice, and no guess is lost.
let moveIn = null;

function early() {
  const config = window.gradio_config, query = new URL(location.href).searchParams;
  const story = config?.components?.find((one) => one.props.elem_id === "story");
  if (!story) return;
  const make = (tag, name, ...children) => {
    const node = document.createElement(tag);
    node.className = name;
    node.append(...children);
    return node;
  };
  const kept = () => { try { return localStorage.getItem("adapop-theme"); } catch { return null; } };
  const theme = kept() ?? query.get("__theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const tagline = config.components.find((one) => one.props.value?.tagline)?.props.value.tagline ?? "";
  let told = [], trigger = (...news) => told.push(news), wanted = null;

  const head = make("div", "header", make("h1", "", config.title), make("p", ""));
  head.lastChild.innerHTML = tagline; // escaped by `values` in adapop/ui/parts/html.py
  const tabs = make("nav", "", ...config.components.filter((one) => one.type === "tabitem").map(({ props }) => {
    const tab = make("button", props.id === tabOf(query) ? "selected" : "", props.label);
    tab.addEventListener("click", () => (wanted = props.label)); // opened once Gradio has loaded
    return tab;
  }));
  const elsewhere = ["tab", "run", "view"].some((name) => query.has(name));
  const element = elsewhere ? make("p", "opening", openingWords(query)) : make("div", "prose", make("div", "story")), style = make("style", "", config.css ?? "");
  const page = make("div", "gradio-container early", head, tabs, element);

  document.body.classList.toggle("dark", theme === "dark");
  document.head.append(style);
  document.body.append(page);
  const openWanted = () => wanted && toTab(wanted);
  if (elsewhere) {
    const wait = (tries) => {
      const open = openTabName() === tabOf(query);
      if (!open && tries) return setTimeout(wait, 50, openTabName() ? tries - 1 : tries);
      page.remove();
      style.remove();
      openWanted();
    };
    return wait(60);
  }
  try {
    openStory(element, story.props.value, (...news) => trigger(...news));
  } catch (error) {
    console.error(error);
    page.remove();
    style.remove();
    return;
  }

  // host: Gradio's element; tell: Gradio's `trigger`
  moveIn = (host, tell) => {
    moveIn = null;
    const move = () => {
      if (!host.checkVisibility()) return requestAnimationFrame(move);
      const focused = page.contains(document.activeElement) ? document.activeElement : null;
      const top = scrollY;
      host.replaceChildren(element);
      page.remove();
      style.remove();
      scrollTo({ top, behavior: "instant" });
      focused?.focus({ preventScroll: true });
      trigger = tell;
      told.forEach((news) => tell(...news));
      openWanted();
    };
    move();
  };
}

function story(element, props, trigger) {
  if (moveIn) moveIn(element, trigger);
  else openStory(element, props.value, trigger);
}

// what the server tells of a run started here
function storyLive(element, props, trigger, watch) {
  watch("value", () => document.dispatchEvent(new CustomEvent("adapop-live", { detail: props.value })));
}

Object.assign(adapop, { early, story, storyLive });
