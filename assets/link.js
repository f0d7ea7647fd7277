(run) => {
  const link = new URL(window.location.href);
  link.search = '';
  link.hash = '';
  link.searchParams.set('run', run);
  const shown = text => { const button = document.querySelector('#copy-link'); if (button) button.textContent = text; };
  const again = () => setTimeout(() => shown('Copy link to this run'), 2500);
  navigator.clipboard?.writeText(link.href).then(() => shown('Link copied'), () => window.prompt('Link to this run', link.href)).finally(again)
    ?? window.prompt('Link to this run', link.href);
  return 'Copy link to this run';
}
