// The texts beside a run's field at one moment: a fact's replies before training and then, and recall in each form.
// shares: see adapop/ui/parts/field.py. The fact is the pinned one, else the most popular one that the original knew.
function makeMoment(host, facts, motion, shares) {
  const asked = el("p", { class: "asked" }), cards = el("div", { class: "answers" }), leaks = el("div", { class: "leaks" });
  const worth = (fact) => [motion.right[0]?.[fact] === true ? 1 : 0, facts.score[fact] ?? -1];
  const first = facts.score.reduce((best, _, fact) => (worth(fact)[0] - worth(best)[0] || worth(fact)[1] - worth(best)[1]) > 0 ? fact : best, 0);
  let fact = first;
  host.append(el("div", { class: "moment" }, asked, cards, leaks));

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
    const asked = old ? `What came back, last asked ${moment(now.epoch)}` : now.epoch ? `What comes back ${moment(now.epoch)}` : "What is answered before";
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
