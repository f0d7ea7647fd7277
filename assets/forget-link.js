(run, opening) => {
  // The address names the run that the page shows while it is one that anybody may look at: a link or an example. An id gives
  // power over its run, so it is followed once. run: what the page shows; before it has opened that is not yet settled.
  const here = new URL(window.location.href), named = here.searchParams.get("run");
  if (opening) document.body.dataset.opened = "";
  if (named === null || document.body.dataset.opened === undefined) return;
  const open = /^(view|example)-/.test(named);
  if (open && named === run) return;
  document.body.dataset.forgot = true; // the browser's Back does not bring it back: see "tab-address.js"
  for (const name of open ? ["run", "epoch", "pin"] : ["run"]) here.searchParams.delete(name); // its moment goes along
  history.replaceState(history.state, "", here);
}
