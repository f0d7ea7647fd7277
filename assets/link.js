(run) => {
  if (!run) return 'Copy link';
  const link = new URL(window.location.href);
  const here = link.searchParams, moment = ['epoch', 'pin'].filter(name => here.has(name)).map(name => [name, here.get(name)]);
  link.search = new URLSearchParams([['run', run], ...moment]);
  link.hash = '';
  const shown = text => { const button = document.querySelector('#copy-link'); if (button) button.textContent = text; };
  const again = () => setTimeout(() => shown('Copy link'), 2500);
  navigator.clipboard?.writeText(link.href).then(() => shown('Read-only link copied'), () => window.prompt('Link to this run', link.href)).finally(again)
    ?? window.prompt('Link to this run', link.href);
  return 'Copy link';
}
