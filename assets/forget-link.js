(run, opening) => {
  // The address names the shown run while anybody may view it: a read-only link or an example. A run's id gives
  // control of the run, so it is used once, then removed. run: name of the run shown; not settled before the page has opened.
  const here = new URL(window.location.href), named = here.searchParams.get("run");
  if (opening) document.body.dataset.opened = "";
  if (named === null || document.body.dataset.opened === undefined) return;
  const open = /^(view|example)-/.test(named);
  if (open && named === run) return;
  document.body.dataset.forgot = true; // the browser's Back must not restore it: see "tab-address.js"
  for (const name of open ? ["run", "epoch", "pin"] : ["run"]) here.searchParams.delete(name); // with its epoch and pinned fact
  history.replaceState(history.state, "", here);
}
