// My runs as a table with a button for each thing one may do with a run. props.value: see `listed` in adapop/ui/run/mine.py.
const COLUMNS = ["name", "set", "method", "gap", "kept", "when", ""];
const ABOUT = { gap: "recall of popular minus rare facts, in all other wordings", kept: "share of the held-out facts (never trained on) still answered, asked as trained" };
const UNDER_WAY = ["queued", "running", "stopping"]; // the strip says which: the list is drawn before and after
const stamp = (seconds) => (seconds ? new Date(1000 * seconds).toLocaleString([], { dateStyle: "short", timeStyle: "short" }) : "");

function build() {
  const host = element.querySelector(".my-runs"), rows = props.value ?? [];
  if (!host) return;
  if (!rows.length) return host.replaceChildren();
  const head = el("thead", {}, el("tr", {}, ...COLUMNS.map((name) => el("th", { scope: "col", title: ABOUT[name] ?? null }, name === "kept" ? "held-out answered" : name))));
  host.replaceChildren(el("h3", {}, rows.length > 3 ? `My runs, ${rows.length}` : "My runs"), // some are out of view
    el("div", { class: "grid", tabindex: 0, role: "region", "aria-label": "My runs" }, el("table", {}, head, el("tbody", {}, ...rows.map(row)))));
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
      [...document.querySelectorAll("[role=tab]")].find((tab) => tab.textContent.includes("Compare"))?.click();
      // removed once its dots are drawn ("assets/race-fields.js"), or after 30 s: some runs have none
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
