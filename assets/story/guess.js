// Step 1: a guess on two facts, answered at once by the recording.
const BAR = 90; // pixels at the foot of the window that the step buttons cover

function guessStep(host, story, state) {
  const pair = story.pair, end = pair.stop, stops = pair.epoch.filter((epoch) => epoch <= end); // at `end` exactly one fact is lost
  let guess = null, told = false;
  const outcome = el("p", { class: "outcome", "aria-live": "polite" });
  const sides = [0, 1].map((fact) => {
    const bar = el("i"), sure = el("b", { class: "sure" }), says = el("span", { class: "says" }), again = el("span", { class: "again" });
    const button = el("button", { type: "button", class: "big choice", onclick: () => choose(fact) }, pair.title[fact]);
    const card = el("div", { class: `side ${pair.tier[fact]}` }, button, el("p", { class: "asked" }, pair.question[fact]),
      el("div", { class: "bar", "aria-hidden": "true" }, bar), el("p", { class: "reading" }, sure, " sure of the right answer"), el("p", { class: "reading" }, says), el("p", { class: "reading again" }, again));
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
    if (outcome.getBoundingClientRect().bottom > innerHeight - BAR) cards.scrollIntoView({ block: "start", behavior: calm() ? "auto" : "smooth" });
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
