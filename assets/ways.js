// a press on a row's button puts its question into the prompt box, to be edited and asked; another hides the rows in which all
// columns say the same
element.addEventListener("click", (event) => {
  const way = event.target.closest("[data-way]");
  if (way) trigger("select", { way: Number(way.dataset.way) });
  if (event.target.closest("[data-only]")) {
    element.classList.toggle("differ");
    only();
  }
});

// the template is drawn anew with every value
function only() {
  element.querySelector("[data-only]")?.setAttribute("aria-pressed", element.classList.contains("differ"));
}
watch("value", only);
only();
