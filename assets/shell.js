() => {
  // the page's switches, stored by the browser: Advanced shows every control, Present enlarges the type and shows only
  // pictures, Dark or Light overrides the system's theme
  const body = document.body, button = name => document.getElementById(name);
  const kept = name => { try { return localStorage.getItem(name); } catch { return null; } };
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* it is forgotten */ } };
  const is = name => body.classList.contains(name);

  function shown() {
    button('advanced-switch')?.setAttribute('aria-pressed', is('advanced'));
    const theme = button('theme'), present = button('present');
    if (theme && theme.textContent !== (is('dark') ? 'Light' : 'Dark')) theme.textContent = is('dark') ? 'Light' : 'Dark';
    const words = is('presenting') ? 'Leave (Esc)' : 'Present';
    if (present && present.textContent !== words) present.textContent = words;
  }

  const pressed = {
    'advanced-switch': () => keep('adapop-advanced', body.classList.toggle('advanced')),
    theme: () => keep('adapop-theme', body.classList.toggle('dark') ? 'dark' : 'light'),
    present: () => body.classList.toggle('wide', body.classList.toggle('presenting') && innerWidth > 640),
  };
  document.addEventListener('click', event => {
    const press = pressed[event.target.closest?.('button')?.id];
    if (!press) return;
    press();
    shown();
    setTimeout(() => dispatchEvent(new Event('resize')), 100); // a picture that was drawn out of sight takes its width now
  });
  if (kept('adapop-advanced') === 'true') body.classList.add('advanced');
  const theme = kept('adapop-theme');
  if (theme) body.classList.toggle('dark', theme === 'dark');
  new MutationObserver(shown).observe(body, { attributes: true, attributeFilter: ['class'] });
  const phone = matchMedia('(max-width: 640px)'), narrow = () => body.classList.toggle('narrow', phone.matches);
  phone.addEventListener('change', narrow);
  narrow();
  shown();
}
