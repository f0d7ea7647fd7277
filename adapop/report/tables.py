"""Tables of one run: recall, other metrics, leaks, verdicts, and prompts not asked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from adapop.errors import number_of
from adapop.facts.fact import FACT_GROUPS, GROUPS, TIERS
from adapop.probes.matrix import Cell, LeakMatrix
from adapop.probes.prompts import EVERY_KIND, OTHERWISE, WORDINGS, named, plain
from adapop.probes.recall import KNOWN_FROM
from adapop.probes.verdict import RULES
from adapop.report.record import GROUP_NAMES, Record
from adapop.report.table import Table, number, percent
from adapop.runs.delivered import ADAPTER, Delivered
from adapop.runs.questions import Question
from adapop.training.events import Measured

RECALL_NOTE = (
    "Mean recall of the original → the unlearned model. For the forget set, less is better; for "
    "all others, more. The first number is the number of facts."
)
METRICS_NOTE = (
    "How far the unlearned model is from the original on the trained questions. The arrows say "
    "which direction is better, for the forget set / for all others; →0 means nearer to zero."
)
NO_TRUTH_RATIO_NOTE = (
    "There is no truth ratio, because it needs wrong answers (`alternates`) or other answers of a "
    "fact's relation."
)
DELIVERED_NOTE = (
    "Recall of the facts, measured on these very files: they were loaded again from the disk and "
    "asked in the same way as the run's model. Running sha256sum on a file must give the value "
    "here."
)
LEAK_NOTE = (
    "Recall of the original → the unlearned model, the latter's 95% interval over facts, and how "
    "many facts. In the top 2: share of facts whose right answer is the first or second guess, "
    "although the reply may not say it; rank: its mean rank among the answers to such questions (1 "
    "is the likeliest). The retain set and the held-out facts are the control: if a form fails for "
    "them too, the model no longer follows that form, and the failure shows no forgetting."
)

COLUMNS = (*TIERS, "all")
DOWN, UP, LEVEL = "↓", "↑", "→0"
OVERVIEW = {
    **{tier: ("forget", tier) for tier in COLUMNS},
    **{GROUP_NAMES[group]: (group, "all") for group in ("retain", "holdout", "neighbours")},
}


@dataclass(frozen=True)
class Metric:
    """A measured number. field: of `Measurement`. forget, others: the better direction for facts to
    forget and for other facts: DOWN, UP or LEVEL (should stay 0)."""

    field: str
    title: str
    forget: str
    others: str
    meaning: str


MOST_SUBJECTS = 200  # rows of the table by subject
INTERNAL = ("delta_logprob", "delta_rank", "hidden_cosine", "kl")  # compared with the original
METRICS = (
    Metric("recall", "recall", DOWN, UP,
        "ROUGE-L recall: share of the right answer's words in the greedy reply, 0–1"),
    Metric("cosine", "cosine", DOWN, UP,
        "cosine of MiniLM embeddings of the reply and the right answer"),
    Metric("delta_logprob", "Δ log p", DOWN, LEVEL,
        "change of the answer's log-probability against the original, nats an answer"),
    Metric("delta_rank", "Δ rank", UP, LEVEL,
        "mean number of places by which the right answer's tokens fell in the model's ranking"),
    Metric("hidden_cosine", "hidden cosine", DOWN, UP,
        "similarity to the original's hidden states (cosine, last four layers)"),
    Metric("kl", "KL", UP, DOWN,
        "how far the predictions moved from the original's (KL divergence, nats a token)"),
    Metric("probability", "probability", DOWN, UP,
        "probability of the right answer, geometric mean over its tokens"),
    Metric("exact_memorization", "exact mem.", DOWN, UP,
        "share of the right answer's tokens that the model finds likeliest"),
    Metric("extraction_strength", "extr. strength", DOWN, UP,
        "share of an answer that the model completes once given the rest; always 1 for one token"),
    Metric("truth_ratio", "truth ratio", UP, LEVEL,
        "1 where right and wrong answers are equally likely (TOFU)"),
)  # fmt: skip


def recall_table(before: Measured, after: Measured) -> Table:
    """Recall before and after, a row per group and form, a column per tier."""
    rows = []
    for group in GROUPS:
        for form in (*WORDINGS, *OTHERWISE):
            if not any(of_tiers := [after.row(group, form, tier) for tier in COLUMNS]):
                continue
            cells = [""] * len(COLUMNS)
            for place, row in enumerate(of_tiers):
                if row is not None:
                    known = before.recall(group, form, row["tier"])
                    cells[place] = f"{percent(known)} → {percent(row['recall'])}"
            name = f"{GROUP_NAMES[group]}, {plain(form)}"
            rows.append((name, f"{of_tiers[-1]['facts']:,}", *cells))
    return Table("Before and after", ("", "facts", *COLUMNS), tuple(rows), RECALL_NOTE)


def metrics_table(after: Measured) -> Table:
    """Other metrics of the trained questions, a row per group and tier; only measured ones."""
    measured = [row for row in after.rows if row["form"] == "direct"]
    there = {name for row in measured for name, value in row.items() if value is not None}
    metrics = [metric for metric in METRICS[1:] if metric.field in there]
    head = [f"{metric.title} {metric.forget}/{metric.others}" for metric in metrics]
    measured.sort(key=lambda row: (GROUPS.index(row["group"]), COLUMNS.index(row["tier"])))
    rows = []
    for row in measured:
        name = f"{GROUP_NAMES[row['group']]}, {row['tier']}"
        numbers = (number(row.get(metric.field)) for metric in metrics)
        rows.append((name, f"{row['facts']:,}", *numbers, f"{row['words']:.1f}"))
    note = METRICS_NOTE
    if "probability" in there and "truth_ratio" not in there:
        note += f" {NO_TRUTH_RATIO_NOTE}"
    return Table("Other metrics", ("", "facts", *head, "words"), tuple(rows), note)


def subject_table(record: Record) -> Table | None:
    """How many facts of each subject are still answered; None unless a subject has several facts
    to forget and both models were measured fact by fact. A fact is answered in a way of asking
    where its recall is at least `KNOWN_FROM`; with parts, where a reply says one of them."""
    before, after, facts = record.before, record.after, record.facts.forget
    subjects = Counter(fact.subject for fact in facts if fact.subject)
    measured = before and after and before.direct_by_fact and after.direct_by_fact
    if not measured or max(subjects.values(), default=0) < 2:
        return None
    unasked = (None,) * len(facts)
    ways = [before.direct_by_fact, after.direct_by_fact]
    ways += [before.most_by_fact or unasked, after.most_by_fact or unasked]
    answered = [[None if one is None else one >= KNOWN_FROM for one in way] for way in ways]
    direct, reworded = answered[1], answered[3]
    rows = []
    for subject, count in subjects.most_common():
        places = [place for place, fact in enumerate(facts) if fact.subject == subject]
        known = [[way[place] for place in places if way[place] is not None] for way in answered]
        either = [place for place in places if direct[place] or reworded[place]]
        cells = [f"{sum(own)} of {len(own)}" if own else "not asked" for own in known]
        counted = {place for place in places if (direct[place], reworded[place]) != (None, None)}
        still = f"{len(either)} of {len(counted)}" if counted else "not asked"
        rows.append((len(either), subject, (subject, f"{count:,}", *cells, still)))
    rows.sort(key=lambda row: (-row[0], row[1]))
    head = ("subject", "facts", "before, as trained", "as trained")
    head += ("before, in other words", "in other words", "either way")
    left_out = len(rows) - MOST_SUBJECTS
    note = "How many of a subject's facts the model still answers, and what it answered before. "
    note += "“In other words” counts a fact if at least one of its rewordings is answered. The "
    note += "other ways of asking are measured on a few facts, so they are not counted here."
    note += f" {left_out:,} more subjects are in subjects.csv of the run's archive." * (
        left_out > 0
    )
    return Table("By subject", head, tuple(row for _, _, row in rows), note)


def delivered_table(delivered: Sequence[Delivered]) -> Table:
    """Recall of the models that exported files give, beside the SHA-256 of these files."""
    columns = [(group, form) for group in FACT_GROUPS for form in WORDINGS]
    rows = []
    for one in delivered:
        recalls = (percent(one.measured.recall(*column)) for column in columns)
        sums = "\n".join(f"{name} {sha256}" for name, sha256 in one.sha256.items())
        name = "adapter" if one.kind == ADAPTER else f"merged model in {one.trial.dtype}"
        rows.append((name, *recalls, sums))
    head = (f"{GROUP_NAMES[group]}, {plain(form)}" for group, form in columns)
    return Table("The exported files", ("", *head, "SHA-256"), tuple(rows), DELIVERED_NOTE)


def leak_table(
    matrix: LeakMatrix, columns: Mapping[str, tuple[str, str]], title: str = "Where it leaks"
) -> Table:
    """Recall in every form of the question. columns: name -> (group, tier); empty columns are left
    out."""
    cells = {(cell.group, cell.tier, cell.kind): cell for cell in matrix.cells}
    places = {key[:2] for key in cells}
    used = {name: place for name, place in columns.items() if place in places}
    rows = []
    for kind in EVERY_KIND:
        of_kind = [cells.get((*place, kind)) for place in used.values()]
        rows += [(named(kind), *map(_leak, of_kind))] if any(of_kind) else []
    return Table(title, ("", *used), tuple(rows), LEAK_NOTE)


def verdict_table(counts: Mapping[str, Mapping[str, int]], title: str = "Verdicts") -> Table:
    """Number of facts per verdict. counts: column -> verdict -> number of facts."""
    present = {name for numbers in counts.values() for name in numbers}
    names = [rule.name for rule in RULES if rule.name in present]
    rows = [(name, *(f"{numbers.get(name, 0):,}" for numbers in counts.values())) for name in names]
    totals = ("facts", *(f"{sum(numbers.values()):,}" for numbers in counts.values()))
    return Table(title, ("", *counts), (*rows, totals))


def not_asked_table(matrix: LeakMatrix) -> Table:
    """Prompts that were not asked: for how many facts, and why."""
    rows = tuple((named(one.kind), f"{one.facts:,}", one.reason) for one in matrix.not_asked)
    note = "Forms that do not apply to a fact are left out rather than counted as forgotten."
    return Table("What was not asked, and why", ("form", "facts", "why"), rows, note)


def question_table(questions: Sequence[Question]) -> Table:
    """Questions of one's own: a row each, with the reply of every model that was asked."""
    models = list(dict.fromkeys(reply.model for one in questions for reply in one.replies))
    rows = []
    for one in questions:
        texts = {reply.model: reply.text or "(nothing)" for reply in one.replies}
        drawn = ", ".join(f"{name} {value:g}" for name, value in one.sampling.items())
        how = "\n".join(filter(None, (one.way, drawn)))
        replies = (texts.get(model, "not asked") for model in models)
        rows.append((one.prompt, one.gold, how, *replies, one.verdict))
    head = ("question", "right answer", "how", *models, "verdict")
    return Table("Your own questions", head, tuple(rows))


def probe_tables(record: Record) -> list[Table]:
    """All probe results, every group by tier: recall by form, verdicts, prompts not asked."""
    matrix, leaks, verdicts = record.matrix, [], []
    for group in (*FACT_GROUPS, "neighbours"):
        facts = GROUP_NAMES[group]
        columns = {tier: (group, tier) for tier in (*TIERS, "unknown", "all")}
        counts = matrix.verdicts_by_tier(record.verdicts, group)
        leak = leak_table(matrix, columns, f"Where it leaks, {facts}")
        leaks += [leak] if len(leak.head) > 1 else []
        verdicts += [verdict_table(counts, f"Verdicts, {facts}")] if counts else []
    # Only the last table keeps the note.
    leaks[:-1] = [replace(table, note="") for table in leaks[:-1]]
    return [*leaks, *verdicts, *([not_asked_table(matrix)] if matrix.not_asked else [])]


def _leak(cell: Cell | None) -> str:
    if cell is None:
        return "not asked"
    before, after = cell.original.recall, cell.unlearned.recall
    of = "" if cell.facts == cell.asked else f" known of {cell.asked:,}"
    facts = f"{number_of(cell.facts, 'fact')}{of}"
    if not cell.measurable:
        return f"not measurable\n({percent(before.mean)} → {percent(after.mean)})\n{facts}"
    guess = f"\na guess: {percent(cell.chance)}" if cell.chance else ""
    spread = f"{100 * after.low:.0f} to {100 * after.high:.0f}%"
    near, rank = cell.unlearned.near, cell.unlearned.relation_rank
    near = "" if near is None else f"\nin the top 2: {percent(near)}"
    near += "" if rank is None else f", rank {rank:.1f}"
    return f"{percent(before.mean)} → {percent(after.mean)}\n{spread}\n{facts}{near}{guess}"
