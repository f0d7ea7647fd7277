// Names the epoch at which the charts beside it were measured; prominent while the scrubber of Run is at another epoch.
// props.value: { epoch }, null where nothing is shown.
const line = el("p", { class: "soft" });

function stand() {
  const host = element.querySelector(".measured"), at = props.value?.epoch, now = document.body.dataset.epoch;
  if (!host) return;
  const apart = at !== undefined && now !== undefined && Math.abs(now - at) > 1e-6;
  if (line.parentElement !== host) host.replaceChildren(line);
  line.className = apart ? "apart" : "soft";
  line.textContent = at === undefined ? "" : apart ? `Measured ${moment(at)}, and not ${moment(Number(now))}, where the slider on Run stands.` : `Measured ${moment(at)}.`;
}

document.addEventListener("scrubbed", stand);
watch("value", stand);
stand();
