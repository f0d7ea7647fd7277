// The open tab stands in the address: a copied one, or a reload, comes back to it, and the browser's Back and Forward go through
// the tabs and the Story's steps. Every tab that opens says so, see adapop/ui/page.py.
const openTabName = () => document.querySelector("[role=tab][aria-selected=true]")?.dataset.tabId;
let wantedTab = null;

// the tab that an address opens: beside a run it is Run, unless another is named or a step of the Story
function tabOf(query) {
  const tab = query.get("tab");
  return /^(facts|pressure|run|probe|compare)$/.test(tab) ? tab : query.has("run") && !query.has("story") ? "run" : "story";
}

// the tabs take a moment to be laid out, and are not there before Gradio is: see early.js
function openTab(name) {
  wantedTab = name;
  openSoon(40);
}

function openSoon(tries) {
  const tab = wantedTab && document.querySelector(`[role=tab][data-tab-id=${wantedTab}]`);
  if (tab?.checkVisibility()) {
    wantedTab = null;
    tab.click();
  } else if (wantedTab && tries) setTimeout(openSoon, 50, document.querySelector(".early") ? tries : tries - 1);
}

document.addEventListener("adapop-tab", ({ detail: tab }) => {
  if (![tab, undefined].includes(openTabName())) return; // said late: another was opened since
  const opening = !document.body.dataset.tab; // the page begins with the Story, and then turns to what the address says
  document.body.dataset.tab = tab;
  setTimeout(() => dispatchEvent(new Event("resize")), 100); // a picture that was drawn out of sight takes its width now
  if (opening && tab === "story") return;
  const here = new URL(location.href).searchParams, before = tabOf(here), run = here.has("run");
  // whoever opens another tab begins there; an address that was copied on Run has its moment and its fact
  const changes = before === tab ? {} : run ? { story: null } : { story: null, epoch: null, pin: null };
  changes.tab = tab === "story" ? null : tab;
  // beside a run, whose tab the address opens otherwise, the first step is named too
  if (tab === "story" && (document.body.dataset.story > 1 || run)) changes.story = document.body.dataset.story;
  // a tab that nobody pressed, as that of a run under way when the page opens, is nothing that Back undoes
  address(changes, before !== tab && (navigator.userActivation?.hasBeenActive ?? true));
});

addEventListener("popstate", () => {
  const here = new URL(location.href).searchParams, tab = tabOf(here);
  // a run that the page does not show any more (see forget-link.js) does not come back with an older address
  const stale = document.body.dataset.forgot && here.has("run") ? { run: null, epoch: null, pin: null } : {};
  address({ tab: tab === "story" ? null : tab, ...stale });
  if (openTabName() !== tab) openTab(tab);
});
