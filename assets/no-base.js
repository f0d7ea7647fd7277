() => {
  // Where a page has a <base>, plotly names its clips by the page's whole address; ours changes with every moment shown, and what
  // is clipped by a name of another page is not drawn. "./" is where every page starts from without it.
  const base = document.querySelector('base');
  if (base?.getAttribute('href') === './') base.remove();
}
