() => {
  // who picks their own facts gets the window in which files are chosen, without a press of its own; by keys one may pass by
  const TWICE = 300; // ms: a press on a label comes as two
  let pressed = -TWICE;
  document.addEventListener('click', event => {
    const choice = event.target.closest?.('#set label');
    if (!event.detail || !choice?.querySelector('input[value="own"]') || event.timeStamp - pressed < TWICE) return;
    pressed = event.timeStamp;
    document.querySelector('#upload input[type=file]')?.click();
  });
}
