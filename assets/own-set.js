() => {
  // who picks their own facts gets the window in which files are chosen, without a press of its own; by keys one may pass by
  let waiting = false; // a press on a label comes as two
  document.addEventListener('click', event => {
    const choice = event.target.closest?.('#set label');
    if (waiting || !event.detail || !choice?.querySelector('input[value="own"]')) return;
    waiting = true;
    const open = tries => {
      const file = document.querySelector('#upload input[type=file]');
      if (!file?.closest('.block').checkVisibility() && tries) return setTimeout(open, 50, tries - 1);
      waiting = false;
      file?.click();
    };
    open(60);
  });
}
