// Shows the Story before Gradio has loaded. Gradio mounts nothing until some 75 files have come, but the Story's data is in
// the page itself, and its script too. So that script runs at once, in a copy of the page's look; the elements it made
// move into Gradio's page once that is visible: nothing is made twice, and no guess is lost.
(() => {
  const config = window.gradio_config, query = new URL(location.href).searchParams;
  const story = config?.components?.find((one) => one.props.elem_id === "story");
  if (!story || ["tab", "run", "view"].some((name) => query.has(name))) return;
  const make = (tag, name, ...children) => {
    const node = document.createElement(tag);
    node.className = name;
    node.append(...children);
    return node;
  };
  const kept = () => { try { return localStorage.getItem("adapop-theme"); } catch { return null; } };
  const theme = kept() ?? query.get("__theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const tagline = config.components.find((one) => one.props.value?.tagline)?.props.value.tagline ?? "";
  let told = [], trigger = (...news) => told.push(news), wanted = null;

  const head = make("div", "header", make("h1", "", config.title), make("p", ""));
  head.lastChild.innerHTML = tagline; // escaped by `values` in adapop/ui/parts/html.py
  const tabs = make("nav", "", ...config.components.filter((one) => one.type === "tabitem").map(({ props }, place) => {
    const tab = make("button", place ? "" : "selected", props.label);
    tab.addEventListener("click", () => (wanted = props.label)); // opened once Gradio has loaded
    return tab;
  }));
  const element = make("div", "prose", make("div", "story")), style = make("style", "", config.css ?? "");
  const page = make("div", "gradio-container early", head, tabs, element);

  document.body.classList.toggle("dark", theme === "dark");
  document.head.append(style);
  document.body.append(page);
  try {
    Function("element", "trigger", "props", "watch", story.props.js_on_load)(element, (...news) => trigger(...news), story.props, () => {});
  } catch (error) {
    console.error(error);
    page.remove();
    style.remove();
    return;
  }

  // called by the same script when Gradio runs it. host: Gradio's element; tell: Gradio's `trigger`
  window.earlyStory = (host, tell) => {
    delete window.earlyStory;
    const move = () => {
      if (!host.checkVisibility()) return requestAnimationFrame(move);
      const focused = page.contains(document.activeElement) ? document.activeElement : null;
      const top = scrollY;
      host.replaceChildren(element);
      page.remove();
      style.remove();
      scrollTo({ top, behavior: "instant" });
      focused?.focus({ preventScroll: true });
      trigger = tell;
      told.forEach((news) => tell(...news));
      if (wanted) [...document.querySelectorAll("[role=tab]")].find((tab) => tab.textContent.trim() === wanted)?.click();
    };
    move();
    return true;
  };
})();
