// Step 3: why popular facts stay, and what AdaPop changes. First the recording: each fact rides the one hill of the even push,
// p (1 - p), by the trained question, for that is what is pushed; large dots are the tiers' means, of p and of the push, which
// lie below the hill. Then the hill of each beta, p^beta (1 - p), for two dots that are equally sure.
const FROM_P = 0.95, TO_P = 0.02, EDGES = { left: 12, right: 12, top: 28, bottom: 50 }, EVEN = 1;

function pushStep(host, story) {
  const push = (p, beta) => p ** beta * (1 - p), run = story.runs.wga, end = run.epoch[run.epoch.length - 1];
  const tiers = ["rare", "popular"].map((tier) => story.facts.tier.flatMap((each, fact) => (each === tier ? [fact] : [])));
  const riding = (epoch) => tiers.map((facts) => facts.map((fact) => probability(run, epoch, fact)));
  const mean = (found) => found.reduce((a, b) => a + b, 0) / found.length;
  const falls = Array.from({ length: 32 }, (_, i) => 1 - FROM_P + (i * (FROM_P - TO_P)) / 31);
  // of each view: the curves, where the facts are at a stop of its scrubber, a list a tier, and what that means in words
  const views = [
    { name: "The reason: one rule", curves: [["even", EVEN]], betas: [EVEN, EVEN], stops: run.epoch, label: moment, at: riding, words: recorded },
    { name: "The remedy: a β each", curves: [["even", EVEN], ["rare", story.pair.beta[0]], ["popular", story.pair.beta[1]]], betas: story.pair.beta, stops: falls, label: (gone) => `${percent(1 - gone)} sure`, at: (gone) => [[1 - gone], [1 - gone]], words: compared },
  ];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), reading = el("p", { class: "outcome" }), sliders = views.map(() => el("div", { class: "steer" }));
  const choice = el("div", { class: "views", role: "group", "aria-label": "What is shown" }, ...views.map(({ name }, view) => el("button", { type: "button", class: "big", onclick: () => (look(view), calm() || views[view].scrubber.play()) }, name)));
  const TALL = innerWidth > 640 ? clamp(innerHeight - 600, 190, 240) : 190; // the hill stands above the buttons at the foot
  let width = 0, dots = [], small = [], names = [], now = views[0], top = 1;
  const x = (p) => EDGES.left + (width - EDGES.left - EDGES.right) * (1 - p), y = (value) => EDGES.top + (TALL - EDGES.top - EDGES.bottom) * (1 - value / top);
  const line = (beta) => "M" + Array.from({ length: 200 }, (_, i) => 1 - i / 200).concat(0.001).map((p) => `${x(p).toFixed(1)} ${y(push(p, beta)).toFixed(1)}`).join("L");

  function recorded(epoch, [rare, popular], pushes) {
    const times = epoch === 0 ? `, so the push on these is ${(pushes[1] / pushes[0]).toFixed(1)} times as strong` : "";
    return `${moment(epoch).replace(/^./, (letter) => letter.toUpperCase())}, on average: ${percent(rare)} sure of rare facts, ${percent(popular)} of popular ones${times}.`;
  }

  function compared(gone, [p]) {
    const times = push(p, views[1].betas[1]) / push(p, views[1].betas[0]);
    return `When the model is ${percent(p)} sure, ${story.pair.title[1]} is pushed ${times.toFixed(times < 10 ? 1 : 0)} times as hard as ${story.pair.title[0]}.`;
  }

  function draw(tag, attributes, text) {
    const node = svg.appendChild(document.createElementNS(svg.namespaceURI, tag));
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function build() {
    if (!host.clientWidth) return;
    width = host.clientWidth;
    top = 1.12 * Math.max(...now.curves.flatMap(([, beta]) => Array.from({ length: 99 }, (_, i) => push((i + 1) / 100, beta))));
    svg.replaceChildren();
    for (const [name, value] of Object.entries({ width, height: TALL, role: "img" })) svg.setAttribute(name, value);
    draw("line", { class: "axis", x1: EDGES.left, x2: width - EDGES.right, y1: y(0), y2: y(0) });
    for (const p of [0.9, 0.7, 0.5, 0.3, 0.1]) draw("text", { x: x(p), y: y(0) + 20, "text-anchor": "middle" }, percent(p));
    draw("text", { x: x(0.5), y: TALL - 6, "text-anchor": "middle" }, "the model gets less sure of the fact →");
    draw("text", { x: 4, y: 14 }, "↑ how hard the fact is pushed");
    for (const [tier, beta] of now.curves) draw("path", { class: now === views[0] ? "one" : tier, d: line(beta) });
    if (now === views[1]) {
      draw("text", { class: "even", x: x(0.45), y: y(push(0.45, EVEN)) - 9, "text-anchor": "middle" }, "even push: β = 1 for all");
      for (const [tier, p, down, anchor] of [["rare", 0.58, 28, "middle"], ["popular", 0.44, -14, "end"]]) {
        const beta = story.pair.beta[Number(tier === "popular")];
        draw("text", { class: "name", x: x(p), y: y(push(p, beta)) + down, "text-anchor": anchor }, `${tier}: β = ${beta.toFixed(2)}`);
      }
    }
    small = now === views[0] ? ["rare", "popular"].map((tier, which) => tiers[which].map(() => draw("circle", { class: `${tier} small`, r: 4 }))) : [];
    dots = ["rare", "popular"].map((tier) => draw("circle", { class: tier, r: 11 }));
    names = now === views[0] ? ["rare", "popular"].map((tier) => draw("text", { class: "name", "text-anchor": "middle" }, tier)) : [];
    show(now.scrubber.value);
  }

  function show(value) {
    const facts = now.at(value), hill = facts.map((found, which) => found.map((p) => push(p, now.betas[which])));
    const [places, pushes] = [facts, hill].map((found) => found.map(mean));
    small.forEach((circles, which) => circles.forEach((circle, at) => {
      circle.setAttribute("cx", x(facts[which][at]));
      circle.setAttribute("cy", y(hill[which][at]));
    }));
    places.forEach((p, which) => {
      const [left, above] = [x(p), y(pushes[which])];
      dots[which]?.setAttribute("cx", left);
      dots[which]?.setAttribute("cy", above);
      names[which]?.setAttribute("x", clamp(left, 34, width - 34));
      names[which]?.setAttribute("y", above + 36 > y(0) ? above - 18 : above + 32); // inside the hill while there is room above the axis
    });
    reading.textContent = now.words(value, places, pushes);
    svg.setAttribute("aria-label", reading.textContent);
  }

  function look(view) {
    views.forEach(({ scrubber }) => scrubber.pause());
    now = views[view];
    [...choice.children].forEach((button, other) => (button.classList.toggle("chosen", other === view), button.setAttribute("aria-pressed", other === view)));
    sliders.forEach((slider, other) => (slider.hidden = other !== view));
    build();
    now.scrubber.place(now.stops[0]);
  }

  host.append(choice, reading, ...sliders, el("div", { class: "push" }, svg), el("p", { class: "formula" }, "push = p", el("sup", {}, "β"), " · (1 − p),  p: how sure the model is;  even push: β = 1"));
  views.forEach((view, place) => (view.scrubber = makeScrubber(sliders[place], { stops: view.stops, name: view.name, seconds: 7, label: view.label, onmove: show })));

  const drag = (event) => {
    const at = (event.clientX - svg.getBoundingClientRect().left) / zoomOf(host);
    now.scrubber.pause();
    const share = clamp((at - EDGES.left) / (width - EDGES.left - EDGES.right), 0, 1);
    now.scrubber.place(now === views[0] ? share * end : share);
  };
  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    svg.addEventListener("pointermove", drag);
    drag(event);
  });
  for (const over of ["pointerup", "pointercancel"]) svg.addEventListener(over, () => svg.removeEventListener("pointermove", drag));
  new ResizeObserver(() => host.clientWidth !== width && build()).observe(host);

  return {
    enter() {
      look(0);
      if (!calm()) views[0].scrubber.play();
    },
    leave: () => views.forEach(({ scrubber }) => scrubber.pause()),
  };
}
