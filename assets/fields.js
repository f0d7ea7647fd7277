// The dots of a run and what steers them, the curve of β, and the fields of Run and Compare.

// Play, pause and scrub over the moments of a recording. stops: the recorded moments, rising. It moves smoothly between
// them; with reduced motion, and by the arrow keys, it jumps from one to the next. onend: called when it played to the end;
// onrest: called when it comes to rest, there or where the visitor put it. rest: where playing stops, if not at the end.
const CALM_MS = 800, SNAP = 0.012; // share of the slider's length

function makeScrubber(host, { stops, name, seconds = 6, label = moment, onmove, rest = null, onend = () => {}, onrest = () => {} }) {
  let value = stops[0], playing = false, last = 0, following = true;
  const button = el("button", { type: "button", class: "play", onclick: () => (playing ? (pause(), onrest()) : play()) });
  const range = el("input", { type: "range", "aria-label": name, step: "any", oninput: () => (pause(), place(snapped(Number(range.value)))), onchange: () => onrest(), onkeydown: turn });
  const output = el("span", { class: "when", "aria-hidden": "true" });
  host.append(el("div", { class: "scrubber", role: "group", "aria-label": name }, button, range, output));
  // snaps: a pointer rarely hits the end of an epoch exactly
  const snapped = (to) => stops.find((stop) => Number.isInteger(stop) && Math.abs(stop - to) < SNAP * (end() - stops[0])) ?? to;
  const end = () => stops[stops.length - 1], goal = () => rest ?? end();

  function limits() {
    range.min = stops[0];
    range.max = end();
  }

  function place(to, told = true) {
    value = clamp(to, stops[0], end());
    following = value === end();
    range.value = value;
    range.style.setProperty("--done", `${(100 * (value - stops[0])) / (end() - stops[0] || 1)}%`);
    output.textContent = label(value);
    range.setAttribute("aria-valuetext", label(value));
    if (told) onmove(value);
  }

  function shown() {
    button.setAttribute("aria-label", playing ? "Pause" : "Play"); // its sign is drawn by the style sheet
  }

  function play() {
    if (value >= goal()) place(stops[0]);
    playing = true;
    last = 0;
    shown();
    requestAnimationFrame(step);
  }

  function pause() {
    playing = false;
    shown();
  }

  function step(now) {
    if (!playing) return;
    if (!host.isConnected || !host.checkVisibility()) return pause(); // it is no longer visible
    if (!last) last = now;
    if (!calm()) {
      place(Math.min(goal(), value + ((goal() - stops[0]) * (now - last)) / (1000 * seconds)));
      last = now;
    } else if (now - last >= CALM_MS) {
      place(stops.find((stop) => stop > value) ?? end());
      last = now;
    }
    if (value < goal()) return requestAnimationFrame(step);
    pause();
    onend();
    onrest();
  }

  function turn(event) {
    const to = {
      ArrowRight: () => stops.find((stop) => stop > value + 1e-9) ?? end(),
      ArrowUp: () => stops.find((stop) => stop > value + 1e-9) ?? end(),
      ArrowLeft: () => stops.findLast((stop) => stop < value - 1e-9) ?? stops[0],
      ArrowDown: () => stops.findLast((stop) => stop < value - 1e-9) ?? stops[0],
      Home: () => stops[0],
      End: end,
    }[event.key];
    if (event.key === " ") playing ? pause() : play();
    else if (to) (pause(), place(to()), onrest());
    else return;
    event.preventDefault();
  }

  // new frames: moves to the newest, unless the visitor has gone back
  function grow(more) {
    const newest = following && !playing;
    stops = more;
    limits();
    place(newest ? end() : value);
  }

  limits();
  place(value, false);
  shown();
  return { play, pause, grow, place, get value() { return value; }, get end() { return end(); }, get playing() { return playing; } };
}

// The field: each fact is a dot; x: popularity (log), y: probability of the right answer. Drawn on a canvas, which is fast for
// 20,000 dots too; a fact under the pointer is described in words. facts, motion: see adapop/ui/parts/field.py.
// wordings: 0 if `motion.p` is the probability of the right answer, asked as trained; else p is the share of that many
// rewordings that are answered. Such shares are also shown where a run's frame has `motion.answered`; then the lines are the
// tiers' recall, with the gap between them; facts that were not asked are not drawn. held: the facts are held out, and p is
// whether each is answered: in one of two bands, with the number of those lost. pairs: pairs of facts that are linked by lines; the others are faint, and the lines are the pairs' means. label: of a moment.
// hint: above the dots until one is pinned. tall: width -> height in pixels. bare: no numbers on the y axis, which a field on the left has.
// below: pixels kept free below the field in Present, for what follows it. onpoint, onpin: called with a fact.
const MARGINS = { right: 14, top: 30, bottom: 62 }, FONT = 13, READABLE = 24.5, JITTER = 0.07, BAND = 0.035, MOST_BAND = 8, HELD_BAND = 0.085, BRACKET = 44, REACH = 16, MOST_ROWS = 300, REFILL_MS = 150;
// FONT: pixels of a field's words; READABLE: those that a hall can read, zoom included
const BAR_BELOW = 106, LEAST_HEIGHT = 170, PRESENTED = 330, PINNED = 60; // pixels: the line below a field and the Story's buttons at the foot of the window; least height of a field cut to fit; least height in Present; the lines below a field
const TIERS = ["rare", "middle", "popular", "unknown"], IT_SAYS = "Asked as trained, the model says", UNPIN = "stop following"; // recorded replies are to the trained question
const scoreWords = (score) => score.toLocaleString("en-US", { maximumFractionDigits: 0, maximumSignificantDigits: 6, roundingPriority: "morePrecision" });
const wordsOf = (count) => (count ? `${count} other wording${count === 1 ? "" : "s"}` : "other words");

function makeField(host, facts, motion, { name, hint = "", wordings = 0, held = false, pairs = null, tall = null, bare = false, below = PINNED, label = moment, onpin = () => {}, onpoint = () => {} }) {
  const count = facts.score.length, many = count > 2000;
  const canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "field of dots" });
  const tip = el("div", { class: "tip", "aria-hidden": "true" }), heard = el("p", { class: "heard", "aria-live": "polite" }), pinLine = el("p", { class: "pinned" });
  host.append(el("div", { class: "field" }, canvas, tip, heard), pinLine);
  const order = [...Array(count).keys()].sort((a, b) => (facts.score[a] ?? -1) - (facts.score[b] ?? -1) || a - b);
  const scores = facts.score.filter((score) => score > 0).sort((a, b) => a - b);
  const low = (scores[0] ?? 1) * 0.85, high = (scores[scores.length - 1] ?? 10) * 1.18;
  let edge = 46, radius = 4.2, epoch = motion.epoch[0], at = -1, pinned = -1, width = 0, height = 0, xs = [], ys = new Float32Array(count), named = 0, ink = {}, refill = () => {};
  const members = pairs && new Set(pairs.flat()), isMember = (fact) => !members || members.has(fact);
  let shares = wordings > 0 || held, heights = motion.p, asked = count; // whether y is the share of rewordings answered; y by frame and fact, in thousandths; facts that have a y
  let large = 1, MARGIN = MARGINS, right = 0; // large: in Present, where the axes are read from afar

  const level = new Float32Array(count);
  const across = (score) => edge + ((width - edge - right) * Math.log(score / low)) / Math.log(high / low);
  const isAsked = (fact) => !isNaN(level[fact]);
  const up = (p) => MARGIN.top + (height - MARGIN.top - MARGIN.bottom) * (1 - (held ? HELD_BAND + (1 - 2 * HELD_BAND) * p : p));
  // the same shift of a fact at every visit, so that its dot stays in place
  const drawn = (fact, seed) => 2 * ((Math.imul(fact + 1, seed) >>> 0) / 4294967296) - 1;
  const shift = (fact) => 1 + JITTER * drawn(fact, 2654435761);
  const band = (fact) => (shares ? Math.min(held ? Infinity : MOST_BAND, (held ? HELD_BAND : BAND) * (height - MARGIN.top - MARGIN.bottom)) * drawn(fact, 2246822519) : 0); // dots of equal shares would cover each other

  function measure() {
    if (!canvas.parentElement.clientWidth) return;
    width = canvas.parentElement.clientWidth;
    const presenting = document.body.classList.contains("presenting"), hall = document.body.classList.contains("wide"), foot = BAR_BELOW + (presenting ? below : 0); // in Present nothing is cut off
    large = hall && width > 420 ? Math.max(1, READABLE / FONT / zoomOf(canvas)) : 1;
    MARGIN = Object.fromEntries(Object.entries(MARGINS).map(([name, pixels]) => [name, pixels * large]));
    right = MARGIN.right + (wordings || held || motion.answered ? BRACKET * large : 0);
    height = tall ? tall(width, canvas) : clamp(Math.round(width * 0.4), hall ? PRESENTED : width < 500 ? 215 : 230, clamp(innerHeight - 570, 230, 400));
    const room = (innerHeight - scrollY - canvas.getBoundingClientRect().top) / zoomOf(canvas) - foot;
    if (!tall && room > LEAST_HEIGHT) height = Math.min(height, Math.floor(room)); // so that all of it is visible
    edge = bare ? 14 : (held ? 72 : width < 260 ? 32 : 46) * large;
    radius = many ? 1.6 : count > 600 || width < 420 ? 3 : 4.2 * large;
    const ratio = (devicePixelRatio || 1) * zoomOf(canvas);
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    xs = facts.score.map((score, fact) => (score === null ? edge - 14 : across(Math.max(score, low) * shift(fact))));
    paint();
  }

  function paint() {
    const style = getComputedStyle(host), of = (variable) => style.getPropertyValue(variable).trim();
    ink = { text: of("--ink"), soft: of("--soft"), pin: of("--pin"), unknown: of("--soft") };
    for (const tier of TIERS.slice(0, 3)) ink[tier] = of(`--tier-${tier}`);
    ink.font = `${FONT * large}px ${style.fontFamily}`;
    draw();
  }

  function draw() {
    if (!width) return;
    const pen = canvas.getContext("2d");
    for (let fact = 0; fact < count; fact++) ys[fact] = up(level[fact]) + band(fact);
    pen.clearRect(0, 0, width, height);
    pen.font = ink.font;
    axes(pen);
    pen.globalAlpha = many ? 0.6 : 0.8;
    for (const tier of TIERS) {
      pen.fillStyle = ink[tier];
      pen.beginPath();
      for (let fact = 0; fact < count; fact++) {
        if (facts.tier[fact] !== tier || !isAsked(fact) || !isMember(fact)) continue;
        if (many) pen.rect(xs[fact] - radius, ys[fact] - radius, 2 * radius, 2 * radius);
        else (pen.moveTo(xs[fact] + radius, ys[fact]), pen.arc(xs[fact], ys[fact], radius, 0, 7));
      }
      pen.fill();
    }
    if (pairs) linked(pen);
    pen.globalAlpha = 1;
    named = 0;
    const means = held ? [] : TIERS.slice(0, 3).map((tier) => mean(pen, tier));
    if (shares && means[0] && means[2]) bracket(pen, means[0], means[2]);
    if (held) lost(pen);
    if (pinned >= 0 && heights === motion.p) path(pen);
    for (const fact of [pinned, at]) if (fact >= 0) ring(pen, fact);
    place();
  }

  function axes(pen) {
    pen.strokeStyle = "rgba(128,128,128,0.22)";
    pen.fillStyle = ink.soft;
    pen.lineWidth = 1;
    for (const p of held ? [0, 1] : [0, 0.25, 0.5, 0.75, 1]) {
      pen.beginPath();
      pen.moveTo(edge, up(p));
      pen.lineTo(width - right, up(p));
      pen.stroke();
      pen.textAlign = "right";
      if (held && !bare) pen.fillText(p ? "answered" : "lost", edge - 8, up(p) + 4);
      else if (!bare) pen.fillText(width < 260 ? `${100 * p}` : percent(p), edge - 8, up(p) + 4);
    }
    pen.textAlign = "center";
    for (let power = 10 ** Math.floor(Math.log10(low)), taken = 0; power <= high; power *= 10)
      for (const times of width < 260 ? [1] : [1, 3]) {
        const words = scoreWords(power * times), x = across(power * times), half = pen.measureText(words).width / 2 + (width < 260 ? 1.5 : 4);
        if (power * times <= low || power * times >= high || x - half < taken) continue; // numbers must not overlap
        pen.fillText(words, x, height - 42 * large);
        taken = x + half;
      }
    if (held || width >= 260) pen.fillText("popularity →", edge + (width - edge - right) / 2, height - 6 * large); // else the tiers' names stand there
    pen.textAlign = "left";
    pen.fillStyle = ink.text; // the y axis changes where a run ends
    pen.fillText(yLabel(), bare ? edge : 4, 14 * large);
    pen.fillStyle = ink.soft;
    pen.textAlign = "right";
    if (pinned < 0 && width >= 420) pen.fillText(hint, width - right, 14 * large);
  }

  function yLabel() {
    if (held) return bare ? "↑ answered, or lost" : "";
    if (pairs) return width < 420 ? "↑ how sure" : "↑ how sure of the right answer; line: mean of the pairs";
    return shares ? `↑ answered${width < 260 ? ", %" : `, in ${wordsOf(wordings || motion.wordings)}`}${asked < count && width >= 420 ? `; ${asked} of ${count} facts asked` : ""}` : width < 260 ? "↑ how sure, %" : `↑ how sure${width < 420 ? "" : " of the right answer"}, asked as trained; line: mean`;
  }

  // the facts outside all pairs, faint, and a line from each pair's rare fact to its popular one
  function linked(pen) {
    pen.globalAlpha = 0.13;
    for (const tier of TIERS) {
      pen.fillStyle = ink[tier];
      for (let fact = 0; fact < count; fact++) if (facts.tier[fact] === tier && !isMember(fact)) (pen.beginPath(), pen.arc(xs[fact], ys[fact], radius, 0, 7), pen.fill());
    }
    pen.globalAlpha = 0.5;
    pen.strokeStyle = ink.soft;
    pen.lineWidth = 1.2;
    for (const [one, other] of pairs) (pen.beginPath(), pen.moveTo(xs[one], ys[one]), pen.lineTo(xs[other], ys[other]), pen.stroke());
  }

  // how many facts are no longer answered
  function lost(pen) {
    let gone = count;
    for (let fact = 0; fact < count; fact++) gone -= level[fact];
    pen.font = `700 ${ink.font}`;
    pen.textAlign = "center";
    pen.fillStyle = ink.text;
    pen.fillText(`${motion.estimated ? "≈ " : ""}${Math.round(gone)} of ${count} lost`, edge + (width - edge - right) / 2, height - 24 * large);
    pen.font = ink.font;
  }

  // the gap between two lines, as the headline gives it
  function bracket(pen, rare, popular) {
    const x = width - right + 8, middle = (rare.y + popular.y) / 2;
    pen.strokeStyle = pen.fillStyle = ink.text;
    pen.lineWidth = 1;
    pen.setLineDash([3, 4]);
    pen.beginPath();
    pen.moveTo(rare.right + 4, rare.y);
    pen.lineTo(x, rare.y);
    pen.moveTo(popular.right + 4, popular.y);
    pen.lineTo(x, popular.y);
    pen.stroke();
    pen.setLineDash([]);
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.moveTo(x, rare.y);
    pen.lineTo(x, popular.y);
    pen.stroke();
    pen.font = `700 ${ink.font}`;
    pen.textAlign = "left";
    pen.fillText(apart(popular.share, rare.share), x + 6, clamp(middle + 4, MARGIN.top + 4, height - MARGIN.bottom));
    pen.font = ink.font;
  }

  function mean(pen, tier) {
    let sum = 0, left = Infinity, right = 0, members = 0;
    for (let fact = 0; fact < count; fact++)
      if (facts.tier[fact] === tier && isAsked(fact) && isMember(fact)) (sum += level[fact]), members++, (left = Math.min(left, xs[fact])), (right = Math.max(right, xs[fact]));
    if (!members) return null;
    const share = sum / members, y = up(share), number = shares ? exact(share) : percent(share), words = width < (tier === "middle" ? 420 : 260) ? number : `${tier} ${number}`;
    pen.strokeStyle = ink.text;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.moveTo(left - 4, y);
    pen.lineTo(right + 4, y);
    pen.stroke();
    pen.font = `700 ${ink.font}`;
    pen.textAlign = "center";
    pen.fillStyle = ink.text;
    if (width >= 260 || tier !== "middle") {
      const half = pen.measureText(words).width / 2, x = Math.max((left + right) / 2, named + half); // below the dots, so that it covers none
      pen.fillText(words, x, height - 24 * large);
      named = x + half + 8;
      pen.font = ink.font;
      if (width < 260) pen.fillText(tier, x, height - 6 * large);
    }
    pen.font = ink.font;
    return { y, share, right };
  }

  // where the pinned fact has been so far, with a dot where an epoch ended
  function path(pen) {
    const [now] = between(motion, epoch), x = xs[pinned];
    pen.strokeStyle = pen.fillStyle = ink.pin;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x, up(motion.p[0][pinned] / 1000));
    for (let frame = 1; frame <= now; frame++) pen.lineTo(x, up(motion.p[frame][pinned] / 1000));
    pen.lineTo(x, ys[pinned]);
    pen.stroke();
    pen.textAlign = "left";
    const numbered = [];
    for (let frame = 0; frame <= now; frame++)
      if (Number.isInteger(motion.epoch[frame])) {
        const y = up(motion.p[frame][pinned] / 1000);
        pen.beginPath();
        pen.arc(x, y, 3 * large, 0, 7);
        pen.fill();
        if (numbered.some((other) => Math.abs(y - other) < 13)) continue; // numbers must not overlap
        pen.fillText(motion.epoch[frame], x + 8, y + 4);
        numbered.push(y);
      }
  }

  function ring(pen, fact) {
    pen.strokeStyle = ink.pin;
    pen.lineWidth = 2.5;
    pen.beginPath();
    pen.arc(xs[fact], ys[fact], radius + 4, 0, 7);
    pen.stroke();
  }

  function place() {
    const shown = at >= 0;
    tip.classList.toggle("on", shown);
    if (!shown) return;
    const right = xs[at] > width / 2;
    tip.style.left = right ? "" : `${Math.min(xs[at] + 14, width - 200)}px`;
    tip.style.right = right ? `${Math.min(width - xs[at] + 14, width - 200)}px` : "";
    tip.style.top = `${Math.min(Math.max(ys[at] - 20, 4), height - 118)}px`;
  }

  function point(fact, own = true) {
    if (fact === at) return;
    at = fact;
    if (own) onpoint(fact);
    words();
    draw();
  }

  function words() {
    if (at < 0) return;
    const [reply, when, right] = said(motion, epoch, at), of = wordings || motion.wordings, about = motion.estimated ? "about " : "";
    const answered = held ? (level[at] > 0 && level[at] < 1 ? `${about}${percent(level[at])} answered` : level[at] ? "still answered" : "no longer answered") : !isAsked(at) ? "not asked in other words" : of ? `${about}${Number((of * level[at]).toFixed(1))} of ${of} other wordings answered` : `${percent(level[at])} of its other wordings answered`;
    const says = reply === null ? "" : el("span", {}, `${IT_SAYS} ${label(when)}: `, el("b", {}, reply), mark(right));
    tip.replaceChildren(el("b", {}, facts.question[at]), el("span", {}, "Right answer: ", el("b", {}, facts.answer[at])), says, el("span", {}, shares ? answered : `${percent(level[at])} sure of the right answer, asked as trained`));
  }

  function pin(fact, told = true) {
    pinned = fact === pinned && told ? -1 : fact;
    pinWords();
    draw();
    if (!told) return;
    onpin(pinned);
    if (pinned >= 0) into(pinLine);
  }

  function pinWords() {
    if (pinned < 0) return pinLine.replaceChildren();
    const ends = motion.epoch.filter((end, frame) => motion.said[frame]?.[pinned] != null && end <= epoch + 1e-6), reply = (end) => said(motion, end, pinned)[0];
    const changed = ends.filter((end, place) => !place || reply(end) !== reply(ends[place - 1])); // epochs at which the reply changes
    const replies = changed.map((end) => `${label(end)}: ${reply(end)}`).join(", ");
    const says = changed.length === 1 && ends.length > 1 ? `${reply(changed[0])}, before and ever since` : replies;
    const told = `${facts.answer[pinned]}. ${ends.length ? `${IT_SAYS} ${says}${shares && !held ? "; the dot shows other wordings" : ""}. ` : ""}`;
    if (pinLine.textContent === `${facts.question[pinned]} ${told}${UNPIN}`) return; // the button keeps the focus
    pinLine.replaceChildren(el("b", {}, facts.question[pinned]), ` ${told}`, el("button", { type: "button", class: "link", onclick: () => pin(pinned) }, UNPIN));
  }

  function nearest(event) {
    const frame = canvas.getBoundingClientRect(), zoom = zoomOf(canvas);
    const x = (event.clientX - frame.left) / zoom, y = (event.clientY - frame.top) / zoom;
    let best = -1, least = REACH ** 2;
    for (let fact = 0; fact < count; fact++) {
      const away = (xs[fact] - x) ** 2 + (ys[fact] - y) ** 2;
      if (away < least) (least = away), (best = fact);
    }
    return best;
  }

  const touched = (event) => event.pointerType === "touch"; // a touched fact is described below: beside the finger the words would cover the picture
  canvas.addEventListener("pointermove", (event) => touched(event) || point(nearest(event)));
  canvas.addEventListener("pointerleave", () => point(-1));
  canvas.addEventListener("click", (event) => {
    const fact = nearest(event);
    if (!touched(event)) point(fact);
    if (fact >= 0 || pinned >= 0) pin(fact >= 0 ? fact : pinned);
  });
  canvas.addEventListener("blur", () => point(-1));
  canvas.addEventListener("keydown", (event) => {
    const seen = order.filter(isAsked), here = seen.indexOf(at), column = (by) => {
      let to = here;
      while (seen[to] !== undefined && facts.score[seen[to]] === facts.score[at]) to += by;
      return to;
    };
    const to = { ArrowRight: () => here + 1, ArrowLeft: () => here - 1, ArrowUp: () => column(1), ArrowDown: () => column(-1), Home: () => 0, End: () => seen.length - 1 }[event.key];
    if (to) (point(seen[clamp(to(), 0, seen.length - 1)]), (heard.textContent = [...tip.children].map((line) => line.textContent).join(". ")));
    else if (event.key === "Enter" && at >= 0) pin(at);
    else if (event.key === "Escape" && at >= 0) point(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // columns: the beginning, if there is one, and the moment shown; for a run also its end
  function table() {
    const body = el("div", { class: "twin-scroll", tabindex: 0 });
    const fill = () => {
      const every = Math.ceil(count / MOST_ROWS), [now] = between(motion, epoch), frames = [...new Set([0, now, wordings ? now : motion.p.length - 1])];
      const rows = order.filter((_, place) => place % every === 0).map((fact) => [facts.title[fact], facts.answer[fact], scoreWords(facts.score[fact] ?? "unknown"), ...frames.map((frame) => percent(motion.p[frame][fact] / 1000)), ...(heights === motion.p ? [] : [isAsked(fact) ? percent(level[fact]) : "not asked"])]);
      const head = ["fact", "right answer", "popularity score", ...frames.map((frame) => `${wordings ? "answered" : "sure"} ${label(motion.epoch[frame])}`), ...(heights === motion.p ? [] : [`answered in other words ${label(epoch)}`])];
      const left = every > 1 ? [el("p", { class: "note" }, `One fact in ${every} of ${count.toLocaleString("en-US")}, in order of popularity.`)] : [];
      if (twin.open) body.replaceChildren(...left, el("table", { "aria-label": name }, el("thead", {}, el("tr", {}, ...head.map((cell) => el("th", { scope: "col" }, cell)))), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))))));
    };
    const twin = el("details", { class: "twin", ontoggle: fill }, el("summary", {}, "Table"), body);
    let later = 0;
    refill = () => twin.open && (clearTimeout(later), (later = setTimeout(fill, REFILL_MS))); // while it moves, not at every frame
    return twin;
  }

  // to: any epoch between the first frame and the last. asResult: whether to show a frame's `motion.answered`, if it has one.
  function show(to, asResult = true) {
    const [from, apart] = between(motion, to), answered = asResult && !apart && motion.answered?.[from];
    epoch = to;
    shares = wordings > 0 || held || Boolean(answered);
    heights = answered ? motion.answered : motion.p;
    const now = heights[from], next = apart ? heights[from + 1] : now;
    for (let fact = 0; fact < count; fact++) level[fact] = now[fact] === null ? NaN : (now[fact] + apart * (next[fact] - now[fact])) / 1000;
    asked = answered ? order.filter(isAsked).length : count;
    canvas.setAttribute("aria-label", `${name}, ${label(epoch)}: ${count} facts. Arrow keys move between facts, Enter pins one.`);
    words();
    pinWords();
    draw();
    refill();
  }

  const larger = new MutationObserver(measure), dark = matchMedia("(prefers-color-scheme: dark)"), repaint = () => setTimeout(paint);
  // also fires when the field leaves the page; it then stops observing, so that the field can be freed
  new ResizeObserver(() => {
    if (!host.isConnected) return larger.disconnect(), dark.removeEventListener("change", repaint);
    larger.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    dark.addEventListener("change", repaint);
    measure();
  }).observe(canvas.parentElement);
  document.fonts.ready.then(paint);
  measure();
  show(epoch);
  return { show, pin, point, redraw: paint, fit: measure, table: table() };
}

// The texts beside a run's field at one moment: a fact's replies before training and then, and recall in each form.
// shares: see adapop/ui/parts/field.py. folded: where recall stands, in a fold. The fact is the pinned one, else the most popular one that the original knew.
function makeMoment(host, facts, motion, shares, folded) {
  const asked = el("p", { class: "asked" }), cards = el("div", { class: "answers" }), leaks = el("div", { class: "leaks" });
  const worth = (fact) => [motion.right[0]?.[fact] === true ? 1 : 0, facts.score[fact] ?? -1];
  const first = facts.score.reduce((best, _, fact) => (worth(fact)[0] - worth(best)[0] || worth(fact)[1] - worth(best)[1]) > 0 ? fact : best, 0);
  let fact = first;
  host.append(el("div", { class: "moment" }, asked, cards));
  folded.querySelector("summary").after(leaks);

  function card(kind, mark, name, epoch) {
    const [reply, when, right] = said(motion, epoch, fact), sure = percent(probability(motion, epoch, fact));
    const older = reply && epoch - when > 1e-6 ? `; said ${moment(when)}` : ""; // the probability is of now, the reply of the last epoch's end
    return el("section", { class: `answer ${kind}`, "aria-label": name }, el("h3", {}, el("span", { class: "mark", "aria-hidden": "true" }, mark), ` ${name}`),
      el("p", { class: right ? `text ${kind === "original" ? "right" : "left"}` : "text" }, reply ?? "not asked then"), el("p", { class: "soft" }, `${sure} sure${right ? "" : ` of ${facts.answer[fact]}`}${older}`));
  }

  function matrix(epoch) {
    const now = shares.findLast((one) => one.epoch <= epoch + 1e-6);
    if (!now) return [];
    const names = { direct: "asked as trained", reworded: now.wordings };
    const forms = Object.keys(names).filter((form) => now[form].all !== null), tiers = ["rare", "middle", "popular", "all"].filter((tier) => forms.some((form) => now[form][tier] !== null));
    const cell = (share) => el("td", { style: share === null ? false : `--share: ${Math.round(100 * share)}%` }, share === null ? "" : percent(share));
    const old = epoch - now.epoch > 1e-6; // questions are asked only at the end of an epoch
    const asked = old ? `What was answered, last asked ${moment(now.epoch)}` : now.epoch ? `What is still answered ${moment(now.epoch)}` : "What is answered before training";
    return [el("table", { class: old ? "set-back" : false }, el("caption", {}, asked), el("thead", {}, el("tr", {}, ...["", ...tiers].map((tier) => el("th", { scope: "col" }, tier)))),
      el("tbody", {}, ...forms.map((form) => el("tr", {}, el("th", { scope: "row" }, names[form]), ...tiers.map((tier) => cell(now[form][tier]))))))];
  }

  // epoch: any between the first frame and the last; pinned: the fact that is followed, -1 for none
  function show(epoch, pinned) {
    fact = pinned >= 0 ? pinned : first;
    asked.textContent = facts.question[fact];
    cards.replaceChildren(card("original", "●", "Original", 0), card("unlearned", "◆", epoch === 0 ? "Unlearned: not begun" : "Unlearned", epoch));
    leaks.replaceChildren(...matrix(epoch));
  }

  return { show };
}

// The beta curve with two anchors that can be dragged, by pointer or by arrow keys. props.value: see
// adapop/ui/run/pressure.py. moved: called with both anchors while one is dragged, or null.
function betaCurve(element, props, trigger, watch, moved) {
  const NS = "http://www.w3.org/2000/svg", EDGE = { left: 46, right: props.value?.fixed ? 58 : 14, top: 26, bottom: 44 }, HEIGHT = props.value?.fixed ? 178 : 350; // fixed: the handles move up and down alone, from least to most, on the axis of the field above
  const APART = 1.5, STEP = 1.1, BETA_STEP = 0.05, REST_MS = 500;
  const untold = new Set(); // handles moved since the last message to the server
  let anchors, range, later, focused = -1;

  function make(parent, tag, attributes, text) {
    const node = parent.appendChild(document.createElementNS(NS, tag));
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function beta(score) {
    const { low, high, constant } = props.value;
    if (constant !== null) return constant;
    const [[rare, top], [popular, bottom]] = anchors, b = Math.log(top / bottom) / Math.log(popular / rare);
    return Math.min(Math.max(score > 0 ? top * (score / rare) ** -b : high, low), high);
  }

  function scoreAt(value) {
    const [[rare, top], [popular, bottom]] = anchors, b = Math.log(top / bottom) / Math.log(popular / rare);
    return b > 0 ? rare * (value / top) ** (-1 / b) : NaN;
  }

  const x = (score) => EDGE.left + (range.width * Math.log(Math.max(score, range.min) / range.min)) / Math.log(range.max / range.min);
  const y = (value) => EDGE.top + range.height * (1 - value / range.top);
  const scoreOf = (px) => range.min * (range.max / range.min) ** ((px - EDGE.left) / range.width);
  const betaOf = (py) => range.top * (1 - (py - EDGE.top) / range.height);
  const shown = (score) => score.toLocaleString("en-US", { maximumSignificantDigits: 3 });

  function build() {
    const value = props.value, host = element.querySelector(".curve");
    if (!value || !host || !host.clientWidth) return;
    host.replaceChildren();
    // an answer to an earlier event must not undo a move that is not sent yet; a drag ends, as its handle is gone
    if (value.fixed) untold.clear();
    if (untold.size) tellSoon();
    anchors = [value.rare, value.popular].map((told, which) => (untold.has(which) ? anchors[which] : [...told]));
    const scores = value.points.map((point) => point[0]).filter((score) => score > 0);
    // a loop and not Math.min(...scores): thousands of arguments overflow the stack
    const min = scores.reduce((a, b) => Math.min(a, b), Math.min(30, value.rare[0] / 1.5));
    const max = scores.reduce((a, b) => Math.max(a, b), Math.max(9000, value.popular[0] * 1.5));
    range = { ...(value.fixed ? { min: 0.85 * scores.reduce((a, b) => Math.min(a, b)), max: 1.18 * scores.reduce((a, b) => Math.max(a, b)) } : { min, max }), top: Math.max(2.1, value.high * 1.05), width: host.clientWidth - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
    const svg = make(host, "svg", { width: host.clientWidth, height: HEIGHT, role: "group", "aria-label": value.label });
    axes(svg);
    make(svg, "rect", { class: "clip high" });
    make(svg, "rect", { class: "clip low" });
    make(svg, "line", { class: "wga", x1: EDGE.left, x2: EDGE.left + range.width, y1: y(1), y2: y(1) });
    const wide = range.width > 480;
    if (value.fixed) make(svg, "text", { x: EDGE.left + range.width, y: y(1) - 6, "text-anchor": "end" }, "β = 1: equal pressure (WGA)");
    else if (wide) make(svg, "text", { x: EDGE.left + 6, y: y(1) + 16 }, "β = 1: equal pressure (WGA)");
    for (const [words, below] of value.fixed ? [] : [["↑ pressure fades early", -8], ["↓ pressure lasts", 17]])
      make(svg, "text", { class: "plain", x: EDGE.left + range.width, y: y(1) + below, "text-anchor": "end" }, words);
    make(svg, "path", { class: "beta" });
    for (const [, , tier, name] of value.points) {
      const mark = { rare: ["circle", { r: 5 }], middle: ["rect", { x: -4.5, y: -4.5, width: 9, height: 9 }], popular: ["path", { d: "M0-6.5 6.5 0 0 6.5-6.5 0Z" }] }[tier];
      make(make(svg, mark[0], { ...mark[1], class: "fact " + tier }), "title", {}, name);
    }
    if (value.constant === null) for (const which of [0, 1]) handle(svg, which);
    update();
    // the answer to a key draws everything anew: focus the handle again, so that the next key works too
    if (document.activeElement === document.body) svg.querySelectorAll(".anchor")[focused]?.focus({ preventScroll: true });
  }

  function axes(svg) {
    for (const value of [0, 0.5, 1, 1.5, 2]) {
      make(svg, "line", { class: "grid", x1: EDGE.left, x2: EDGE.left + range.width, y1: y(value), y2: y(value) });
      make(svg, "text", { class: "tick", x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, value);
    }
    const decades = Math.log10(range.max / range.min), steps = decades < 4 && range.width > 420 ? [1, 3] : [1];
    for (let power = Math.floor(Math.log10(range.min)); power <= Math.log10(range.max); power++)
      for (const step of steps) {
        const score = step * 10 ** power;
        if (score < range.min || score > range.max) continue;
        make(svg, "line", { class: "grid", x1: x(score), x2: x(score), y1: EDGE.top, y2: y(0) });
        make(svg, "text", { class: "tick", x: x(score), y: y(0) + 18, "text-anchor": "middle" }, shown(score));
      }
    make(svg, "text", { class: "tick", x: EDGE.left + range.width / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "popularity (score s) →");
    make(svg, "text", { class: "tick", x: 4, y: 14 }, "β: the higher, the sooner the pressure fades");
    if (props.value.constant === null && !props.value.fixed) make(svg, "text", { class: "drag", x: EDGE.left + range.width, y: 14, "text-anchor": "end" }, "drag a ◆");
  }

  function handle(svg, which) {
    const grip = make(svg, "g", { class: "anchor", role: "slider", tabindex: 0, "aria-label": which ? "Popular anchor" : "Rare anchor", "aria-valuemin": range.min, "aria-valuemax": range.max });
    make(grip, "circle", { class: "hit", r: 20 });
    make(grip, "path", { d: "M0-11 11 0 0 11-11 0Z" });
    make(grip, "text", { class: "grip-label", y: -18, "text-anchor": which ? "end" : "start" });
    const move = (event) => {
      const frame = svg.getBoundingClientRect(), zoom = frame.height / HEIGHT; // Present zooms the page
      place(which, scoreOf((event.clientX - frame.left) / zoom), betaOf((event.clientY - frame.top) / zoom));
    };
    grip.addEventListener("focus", () => (focused = which));
    grip.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      grip.focus();
      grip.setPointerCapture(event.pointerId);
      grip.addEventListener("pointermove", move);
    });
    const drop = () => {
      grip.removeEventListener("pointermove", move);
      if (untold.size) tell();
    };
    grip.addEventListener("pointerup", drop);
    grip.addEventListener("pointercancel", drop);
    grip.addEventListener("keydown", (event) => {
      const [score, value] = anchors[which], to = (props.value.fixed && /Left|Right/.test(event.key) ? {} : { ArrowLeft: [score / STEP, value], ArrowRight: [score * STEP, value], ArrowUp: [score, value + BETA_STEP], ArrowDown: [score, value - BETA_STEP] })[event.key];
      if (!to) return;
      event.preventDefault();
      place(which, ...to);
      tellSoon();
    });
  }

  function place(which, score, value) {
    const [rare, popular] = anchors, { low, high, least = low, most = high } = props.value;
    score = which ? clamp(score, rare[0] * APART, range.max) : clamp(score, range.min, popular[0] / APART);
    value = which ? clamp(value, least, rare[1]) : clamp(value, popular[1], most);
    anchors[which] = [props.value.fixed ? anchors[which][0] : Number(score.toPrecision(3)), Number(value.toFixed(2))];
    untold.add(which);
    update();
    if (typeof moved === "function") moved(anchors);
  }

  function tellSoon() {
    clearTimeout(later);
    later = setTimeout(tell, REST_MS);
  }

  function tell() {
    clearTimeout(later);
    // a button may have moved the other handle meanwhile: only the moved handle is sent
    const [rare, popular] = anchors.map((anchor, which) => (untold.has(which) ? anchor : null));
    untold.clear();
    trigger("release", { rare, popular });
  }

  function update() {
    const { low, high, points, constant } = props.value, svg = element.querySelector(".curve svg"), steps = 160;
    const line = Array.from({ length: steps + 1 }, (_, i) => range.min * (range.max / range.min) ** (i / steps));
    svg.querySelector(".beta").setAttribute("d", "M" + line.map((score) => x(score).toFixed(1) + " " + y(beta(score)).toFixed(1)).join("L"));
    const marks = svg.querySelectorAll(".fact");
    points.forEach(([score, used], i) => marks[i].setAttribute("transform", `translate(${x(score).toFixed(1)} ${y(beta(used)).toFixed(1)})`));
    const zones = constant === null ? [[".high", range.min, scoreAt(high)], [".low", scoreAt(low), range.max]] : [];
    for (const [zone, from, to] of zones) {
      const left = x(clamp(from, range.min, range.max)), right = x(clamp(to, range.min, range.max)), rect = svg.querySelector(".clip" + zone);
      for (const [name, size] of Object.entries({ x: left || 0, y: EDGE.top, width: Math.max(0, right - left) || 0, height: range.height })) rect.setAttribute(name, size);
    }
    svg.querySelectorAll(".anchor").forEach((grip, i) => {
      const text = `score ${shown(anchors[i][0])}, β ${anchors[i][1]}`;
      grip.setAttribute("transform", `translate(${x(anchors[i][0])} ${y(anchors[i][1])})`);
      grip.setAttribute("aria-valuenow", anchors[i][0]);
      grip.setAttribute("aria-valuetext", text);
      const label = grip.querySelector("text");
      const named = range.width > 480 ? ["rare: ", "popular: "][i] : ""; // narrower, it would cover facts
      label.textContent = `${named}${shown(anchors[i][0])} → β ${anchors[i][1]}`;
      // in a narrow picture the words end at its edge, further up: left of the handle they would cover facts
      if (i) for (const [name, to] of Object.entries(range.width > 480 ? { x: 0, y: -18 } : { x: EDGE.left + range.width - x(anchors[i][0]), y: -32 })) label.setAttribute(name, to);
    });
  }

  watch("value", build);
  for (const left of ["pointerdown", "focusin"])
    document.addEventListener(left, (event) => element.contains(event.target) || (focused = -1));
  new ResizeObserver(build).observe(element);
  build();
}

// The field of the page's run, and everything else that shows one moment of it, under one scrubber. During a run it follows the
// newest frame, until the visitor goes back. props.value: see `value_of_field` in adapop/ui/run/screen.py. A new value may draw the template anew,
// so the picture is inserted again. Epoch and pinned fact are in the address, and are read from it once.
function runField(element, props, trigger, watch) {
  const picture = el("div");
  const given = new URL(location.href).searchParams, from = momentOf(given) === "run" ? given : new URLSearchParams();
  let shown = null, pinned = -1, restored = false;

  function build() {
    const host = element.querySelector(".run-field"), value = props.value;
    if (!host) return;
    if (picture.parentElement !== host) host.replaceChildren(picture);
    if (!value || !value.motion.epoch.length) {
      shown = null;
      cursor();
      stands(null);
      return picture.replaceChildren(el("p", { class: "note" }, value ? "The dots appear after the first step of this run." : "appears when a run starts"));
    }
    if (shown?.run === value.run) {
      Object.assign(shown.motion, value.motion);
      if (shown.held) Object.assign(shown.held, value.held.motion);
      shown.shares.splice(0, Infinity, ...value.shares);
      return shown.scrubber.grow(value.motion.epoch);
    }
    picture.replaceChildren();
    pinned = -1;
    const { motion, shares, facts, held } = value, place = el("div", { class: "forget" }), last = motion.epoch[motion.epoch.length - 1];
    const others = held && el("div"), tall = held ? () => clamp(innerHeight - 590, 210, 380) : null;
    picture.append(el("div", { class: held ? "clouds" : false }, place, others ?? ""));
    if (held) place.append(el("p", { class: "of" }, "Facts to forget"));
    if (held) others.append(el("p", { class: "of" }, "Held-out facts"));
    const field = makeField(place, facts, motion, { name: "The facts of this run", hint: "click a dot to follow it", below: 150, tall, onpin: (fact) => pin(fact) });
    const kept = held && makeField(others, held.facts, held.motion, { name: "Held-out facts", below: 150, tall });
    const scrubber = makeScrubber(picture, { stops: motion.epoch, name: "Frames of this run", onmove: show, onrest: () => address({ epoch: Number(scrubber.value.toFixed(2)) }) });
    const beside = makeMoment(picture, facts, motion, shares, field.table);
    picture.append(field.table);
    shown = { run: value.run, motion, shares, scrubber, held: held?.motion };

    function pin(fact) {
      pinned = fact;
      follow(fact);
      address({ pin: fact < 0 ? null : fact });
      show(scrubber.value);
    }

    function show(epoch) {
      field.show(epoch);
      kept?.show(epoch);
      beside.show(epoch, pinned);
      cursor(epoch);
      stands(epoch);
    }

    const [epoch, fact] = restored ? [NaN, -1] : [parseFloat(from.get("epoch")), parseInt(from.get("pin") ?? -1)];
    if (restored) keep("run", { epoch: null, pin: null }); // they belong to the previous run
    restored = true;
    if (fact >= 0 && fact < facts.title.length) field.pin((pinned = fact), false);
    follow(pinned);
    scrubber.place(isFinite(epoch) ? epoch : last);
  }

  // the pinned fact comes along to Probe: see `questionRead`
  function follow(fact) {
    if (fact < 0) delete document.body.dataset.pinned;
    else document.body.dataset.pinned = fact;
  }

  // results measured at a single epoch ask for the scrubber's epoch: see `setBack`
  function stands(epoch) {
    document.body.classList.toggle("moved-back", epoch !== null && epoch < shown.scrubber.end);
    if (epoch === null) delete document.body.dataset.epoch;
    else document.body.dataset.epoch = epoch;
    document.dispatchEvent(new Event("scrubbed"));
  }

  // marks the moment by a line in the recall chart, at a position from plotly's layout
  function cursor(epoch = shown?.scrubber.value) {
    const recall = document.getElementById("recall-chart"); // laid out after the field
    const plot = recall?.querySelector(".js-plotly-plot .svg-container"), layout = recall?.querySelector(".js-plotly-plot")?._fullLayout;
    let line = recall?.querySelector(".cursor");
    if (epoch === undefined || !plot || !layout?.xaxis?._length) return line?.remove();
    if (line?.parentElement !== plot) plot.append((line = el("div", { class: "cursor", "aria-hidden": "true" })));
    const { range, _offset, _length } = layout.xaxis;
    line.style.left = `${_offset + (_length * (epoch - range[0])) / (range[1] - range[0])}px`;
    line.style.top = `${layout.yaxis._offset}px`;
    line.style.height = `${layout.yaxis._length}px`;
  }

  const charts = element.closest("#charts");
  new MutationObserver(() => cursor()).observe(charts, { childList: true, subtree: true });
  new ResizeObserver(() => setTimeout(cursor, 200)).observe(charts); // plotly follows a moment later
  watch("value", build);
  build();
}

// The fields of a race's contestants side by side, under one scrubber and one switch: all at the same epoch, or each at the
// epoch with the same recall as the others. props.value: see `field_panels` in adapop/ui/compare/screen.py. A new value may draw the template anew.
function raceFields(element, props, trigger, watch) {
  const picture = el("div");
  let drawn = "", mode = "Equal epochs"; // the switch keeps its position when a run is added

  function build() {
    const host = element.querySelector(".race-fields"), runs = props.value ?? [];
    if (!host) return;
    if (picture.parentElement !== host) host.replaceChildren(picture);
    const now = JSON.stringify(runs.map((run) => [run.title, run.motion.epoch.length, run.shares]));
    if (now === drawn) return;
    drawn = now;
    picture.replaceChildren();
    if (!runs.length) return;
    const panels = runs.map((run) => {
      const when = el("span", { class: "when" }), place = el("div"), box = el("div", { class: "entrant", role: "group", "aria-label": run.title }, el("h3", {}, run.title, " ", when), place);
      const form = run.shares.some((one) => one.reworded.all === null) ? "direct" : "reworded";
      return { box, place, when, run, form, ends: run.shares.map((one) => one.epoch), left: run.shares.map((one) => one[form].all) };
    });
    const switches = el("div", { class: "ways", role: "group", "aria-label": "Compare at" }), scrubbing = el("div");
    picture.append(el("div", { class: "steer" }, switches, scrubbing), el("div", { class: "pair" }, ...panels.map((panel) => panel.box)));
    for (const panel of panels) panel.field = makeField(panel.place, panel.run.facts, panel.run.motion, { name: panel.run.title });
    const last = Math.max(...runs.map((run) => run.motion.epoch.at(-1))), epochs = [...new Set(runs.flatMap((run) => run.motion.epoch))].sort((a, b) => a - b);
    const most = Math.min(...panels.map((panel) => panel.left[0])), least = Math.max(...panels.map((panel) => Math.min(...panel.left)));
    const stops = Array.from({ length: 11 }, (_, i) => i);
    const modes = { "Equal epochs": { stops: epochs, label: moment, at: (panel, to) => Math.min(to, panel.run.motion.epoch.at(-1)) },
      "Equal forgetting": { stops, label: (to) => `${percent(leftAt(to))} answered`, at: (panel, to) => reached(panel, leftAt(to)) } };
    const leftAt = (to) => most + ((least - most) * to) / 10;
    // needs a measurement after each epoch; else the values between are unknown
    if (!panels.every(({ ends, run }) => run.motion.epoch.every((epoch) => !Number.isInteger(epoch) || ends.includes(epoch)))) delete modes["Equal forgetting"];
    choose(modes[mode] ? mode : "Equal epochs");

    // the first epoch at which a panel's recall falls to a share; measured at the ends of epochs, interpolated linearly between them
    function reached({ ends, left }, share) {
      const frame = left.findIndex((value) => value <= share + 1e-9);
      if (frame <= 0) return ends[Math.max(frame, 0)];
      const apart = clamp((left[frame - 1] - share) / (left[frame - 1] - left[frame] || 1), 0, 1); // rounding may put the share slightly outside
      return ends[frame - 1] + apart * (ends[frame] - ends[frame - 1]);
    }

    // recall at that moment, approximate between two epochs; the dots show probabilities
    function answeredAt({ run, form, ends }, epoch) {
      const [from, apart] = between({ epoch: ends }, epoch), [now, next] = [run.shares[from], run.shares[from + 1]].map((one) => one?.[form]);
      const told = ["rare", "popular"].filter((tier) => now[tier] !== null).map((tier) => `${tier} ${percent(now[tier] + (apart ? apart * (next[tier] - now[tier]) : 0))}`);
      return `${apart ? "≈ " : ""}${told.join(", ")} answered`;
    }

    function choose(name) {
      const { stops, label, at } = modes[name];
      switches.replaceChildren(...Object.keys(modes).map((one) => el("button", { type: "button", "aria-pressed": String(one === name), onclick: () => choose((mode = one)) }, one)));
      scrubbing.replaceChildren();
      // dots of one kind: the questions of the result only where every contestant has been asked them
      const isAsked = ({ run: { motion } }, epoch) => Boolean(motion.answered[motion.epoch.indexOf(epoch)]);
      const show = (to) => panels.forEach((panel) => {
        const epoch = at(panel, to);
        panel.field.show(epoch, panels.every((one) => isAsked(one, at(one, to))));
        panel.when.textContent = name === "Equal epochs" ? moment(epoch) : `${moment(epoch)}: ${answeredAt(panel, epoch)}`;
      });
      const scrubber = makeScrubber(scrubbing, { stops, name: "All runs", label, onmove: show });
      scrubber.place(name === "Equal epochs" ? last : 10);
    }
  }

  watch("value", () => {
    document.querySelector("#joining")?.remove();
    build();
  });
  build();
}

// The fields of the shipped examples side by side, on Compare before any race. props.value: see `side_by_side` in
// adapop/ui/story/content.py.
function exampleFields(element, props, trigger, watch) {
  const told = props.value, host = element.querySelector(".examples"), place = el("div");
  const by = el("p", { class: "by" }, "Whole runs, seed 0: each length of training is a run of its own, and dots between them are estimated from nearby runs. Made by ", el("code", {}, told.command));
  host.replaceChildren(el("details", {}, el("summary", {}, "Seed 0"), by), place);
  endsOf(place, told, { pin: -1 }, Object.keys(told.replies));
}

Object.assign(adapop, { betaCurve, runField, raceFields, exampleFields });
