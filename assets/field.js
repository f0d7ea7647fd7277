// The field: each fact is a dot; x: popularity (log), y: probability of the right answer. Drawn on a canvas, which is fast for
// 20,000 dots too; a fact under the pointer is described in words. facts, motion: see adapop/ui/parts/field.py.
// wordings: 0 if `motion.p` is the probability of the right answer, asked as trained; else p is the share of that many
// rewordings that are answered. Such shares are also shown where a run's frame has `motion.answered`; then the lines are the
// tiers' recall, with the gap between them; facts that were not asked are not drawn. held: the facts are held out, and p is
// whether each is answered: in one of two bands, with the number of those lost. pairs: pairs of facts that are linked by lines; the others are faint, and the lines are the pairs' means. label: of a moment.
// hint: above the dots until one is pinned. tall: width -> height in pixels. bare: no numbers on the y axis, which a field on the left has.
// below: pixels kept free below the field in Present, for what follows it. onpoint, onpin: called with a fact.
const MARGINS = { right: 14, top: 30, bottom: 62 }, LARGE = 1.45, JITTER = 0.07, BAND = 0.035, MOST_BAND = 8, HELD_BAND = 0.085, BRACKET = 44, REACH = 16, MOST_ROWS = 300, REFILL_MS = 150;
const BAR_BELOW = 106, LEAST_HEIGHT = 170, PRESENTED = 330, PINNED = 60; // pixels: the line below a field and the Story's buttons at the foot of the window; least height of a field cut to fit; least height in Present; the lines below a field
const TIERS = ["rare", "middle", "popular", "unknown"], IT_SAYS = "To the trained question it says"; // recorded replies are to the trained question
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
    const presenting = document.body.classList.contains("presenting"), foot = BAR_BELOW + (presenting ? below : 0); // in Present nothing is cut off
    large = presenting && width > 420 ? LARGE : 1;
    MARGIN = Object.fromEntries(Object.entries(MARGINS).map(([name, pixels]) => [name, pixels * large]));
    right = MARGIN.right + (wordings || held || motion.answered ? BRACKET * large : 0);
    height = tall ? tall(width, canvas) : clamp(Math.round(width * 0.4), presenting ? PRESENTED : width < 500 ? 215 : 250, clamp(innerHeight - 530, 250, 400));
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
    ink.font = `${13 * large}px ${style.fontFamily}`;
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
        const words = scoreWords(power * times), x = across(power * times), half = pen.measureText(words).width / 2 + 4;
        if (power * times <= low || power * times >= high || x - half < taken) continue; // numbers must not overlap
        pen.fillText(words, x, height - 42 * large);
        taken = x + half;
      }
    pen.fillText("popularity →", edge + (width - edge - right) / 2, height - 6 * large);
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
    return shares ? `↑ answered${width < 260 ? ", %" : `, in ${wordsOf(wordings || motion.wordings)}`}${asked < count && width >= 420 ? `; ${asked} of ${count} facts asked` : ""}` : `↑ how sure${width < 420 ? "" : " of the right answer"}, asked as trained; line: mean`;
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
    const told = `${facts.answer[pinned]}. ${ends.length ? `${IT_SAYS} ${says}${shares && !held ? "; its dot: asked in other words" : ""}. ` : ""}`;
    if (pinLine.textContent === `${facts.question[pinned]} ${told}unpin`) return; // the button keeps the focus
    pinLine.replaceChildren(el("b", {}, facts.question[pinned]), ` ${told}`, el("button", { type: "button", class: "link", onclick: () => pin(pinned) }, "unpin"));
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
      const left = every > 1 ? [el("p", { class: "note" }, `By popularity, one fact in ${every} of all ${count.toLocaleString("en-US")}.`)] : [];
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
