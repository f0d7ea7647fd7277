// The page's own JavaScript, in three files that make one script in its head: this one with what they share, the page's
// switches, keys and links, and its smaller elements; fields.js with the dots and curves; story.js with the Story. What Python
// calls is in `adapop`: an element as adapop.strip(element, props, trigger, watch), an event's `js=` by its name. Text of facts
// and models goes in as text, never as HTML.
const adapop = {};

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
// a share in percent as Python rounds it, a half to the even number, and as it prints it: `percent` in adapop/report/table.py
const whole = (share) => (Math.abs((100 * share) % 1) === 0.5 ? 2 * Math.round(50 * share) : Math.round(100 * share));
const percent = (share) => (share > 0 && share <= 0.005 ? "<1%" : `${whole(share)}%`);
// a share with one decimal, and the difference of two as these are shown: what stands side by side subtracts
const tenth = (share) => Math.round(1000 * share) / 10;
const exact = (share) => `${tenth(share).toFixed(1)}%`;
const apart = (high, low) => (tenth(high) - tenth(low)).toFixed(1).replace("-", "\u2212");
// the zoom of the page, above 1 in Present
const zoomOf = (node) => node.getBoundingClientRect().width / node.clientWidth || 1;
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

// scrolls an element into view once it is laid out, if it is not visible
const into = (node) => setTimeout(() => node.scrollIntoView({ block: "nearest", behavior: calm() ? "auto" : "smooth" }));

// the frame at or before an epoch, and how far it is from there to the next, 0 to 1
function between(motion, epoch) {
  const at = motion.epoch;
  let frame = 0;
  while (frame < at.length - 1 && at[frame + 1] <= epoch) frame++;
  const apart = frame < at.length - 1 ? (epoch - at[frame]) / (at[frame + 1] - at[frame]) : 0;
  return [frame, clamp(apart, 0, 1)];
}

// the probability of a fact's right answer, 0 to 1, between the frames that have one of this kind
function probability(motion, epoch, fact, kind = "p") {
  let [from, apart] = between(motion, epoch);
  let to = Math.min(from + 1, motion.epoch.length - 1);
  while (from > 0 && !motion[kind][from]) from--;
  while (to < motion.epoch.length - 1 && !motion[kind][to]) to++;
  const early = motion[kind][from]?.[fact], late = motion[kind][to]?.[fact] ?? early;
  if (early === undefined) return null;
  const span = motion.epoch[to] - motion.epoch[from];
  apart = span ? clamp((epoch - motion.epoch[from]) / span, 0, 1) : 0;
  return (early + apart * (late - early)) / 1000;
}

// [the last reply for a fact, after which epoch it was given, whether it is right]; nulls if it was never asked
function said(motion, epoch, fact) {
  let [frame] = between(motion, epoch);
  while (frame > 0 && !motion.said[frame]) frame--;
  const reply = motion.said[frame]?.[fact] ?? null; // null: not asked
  return reply === null ? [null, null, null] : [reply || "nothing", motion.epoch[frame], motion.right[frame][fact]];
}

const mark = (right) => (right === null ? "" : right ? " ✓" : " ✗"); // null: not known
const moment = (epoch) => (epoch === 0 ? "before" : `${Number.isInteger(epoch) ? "after" : "in"} epoch ${Math.ceil(epoch)}`);

// changes the address's parameters without a reload; null removes one. entry: adds a history entry, for the browser's Back
function address(changes, entry = false) {
  const here = new URL(location.href);
  for (const [name, value] of Object.entries(changes))
    if (value === null) here.searchParams.delete(name);
    else here.searchParams.set(name, value);
  history[entry ? "pushState" : "replaceState"](history.state, "", here);
}

// which screen an address's epoch and pin belong to: Run if it names a run or that tab, the Story if it names no tab
const momentOf = (query) => (query.has("run") || query.get("tab") === "run" ? "run" : query.has("tab") ? null : "story");
const keep = (whose, changes) => momentOf(new URL(location.href).searchParams) === whose && address(changes);

// Keeps the open tab in the address: a copied address or a reload opens it again, and the browser's Back and Forward go through
// the tabs and the Story's steps. Every opened tab sends an event, see `TAB_OPENED` in adapop/ui/page.py.
const openTabName = () => document.querySelector("[role=tab][aria-selected=true]")?.dataset.tabId;
let wantedTab = null;

// the tab that an address opens: with a run it is Run, unless it names another tab or a step of the Story; "pressure" is a
// panel of Run, which was a tab once
function tabOf(query) {
  const tab = query.get("tab");
  if (tab === "pressure") return "run";
  return /^(facts|run|probe|compare)$/.test(tab) ? tab : query.has("run") && !query.has("story") ? "run" : "story";
}

// what is said until an address is opened
function openingWords(query, tab = tabOf(query)) {
  const ask = query.get("ask");
  if (tab === "probe" && ask) return `Opening the question “${ask.slice(0, 300)}” …`;
  return tab === "run" && query.has("run") ? "Opening a run …" : `Opening ${tab[0].toUpperCase()}${tab.slice(1)} …`;
}

const panelOf = (query) => (query.get("tab") === "pressure" ? "pressure-panel" : null);

// the tabs take a moment to be laid out, and are not there before Gradio is: see `early`
function openTab(name, panel = null) {
  wantedTab = name;
  if (panel) openPanel(panel, 100);
  openSoon(40);
}

function openSoon(tries) {
  const tab = wantedTab && document.querySelector(`[role=tab][data-tab-id=${wantedTab}]`);
  if (tab?.checkVisibility()) {
    wantedTab = null;
    tab.click();
  } else if (wantedTab && tries) setTimeout(openSoon, 50, document.querySelector(".early") ? tries : tries - 1);
}

function openPanel(id, tries) {
  const fold = document.querySelector(`#${id} > .label-wrap`);
  if (fold?.classList.contains("open")) return fold.scrollIntoView({ behavior: "instant" });
  if (fold?.checkVisibility()) fold.click();
  if (tries) setTimeout(openPanel, 200, id, tries - 1);
}

// Probe's question stands in the address while that tab is open; the last one, and which dot was pinned on Run then
const QUESTION_WORDS = ["fact", "ask", "gold", "begun", "earlier", "with", "at", "draw", "strength"];
let leftQuestion = null;

document.addEventListener("adapop-tab", ({ detail: tab }) => {
  if (![tab, undefined].includes(openTabName())) return; // a late event: another tab is open by now
  const opening = !document.body.dataset.tab; // the page first shows the Story, then opens the address's tab
  document.body.dataset.tab = tab;
  setTimeout(() => dispatchEvent(new Event("resize")), 100); // a picture that was drawn out of sight takes its width now
  if (opening && tab === "story") return;
  const here = new URL(location.href).searchParams, before = tabOf(here), run = here.has("run");
  // another tab drops the Story's moment, and Run's; beside a run, epoch and pinned fact are the run's, and stay. This comes a
  // moment after the press on the tab: if Run is opened from Facts, Probe or Compare, an epoch or pin in the address was chosen in Run since
  const stays = run || (tab === "run" && before !== "story");
  const changes = before === tab ? {} : stays ? { story: null } : { story: null, epoch: null, pin: null };
  changes.tab = tab === "story" ? null : tab;
  if (before === "probe" && tab !== "probe") {
    const words = QUESTION_WORDS.filter((name) => here.has(name)).map((name) => [name, here.get(name)]);
    leftQuestion = { pinned: document.body.dataset.pinned, words: Object.fromEntries(words) };
    for (const name of QUESTION_WORDS) changes[name] = null;
  } else if (tab === "probe" && before !== "probe" && leftQuestion?.pinned === document.body.dataset.pinned) Object.assign(changes, leftQuestion?.words); // so that a reload shows it
  // with a run the first step is named too: otherwise the address would open Run
  if (tab === "story" && (document.body.dataset.story > 1 || run)) changes.story = document.body.dataset.story;
  // a tab opened by the page itself, such as Run during a run, gets no history entry
  address(changes, before !== tab && (navigator.userActivation?.hasBeenActive ?? true));
});

addEventListener("popstate", () => {
  const here = new URL(location.href).searchParams, tab = tabOf(here);
  // an older address must not bring back a run that the page no longer shows (see `forgetLink`)
  const stale = document.body.dataset.forgot && here.has("run") ? { run: null, epoch: null, pin: null } : {};
  address({ tab: tab === "story" ? null : tab, ...stale });
  if (openTabName() !== tab) openTab(tab, panelOf(here));
});

// If a page has a <base>, plotly refers to clip paths by the page's full address. Ours changes with every moment shown, and
// shapes clipped by a path of an old address are not drawn. "./" is the default base of every page.
function noBase() {
  const base = document.querySelector('base');
  if (base?.getAttribute('href') === './') base.remove();
}

// the tab takes a moment to be laid out
function keys() {
  const focusSoon = tries => setTimeout(() => {
    const box = document.querySelector('#prompt textarea, #prompt input');
    if (box && box.offsetParent) box.focus();
    else if (tries) focusSoon(tries - 1);
  }, 100);
  // "/" goes to the question box, as in most tools that search; never while somebody types
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest('input, textarea, select, [contenteditable="true"]')) return;
    toTab('Probe');
    event.preventDefault();
    focusSoon(20);
  });
  // the tabs are one stop of the Tab key; arrow keys go from one to the next and open it
  const shown = () => [...document.querySelectorAll('.tab-container [role=tab]')].filter(one => one.checkVisibility());
  const oneStop = () => shown().forEach(one => (one.tabIndex = one.ariaSelected === 'true' ? 0 : -1));
  document.addEventListener('adapop-tab', () => requestAnimationFrame(oneStop));
  document.addEventListener('keydown', event => {
    if (!event.target.matches?.('[role=tab]') || event.ctrlKey || event.metaKey || event.altKey) return;
    const tabs = shown(), at = tabs.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    next.click();
    next.focus();
  });
  // a screen reader is told what a run's state becomes, and not every second of it
  const strip = document.querySelector('#strip'), heard = document.body.appendChild(document.createElement('p'));
  heard.className = 'heard';
  heard.setAttribute('role', 'status');
  const tell = () => {
    const state = strip.querySelector('b')?.textContent ?? '';
    if (heard.textContent !== state) heard.textContent = state;
  };
  if (strip) new MutationObserver(tell).observe(strip, { childList: true, subtree: true, characterData: true });
  document.querySelector('#present')?.setAttribute('title', 'For showing a class: large type and only the pictures. Press Escape to leave.');
  document.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || document.querySelector(':popover-open')) return; // it closes what a word means first
    if (document.body.classList.contains('presenting')) document.querySelector('#present')?.click();
  });
  // the first Tab stop skips to the main control: the Story's guess, Start, or else the tab's first control
  document.addEventListener('click', event => {
    if (!event.target.closest?.('.skip')) return;
    event.preventDefault();
    const seen = [...document.querySelectorAll('#start, .choice, [role=tabpanel] :is(button, input, select, textarea)')].filter(one => one.checkVisibility() && !one.disabled);
    (seen.find(one => one.matches('#start, .choice')) ?? seen[0])?.focus();
  });
}

// the page's switches, stored by the browser: Advanced shows every control, Present enlarges the type and shows only
// pictures, Dark or Light overrides the system's theme
function shell() {
  const body = document.body, button = name => document.getElementById(name);
  const kept = name => { try { return localStorage.getItem(name); } catch { return null; } };
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* it is forgotten */ } };
  const is = name => body.classList.contains(name);

  function shown() {
    button('advanced-switch')?.setAttribute('aria-pressed', is('advanced'));
    const theme = button('theme'), present = button('present');
    if (theme && theme.textContent !== (is('dark') ? 'Light' : 'Dark')) theme.textContent = is('dark') ? 'Light' : 'Dark';
    const words = is('presenting') ? 'Leave (Esc)' : 'Present';
    if (present && present.textContent !== words) present.textContent = words;
  }

  const pressed = {
    'advanced-switch': () => keep('adapop-advanced', body.classList.toggle('advanced')),
    theme: () => keep('adapop-theme', body.classList.toggle('dark') ? 'dark' : 'light'),
    present: () => {
      body.classList.toggle('wide', body.classList.toggle('presenting') && innerWidth >= 1500 && innerHeight >= 900); // a hall's screen: a laptop's has no room for such type
      body.style.setProperty('--projected', Math.max(1.3, innerWidth / 1280)); // a screen is laid out 1,280 pixels wide
    },
  };
  document.addEventListener('click', event => {
    const press = pressed[event.target.closest?.('button')?.id];
    if (!press) return;
    press();
    shown();
    setTimeout(() => dispatchEvent(new Event('resize')), 100); // a picture that was drawn out of sight takes its width now
  });
  if (kept('adapop-advanced') === 'true') body.classList.add('advanced');
  const theme = kept('adapop-theme');
  if (theme) body.classList.toggle('dark', theme === 'dark');
  new MutationObserver(shown).observe(body, { attributes: true, attributeFilter: ['class'] });
  const phone = matchMedia('(max-width: 640px)'), narrow = () => body.classList.toggle('narrow', phone.matches);
  phone.addEventListener('change', narrow);
  narrow();
  shown();
}

// choosing one's own facts by pointer opens the file dialog at once, and shows where files go, which on a phone is below the
// fold; not by keyboard, which may only pass over this choice
function ownSet() {
  const TWICE = 300; // ms: a press on a label fires two clicks
  let pressed = -TWICE;
  document.addEventListener('click', event => {
    const choice = event.target.closest?.('#set label');
    if (!event.detail || !choice?.querySelector('input[value="own"]') || event.timeStamp - pressed < TWICE) return;
    pressed = event.timeStamp;
    document.querySelector('#upload input[type=file]')?.click();
    const place = document.getElementById('upload'), there = { visibilityProperty: true };
    const show = (tries) => place?.checkVisibility(there) ? place.scrollIntoView({ block: 'nearest' })
      : tries && setTimeout(show, 100, tries - 1);
    show(50);
  });
}

// runs once, when Gradio has laid the page out
function start() {
  noBase();
  keys();
  shell();
  ownSet();
  keepTyped();
}

// the events' functions: each is the whole `js=` of an event, or is called with more

// The address names the shown run while anybody may view it: a read-only link or an example. A run's id gives
// control of the run, so it is used once, then removed. run: name of the run shown; not settled before the page has opened.
function forgetLink(run, opening) {
  const here = new URL(window.location.href), named = here.searchParams.get("run");
  if (opening) document.body.dataset.opened = "";
  if (named === null || document.body.dataset.opened === undefined) return;
  const open = /^(view|example)-/.test(named);
  if (open && named === run) return;
  document.body.dataset.forgot = true; // the browser's Back must not restore it: see `popstate` above
  for (const name of open ? ["run", "epoch", "pin"] : ["run"]) here.searchParams.delete(name); // with its epoch and pinned fact
  history.replaceState(history.state, "", here);
}

function copyLink(run) {
  if (!run) return 'Copy link';
  const link = new URL(window.location.href);
  const here = link.searchParams, moment = ['epoch', 'pin'].filter(name => here.has(name)).map(name => [name, here.get(name)]);
  link.search = new URLSearchParams([['run', run], ...moment]);
  link.hash = '';
  const shown = text => { const button = document.querySelector('#copy-link'); if (button) button.textContent = text; };
  const again = () => setTimeout(() => shown('Copy link'), 2500);
  navigator.clipboard?.writeText(link.href).then(() => shown('Read-only link copied'), () => window.prompt('Link to this run', link.href)).finally(again)
    ?? window.prompt('Link to this run', link.href);
  return 'Copy link';
}

// The question that Probe shows goes into the address, and with a button pressed onto the clipboard: see adapop/ui/probe/link.py.
// run: the name in a link, which is nobody's id; null when a question was asked and only the address follows.
function questionLink(run, fact, ask, gold, begun, earlier, beside, at, drawn, pressed, walked) {
  // a run's id, which gives control of it, stays out of the address: the names in a link come from the server
  const columns = (beside ?? []).filter((name) => /^(oracle$|example-|view-)/.test(name));
  const link = new URL(window.location.href), words = { fact, ask, gold, begun, earlier, with: columns.join(","), at, draw: '', strength: '' };
  const question = '|' + (ask ?? '').trim();
  // a token was pressed: `pressed_of` of adapop/ui/probe/link.py
  if (pressed && pressed.endsWith(question)) words.begun = pressed.slice(0, -question.length);
  // the samples that are shown may be of another question, or without its beginning: `used_for` of adapop/ui/probe/more.py
  const sampled = ['', words.begun, earlier, ask].map((text) => (text ?? '').trim()).join('|');
  if (drawn && drawn.endsWith(sampled)) words.draw = drawn.split('|')[0];
  // the strength that is shown may be of another fact: `walk` there
  if (walked && walked.endsWith('|' + fact)) words.strength = walked.split('|')[0];
  if (run !== null) link.search = new URLSearchParams(run ? { run } : {});
  link.searchParams.set('tab', 'probe');
  for (const [name, value] of Object.entries(words)) value ? link.searchParams.set(name, value) : link.searchParams.delete(name);
  link.searchParams.delete('pin');
  link.hash = '';
  if (run === null) {
    history.replaceState(history.state, '', link);
    passed = saidWords(questionSaid());
    return;
  }
  const shown = text => { const button = document.querySelector('#copy-question'); if (button) button.textContent = text; };
  const again = () => setTimeout(() => shown('Copy link'), 2500);
  navigator.clipboard?.writeText(link.href).then(() => shown('Link copied'), () => window.prompt('Link to this question', link.href)).finally(again)
    ?? window.prompt('Link to this question', link.href);
  return 'Copy link';
}

// A fact that was picked goes into the address, for a reload, in place of the question before it. To leave the fact's box picks
// nothing: the question that is shown stays.
function factPicked(fact, prompt, beside, at) {
  const here = new URL(window.location.href).searchParams;
  const same = here.get('fact') === fact || (here.has('ask') && here.get('ask') === prompt);
  if (fact && !same && tabOf(here) === 'probe') questionLink(null, fact, '', '', '', '', beside, at, '', '', '');
}

// The replies of one fact do not stand as another's: from the choice of a fact until its own replies are here, they are faint.
let waysAwaited = 0; // by how many events

function waysAre(awaited) {
  waysAwaited = Math.max(0, awaited);
  document.querySelector('#every-way')?.setAttribute('aria-busy', String(waysAwaited > 0));
}

function waysSent(...inputs) {
  waysAre(waysAwaited + 1);
  return inputs;
}

const waysCame = () => waysAre(waysAwaited - 1);

// a row of the table of all facts was chosen: its replies are shown at the top. Keys go from cell to cell, and scroll nothing
let tableTouched = -Infinity; // when, by the page's clock
document.addEventListener('pointerdown', (event) => {
  if (event.target.closest?.('#leak-table')) tableTouched = performance.now();
});

function toWays(...inputs) {
  if (performance.now() - tableTouched < 1000) into(document.querySelector('#probe-row'));
  return inputs;
}

// The visitor's own words count more than an address: what it said when one last typed or asked a question is not followed, and
// what was typed after an event was sent is put back when the answer has filled in something else.
const QUESTION_FIELDS = ['prompt', 'gold', 'begun', 'earlier'];
const typed = {}; // name of a field -> its text, and when it was typed
let passed = null; // what the address said then
const saidWords = ({ run, ...said }) => JSON.stringify(said); // without the run, which leaves the address when another is shown

function questionSaid() {
  const here = new URL(window.location.href).searchParams, names = ['run', ...QUESTION_WORDS, 'pin'];
  const said = Object.fromEntries(names.filter((name) => here.has(name)).map((name) => [name, here.get(name)]));
  if (document.body.dataset.pinned !== undefined && !said.fact && !said.ask) said.pin = document.body.dataset.pinned; // pinned on Run
  return said;
}

function keepTyped() {
  document.addEventListener('input', (event) => {
    const field = event.target.closest?.(QUESTION_FIELDS.map((name) => `#${name}`).join());
    if (!field) return;
    typed[field.id] = { text: event.target.value, at: performance.now() };
    passed = saidWords(questionSaid());
  });
}

// what the address says of a question, as the last input, for adapop/ui/probe/link.py
function questionRead(...inputs) {
  const said = questionSaid();
  return questionSent(...inputs.slice(0, -1), saidWords(said) === passed ? {} : said);
}

// the last input with the time at which it is sent
function questionSent(...inputs) {
  return [...inputs.slice(0, -1), { ...inputs.at(-1), sent: performance.now() }];
}

// sent: of the event that filled the fields in
function typedAfter(sent, ...texts) {
  return QUESTION_FIELDS.map((name, place) => (typed[name]?.at > Number(sent) ? typed[name].text : texts[place]));
}

// The list of My runs, for the other tabs of this browser: Gradio reads what is stored only when a page opens.
function keepRuns(runs) {
  try { localStorage.setItem("adapop-runs-now", JSON.stringify(runs)); } catch { /* the other tabs do not know it */ }
}

// The list of My runs as another tab of this browser may have left it, then the rows that only this tab has.
function mergeRuns(runs, ...others) {
  let now = null;
  try { now = JSON.parse(localStorage.getItem("adapop-runs-now")); } catch { /* this tab's list is all there is */ }
  now = Array.isArray(now) ? now : [];
  return [[...now, ...(runs ?? []).filter((run) => !now.some((one) => one?.id === run.id))], ...others];
}

function takeFile(file) {
  if (!file) return null;
  const link = document.createElement("a");
  Object.assign(link, { href: file.url, download: file.orig_name ?? "" });
  link.click();
  return null; // so that the same file can be requested again
}

// the charts appear a moment after the run exists
function toCharts() {
  const charts = document.getElementById('charts'), there = { visibilityProperty: true };
  const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
  const go = (tries) => charts.checkVisibility(there) ? charts.scrollIntoView({ behavior })
    : tries && setTimeout(go, 100, tries - 1);
  go(50);
}

// a run has been started, here or on another screen
function toRun() {
  toTab('Run');
  toCharts();
}

// name: a part of a tab's label
function toTab(name) {
  [...document.querySelectorAll("[role=tab]")].find((tab) => tab.textContent.includes(name))?.click();
}

// the elements

// a new value draws the template anew: restores whether it was open, and its scroll position
function twin(element, props, trigger, watch) {
  element.addEventListener('toggle', event => { element.dataset.open = event.target.open }, true);
  element.addEventListener('scroll', event => { element.dataset.top = event.target.scrollTop }, true);
  new MutationObserver(() => {
    const details = element.querySelector('details');
    if (!details || element.dataset.open !== 'true' || details.open) return;
    details.open = true;
    details.querySelector('.twin-scroll').scrollTop = element.dataset.top || 0;
  }).observe(element, { childList: true, subtree: true });
}

// a press on a row's button puts its question into the prompt box, to be edited and asked; another hides the rows in which all
// columns say the same
function ways(element, props, trigger, watch) {
  element.addEventListener("click", (event) => {
    const way = event.target.closest("[data-way]");
    if (way) trigger("select", { way: Number(way.dataset.way) });
    if (event.target.closest("[data-only]")) {
      element.classList.toggle("differ");
      only();
    }
  });

  // the template is drawn anew with every value
  function only() {
    element.querySelector("[data-only]")?.setAttribute("aria-pressed", element.classList.contains("differ"));
  }
  watch("value", only);
  only();
}

// The replies of the Probe screen: a card a column, its reply as text and as a strip of tokens, and what could have come at the
// chosen token. props.value: see adapop/ui/probe/answers.py. Everything goes in as text, never as HTML.
function strip(element, props, trigger, watch) {
  const board = el("div");
  let at = null; // [side, step] whose alternatives are shown

  function build() {
    const host = element.querySelector(".strips"), value = props.value;
    if (!host) return;
    if (board.parentElement !== host) host.replaceChildren(board);
    at = null;
    const words = value?.opening && passed === null ? openingWords(new URL(location.href).searchParams, "probe") : value?.empty;
    if (!value?.sides) return board.replaceChildren(...(words ? [el("p", { class: "empty", role: "status" }, words)] : []));
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
      side.steps.length ? el("p", { class: "soft strip-about" }, `Tokens of ${side.name}: the darker, the surer`) : null,
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
    const first = chance(shares[0]), most = chance(Math.max(...shares)), words = first === most ? first : `${first} at the first token, at most ${most}`;
    const short = side.steps.filter((step) => !step.end).length < 2; // one token, and its end: no line to see
    return el("div", { class: "right-line" }, short ? null : svg, el("p", { class: "soft" }, `Right answer next: ${words}`));
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
      const name = one.end || value.fixed ? words : el("button", { type: "button", class: "go-on", title: "Go on from here", onclick: () => trigger("select", { ids: [...before, one.id], by: place, question: value.question }) }, words);
      return el("tr", { class: one.id === step.id ? "taken" : "" }, el("th", { scope: "row" }, name),
        ...one.shares.map((share, column) => el("td", { class: value.sides[column].kind }, el("span", { class: "bar" }, el("i", { style: `width:${100 * (share ?? 0)}%` })), el("span", {}, chance(share)))));
    });
    const where = `Likeliest next words at token ${turn + 1} of ${side.name}`;
    detail.replaceChildren(el("h4", {}, where), el("table", { "aria-label": where }, el("thead", {}, el("tr", {}, el("td"), ...names.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, ...rows)),
      el("p", { class: "soft" }, `A bar below a token marks where the models part.${value.fixed ? "" : " Press a word, and all go on from it."}`));
  }

  function numbers({ numbers, sides, sent }) {
    const head = el("tr", {}, el("td"), ...sides.map((side) => el("th", { scope: "col" }, side.name)));
    const rows = (numbers ?? []).map((row) => el("tr", {}, el("th", { scope: "row" }, row.name), ...row.cells.map((cell) => el("td", {}, cell))));
    const table = el("div", { class: "grid numbers" }, el("table", { "aria-label": "How near each is to the right answer" }, el("thead", {}, head), el("tbody", {}, ...rows)));
    const exact = el("details", {}, el("summary", {}, "The exact prompt the models saw, and ranks"), el("pre", {}, sent), rows.length ? table : null);
    return sent ? [exact] : rows.length ? [table] : [];
  }

  watch("value", build);
  build();
  document.addEventListener("input", () => props.value?.opening && setTimeout(build)); // what is typed is not opened over
}

// One reply in the logit lens: a row a layer, a column a token, for both models and their difference. props.value: see `look_through`
// in adapop/ui/probe/more.py. Everything goes in as text, never as HTML.
function layers(element, props, trigger, watch) {
  const place = el("div");

  function build() {
    const host = element.querySelector(".layers"), value = props.value;
    if (!host) return;
    if (place.parentElement !== host) host.replaceChildren(place);
    if (!value?.tokens) return place.replaceChildren(el("p", { class: "soft" }, value?.empty ?? ""));
    const told = el("p", { class: "soft told", role: "status" }, "Hover over a cell, tap it, or move with the Tab key, to see the likeliest words there.");
    const percentOf = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`.replace(/^-(?=0\.0%)/, "");
    const table = (name, css, shareOf, textOf) => {
      const rows = value.original.map((_, layer) => layer).reverse().map((layer) => el("tr", {}, el("th", { scope: "row" }, String(layer + 1)),
        ...value.tokens.map((token, turn) => {
          const share = shareOf(layer, turn), tell = () => told.replaceChildren(`Layer ${layer + 1}, “${token}”: ${textOf(layer, turn)}`);
          return el("td", { class: share < 0 ? "less" : "", style: `--p: ${Math.abs(share)}`, tabindex: "0", onmouseenter: tell, onfocus: tell, onclick: tell }, percentOf(share));
        })));
      const head = el("tr", {}, el("th", { scope: "col" }, "layer"), ...value.tokens.map((token) => el("th", { scope: "col" }, token)));
      return el("div", { class: `layer-grid ${css}` }, el("table", {}, el("caption", {}, name), el("thead", {}, head), el("tbody", {}, ...rows)));
    };
    const at = (side) => (layer, turn) => value[side][layer][turn].share;
    const words = (side) => (layer, turn) => `${percentOf(at(side)(layer, turn))}; likeliest there: ${value[side][layer][turn].words.join(", ")}`;
    const both = (layer, turn) => `original ${words("original")(layer, turn)}. Unlearned ${words("unlearned")(layer, turn)}.`;
    place.replaceChildren(el("p", { class: "soft" }, value.about),
      el("div", { class: "layer-grids" }, table("● Original", "original", at("original"), words("original")), table("◆ Unlearned", "unlearned", at("unlearned"), words("unlearned")),
        table("Difference: original minus unlearned", "apart", (layer, turn) => at("original")(layer, turn) - at("unlearned")(layer, turn), both)), told);
  }

  watch("value", build);
  build();
}

// Names the epoch at which the charts beside it were measured; prominent while the scrubber of Run is at another epoch.
// props.value: { epoch }, null where nothing is shown.
function setBack(element, props, trigger, watch) {
  const line = el("p", { class: "soft" });

  function stand() {
    const host = element.querySelector(".measured"), at = props.value?.epoch, now = document.body.dataset.epoch;
    if (!host) return;
    const apart = at !== undefined && now !== undefined && Math.abs(now - at) > 1e-6;
    if (line.parentElement !== host) host.replaceChildren(line);
    line.className = apart ? "apart" : "soft";
    line.textContent = at === undefined ? "" : apart ? `Measured ${moment(at)}, and not ${moment(Number(now))}, where the slider on Run stands.` : `Measured ${moment(at)}.`;
  }

  document.addEventListener("scrubbed", stand);
  watch("value", stand);
  stand();
}

// My runs as a table with a button for each thing one may do with a run. props.value: see `listed` in adapop/ui/run/mine.py.
function myRuns(element, props, trigger, watch) {
  const COLUMNS = ["name", "set", "method", "gap", "kept", "when", ""];
  const ABOUT = { gap: "recall of popular minus rare facts, in all other wordings", kept: "share of the held-out facts (never trained on) still answered, asked directly" };
  const UNDER_WAY = ["queued", "running", "stopping"]; // the strip says which: the list is drawn before and after
  let open = false;
  const stamp = (seconds) => (seconds ? new Date(1000 * seconds).toLocaleString([], { dateStyle: "short", timeStyle: "short" }) : "");

  function build() {
    const host = element.querySelector(".my-runs"), rows = props.value ?? [];
    if (!host) return;
    if (!rows.length) return host.replaceChildren();
    const head = el("thead", {}, el("tr", {}, ...COLUMNS.map((name) => el("th", { scope: "col", title: ABOUT[name] ?? null }, name === "kept" ? "held-out answered" : name))));
    host.replaceChildren(el("details", { open, ontoggle: (event) => (open = event.target.open) }, el("summary", {}, rows.length > 1 ? `My runs, ${rows.length}` : "My runs"),
      el("div", { class: "grid", tabindex: 0, role: "region", "aria-label": "My runs" }, el("table", {}, head, el("tbody", {}, ...rows.map(row))))));
  }

  // the tab is laid out when it is first opened
  function joining(words, tries = 50) {
    const place = document.querySelector("#race-progress");
    if (place) {
      place.before(el("p", { id: "joining", role: "status" }, words));
      document.querySelector("#screens")?.scrollIntoView({ behavior: "instant" });
    }
    else if (tries) setTimeout(joining, 100, words, tries - 1);
  }

  function row(run) {
    const tell = (what, name = "") => {
      trigger("select", { what, run: run.id, name });
      if (what === "compare") {
        toTab("Compare");
        // removed once its dots are drawn (see `raceFields`), or after 30 s: some runs have none
        document.querySelector("#joining")?.remove();
        setTimeout(() => document.querySelector("#joining")?.remove(), 30000);
        joining(`Comparing ${run.name} …`);
      }
      if (what === "open") setTimeout(() => document.querySelector("#screens")?.scrollIntoView({ behavior: calm() ? "auto" : "smooth" }), 700);
    };
    const report = () => {
      document.body.dataset.making = run.id;
      build();
      trigger("download", { run: run.id });
    };
    const making = document.body.dataset.making === run.id;
    const button = (words, onclick, about = words) => el("button", { type: "button", disabled: onclick === null, "aria-label": `${about} ${run.name}`, onclick }, words);
    const name = el("th", { scope: "row" }, run.name, run.current ? el("small", {}, " open now") : null);
    const cells = ["set", "method", "gap", "kept"].map((cell) => el("td", { "data-name": run[cell] && cell }, run[cell]));
    const buttons = el("td", { class: "acts" }, button("Open", () => tell("open")), button("Compare", () => tell("compare")), button(making ? "Making …" : "Report", making ? null : report), button("Rename", rename), button("Delete", sure));
    return el("tr", { class: run.current ? "current" : false }, name, ...cells, el("td", {}, run.state === "done" ? stamp(run.when) : UNDER_WAY.includes(run.state) ? "under way" : run.state), buttons);

    function rename() {
      const field = el("input", { type: "text", value: run.name, maxlength: 60, "aria-label": `New name of ${run.name}`, onkeydown: (event) => (event.key === "Enter" ? done() : event.key === "Escape" && build()) });
      const done = () => (field.value.trim() ? tell("rename", field.value) : build());
      name.replaceChildren(field, button("Save", done, "Save the name of"));
      field.select();
    }

    // needs two presses: it cannot be undone
    function sure(event) {
      const again = button("Really delete", () => tell("delete"), "Really delete");
      event.target.replaceWith(again);
      again.focus();
    }
  }

  watch("value", build);
  // another tab of this browser has started, renamed or deleted a run
  window.addEventListener("storage", (event) => event.key === "adapop-runs-now" && trigger("select", { what: "look" }));
  // a report was made, or failed
  document.addEventListener("report-made", () => {
    if (!document.body.dataset.making) return;
    delete document.body.dataset.making;
    build();
  });
  build();
}

// A small spreadsheet for facts that are typed or pasted. props.value: see `grid_values` in adapop/ui/facts/upload.py. The cells stand
// here alone, as values of inputs and never as HTML; "Use these facts" sends them to the server as text.
function typedFacts(element, props, trigger, watch) {
  const { headings, questions, answers, limits } = props.value, FIRST_ROWS = 4;
  const head = el("tr"), body = el("tbody"), status = el("p", { class: "soft", role: "status" });
  const table = el("table", { "aria-label": "Facts, one a row" }, el("thead", {}, head), body);
  const use = el("button", { type: "button", id: "use-typed", onclick: () => trigger("submit", { typed: asText() }) }, "Use these facts");
  let columns, home = 0; // home: the column that Enter goes back to: the one where a row of Tabs began, as in a spreadsheet
  let tabbed = false;

  const inputs = (row) => [...row.querySelectorAll("input")];
  const texts = (row) => inputs(row).map((input) => input.value.trim());
  const quoted = (cell) => (cell.includes('"') ? `"${cell.replaceAll('"', '""')}"` : cell).replaceAll("\t", " ");
  const asText = () => [...body.rows].map((row) => texts(row).map(quoted).join("\t")).join("\n");

  function begin() {
    columns = headings.length;
    body.replaceChildren();
    for (let row = 0; row < FIRST_ROWS; row++) addRow();
    nameCells();
    status.textContent = "";
  }

  function addRow() {
    if (body.rows.length >= limits.rows) return;
    body.append(el("tr", {}, el("th", { scope: "row" }, String(body.rows.length + 1))));
    widen(body.lastChild);
  }

  function widen(row) {
    for (let cells = inputs(row).length; cells < columns; cells++) row.append(el("td", {}, el("input", { type: "text", autocomplete: "off", spellcheck: "false" })));
  }

  // the names above the columns, and of each cell for screen readers; a first row of names, as a pasted table may have, names them itself
  function nameCells() {
    const first = texts(body.rows[0]), has = (names) => first.some((cell) => names.includes(cell.toLowerCase()));
    const named = has(questions) && has(answers);
    const names = Array.from({ length: columns }, (_, place) => (named && first[place]) || headings[place] || `Column ${place + 1}`);
    body.classList.toggle("named", named);
    head.replaceChildren(el("td"), ...names.map((name) => el("th", { scope: "col" }, name)));
    for (const row of body.rows) inputs(row).forEach((input, place) => input.setAttribute("aria-label", `${names[place]}, row ${row.rowIndex}`));
    inputs(body.rows[0]).forEach((input, place) => (input.placeholder = names[place]));
  }

  // the rows of a copied table; cells in quotes may hold separators and line breaks
  function parsed(text) {
    const line = text.split("\n", 1)[0], mark = ["\t", ";", ","].find((one) => line.includes(one)) ?? "\t", rows = [[]];
    for (const [, inQuotes, plain, end] of text.matchAll(new RegExp(`(?: *"([^"]*(?:""[^"]*)*)" *(?=[${mark}\n]|$)|([^${mark}\n]*))([${mark}\n]|$)`, "gy"))) {
      rows.at(-1).push((inQuotes?.replaceAll('""', '"') ?? plain).replace(/\s+/g, " ").trim());
      if (end === "\n") rows.push([]);
      if (!end) break;
    }
    return rows;
  }

  function paste(event) {
    const text = event.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n").replace(/^\n+|\n+$/g, "");
    if (!/[\n\t]/.test(text)) return; // one cell: the browser inserts it
    event.preventDefault();
    const top = event.target.closest("tr").rowIndex - 1, left = inputs(body.rows[top]).indexOf(event.target);
    const rows = text.length > limits.characters ? [] : parsed(text);
    const wide = rows.reduce((most, cells) => Math.max(most, left + cells.length), columns);
    if (!rows.length || top + rows.length > limits.rows || wide > limits.columns) {
      const [most, characters, lines] = [limits.rows, limits.characters, text.split("\n").length].map((count) => count.toLocaleString("en"));
      status.textContent = `Nothing was pasted: these are ${lines} lines, and the grid takes ${most} rows, ${limits.columns} columns and ${characters} characters. Save them as a file and upload it above.`;
      return;
    }
    columns = wide;
    while (body.rows.length < Math.min(top + rows.length + 1, limits.rows)) addRow();
    for (const row of body.rows) widen(row);
    rows.forEach((cells, down) => {
      const into = inputs(body.rows[top + down]);
      cells.forEach((cell, right) => (into[left + right].value = cell));
    });
    nameCells();
    status.textContent = `Pasted: ${rows.length} ${rows.length === 1 ? "row" : "rows"}.`;
  }

  function move(event) {
    tabbed = event.key === "Tab";
    const down = { Enter: event.shiftKey ? -1 : 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!down || event.isComposing) return;
    event.preventDefault();
    const row = event.target.closest("tr"), enters = event.key === "Enter";
    if (enters && down > 0 && row === body.lastChild) grow();
    const next = body.rows[row.rowIndex - 1 + down], cell = next && inputs(next)[enters ? home : inputs(row).indexOf(event.target)];
    cell?.focus();
    cell?.select();
  }

  function grow() {
    addRow();
    nameCells();
  }

  body.addEventListener("paste", paste);
  body.addEventListener("keydown", move);
  body.addEventListener("focusin", (event) => {
    if (!tabbed) home = inputs(event.target.closest("tr")).indexOf(event.target);
    tabbed = false;
  });
  body.addEventListener("input", (event) => {
    const row = event.target.closest("tr");
    if (row === body.lastChild) grow();
    else if (row === body.firstChild) nameCells();
  });
  begin();
  element.querySelector(".typed-grid").replaceChildren(el("div", { class: "rows" }, table), status, use, el("button", { type: "button", onclick: begin }, "Clear"));
}

Object.assign(adapop, { start, forgetLink, copyLink, questionLink, questionRead, questionSent, typedAfter, factPicked, waysSent, waysCame, toWays, keepRuns, mergeRuns, takeFile, toCharts, toRun, toTab, twin, ways, strip, layers, setBack, myRuns, typedFacts });
