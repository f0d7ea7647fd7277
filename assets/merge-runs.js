// The list of My runs as another tab of this browser may have left it, then the rows that only this tab has.
(runs, ...others) => {
  let now = null;
  try { now = JSON.parse(localStorage.getItem("adapop-runs-now")); } catch { /* this tab's list is all there is */ }
  now = Array.isArray(now) ? now : [];
  return [[...now, ...(runs ?? []).filter((run) => !now.some((one) => one?.id === run.id))], ...others];
}
