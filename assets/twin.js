// a new value draws the template anew: restores whether it was open, and its scroll position
element.addEventListener('toggle', event => { element.dataset.open = event.target.open }, true);
element.addEventListener('scroll', event => { element.dataset.top = event.target.scrollTop }, true);
new MutationObserver(() => {
  const details = element.querySelector('details');
  if (!details || element.dataset.open !== 'true' || details.open) return;
  details.open = true;
  details.querySelector('.twin-scroll').scrollTop = element.dataset.top || 0;
}).observe(element, { childList: true, subtree: true });
