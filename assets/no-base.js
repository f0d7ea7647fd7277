() => {
  // If a page has a <base>, plotly refers to clip paths by the page's full address. Ours changes with every moment shown, and
  // shapes clipped by a path of an old address are not drawn. "./" is the default base of every page.
  const base = document.querySelector('base');
  if (base?.getAttribute('href') === './') base.remove();
}
