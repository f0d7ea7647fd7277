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
