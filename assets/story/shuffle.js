// Step 5: the control. Eight facts stand for all: their scores are dealt at random, as in the recorded control, and the cloud
// becomes that run's; or back.
const MORPH_MS = 1400;

function scoresStep(host, story, state) {
  const clouds = [], link = linked(clouds, state), picture = el("div", { class: "one" }), deck = el("div", { class: "deck", "aria-hidden": "true" });
  const button = el("button", { type: "button", class: "big", "aria-pressed": "false", onclick: () => turn(!dealt) }), outcome = el("p", { class: "outcome", "aria-live": "polite" });
  host.append(el("div", { class: "ways deal" }, button, outcome), deck, picture);
  clouds.push(makeCloud(picture, story, "adapop", link(0)));
  const [cloud] = clouds, { byLength, mix, lengths } = cloud.states, usual = USUAL(story), last = (name) => lengths(name).find((one) => one.epochs === usual);
  const cards = story.deck.map(({ fact, given, dealt: other }) => {
    const score = el("b"), card = el("div", { class: `card ${story.facts.tier[fact]}` }, el("span", {}, story.facts.title[fact]), score);
    deck.append(card);
    return { card, score, given, other };
  });
  picture.append(cloud.table);
  host.append(el("details", {}, el("summary", {}, "What it costs, and what does better"), el("ul", {}, ...[...story.costs, story.without, ...story.over_seeds].filter(Boolean).map((line) => el("li", {}, line))), el("p", { class: "by" }, "Means recorded by ", el("code", {}, story.seeds_by))));
  let dealt = false, turning = 0;

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
    button.textContent = dealt ? "Deal them right again" : "Shuffle the scores";
    button.setAttribute("aria-pressed", dealt);
    cloud.title.textContent = story.names[dealt ? "shuffled" : "adapop"];
    outcome.replaceChildren(dealt ? el("b", {}, story.control) : "");
  }

  function turn(to) {
    dealt = to;
    deal();
    words();
    const [from, towards] = (dealt ? ["adapop", "shuffled"] : ["shuffled", "adapop"]).map(last), mine = ++turning, began = performance.now();
    const step = (now) => {
      if (mine !== turning) return;
      const way = calm() ? 1 : clamp((now - began) / MORPH_MS, 0, 1);
      cloud.show(mix([[from, 1 - way], [towards, way]]), usual, true);
      if (way < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  return {
    enter() {
      if (state.pin >= 0) cloud.pin(state.pin, false);
      cloud.redraw();
      deal();
      words();
      cloud.show(mix([[last(dealt ? "shuffled" : "adapop"), 1]]), usual, true);
    },
    leave: () => turning++,
  };
}
