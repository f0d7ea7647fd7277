(run) => {
  if (!run) return 'Copy read-only link';
  const link = new URL(window.location.href);
  link.search = '';
  link.hash = '';
  link.searchParams.set('run', run);
  const shown = text => { const button = document.querySelector('#copy-link'); if (button) button.textContent = text; };
  const again = () => setTimeout(() => shown('Copy read-only link'), 2500);
  navigator.clipboard?.writeText(link.href).then(() => shown('Link copied'), () => window.prompt('Link to this run', link.href)).finally(again)
    ?? window.prompt('Link to this run', link.href);
  return 'Copy read-only link';
}
