"""AdaPop Explorer: unlearning that weighs each fact by its popularity.

A program needs only the names below. Each is loaded when it is first used, so that `import adapop`
loads neither torch nor gradio. Read from the ground up, the packages follow the work: fact -> score
-> beta -> config -> token weight and loss -> training -> run -> report -> page.
`assets/docs/house.md` draws them and lists our names for the paper's symbols; `assets/docs/api.md`
has examples.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from adapop.paths import VERSION as __version__

# Torch's OpenMP threads wait by spinning, and two processes that spin on the same cores slow each
# other down tenfold. A short spin costs one process nothing (measured on the sandbox run). It must
# be set before torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
# The threads of a tokenizer do not survive a fork, such as ZeroGPU's, which would wait for them for
# ever.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Passes differ in length, and blocks of fixed sizes would leave gaps in a GPU's memory. ZeroGPU
# sets this by itself.
if os.environ.get("SPACES_ZERO_GPU", "").lower() not in ("1", "t", "true"):
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

# ruff: noqa: F401  editors and type checkers read these imports; a test compares them with MODULES
if TYPE_CHECKING:
    from adapop.config.methods import METHODS
    from adapop.config.presets import PRESETS, make_config
    from adapop.config.run import RunConfig
    from adapop.errors import AdaPopError
    from adapop.facts.catalog import load_facts
    from adapop.facts.fact import Fact, FactSet, Problem
    from adapop.facts.files import read_facts
    from adapop.model.adapted import AdaptedModel
    from adapop.model.catalogue import MODELS
    from adapop.model.loading import adapted_model
    from adapop.objectives.objective import ForgetBatch, Loss, Objective
    from adapop.popularity.beta import BetaMap
    from adapop.popularity.corpus import CorpusCounts
    from adapop.popularity.infinigram import InfiniGram
    from adapop.popularity.judge import Judge
    from adapop.popularity.pageviews import PageViews
    from adapop.popularity.wikidata import Wikidata
    from adapop.probes.ask import ask
    from adapop.probes.battery import battery
    from adapop.probes.matrix import leak_matrix
    from adapop.probes.plan import Plan
    from adapop.probes.verdict import verdicts
    from adapop.report.archive import write_archive
    from adapop.report.export import Exported, export
    from adapop.report.page import write_report
    from adapop.report.paired import paired_facts
    from adapop.runs.check import Check, check
    from adapop.runs.execute import execute, load_model, prepare
    from adapop.runs.run import Run, find_run
    from adapop.runs.unlearn import adopt, unlearn
    from adapop.training.trainer import Trainer

MODULES = {
    "errors": ("AdaPopError",),
    "facts.fact": ("Fact", "FactSet", "Problem"),
    "facts.catalog": ("load_facts",),
    "facts.files": ("read_facts",),
    "popularity.beta": ("BetaMap",),
    "popularity.wikidata": ("Wikidata",),
    "popularity.infinigram": ("InfiniGram",),
    "popularity.corpus": ("CorpusCounts",),
    "popularity.judge": ("Judge",),
    "popularity.pageviews": ("PageViews",),
    "config.methods": ("METHODS",),
    "config.presets": ("PRESETS", "make_config"),
    "config.run": ("RunConfig",),
    "model.catalogue": ("MODELS",),
    "model.adapted": ("AdaptedModel",),
    "model.loading": ("adapted_model",),
    "objectives.objective": ("ForgetBatch", "Loss", "Objective"),
    "training.trainer": ("Trainer",),
    "probes.ask": ("ask",),
    "probes.battery": ("battery",),
    "probes.plan": ("Plan",),
    "probes.matrix": ("leak_matrix",),
    "probes.verdict": ("verdicts",),
    "runs.check": ("Check", "check"),
    "runs.run": ("Run", "find_run"),
    "runs.execute": ("execute", "load_model", "prepare"),
    "runs.unlearn": ("adopt", "unlearn"),
    "report.page": ("write_report",),
    "report.paired": ("paired_facts",),
    "report.archive": ("write_archive",),
    "report.export": ("Exported", "export"),
}
__all__ = sorted(name for names in MODULES.values() for name in names)


def __getattr__(name: str) -> object:
    """A public name, loaded with its module."""
    for module, names in MODULES.items():
        if name in names:
            value = getattr(import_module(f"adapop.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'adapop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
