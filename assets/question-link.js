(run, fact, ask, gold, begun, earlier, beside, at, drawn, pressed) => {
  // The question that Probe shows goes into the address, and with a button pressed onto the clipboard: see adapop/ui/probe/link.py.
  // run: the name in a link, which is nobody's id; null when a question was asked and only the address follows.
  const link = new URL(window.location.href), words = { fact, ask, gold, begun, earlier, with: (beside ?? []).join(","), at, draw: '' };
  // the samples that are shown may be of another question: `used_for` of adapop/ui/probe/more.py
  const question = '|' + (ask ?? '').trim();
  if (drawn && drawn.endsWith(question)) words.draw = drawn.split('|')[0];
  // a token was pressed: `pressed_of` of adapop/ui/probe/link.py
  if (pressed && pressed.endsWith(question)) words.begun = pressed.slice(0, -question.length);
  if (run !== null) link.search = new URLSearchParams(run ? { run } : {});
  link.searchParams.set('tab', 'probe');
  for (const [name, value] of Object.entries(words)) value ? link.searchParams.set(name, value) : link.searchParams.delete(name);
  link.searchParams.delete('pin');
  link.hash = '';
  if (run === null) return history.replaceState(history.state, '', link);
  const shown = text => { const button = document.querySelector('#copy-question'); if (button) button.textContent = text; };
  const again = () => setTimeout(() => shown('Copy link'), 2500);
  navigator.clipboard?.writeText(link.href).then(() => shown('Link copied'), () => window.prompt('Link to this question', link.href)).finally(again)
    ?? window.prompt('Link to this question', link.href);
  return 'Copy link';
}
