// Step 3: the push on a fact while the model gets less sure of it, p^beta (1 - p): two dots on two curves.
const FROM_P = 0.95, TO_P = 0.02, EDGES = { left: 12, right: 12, top: 28, bottom: 50 }, TALL = 330;

function pushStep(host, story) {
  const curves = [["rare", story.pair.beta[0]], ["popular", story.pair.beta[1]]], push = (p, beta) => p ** beta * (1 - p);
  const top = 1.06 * Math.max(...Array.from({ length: 99 }, (_, i) => push((i + 1) / 100, curves[1][1])));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), reading = el("p", { class: "outcome" });
  let width = 0, dots = [];
  const x = (p) => EDGES.left + (width - EDGES.left - EDGES.right) * (1 - p), y = (value) => EDGES.top + (TALL - EDGES.top - EDGES.bottom) * (1 - value / top);
  const line = (beta) => "M" + Array.from({ length: 200 }, (_, i) => 1 - i / 200).concat(0.001).map((p) => `${x(p).toFixed(1)} ${y(push(p, beta)).toFixed(1)}`).join("L");

  function draw(tag, attributes, text) {
    const node = svg.appendChild(document.createElementNS(svg.namespaceURI, tag));
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function build() {
    if (!host.clientWidth || host.clientWidth === width) return;
    width = host.clientWidth;
    svg.replaceChildren();
    for (const [name, value] of Object.entries({ width, height: TALL, role: "img" })) svg.setAttribute(name, value);
    draw("line", { class: "axis", x1: EDGES.left, x2: width - EDGES.right, y1: y(0), y2: y(0) });
    for (const p of [0.9, 0.7, 0.5, 0.3, 0.1]) draw("text", { x: x(p), y: y(0) + 20, "text-anchor": "middle" }, percent(p));
    draw("text", { x: x(0.5), y: TALL - 6, "text-anchor": "middle" }, "the model gets less sure →");
    draw("text", { x: 4, y: 14 }, "↑ how hard the fact is pushed");
    draw("path", { class: "even", d: line(1) });
    for (const [tier, beta] of curves) draw("path", { class: tier, d: line(beta) });
    draw("text", { class: "even", x: x(0.45), y: y(push(0.45, 1)) - 9, "text-anchor": "middle" }, "even push: β = 1 for all");
    draw("text", { class: "name", x: x(0.58), y: y(push(0.58, curves[0][1])) + 28, "text-anchor": "middle" }, `rare: β = ${curves[0][1].toFixed(2)}`);
    draw("text", { class: "name", x: x(0.44), y: y(push(0.44, curves[1][1])) - 14, "text-anchor": "end" }, `popular: β = ${curves[1][1].toFixed(2)}`);
    dots = curves.map(([tier]) => draw("circle", { class: tier, r: 10 }));
    show(scrubber.value);
  }

  function show(gone) {
    const p = 1 - gone, pushes = curves.map(([, beta]) => push(p, beta)), times = pushes[1] / pushes[0];
    dots.forEach((dot, which) => (dot.setAttribute("cx", x(p)), dot.setAttribute("cy", y(pushes[which]))));
    reading.textContent = `When the model is ${percent(p)} sure, the popular fact is pushed ${times.toFixed(times < 10 ? 1 : 0)} times as hard as the rare one.`;
    svg.setAttribute("aria-label", reading.textContent);
  }

  host.append(el("div", { class: "push" }, svg));
  const stops = Array.from({ length: 32 }, (_, i) => 1 - FROM_P + (i * (FROM_P - TO_P)) / 31);
  const scrubber = makeScrubber(host, { stops, name: "How sure the model still is", seconds: 7, label: (gone) => `${percent(1 - gone)} sure`, onmove: show });
  host.append(reading, el("p", { class: "formula" }, "push = p", el("sup", {}, "β"), " · (1 − p),  p: how sure the model is"));

  const drag = (event) => {
    const at = event.clientX - svg.getBoundingClientRect().left;
    scrubber.pause();
    scrubber.place(clamp((at - EDGES.left) / (width - EDGES.left - EDGES.right), 1 - FROM_P, 1 - TO_P));
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    svg.addEventListener("pointermove", drag);
    drag(event);
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => svg.removeEventListener("pointermove", drag));
  new ResizeObserver(build).observe(host);

  return {
    enter() {
      build();
      scrubber.place(1 - FROM_P);
      if (!calm()) scrubber.play();
    },
    leave: () => scrubber.pause(),
  };
}
