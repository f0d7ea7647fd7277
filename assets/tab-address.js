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

const panelOf = (query) => (query.get("tab") === "pressure" ? "pressure-panel" : null);

// the tabs take a moment to be laid out, and are not there before Gradio is: see early.js
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

document.addEventListener("adapop-tab", ({ detail: tab }) => {
  if (![tab, undefined].includes(openTabName())) return; // a late event: another tab is open by now
  const opening = !document.body.dataset.tab; // the page first shows the Story, then opens the address's tab
  document.body.dataset.tab = tab;
  setTimeout(() => dispatchEvent(new Event("resize")), 100); // a picture that was drawn out of sight takes its width now
  if (opening && tab === "story") return;
  const here = new URL(location.href).searchParams, before = tabOf(here), run = here.has("run");
  // another tab drops the Story's moment; beside a run, epoch and pinned fact are the run's, and stay
  const changes = before === tab ? {} : run ? { story: null } : { story: null, epoch: null, pin: null };
  changes.tab = tab === "story" ? null : tab;
  if (before === "probe" && tab !== "probe") for (const name of ["fact", "ask", "gold", "begun", "earlier", "with", "at"]) changes[name] = null; // Probe's question
  // with a run the first step is named too: otherwise the address would open Run
  if (tab === "story" && (document.body.dataset.story > 1 || run)) changes.story = document.body.dataset.story;
  // a tab opened by the page itself, such as Run during a run, gets no history entry
  address(changes, before !== tab && (navigator.userActivation?.hasBeenActive ?? true));
});

addEventListener("popstate", () => {
  const here = new URL(location.href).searchParams, tab = tabOf(here);
  // an older address must not bring back a run that the page no longer shows (see forget-link.js)
  const stale = document.body.dataset.forgot && here.has("run") ? { run: null, epoch: null, pin: null } : {};
  address({ tab: tab === "story" ? null : tab, ...stale });
  if (openTabName() !== tab) openTab(tab, panelOf(here));
});
