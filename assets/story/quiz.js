// Step 6: a quiz. The reader picks a fact and predicts whether it comes back; the recorded probes decide.
const FATES = ["Nothing", "Other words", "A trick"];
const WAYS = { direct: "Asked directly", reworded: "In other words", attack: "With a trick" };

function realModels({ note, head, rows, command, run }) {
  const row = (cells, kind) => el("tr", {}, ...cells.map((cell, place) => el(place ? kind : "th", { scope: place ? false : "row" }, cell)));
  const body = rows.flatMap(([model, ...cells], place) => [...(rows[place - 1]?.[0] === model ? [] : [el("tr", {}, el("th", { class: "model", colspan: head.length }, model))]), row(cells, "td")]);
  const table = el("div", { class: "real" }, el("table", {}, el("thead", {}, row(head, "th")), el("tbody", {}, ...body)));
  return [el("p", { class: "note" }, note), table, el("p", { class: "by" }, "Recorded by ", el("code", {}, command), ". ", el("a", { href: `?run=${encodeURIComponent(run)}` }, "Look at such a run of AdaPop"))];
}

function quizStep(host, story) {
  let turn = 0, right = 0, asked = 0, chosen = null;
  const facts = el("div", { class: "pair", role: "group", "aria-label": "Choose a fact" }), fates = el("div", { class: "fates", role: "group", "aria-label": "Predict" });
  const result = el("div", { class: "result", "aria-live": "polite" }), score = el("p", { class: "score" });
  const more = el("button", { type: "button", class: "big", onclick: next }, "Try another pair");
  host.append(el("p", { class: "lead" }, "1. Choose a fact."), facts, el("p", { class: "lead" }, "2. What is the least that brings it back?"), fates, result,
    el("div", { class: "ways" }, more, el("button", { type: "button", class: "big", onclick: () => openTab("run") }, "Run it yourself"), score), el("details", {}, el("summary", {}, "On real models"), ...realModels(story.real)), el("details", {}, el("summary", {}, "Beyond AdaPop"), el("p", { class: "note" }, story.beyond)));

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
        story.facts.title[entry.fact], el("small", {}, `${story.facts.tier[entry.fact]} here · ${story.facts.question[entry.fact]}`));
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
    result.replaceChildren(el("p", { class: "outcome" }, el("b", {}, which === chosen.outcome ? "Right: " : `You guessed: ${FATES[which].toLowerCase()}. It was: `), `${FATES[chosen.outcome].toLowerCase()}. The right answer is ${answer}.`),
      el("ul", {}, ...lines), el("p", { class: "lead" }, story.end));
    score.textContent = `Your guesses: ${right} of ${asked} right`;
    into(result);
  }

  deal();
  return { enter() {}, leave() {} };
}
