() => {
  // the charts appear a moment after the run exists
  const charts = document.getElementById('charts'), there = { visibilityProperty: true };
  const behavior = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
  const go = (tries) => charts.checkVisibility(there) ? charts.scrollIntoView({ behavior })
    : tries && setTimeout(go, 100, tries - 1);
  go(50);
}
