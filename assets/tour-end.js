() => {
  // back to the button that opens the tour, once the card is gone and the button works again
  const opener = document.querySelector('#tour-open'), until = Date.now() + 3000;
  const again = () => {
    if (document.activeElement === opener || Date.now() > until) return;
    if (!document.querySelector('#tour')) opener.focus();
    setTimeout(again, 100);
  };
  again();
}
