(...inputs) => {
  // what the address says of a question, as the last input, for adapop/ui/probe/link.py; a fact pinned on Run is one too
  const here = new URL(window.location.href).searchParams, names = ['run', 'fact', 'ask', 'gold', 'begun', 'earlier', 'with', 'at', 'draw', 'pin'];
  const said = Object.fromEntries(names.filter((name) => here.has(name)).map((name) => [name, here.get(name)]));
  if (document.body.dataset.pinned !== undefined && !said.fact && !said.ask) said.pin = document.body.dataset.pinned;
  return [...inputs.slice(0, -1), said];
}
