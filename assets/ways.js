// a press on a row's button puts its question into the box beside, to be changed and asked
element.addEventListener("click", (event) => {
  const way = event.target.closest("[data-way]");
  if (way) trigger("select", { way: Number(way.dataset.way) });
});
