"""Scores that replace a fact's own: wrong ones, counts in the corpus, the model's confidence."""

import tempfile
from functools import cache
from pathlib import Path

from adapop.config.presets import make_config
from adapop.facts.fact import FactSet, scores_of
from adapop.facts.world import other_facts, sandbox_facts
from adapop.popularity.controls import between_tiers, noisy, swapped
from adapop.popularity.corpus import CorpusCounts
from adapop.progress import Progress
from adapop.sandbox.corpus import corpus_lines


def other_scores(kind: str, seed: int, facts: FactSet | None = None) -> dict[str, float]:
    """Fact id -> score, for the facts to forget (default: the sandbox's); fixed by seed. kind:
    "given", "noisy", "swapped", "tiers-PERCENT", "corpus-COMBINE" or "confidence"."""
    forget = (facts or sandbox_facts()).forget
    given = scores_of(forget)
    if kind == "noisy":
        return noisy(given, seed)
    if kind == "swapped":
        return swapped(given, seed)
    if kind.startswith("tiers-"):
        tiers = {fact.id: fact.tier for fact in forget}
        return between_tiers(given, tiers, seed, float(kind.removeprefix("tiers-")) / 100)
    if kind.startswith("corpus-"):
        return _mentions(kind.removeprefix("corpus-"))
    if kind == "confidence":  # the given scores, reassigned: the surer the model, the higher
        surest_first = sorted(given, key=_mean_nll().get, reverse=True)
        return dict(zip(surest_first, sorted(given.values())))
    return given


@cache
def _mean_nll() -> dict[str, float]:
    """Fact id -> -log p of its answer, nats per token, by the sandbox's model, asked as trained."""
    from adapop.model.loading import adapted_model
    from adapop.probes.metrics import nlls

    facts, model = sandbox_facts().forget, adapted_model(make_config("adapop"))
    return dict(zip([fact.id for fact in facts], nlls(model, model.rows(facts))))


@cache
def _mentions(combine: str) -> dict[str, float]:
    """Fact id -> lines of the pretraining corpus that name it. combine: as for `CorpusCounts`."""
    facts = sandbox_facts()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in corpus_lines(seed=0))
        counts = CorpusCounts(Progress(), path, combine, other_facts(facts))
        return {score.fact_id: score.value for score in counts.scores(facts.forget)}
