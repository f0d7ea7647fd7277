// The replies of the Probe screen: a card a column, its reply as text and as a strip of tokens, and what could have come at the
// chosen token. props.value: see adapop/ui/probe/answers.py. Everything goes in as text, never as HTML.
const board = el("div");
let at = null; // [side, step] whose alternatives are shown

function build() {
  const host = element.querySelector(".strips"), value = props.value;
  if (!host) return;
  if (board.parentElement !== host) host.replaceChildren(board);
  at = null;
  if (!value?.sides) return board.replaceChildren(...(value?.empty ? [el("p", { class: "empty" }, value.empty)] : []));
  const detail = el("div", { class: "likely", "aria-live": "polite" });
  const cards = value.sides.map((side, place) => card(value, side, place, detail));
  board.replaceChildren(...(value.about ? [el("p", { class: "soft" }, value.about)] : []), el("div", { class: "answers" }, ...cards), detail, ...numbers(value));
  const first = value.sides.findIndex((side) => side.steps.length);
  const begins = first < 0 ? 0 : value.sides[first].begun, last = first < 0 ? 0 : value.sides[first].steps.length - 1;
  if (first >= 0) look(value, first, Math.min(begins, last), detail);
}

function card(value, side, place, detail) {
  const words = side.parts.map((part) => (part.gold ? el("mark", { class: part.apart && "apart" }, part.text) : part.apart ? el("span", { class: "apart" }, part.text) : part.text));
  const said = side.said.flatMap((reply, turn) => [el("p", { class: "turn asked" }, value.question.earlier[turn]), el("p", { class: "turn" }, reply || "nothing")]);
  return el("section", { class: `answer ${side.kind}`, "aria-label": `${side.name} model` },
    el("h3", {}, el("span", { class: "mark", "aria-hidden": "true" }, side.mark), ` ${side.name}`), ...said,
    el("p", { class: side.right ? "text right" : "text" }, ...words), side.verdict ? el("p", { class: `verdict ${side.verdict_kind}` }, side.verdict) : null,
    side.steps.length ? strip(value, side, place, detail) : null, side.steps.length && side.steps[0].right.length ? line(side, place) : null);
}

function strip(value, side, place, detail) {
  const tokens = side.steps.map((step, turn) => {
    const share = step.shares[place] ?? 0, name = step.end ? "end of the reply" : step.text;
    const css = ["token", step.parted && "parted", turn < side.begun && "given", step.end && "end"].filter(Boolean).join(" ");
    const show = () => look(value, place, turn, detail);
    return el("button", { type: "button", class: css, style: `--p: ${share}`, tabindex: turn ? "-1" : "0", "aria-label": `${name}, ${chance(share)}${step.parted ? ", the models part here" : ""}`,
      onmouseenter: show, onfocus: show, onclick: (event) => event.currentTarget.focus(), onkeydown: (event) => move(event) }, step.end ? "■" : step.text);
  });
  return el("div", { class: "tokens", role: "group", "aria-label": `${side.name}, token by token` }, ...tokens);
}

// arrow keys go from token to token
function move(event) {
  const to = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key], next = to && event.currentTarget[to];
  if (!to) return;
  event.preventDefault();
  event.stopPropagation();
  if (!next) return;
  event.currentTarget.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

// how likely the right answer came next at each token, as one small line
function line(side, place) {
  const shares = side.steps.map((step) => step.right[place] ?? 0), wide = Math.max(1, shares.length - 1);
  const points = shares.map((share, turn) => `${((100 * turn) / wide).toFixed(2)},${(22 - 20 * share).toFixed(2)}`);
  if (points.length === 1) points.push(`100,${points[0].split(",")[1]}`);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  for (const [name, one] of Object.entries({ viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" })) svg.setAttribute(name, one);
  path.setAttribute("points", points.join(" "));
  svg.append(path);
  return el("div", { class: "right-line" }, svg, el("p", { class: "soft" }, `Right answer next: ${chance(shares[0])} at the first token, at most ${chance(Math.max(...shares))}`));
}

const chance = (share) => (share === null ? "–" : share < 0.001 ? "<0.1%" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`);

// the likeliest tokens at a step, with each column's share
function look(value, place, turn, detail) {
  if (at && at[0] === place && at[1] === turn) return;
  at = [place, turn];
  const side = value.sides[place], step = side.steps[turn], names = value.sides.map((one) => one.mark + " " + one.name);
  board.querySelectorAll(".token.chosen").forEach((one) => one.classList.remove("chosen"));
  board.querySelectorAll(".answer")[place].querySelectorAll(".token")[turn].classList.add("chosen");
  const before = side.steps.slice(0, turn).map((one) => one.id);
  const rows = step.likely.map((one) => {
    const words = el("span", { class: "token" }, one.end ? "■ end" : one.text);
    const name = one.end ? words : el("button", { type: "button", class: "go-on", title: "Go on from here", onclick: () => trigger("select", { ids: [...before, one.id], by: place, question: value.question }) }, words);
    return el("tr", { class: one.id === step.id ? "taken" : "" }, el("th", { scope: "row" }, name),
      ...one.shares.map((share, column) => el("td", { class: value.sides[column].kind }, el("span", { class: "bar" }, el("i", { style: `width:${100 * (share ?? 0)}%` })), el("span", {}, chance(share)))));
  });
  const where = `Likeliest next words at token ${turn + 1} of ${side.name}`;
  detail.replaceChildren(el("h4", {}, where), el("table", { "aria-label": where }, el("thead", {}, el("tr", {}, el("td"), ...names.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows)),
    el("p", { class: "soft" }, "Darker tokens were surer; a bar below one marks where the models part. Press a word, and all go on from it."));
}

function numbers({ numbers, sides, sent }) {
  const head = el("tr", {}, el("td"), ...sides.map((side) => el("th", { scope: "col" }, side.name)));
  const rows = (numbers ?? []).map((row) => el("tr", {}, el("th", { scope: "row" }, row.name), ...row.cells.map((cell) => el("td", {}, cell))));
  const table = el("div", { class: "grid numbers" }, el("table", { "aria-label": "How near each is to the right answer" }, el("thead", {}, head), el("tbody", {}, ...rows)));
  const exact = el("details", {}, el("summary", {}, "The exact prompt the models saw"), el("pre", {}, sent));
  return [...(rows.length ? [table] : []), ...(sent ? [exact] : [])];
}

watch("value", build);
build();
