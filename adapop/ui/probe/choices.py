"""The choices that Probe offers: runs, facts, forms of the question."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from adapop.errors import RunError
from adapop.facts.fact import FACT_GROUPS, Fact
from adapop.facts.text import folded
from adapop.facts.tiers import number
from adapop.probes.attacks import attack_prompts, clues
from adapop.probes.inspection import ORACLE, Chosen
from adapop.probes.prompts import DIRECT, REWORDED, ProbeRow, Prompt, direct, named
from adapop.probes.wording import aliased, chained, reworded
from adapop.report.record import described_run
from adapop.runs import columns
from adapop.runs.columns import MOST_BESIDE, asked_facts, has_oracle
from adapop.runs.run import Run
from adapop.service.links import linked
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import probed_run, run_to_question, shown_run
from adapop.ui.probe import answers as cards
from adapop.ui.run import mine


def run_choices(worker: Worker, stored: object, name: str) -> gr.Dropdown:
    """The runs to choose from; the one now probed is selected."""
    offered, current = mine.choices(worker, stored), probed_run(worker, name)
    if current.id not in dict(map(reversed, offered)):  # viewed by link, or of another browser
        offered.insert(0, (described_run(current), name))
        return gr.Dropdown(offered, value=name)
    return gr.Dropdown(offered, value=current.id)


def column_choices(worker: Worker, stored: object, name: str, current: object) -> dict:
    """What can stand beside the probed run: its oracle, and other runs on the same facts to forget.
    current: what was chosen, of which stays what is still offered."""
    current = current if isinstance(current, list) else []
    offered = columns_offered(worker, stored, name, current)
    values = dict(map(reversed, offered))
    retained = [one for one in current if one in values]
    # without a value, the choice that a link has filled in meanwhile stays
    changed = {} if retained == current else {"value": retained}
    return gr.update(choices=offered, **changed)


def columns_offered(
    worker: Worker, stored: object, name: str, named: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """(label, value) of the columns that can stand beside the probed run. named: by an address,
    among them read-only links to runs."""
    run = probed_run(worker, name)
    facts = asked_facts(run)
    offered = [("A model that never knew these facts", ORACLE)] if has_oracle(run) else []
    by_link = [
        (described_run(other_run), one) for one in named if (other_run := linked(one, worker.root))
    ]
    for title, other in mine.choices(worker, stored) + by_link:
        other_run = shown_run(worker, other)
        asked = other_run and other_run.id != run.id and other_run.chosen_epoch is not None
        if asked and asked_facts(other_run) == facts:
            offered.append((title, other))
    return offered


def epoch_choices(worker: Worker, name: str, current: object) -> dict:
    """The epochs whose adapter the probed run kept, and its result, which replaces the current
    choice if that is not offered; hidden for a pair, which has none."""
    run = probed_run(worker, name)
    offered = epochs_offered(run)
    changed = {} if current in [value for _, value in offered] else {"value": ""}
    return gr.update(choices=offered, visible=not run.config.unlearned, **changed)


def epoch_of(chosen: object) -> int | None:
    """The number of an epoch of `epoch_choices`; None for the run's result, 0 for what is none. It
    comes from the browser."""
    if not chosen:
        return None
    whole = isinstance(chosen, str) and chosen.isascii() and chosen.isdecimal()
    return int(chosen) if whole and len(chosen) < 9 else 0


def epochs_offered(run: Run) -> list[tuple[str, str]]:
    """(label, value) of a run's result and of the other epochs whose adapter it kept."""
    saved = [
        epoch for epoch in range(1, (run.last_epoch or 0) + 1) if run.checkpoint(epoch).is_dir()
    ]
    others = [(f"Epoch {epoch}", str(epoch)) for epoch in saved if epoch != run.chosen_epoch]
    return [(texts.ITS_RESULT, ""), *others]


def columns_of(worker: Worker, run: Run, others: object, epoch: object = "") -> tuple[Chosen, ...]:
    """The columns that are asked, see `columns.columns_of`. others: of `column_choices`, epoch: of
    `epoch_choices`; they come from the browser. Raises RunError: the epoch was not kept, or a
    column is a run of somebody else."""
    beside = []
    for other in (others if isinstance(others, list) else [])[:MOST_BESIDE]:
        if other == ORACLE:
            beside += [(texts.NEVER_KNEW, None)] if has_oracle(run) else []
        elif linked(other, worker.root):
            message = "A run that was opened by a read-only link cannot be asked."
            raise RunError(message, "Take it out of “Further models”.")
        elif (other_run := run_to_question(worker, other)) and other_run.chosen_epoch is not None:
            beside.append((title_beside(other_run, run), other_run))
    return columns.columns_of(run, beside, epoch_of(epoch))


def kept_names(worker: Worker, run: Run, others: object) -> tuple[str, ...]:
    """The names under which replies of the columns beside the two are kept. others: of
    `column_choices`, or read-only links."""
    listed = [*others] if isinstance(others, list | tuple) else []
    runs = ((other, shown_run(worker, other)) for other in listed)
    return tuple(title_beside(other_run, run) if other_run else other for other, other_run in runs)


def title_beside(other: Run, run: Run) -> str:
    """The name of another run's column beside those of a run."""
    title = described_run(other)
    return title if title != described_run(run) else other.id[:8]


def fact_choices(
    worker: Worker, name: str, group: str, current: str | None, last: str | None = None
) -> tuple[gr.Dropdown, str | None, str | None]:
    """The facts of a run's group, the selected one, and the one selected by default. current: stays
    selected if it is among the facts and is not `last`. last: the previous default, which a new
    default replaces, unlike the visitor's own choice."""
    facts = _listed(probed_run(worker, name), group)
    stays = current != last and current in [fact.id for fact in facts]
    selected = current if stays else first_fact(worker, name, group)
    default = selected if current in (None, last) else last
    listed = [(_label(fact), fact.id) for fact in facts]
    return gr.Dropdown(listed, value=selected), selected, default


def first_fact(worker: Worker, name: str, group: str) -> str | None:
    """The id of the fact shown first, None without facts. Preferred, in this order: lost facts that
    come back, lost facts, probed facts, known facts; among equals the most popular."""
    run = probed_run(worker, name)
    lost = cards.lost_of(run)
    probed = {row.fact_id for row in run.probes() or () if isinstance(row, ProbeRow)}
    groups = (lost.back, lost.lost, probed, lost.known)

    def rank(fact: Fact) -> tuple:
        return *(fact.id in group for group in groups), fact.score or 0, fact.id

    first = max(_listed(run, group), key=rank, default=None)
    return first and first.id


def fact_of(run: Run, text: object, groups: Sequence[str] = FACT_GROUPS) -> str | None:
    """The id of the fact that a text names: the id itself, or part of a fact's listed name or
    answer. The first match in these groups counts; None without a match."""
    facts = [fact for group in groups for fact in _listed(run, group)]
    sought = folded(text).strip() if isinstance(text, str) else ""
    named = (fact.id for fact in facts if sought and sought in folded(_label(fact)))
    return text if text in [fact.id for fact in facts] else next(named, None)


def group_of(run: Run, fact_id: str | None) -> str | None:
    """The group of the fact of this id, None if the run has none."""
    groups = ((group, getattr(run.facts, group)) for group in FACT_GROUPS)
    return next((group for group, facts in groups if any(one.id == fact_id for one in facts)), None)


def _listed(run: Run, group: str) -> list[Fact]:
    """A group's facts, rarest first; empty for an unknown group."""
    facts = getattr(run.facts, group) if group in FACT_GROUPS else ()
    return sorted(facts, key=lambda fact: (fact.score is None, fact.score or 0, fact.id))


def form_choices(
    worker: Worker, name: str, fact_id: str | None, text: str, filled: tuple = ()
) -> tuple[gr.Dropdown, str]:
    """The forms to ask a fact in, and the selected one: the trained question, unless the text is
    already another form of this fact, or a form was filled in before, see `ProbeScreen.filled`."""
    run = probed_run(worker, name)
    prompts = forms_of(run, fact_id)
    known = [prompt.text for prompt in prompts]
    selected = text if text in known else known[0] if known else ""
    # a form filled in for another run's fact does not count
    if filled[:2] == (name, fact_id) and filled[2] in (*known, ""):
        selected = filled[2]
    pair = bool(run.config.unlearned)
    listed = [*((_form(prompt, pair), prompt.text) for prompt in prompts), ("My own question", "")]
    return gr.Dropdown(listed, value=selected), selected


def forms_of(run: Run | None, fact_id: str | None) -> list[Prompt]:
    """Every prompt for a fact of the run: direct, reworded, and the attacks that apply."""
    chosen = run and run.facts.fact(fact_id)
    if chosen is None:
        return []
    attacks = attack_prompts(chosen, run.facts.every, run.config.seed)
    prompts = [direct(chosen), *reworded(chosen), *aliased(chosen), *chained(chosen), *attacks]
    return [prompt for prompt in prompts if isinstance(prompt, Prompt)]


def ways_to_ask(run: Run, fact_id: str | None) -> tuple[list[Prompt], dict[int, tuple[str, ...]]]:
    """(`forms_of`, below them the fact's chain of clues if it has one; the place of that -> the
    turns before it)."""
    forms, chain = forms_of(run, fact_id), clues_of(run, fact_id)
    return ([*forms, chain[0]], {len(forms): chain[1]}) if chain else (forms, {})


def clues_of(run: Run, fact_id: str | None) -> tuple[Prompt, tuple[str, ...]] | None:
    """`attacks.clues` of a fact to forget or another; None where the model holds no conversation,
    as the models that ship."""
    fact = run.facts.fact(fact_id) if chats(run) else None
    return fact and clues(fact)


def chats(run: Run) -> bool:
    """Whether a run's model is asked in its chat template, without examples."""
    return run.prompting is not None and run.prompting.asking == "chat"


def _form(prompt: Prompt, pair: bool) -> str:
    """The list's label of a prompt. pair: to two models that were made elsewhere."""
    if prompt.kind == DIRECT:
        return texts.DIRECT_OF_PAIR if pair else texts.DIRECT_FORM
    words = f"In other words: {prompt.text}" if prompt.kind == REWORDED else named(prompt.kind)
    return words[0].upper() + words[1:]


def _label(fact: Fact) -> str:
    score = "score unknown" if fact.score is None else f"{fact.tier}, score {number(fact.score)}"
    return f"{fact.title} → {fact.answer} ({score})"
