() => {
  // the tab takes a moment to be laid out
  const focusSoon = tries => setTimeout(() => {
    const box = document.querySelector('#prompt textarea, #prompt input');
    if (box && box.offsetParent) box.focus();
    else if (tries) focusSoon(tries - 1);
  }, 100);
  // "/" goes to the question box, as in most tools that search; never while somebody types
  document.addEventListener('keydown', event => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest('input, textarea, select, [contenteditable="true"]')) return;
    const tab = [...document.querySelectorAll('[role=tab]')].find(one => one.textContent.includes('Probe'));
    tab?.click();
    event.preventDefault();
    focusSoon(20);
  });
  // the tabs are one stop of the Tab key; arrow keys go from one to the next and open it
  const shown = () => [...document.querySelectorAll('.tab-container [role=tab]')].filter(one => one.checkVisibility());
  const oneStop = () => shown().forEach(one => (one.tabIndex = one.ariaSelected === 'true' ? 0 : -1));
  document.addEventListener('adapop-tab', () => requestAnimationFrame(oneStop));
  document.addEventListener('keydown', event => {
    if (!event.target.matches?.('[role=tab]') || event.ctrlKey || event.metaKey || event.altKey) return;
    const tabs = shown(), at = tabs.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    next.click();
    next.focus();
  });
  // a screen reader is told what a run's state becomes, and not every second of it
  const strip = document.querySelector('#strip'), heard = document.body.appendChild(document.createElement('p'));
  heard.className = 'heard';
  heard.setAttribute('role', 'status');
  const tell = () => {
    const state = strip.querySelector('b')?.textContent ?? '';
    if (heard.textContent !== state) heard.textContent = state;
  };
  if (strip) new MutationObserver(tell).observe(strip, { childList: true, subtree: true, characterData: true });
  document.querySelector('#present')?.setAttribute('title', 'To show a class: large type, and only the pictures. Escape leaves.');
  document.addEventListener('keydown', event => {
    if (event.key === 'Escape' && document.body.classList.contains('presenting')) document.querySelector('#present')?.click();
  });
  // the first Tab stop skips to the main control: the Story's guess, Start, or else the tab's first control
  document.addEventListener('click', event => {
    if (!event.target.closest?.('.skip')) return;
    event.preventDefault();
    const seen = [...document.querySelectorAll('#start, .choice, [role=tabpanel] :is(button, input, select, textarea)')].filter(one => one.checkVisibility() && !one.disabled);
    (seen.find(one => one.matches('#start, .choice')) ?? seen[0])?.focus();
  });
}
