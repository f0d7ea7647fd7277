// The fields of the shipped examples side by side, on Compare before any race. props.value: see `side_by_side` in
// adapop/ui/story/content.py.
const told = props.value, host = element.querySelector(".examples"), place = el("div");
host.replaceChildren(el("p", { class: "by" }, `Recorded: ${told.about}, `, el("code", {}, told.command)), place);
const both = fieldsOf(place, told, { epoch: 0, pin: -1 }, Object.keys(told.runs), false); // the gaps on this screen are means over seeds
both.enter(true);
both.end();
