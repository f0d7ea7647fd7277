// One reply in the logit lens: a row a layer, a column a token, for both models and their difference. props.value: see `layers_of`
// in adapop/ui/probe/more.py. Everything goes in as text, never as HTML.
const place = el("div");

function build() {
  const host = element.querySelector(".layers"), value = props.value;
  if (!host) return;
  if (place.parentElement !== host) host.replaceChildren(place);
  if (!value?.tokens) return place.replaceChildren(el("p", { class: "soft" }, value?.empty ?? ""));
  const told = el("p", { class: "soft told", role: "status" }, "Hover over a cell, tap it, or walk with the Tab key: the likeliest words there.");
  const percentOf = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;
  const table = (name, css, shareOf, textOf) => {
    const rows = value.original.map((_, layer) => layer).reverse().map((layer) => el("tr", {}, el("th", { scope: "row" }, String(layer + 1)),
      ...value.tokens.map((token, turn) => {
        const share = shareOf(layer, turn), tell = () => told.replaceChildren(`Layer ${layer + 1}, “${token}”: ${textOf(layer, turn)}`);
        return el("td", { class: share < 0 ? "less" : "", style: `--p: ${Math.abs(share)}`, tabindex: "0", onmouseenter: tell, onfocus: tell, onclick: tell }, percentOf(share));
      })));
    const head = el("tr", {}, el("th", { scope: "col" }, "layer"), ...value.tokens.map((token) => el("th", { scope: "col" }, token)));
    return el("div", { class: `layer-grid ${css}` }, el("table", {}, el("caption", {}, name), el("thead", {}, head), el("tbody", {}, ...rows)));
  };
  const at = (side) => (layer, turn) => value[side][layer][turn].share;
  const words = (side) => (layer, turn) => `${percentOf(at(side)(layer, turn))}; likeliest there: ${value[side][layer][turn].words.join(", ")}`;
  const both = (layer, turn) => `original ${words("original")(layer, turn)}. Unlearned ${words("unlearned")(layer, turn)}.`;
  place.replaceChildren(el("p", { class: "soft" }, value.about),
    el("div", { class: "layer-grids" }, table("● Original", "original", at("original"), words("original")), table("◆ Unlearned", "unlearned", at("unlearned"), words("unlearned")),
      table("Difference: original minus unlearned", "apart", (layer, turn) => at("original")(layer, turn) - at("unlearned")(layer, turn), both)), told);
}

watch("value", build);
build();
