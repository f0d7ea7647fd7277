() => {
  // a link is followed once: after a reload the page shows what it looked at last
  const here = new URL(window.location.href);
  if (here.searchParams.has("run")) { here.searchParams.delete("run"); history.replaceState(null, "", here); }
}
