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
}
