// The list of My runs, for the other tabs of this browser: Gradio reads what is stored only when a page opens.
(runs) => {
  try { localStorage.setItem("adapop-runs-now", JSON.stringify(runs)); } catch { /* the other tabs do not know it */ }
}
