// The Story: six steps, one at a time; the address has the current one, as ?story=3. props.value: see
// adapop/ui/story/content.py.
const host = element.querySelector(".story"), story = props.value, COUNT = story.steps.length;
const MAKERS = [guessStep, fieldStep, pushStep, popularityStep, scoresStep, quizStep];
const given = new URL(location.href).searchParams;
const mine = momentOf(given) === "story"; // ignores the moment of another tab
const number = (name, low, high, query = given) => (query.has(name) && isFinite(query.get(name)) ? clamp(Number(query.get(name)), low, high) : null);
const named = (query) => Math.round(number("story", 1, COUNT, query) ?? 1) - 1; // the step that an address names
const state = { epoch: (mine && number("epoch", 0, 100)) || 0, pin: mine ? Math.floor(number("pin", -1, story.facts.score.length - 1) ?? -1) : -1 };
const made = [];
let current = -1;

const progress = el("nav", { class: "progress", "aria-label": "Steps of the Story" }, ...story.steps.map(([headline], step) =>
  el("button", { type: "button", "aria-label": `Step ${step + 1} of ${COUNT}: ${headline}`, title: headline, onclick: () => go(step) })));
const stage = el("div", { class: "stage" });
const back = el("button", { type: "button", class: "big back", onclick: () => go(current - 1) }, "Back");
const forward = el("button", { type: "button", class: "big forward", onclick: () => go(current + 1) }, "Next");
host.replaceChildren(stage, el("div", { class: "turn" }, back, progress, forward));

function make(step) {
  const [headline, words] = story.steps[step], picture = el("div", { class: "picture" });
  const section = el("section", { "aria-label": `Step ${step + 1} of ${COUNT}` }, el("div", { class: "top" }, el("p", { class: "count" }, `${step + 1} of ${COUNT}`), el("details", { class: "from" }, el("summary", {}, "Where this comes from"), el("p", { class: "by" }, story.from[step], " ", el("code", {}, story.commands[step]), ". ", el("button", { type: "button", class: "link", onclick: () => openTab("run") }, "Run it yourself")))), el("h2", { tabindex: -1 }, headline), el("p", { class: "words" }, words), picture);
  stage.append(section);
  return { section, ...MAKERS[step](picture, story, state) };
}

function go(step, restored = false) {
  step = clamp(step, 0, COUNT - 1);
  if (step === current) return;
  const first = current < 0;
  made[current]?.leave();
  current = step;
  made[step] ??= make(step);
  made.forEach(({ section }, other) => (section.hidden = other !== step));
  element.dataset.step = document.body.dataset.story = step + 1;
  [...progress.children].forEach((button, other) => {
    button.classList.toggle("past", other <= step);
    button.setAttribute("aria-current", other === step ? "step" : "false");
  });
  back.disabled = step === 0;
  forward.disabled = step === COUNT - 1;
  forward.textContent = step === 0 ? `Next: ${story.facts.score.length.toLocaleString("en-US")} facts` : "Next";
  made[step].enter(restored);
  if (first) return given.has("story") && address({ story: step + 1 });
  address({ story: step + 1, tab: null }, named(new URL(location.href).searchParams) !== step); // Back returns to the previous step
  keep("story", { epoch: null });
  made[step].section.querySelector("h2").focus({ preventScroll: true });
  const above = host.getBoundingClientRect().top;
  if (above < 0) scrollBy({ top: above - 20, behavior: calm() ? "auto" : "smooth" });
}

function turn(event) {
  if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !host.checkVisibility()) return;
  if (event.target.closest?.("input, textarea, select, canvas, [role=tab], [role=slider], [contenteditable=true]")) return;
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  go(current + by);
}

document.addEventListener("keydown", turn);
addEventListener("popstate", () => {
  const query = new URL(location.href).searchParams;
  if (tabOf(query) === "story") go(named(query));
});
host.addEventListener("toggle", (event) => event.target.open && into(event.target), true); // scrolls an unfolded part out from under the buttons
// a copied address, or a reload, comes back to its tab
if (tabOf(given) === given.get("tab")) openTab(tabOf(given));
go(named(given), mine && given.has("epoch"));
