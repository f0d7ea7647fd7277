"""How long each fact survives unlearning, and what tells it beforehand: a run is one line of JSON.

Every fact gets the same pressure, at a low rate, for many epochs. Four times an epoch each fact is
asked in its trained wording and in all its rewordings, and a fact is lost from the moment on after
which its answer is never again what the model would say. The question, the measure and the rule
that decides were written down before any of these runs was made: see "What predicts how long a
fact survives?" in `assets/docs/findings.md`. `survival_tables` draws what the rows say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapop.assets import as_kind
from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.experiments.plans import World, build, folder_of
from adapop.experiments.results import append_line, read_lines
from adapop.experiments.run import Engine, completed
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet
from adapop.paths import SHIPPED, commit
from adapop.training.frames import due

if TYPE_CHECKING:
    from adapop.model.adapted import AdaptedModel
    from adapop.model.tokens import Row

NO_SPREAD = World("no-spread", spread=0.0)  # pretraining showed all its facts equally often
WORLDS = ("sandbox", "people", NO_SPREAD.name)
RATES = {"wga": 1e-3, "npo": 1e-3, "gd": 5e-4}  # equal pressure on all facts, and low
EPOCHS, LOOKS = 16, 4  # LOOKS: in an epoch, evenly spread
SEEDS = tuple(range(3, 11))  # not those of the first look, which were 0 to 2
QUICK_EPOCHS, QUICK_FACTS = 2, 8
FILE = "survival.jsonl"


@dataclass(frozen=True)
class Lost:
    """For each fact, the look (1 to EPOCHS * LOOKS) from which on its answer is never again held;
    0: not held before training either; None: held at the last look (censored)."""

    reworded: tuple[int | None, ...]
    """Held: the model would say the whole answer to the first rewording (every token of the answer
    is the first guess, given those before)."""
    half: tuple[int | None, ...]
    """Held: it would say it to at least half of all rewordings."""
    top2: tuple[int | None, ...]
    """Held: every token of the answer is among the first two guesses in the first rewording."""
    direct: tuple[int | None, ...]
    """Held: it would say it to the trained question."""


@dataclass(frozen=True)
class Survival:
    """One run: a world, a method and a seed, with what was known of each fact before."""

    world: str
    method: str
    rate: float
    seed: int
    epochs: int
    looks: int
    """Looks in an epoch."""
    quick: bool
    facts: str
    """sha256 of the fact set."""
    commit: str
    nll: tuple[float, ...]
    """-log p of each fact's answer before training, nats per answer token, trained question."""
    nll_reworded: tuple[float, ...]
    """The same in the first rewording."""
    lost: Lost

    @property
    def key(self) -> tuple[str, str, int, bool]:
        return self.world, self.method, self.seed, self.quick


def facts_of(world: str, quick: bool = False) -> FactSet:
    """The facts of a world; the no-spread world has those of the sandbox. quick: the first few."""
    facts = load_facts(world if world in SHIPPED else "sandbox")
    if not quick:
        return facts
    groups = {name: getattr(facts, name)[::QUICK_FACTS] for name in ("forget", "retain", "holdout")}
    return replace(facts, **groups)


def run(
    folder: Path,
    seeds: Sequence[int],
    engine: Engine,
    quick: bool,
    report: Callable[[str], None],
    worlds: Sequence[str] = WORLDS,
) -> dict[str, str]:
    """Makes the runs that `folder` lacks and appends a line each as they end. Builds the no-spread
    world first, which takes minutes on one core. Returns title of a failed run -> reason. Raises
    DataError: the file is damaged."""
    path = folder / FILE
    known = {one.key for one in rows(path)}
    keys = ((world, method, seed) for seed, world, method in product(seeds, worlds, RATES))
    missing = [key for key in keys if (*key, quick) not in known]
    models = folder / "models"
    if any(world == NO_SPREAD.name for world, _, _ in missing) and not quick:
        report(
            "Pretraining the world in which all facts are shown equally often, if it is missing."
        )
        build(NO_SPREAD, models)
    result_of, append = partial(_run, quick=quick, models=models), partial(append_line, path)
    return completed(missing, result_of, engine, len(known), title_of, append, report)


def title_of(key: tuple[str, str, int]) -> str:
    world, method, seed = key
    return f"{world}, {method}, seed {seed}"


def rows(path: Path) -> list[Survival]:
    """All lines of a file, see `read_lines`."""
    return read_lines(path, _survival)


def _survival(content: dict) -> Survival:
    as_kind(content, Survival)
    lost = Lost(**{name: tuple(value) for name, value in content.pop("lost").items()})
    lists = {name: tuple(content.pop(name)) for name in ("nll", "nll_reworded")}
    return Survival(**content, **lists, lost=lost)


def _config(world: str, method: str, seed: int, quick: bool, models: Path) -> RunConfig:
    epochs = QUICK_EPOCHS if quick else EPOCHS
    model = world if world in SHIPPED else "sandbox"
    settings: dict[str, Any] = {"learning_rate": RATES[method], "epochs": epochs, "seed": seed}
    config = make_config(method, model=model, facts=model, measure="off", frames=0, **settings)
    if world in SHIPPED or quick:
        return config
    return replace(config, model=str(folder_of(NO_SPREAD, models)))


def _run(key: tuple[str, str, int], quick: bool, models: Path) -> Survival:
    """One run, on one core. key: world, method and seed."""
    import torch

    from adapop.model.loading import adapted_model

    torch.set_num_threads(1)
    world, method, seed = key
    config, facts = _config(world, method, seed, quick, models), facts_of(world, quick)
    return survived(world, config, adapted_model(config), facts, facts.forget, LOOKS, quick)


def survived(
    world: str,
    config: RunConfig,
    model: AdaptedModel,
    facts: FactSet,
    pressed: Sequence[Fact],
    looks: int,
    quick: bool,
) -> Survival:
    """One run of a fresh model. pressed: the facts to forget that get pressure; the others count as
    lost before training. looks: in an epoch."""
    from adapop.training.events import StepDone
    from adapop.training.trainer import Trainer

    nll, nll_reworded = Asked(model, facts.forget).before()
    questions = Asked(model, pressed)
    trainer = Trainer("survival", config, model, pressed, facts.retain, None)
    moments, held = due(trainer.steps, looks), [questions.held()]
    for event in trainer.train():
        if isinstance(event, StepDone) and event.step in moments:
            held.append(questions.held())
    lost = looks_until_lost(held, [fact in pressed for fact in facts.forget])
    about = world, config.method, config.learning_rate, config.seed, config.epochs, len(moments)
    return Survival(*about, quick, facts.sha256, commit(), nll, nll_reworded, lost)


class Asked:
    """The facts to forget, asked in their trained wording and in every rewording."""

    def __init__(self, model: AdaptedModel, facts: Sequence[Fact]) -> None:
        questions = [(fact, (fact.question, *fact.paraphrases)) for fact in facts]
        self._model, self._counts = model, [len(texts) for _, texts in questions]
        wordings = [replace(fact, question=text) for fact, texts in questions for text in texts]
        self._rows: Sequence[Row] = model.rows(wordings)

    def before(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(nll of the trained question, of the first rewording) of each fact now."""
        measured = list(self.by_fact())
        direct, reworded = (tuple(round(fact[i][0], 4) for fact in measured) for i in (0, 1))
        return direct, reworded

    def held(self) -> list[list[bool]]:
        """For each field of `Lost`, which facts are held now."""
        return _held(list(self.by_fact()))

    def by_fact(self) -> Iterator[list[tuple[float, int]]]:
        """For each fact (nll, worst rank of the answer's tokens) in every wording."""
        from adapop.probes.measure import by_row

        results, start = by_row(self._model, self._rows, self._scored), 0
        for count in self._counts:
            yield results[start : start + count]
            start += count

    def _scored(self, rows: Sequence[Row]) -> list[tuple[float, int]]:
        batch = self._model.batch(rows)
        scored = self._model.score(batch, logits=True)
        rank = 1 + (scored.logits > scored.gold.unsqueeze(1)).sum(1)
        rank = rank.where(batch.content, 1)
        worst = rank.new_ones(batch.rows).scatter_reduce(0, batch.row, rank, "amax")
        nll = scored.row_mean(scored.nll, batch.content)
        return list(zip(nll.tolist(), worst.tolist()))


def _held(measured: Sequence[Sequence[tuple[float, int]]]) -> list[list[bool]]:
    by_fact = [[rank for _, rank in wordings] for wordings in measured]
    return [
        [ranks[1] == 1 for ranks in by_fact],
        [2 * sum(rank == 1 for rank in ranks[1:]) >= len(ranks) - 1 for ranks in by_fact],
        [ranks[1] <= 2 for ranks in by_fact],
        [ranks[0] == 1 for ranks in by_fact],
    ]


def looks_until_lost(
    held: Sequence[Sequence[Sequence[bool]]], included: Sequence[bool] | None = None
) -> Lost:
    """held: for each look, from before training (0) to the last, the values of `Asked.held`.
    included: whether each fact is in `held`; by default all are. One that is not counts as not
    held before training."""
    lost = (iter(_lost(looks)) for looks in zip(*held))
    if included is None:
        return Lost(*map(tuple, lost))
    return Lost(*(tuple(next(lost_at) if one else 0 for one in included) for lost_at in lost))


def _lost(looks: Sequence[Sequence[bool]]) -> tuple[int | None, ...]:
    """The look from which on each fact is never held again, see `Lost`. looks: from before training
    (0) to the last, whether each fact is held."""
    lost: list[int | None] = []
    for fact in zip(*looks):
        if not fact[0]:
            lost.append(0)
            continue
        last = max(number for number, held in enumerate(fact) if held)
        lost.append(None if last == len(fact) - 1 else last + 1)
    return tuple(lost)
