// Step 3: why popular facts stay, and what β changes, told where the facts are. Each fact of the recorded uniform push rides the
// curve p (1 - p), p for the trained question, which training pushes. Large dots are the tiers' means of p and of the
// push, which lie below the curve; an arrow leads from each to the push that its β would give at the same p.
const EDGES = { left: 12, right: 12, top: 28, bottom: 50 }, EVEN = 1, GONE = 0.1, NARROW = 420;

function pushStep(host, story, state) {
  const push = (p, beta) => p ** beta * (1 - p), run = story.hill, end = run.epoch[run.epoch.length - 1], { tier, beta } = story.facts;
  const tiers = ["rare", "popular"].map((name) => tier.flatMap((each, fact) => (each === name ? [fact] : [])));
  const mean = (facts, of) => facts.reduce((total, fact) => total + of(fact), 0) / facts.length;
  const typical = tiers.map((facts) => [...facts].sort((a, b) => beta[a] - beta[b])).map((facts) => beta[facts[facts.length >> 1]]);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), reading = el("p", { class: "outcome" }), steer = el("div");
  const TALL = innerWidth > 640 ? clamp(innerHeight - 560, 200, 320) : 220; // leaves room for the buttons at the foot
  let width = 0, small = [], large = [], arrows = [], names = [], taken = [], path, ring;
  const top = 1.12 * Math.max(...[EVEN, ...typical].flatMap((one) => Array.from({ length: 99 }, (_, i) => push((i + 1) / 100, one))));
  const x = (p) => EDGES.left + (width - EDGES.left - EDGES.right) * (1 - p), y = (value) => EDGES.top + (TALL - EDGES.top - EDGES.bottom) * (1 - value / top);
  const line = (one) => "M" + Array.from({ length: 200 }, (_, i) => 1 - i / 200).concat(0.001).map((p) => `${x(p).toFixed(1)} ${y(push(p, one)).toFixed(1)}`).join("L");

  const meet = (a, b) => a.x < b.x + b.width && a.x + a.width > b.x && a.y < b.y + b.height && a.y + a.height > b.y;

  function draw(tag, attributes, text) {
    const node = svg.appendChild(document.createElementNS(svg.namespaceURI, tag));
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function build() {
    if (!host.clientWidth) return;
    width = host.clientWidth;
    svg.replaceChildren();
    for (const [name, value] of Object.entries({ width, height: TALL, role: "img" })) svg.setAttribute(name, value);
    draw("line", { class: "axis", x1: EDGES.left, x2: width - EDGES.right, y1: y(0), y2: y(0) });
    for (const p of [0.9, 0.7, 0.5, 0.3, 0.1]) draw("text", { x: x(p), y: y(0) + 20, "text-anchor": "middle" }, percent(p));
    draw("text", { x: x(0.5), y: TALL - 6, "text-anchor": "middle" }, "the model gets less sure of the fact →");
    draw("text", { x: 4, y: 14 }, "↑ how hard the fact is pushed");
    const curves = [["popular beta", `popular: β = ${typical[1].toFixed(2)}`, typical[1], 0.35, -10, "end"], ["one", "uniform push: β = 1", EVEN, 0.2, -16, "middle"], ["rare beta", `rare: β = ${typical[0].toFixed(2)}`, typical[0], 0.3, 22, "end"]];
    taken = curves.map(([kind, name, beta, p, down, anchor], row) => {
      draw("path", { class: kind, d: line(beta) });
      if (width >= NARROW) return draw("text", { class: "name", x: x(p), y: y(push(p, beta)) + down, "text-anchor": anchor }, name).getBBox();
      // no curve has room for a name there: they stand in the empty corner instead
      draw("path", { class: kind, d: `M4 ${28 + 17 * row}h22` });
      return draw("text", { class: "name", style: "font-size: 14px", x: 30, y: 32 + 17 * row }, name).getBBox();
    });
    small = tiers.map((facts, which) => facts.map(() => draw("circle", { class: `${["rare", "popular"][which]} small`, r: 4 })));
    path = draw("path", { class: "followed", d: "" });
    ring = draw("circle", { class: "ring", r: 8, visibility: "hidden" });
    arrows = tiers.map((_, which) => draw("path", { class: `arrow ${["rare", "popular"][which]}` }));
    large = ["rare", "popular"].map((name) => draw("circle", { class: name, r: 11 }));
    names = ["rare", "popular"].map((name) => draw("text", { class: "name", "text-anchor": "middle" }, name));
    show(scrubber.value);
  }

  function show(epoch) {
    if (!large.length) return; // not laid out yet
    const at = (fact) => probability(run, epoch, fact), even = [], own = [];
    tiers.forEach((facts, which) => {
      facts.forEach((fact, place) => {
        small[which][place]?.setAttribute("cx", x(at(fact)));
        small[which][place]?.setAttribute("cy", y(push(at(fact), EVEN)));
      });
      const p = mean(facts, at), left = x(p);
      even.push(mean(facts, (fact) => push(at(fact), EVEN)));
      own.push(mean(facts, (fact) => push(at(fact), beta[fact])));
      const [from, to] = [y(even[which]), y(own[which])], head = Math.sign(to - from) * Math.min(8, Math.abs(to - from));
      large[which]?.setAttribute("cx", left);
      large[which]?.setAttribute("cy", from);
      arrows[which]?.setAttribute("d", `M${left} ${from}V${to}m-6 ${-head}L${left} ${to}l6 ${-head}`);
      names[which]?.setAttribute("x", clamp(left + (which ? -1 : 1) * (width < NARROW ? 18 : 0), 34, width - 34));
      names[which]?.setAttribute("y", Math.max(from, to) + 28);
      if (names[which] && (from + 36 > y(0) || taken.some((box) => meet(box, names[which].getBBox())))) names[which].setAttribute("y", Math.min(from, to) - 16);
    });
    followed(epoch);
    const times = (pushes) => (pushes[0] / pushes[1]).toFixed(1);
    reading.textContent = `${moment(epoch).replace(/^./, (letter) => letter.toUpperCase())} it is ${percent(mean(tiers[0], at))} sure of rare facts, ${percent(mean(tiers[1], at))} of popular ones: rare ones${mean(tiers[0], at) < GONE ? ", nearly gone," : ""} are pushed ${times(even)} times as hard as popular ones, under AdaPop ${times(own)} times.`;
    svg.setAttribute("aria-label", reading.textContent);
  }

  // the pinned fact's path so far
  function followed(epoch) {
    if (!path || state.pin < 0) return;
    const point = (at) => `${x(probability(run, at, state.pin))} ${y(push(probability(run, at, state.pin), EVEN))}`;
    path.setAttribute("d", `M${[...run.epoch.filter((at) => at < epoch), epoch].map(point).join("L")}`);
    const [left, above] = point(epoch).split(" ");
    for (const [name, value] of Object.entries({ cx: left, cy: above, visibility: "visible" })) ring.setAttribute(name, value);
  }

  const drawn = new DOMParser().parseFromString(story.method, "image/svg+xml").documentElement;
  const whole = el("details", {}, el("summary", {}, "The whole method"), el("div", { class: "whole", tabindex: 0 }, drawn));
  host.append(steer, el("div", { class: "push" }, svg), reading, el("details", {}, el("summary", {}, "The formula"), el("p", { class: "formula" }, "push = p", el("sup", {}, "β"), " · (1 − p),  p: how sure the model is;  uniform push: β = 1")), whole);
  const scrubber = makeScrubber(steer, { stops: run.epoch, name: "Epochs of the uniform push", seconds: 7, onmove: show });
  const drag = (event) => {
    scrubber.pause();
    scrubber.place(end * clamp(((event.clientX - svg.getBoundingClientRect().left) / zoomOf(host) - EDGES.left) / (width - EDGES.left - EDGES.right), 0, 1));
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    svg.addEventListener("pointermove", drag);
    drag(event);
  });
  for (const over of ["pointerup", "pointercancel"]) svg.addEventListener(over, () => svg.removeEventListener("pointermove", drag));
  new ResizeObserver(() => host.clientWidth !== width && build()).observe(host);

  return {
    enter(restored) {
      build();
      scrubber.place(restored ? state.epoch : run.epoch[0]);
      if (!restored && !calm()) scrubber.play();
    },
    leave: () => scrubber.pause(),
  };
}
