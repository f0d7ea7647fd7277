"""Commands on facts: score them, show their β, compare two scorings, add rewordings."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapop.cli import printing
from adapop.config.presets import make_config
from adapop.errors import AdaPopError, ConfigError
from adapop.facts.catalog import ENTRIES, load_raw
from adapop.facts.fact import SANDBOX, Fact, FactSet, scores_of
from adapop.facts.files import guessed, named_columns, read_table
from adapop.facts.scale import with_tiers
from adapop.online.cache import Cache
from adapop.popularity.agreement import agreement, joined, remarks_of
from adapop.popularity.base import Score, check_place, forecast, given, write_scored
from adapop.popularity.beta import between_tiers, inverted, noisy, regime, shuffled, swapped
from adapop.popularity.calibration import AUTO, auto_anchors, calibrated, meaning_of, warnings_of
from adapop.popularity.judge import Judge, judge_from_environment, local_judge
from adapop.popularity.sources import SOURCES, Choices
from adapop.probes.prompts import NotApplicable
from adapop.probes.wording import written
from adapop.progress import Progress
from adapop.remark import sentences
from adapop.report.table import Table
from adapop.runs.known import original_recall

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel

DISCORDANT_SHOWN = 10
BETAS_NOTE = (
    "β: exponent of each token's weight p^β. self-limiting (β > 1): the pressure fades early, "
    "which suits rare facts; pressure-sustaining (β < 1): it lasts long, which suits popular facts."
)


def score(options: argparse.Namespace) -> int:
    """`score`: prints a score for each fact; after an error or Ctrl-C, those found so far."""
    progress = Progress(printing.overwritten)
    if options.out:
        check_place(options.out)
    facts = facts_of(options.facts, progress, options)
    others = _other_columns(options) if options.out else {}
    printing.print_notes(facts, options.json)
    scored: dict[str, Score] = {}
    status = 0
    try:
        for one in PROXIES[options.proxy](options, facts, progress):
            scored[one.fact_id] = one
            if options.json:
                printing.say_json(asdict(one))
    except (AdaPopError, KeyboardInterrupt) as error:
        if not scored:
            raise
        status = printing.ended_early(error)
    printing.overwritten("")
    if not options.json:
        _print_scores(facts.forget, scored)
    if options.out:
        write_scored(facts, scored, options.out, others)
    known = sum(one.value is not None for one in scored.values())
    where = f"; written to {options.out}" if options.out else ""
    printing.say(f"{known:,} of {len(facts.forget):,} facts have a score{where}", file=sys.stderr)
    return status


def beta(options: argparse.Namespace) -> None:
    """`beta`: score, exponent and regime of every fact, and notes on the beta map."""
    facts = facts_of(options.facts or SANDBOX, Progress(printing.overwritten), options)
    printing.print_notes(facts, options.json)
    known = [fact.score for fact in facts.forget if fact.score is not None]
    curve = calibrated(options.anchors, facts)
    cells = []
    for fact in facts.forget:
        exponent = None if fact.score is None else curve(fact.score)
        word = "unknown score" if exponent is None else regime(exponent)
        if options.json:
            row = {"id": fact.id, "score": fact.score, "beta": exponent, "regime": word}
            printing.say_json(row)
        numbers = ("–" if value is None else f"{value:,.3f}" for value in (fact.score, exponent))
        cells.append((*numbers, word, " ".join(fact.question.split())))
    if not options.json:
        head = ("score", "β", "regime", "question")
        title = f"Exponents of the {len(cells):,} facts of {facts.name}"
        printing.say(Table(title, head, tuple(cells), BETAS_NOTE).as_text())
        meaning = "No fact has a score yet."
        if known:
            meaning = meaning_of(curve(min(known)), curve(max(known))).text()
        printing.say(f"a = {curve.a:.4g}, b = {curve.b:.4g}. {meaning}", file=sys.stderr)
        if options.anchors == AUTO:
            printing.say(auto_anchors(facts).remark.text(), file=sys.stderr)
    for warning in sentences(warnings_of(known, curve), reader="command"):
        printing.say(f"warning: {warning}", file=sys.stderr)


def agree(options: argparse.Namespace) -> None:
    """`agree`: two scorings of the same facts, joined by id, or by question if there are no ids."""
    progress = Progress(printing.overwritten)
    names = (options.first, options.second)
    one_set, other_set = (load_raw(name, progress, drop_bad=options.drop_bad) for name in names)
    one, other = one_set.forget, other_set.forget
    first, second = scores_of(one), scores_of(joined(one, other))
    both = FactSet("", forget=(*one, *other))
    compared = agreement(first, second, calibrated(options.anchors, both))
    discordant = compared.discordant[:DISCORDANT_SHOWN]
    recall: dict[str, float] = {}
    if options.model and discordant:
        facts = replace(one_set, forget=tuple(fact for fact in one if fact.id in discordant))
        recall = original_recall(make_config(model=options.model), facts, progress)
        printing.overwritten("")
    if options.json:
        printing.say_json(asdict(compared) | ({"recall": recall} if options.model else {}))
        return
    printing.say("\n".join(sentences(remarks_of(compared, *names))))
    titles = {fact.id: fact.title for fact in one}
    for fact in discordant:
        known = f"; the model's recall: {recall[fact]:.2f}" if fact in recall else ""
        printing.say(f"  {titles[fact]}: {first[fact]:,.6g} against {second[fact]:,.6g}{known}")


def facts_of(source: str, progress: Progress, options: argparse.Namespace) -> FactSet:
    """A named set or a file; no retain facts are added, because scoring needs none."""
    return load_raw(source, progress, **reading_of(options))


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """How a file is read, as `load_facts` takes it: from --columns, --column and --drop-bad."""
    return {"columns": chosen_columns(options), "drop_bad": options.drop_bad}


def chosen_columns(options: argparse.Namespace) -> dict[str, str]:
    """Field -> column, from --columns and --column."""
    chosen = named_columns(options.columns) if options.columns else {}
    return chosen | ({"score": options.column} if getattr(options, "column", None) else {})


def _other_columns(options: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Fact id -> the file's other columns, which we do not read; empty for a set by name."""
    if options.facts in ENTRIES:
        return {}
    table = read_table(Path(options.facts))
    return table.others({**guessed(table.columns), **chosen_columns(options)})


def _looked_up(options: argparse.Namespace, facts: FactSet, progress: Progress) -> Iterator[Score]:
    """Scores from a source, after its possible cost is printed. Raises ConfigError: no --corpus."""
    source = SOURCES[options.proxy]
    if "text" in source.reads and options.corpus is None:
        message = f"--proxy {options.proxy} needs a text to count in."
        raise ConfigError(message, "Add --corpus FILE_OR_FOLDER.")
    names = ("formula", "language", "year", "index", "combine")
    chosen = Choices(**{name: getattr(options, name) for name in names}, text=options.corpus)
    if options.proxy == "judge":
        proxy = chosen_judge(options, progress)
    else:
        proxy = source.make(facts, chosen, progress, Cache(refresh=options.refresh))
    cost = forecast(proxy, facts.forget)
    cost_words = f"about {cost.requests:,} requests, {cost.minutes:,.0f} min"
    line = f"{cost_words} at the AdaPop paper's request rate"
    if "text" not in source.reads:
        printing.say(line if cost.requests else "everything is cached: no request", file=sys.stderr)
    return proxy.scores(facts.forget)


def _control(change: Callable[..., Mapping[str, float]]):
    """A source of changed scores. change: called with the known scores, options and set."""

    def changed(options: argparse.Namespace, facts: FactSet, progress: Progress) -> Iterator[Score]:
        known = {fact.id: fact.score for fact in facts.forget if fact.score is not None}
        new = change(known, options, facts)
        for fact in facts.forget:
            if fact.id in new:
                yield Score(fact.id, new[fact.id], f"{options.proxy}, of {fact.score_source}")
            else:
                yield Score(fact.id, None, "", reason="had no score before")

    return changed


def _between_tiers(known: dict[str, float], options: argparse.Namespace, facts: FactSet) -> dict:
    tiers = {fact.id: fact.tier for fact in with_tiers(facts).forget}
    return between_tiers(known, tiers, options.seed, options.share)


def _constant(options: argparse.Namespace, facts: FactSet, progress: Progress) -> Iterator[Score]:
    """The same score for every fact, even if it had none. Raises ConfigError: it is no score."""
    if not 0 <= options.value < math.inf:
        message = f"--value is {options.value:g}, which is not a valid score."
        raise ConfigError(message, "Scores are finite and at least 0.")
    for fact in facts.forget:
        yield Score(fact.id, options.value, "constant")


def chosen_judge(options: argparse.Namespace, progress: Progress) -> Judge:
    """The local judge of --model, or the environment's. Raises ConfigError: no judge is configured,
    or the prompt file cannot be read."""
    cache = Cache(refresh=options.refresh)
    if options.model:
        judge = local_judge(options.model, _loaded, progress, cache)
    else:
        judge = judge_from_environment(progress, cache)
    if path := getattr(options, "prompt", None):
        try:
            judge.system = path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            message = f"--prompt {path} cannot be read ({error})."
            raise ConfigError(message, "Name a text file.") from None
    return judge


def _loaded(model: str) -> AdaptedModel:
    from adapop.model.loading import adapted_model

    return adapted_model(make_config(model=model))


PROXIES = dict.fromkeys(SOURCES, _looked_up) | {
    "column": _control(lambda known, *_: known),
    "constant": _constant,
    "shuffled": _control(lambda known, options, _: shuffled(known, options.seed)),
    "inverted": _control(lambda known, *_: inverted(known)),
    "noisy": _control(lambda known, options, _: noisy(known, options.seed, options.sigma)),
    "swapped-tiers": _control(_between_tiers),
    "swapped": _control(lambda known, options, _: swapped(known, options.seed, options.share)),
}


def _print_scores(facts: Sequence[Fact], scored: Mapping[str, Score]) -> None:
    printing.say(f"{'score':>12}  fact → answer; – is unknown, which is not 0")
    for fact in facts:
        if one := scored.get(fact.id):
            value = "–" if one.value is None else f"{one.value:,.6g}"
            note = f"  ({one.reason})" if one.reason else ""
            printing.say(f"{value:>12}  {fact.title} → {fact.answer}{note}")


def reword(options: argparse.Namespace) -> int:
    """`reword`: writes the set with up to two rewordings for each fact to forget that has none.
    Replies are cached, so that it can be interrupted and started again."""
    check_place(options.out)
    progress = Progress(printing.overwritten)
    facts = facts_of(options.facts, progress, options)
    printing.print_notes(facts, False)
    judge = chosen_judge(options, progress)
    bare = [fact for fact in facts.forget if not fact.paraphrases]
    texts: dict[str, tuple[str, ...]] = {}
    failed, status = 0, 0
    try:
        for rewording in written(bare, judge.ask, judge.name, Cache(refresh=options.refresh)):
            if isinstance(rewording, NotApplicable):
                failed += 1
            else:
                texts[rewording.fact_id] = (*texts.get(rewording.fact_id, ()), rewording.text)
            progress.say(f"Reworded {len(texts):,} of {len(bare):,} facts")
    except (AdaPopError, KeyboardInterrupt) as error:
        status = printing.ended_early(error)
    printing.overwritten("")
    reworded = tuple(
        replace(fact, paraphrases=texts.get(fact.id, fact.paraphrases)) for fact in facts.forget
    )
    known = given(facts.forget).scores
    write_scored(replace(facts, forget=reworded), known, options.out, _other_columns(options))
    done = f"{len(texts):,} of {len(bare):,} facts without rewordings have some now"
    failures = f"{failed:,} got no usable ones"
    printing.say(f"{done}, {failures}; written to {options.out}", file=sys.stderr)
    return status
