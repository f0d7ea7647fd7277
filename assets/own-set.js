() => {
  // choosing one's own facts by pointer opens the file dialog at once, and shows where files go, which on a phone is below the
  // fold; not by keyboard, which may only pass over this choice
  const TWICE = 300; // ms: a press on a label fires two clicks
  let pressed = -TWICE;
  document.addEventListener('click', event => {
    const choice = event.target.closest?.('#set label');
    if (!event.detail || !choice?.querySelector('input[value="own"]') || event.timeStamp - pressed < TWICE) return;
    pressed = event.timeStamp;
    document.querySelector('#upload input[type=file]')?.click();
    const place = document.getElementById('upload'), there = { visibilityProperty: true };
    const show = (tries) => place?.checkVisibility(there) ? place.scrollIntoView({ block: 'nearest' })
      : tries && setTimeout(show, 100, tries - 1);
    show(50);
  });
}
