(tab) => {
  // the tab stands in the address, so that a copied one, or a reload, comes back to it; the Story's step says so itself
  const open = [...document.querySelectorAll('[role=tab][aria-selected=true]')].find((one) => one.checkVisibility());
  if (open && !open.textContent.toLowerCase().includes(tab)) return; // said late: another was opened since
  const opening = !document.body.dataset.tab; // the page begins with the Story, and then turns to what the address says
  document.body.dataset.tab = tab;
  setTimeout(() => dispatchEvent(new Event('resize')), 100); // a picture that was drawn out of sight takes its width now
  if (opening && tab === 'story') return;
  const here = new URL(window.location.href);
  if (tab === 'story' || here.searchParams.get('tab') !== tab) {
    // whoever opens another tab begins there; an address that was copied on Run has its moment and its fact
    for (const name of here.searchParams.has('run') ? ['story', 'tab'] : ['story', 'tab', 'epoch', 'pin']) here.searchParams.delete(name);
    if (tab !== 'story') here.searchParams.set('tab', tab);
  }
  // beside a run, whose tab the address opens otherwise, the first step is named too
  if (tab === 'story' && (document.body.dataset.story > 1 || here.searchParams.has('run'))) here.searchParams.set('story', document.body.dataset.story);
  history.replaceState(history.state, '', here);
}
