// a press on a row's button puts its question into the prompt box, to be edited and asked
element.addEventListener("click", (event) => {
  const way = event.target.closest("[data-way]");
  if (way) trigger("select", { way: Number(way.dataset.way) });
});
