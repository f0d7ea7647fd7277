// The fields of the shipped examples side by side, on Compare before any race. props.value: see `side_by_side` in
// adapop/ui/story/content.py.
const told = props.value, host = element.querySelector(".examples"), place = el("div");
const by = el("p", { class: "by" }, "Whole runs, seed 0: each length of training is one of its own, and dots between them are interpolated. Made by ", el("code", {}, told.command));
host.replaceChildren(el("details", {}, el("summary", {}, "Seed 0"), by), place);
endsOf(place, told, { pin: -1 }, Object.keys(told.replies));
