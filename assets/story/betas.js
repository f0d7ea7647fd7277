// Step 4: the curve is an input. Its handles move the 256 dots between recorded runs; "Run exactly this" starts a run with
// it, whose dots then take the estimate's place.
function popularityStep(host, story, state) {
  const clouds = [], link = linked(clouds, state, lit), usual = USUAL(story);
  const steer = el("div", { class: "steered" }), row = el("div", { class: "beside three" }), sides = [0, 1].map(() => el("div")), curve = el("div", { class: "curve" }), anchors = el("div", { class: "anchors" }, el("h3", {}, "Drag a ", el("b", { class: "grip" }, "◆")), curve);
  const lock = el("input", { type: "checkbox", onchange: () => show(scrubber.value) });
  const run = el("button", { type: "button", class: "big run", onclick: start }, "Run exactly this"), status = el("p", { class: "live", "aria-live": "polite" }), also = el("p", { class: "also" });
  row.append(...sides, anchors);
  anchors.append(el("div", { class: "live-row" }, run, status));
  host.append(steer, row, also);
  clouds.push(makeCloud(sides[0], story, "wga", link(0)), makeCloud(sides[1], story, "adapop", link(1)));
  sides.forEach((side, place) => side.append(clouds[place].table));
  const stops = clouds[0].states.lengths("wga").map((one) => one.epochs), own = { rare: [...story.curve.rare], popular: [...story.curve.popular] };
  const scrubber = makeScrubber(steer, { stops, name: "Epochs of training of both", rest: usual, label: trainedFor, onmove: show, onrest: () => keep("story", { epoch: Number(scrubber.value.toFixed(2)) }) });
  steer.append(el("label", { class: "lock" }, lock, " same amount forgotten"));
  const order = [...story.facts.score.keys()].sort((a, b) => story.facts.score[a] - story.facts.score[b] || a - b);
  const props_ = { value: story.curve };
  let redraw = null, moved = null, running = null, dropped = "";

  const ten = clouds.map((cloud, place) => cloud.states.byLength(["wga", "adapop"][place], stops[stops.length - 1]));
  also.replaceChildren(el("b", {}, `After ${stops[stops.length - 1]} epochs: `), `${ten.map((one, place) => `${["WGA", "AdaPop"][place]} gap ${points(one.gap.mean)}, others ${percent(one.holdout)}`).join("; ")}.`);

  // marks the same fact on the curve, whose marks are ordered by score
  function lit(fact) {
    curve.querySelectorAll(".fact").forEach((mark, place) => mark.classList.toggle("lit", order[place] === fact));
  }

  function show(epochs) {
    state.epoch = epochs;
    if (moved) {
      back();
      dropped = `The curve is AdaPop's own again: yours is known after ${usual} epochs alone.`;
    }
    clouds[0].length(epochs);
    const even = clouds[0].states.byLength("wga", epochs).left;
    clouds[1].length(lock.checked ? clouds[1].states.lengthFor("adapop", even) : epochs);
    status.textContent = lock.checked ? `AdaPop leaves as much ${trainedFor(clouds[1].states.lengthFor("adapop", even))}. ${dropped}` : dropped;
  }

  // resets the curve to that of the recorded lengths
  function back() {
    moved = null;
    clouds[1].title.textContent = story.names.adapop;
    props_.value = { ...props_.value, rare: [...own.rare], popular: [...own.popular] };
    redraw();
  }

  function drag([[, rare], [, popular]]) {
    if (rare === (moved ?? own).rare[1] && popular === (moved ?? own).popular[1]) return;
    moved = { rare: [own.rare[0], rare], popular: [own.popular[0], popular] };
    props_.value = { ...props_.value, ...moved }; // keeps the handles when it is drawn anew
    lock.checked = false;
    dropped = "";
    clouds[1].title.textContent = "AdaPop, your curve";
    scrubber.pause();
    scrubber.place(usual, false);
    clouds[0].length(usual);
    clouds[1].show(clouds[1].states.byBetas(rare, popular), usual, true);
    status.textContent = "";
  }

  function start() {
    const { rare, popular } = moved ?? own, even = clouds[0].states.byLength("wga", scrubber.value).left;
    const epochs = Math.round(moved ? (moved.epochs ?? usual) : lock.checked ? clouds[1].states.lengthFor("adapop", even) : scrubber.value) || usual;
    scrubber.pause();
    if (!moved && !lock.checked) scrubber.place(epochs);
    running = { rare, popular, epochs };
    run.disabled = true;
    status.textContent = "Starting a run of its own …";
    trigger("release", running);
  }

  // messages of the server on the run started here
  document.addEventListener("adapop-live", ({ detail }) => {
    if (!running || !host.isConnected) return;
    status.textContent = detail.text;
    if (!detail.over) return;
    run.disabled = false;
    if (!detail.state) return;
    const { by_fact, gap, tiers, left, holdout } = detail.state;
    moved = running;
    running = null;
    props_.value = { ...props_.value, rare: moved.rare, popular: moved.popular }; // the handles' places when the run was started
    redraw();
    clouds[1].title.textContent = "AdaPop, your run";
    if (!lock.checked) {
      scrubber.place(moved.epochs, false);
      clouds[0].length(moved.epochs);
    }
    clouds[1].show({ recorded: true, share: sharesOf(story, by_fact), gap, tiers, left, holdout }, moved.epochs, true);
  });

  const common = turns(clouds, scrubber, state);
  return {
    ...common,
    enter(restored) {
      if (!redraw) drawCurve(anchors, props_, () => {}, (_, build) => (redraw = build), drag);
      common.enter(restored);
      lit(state.pin);
    },
  };
}
