"""Commands that make what ships: the worlds' models, the Story's states, cities, examples."""

import argparse
from pathlib import Path

from adapop.cli import printing
from adapop.facts.fact import PEOPLE
from adapop.paths import ORACLE, SHIPPED

PARTS = ("model", "corpus", "states", "cities", "places")
CORPUS, STATES, SETS = Path("corpus.txt"), Path("assets/states.json"), Path("assets/sets")


def build(options: argparse.Namespace) -> None:
    """`sandbox build`: makes one part of what ships from nothing."""
    makers = dict(zip(PARTS, (_model, _corpus, _states, _cities, _places), strict=True))
    makers[options.part](options)


def _model(options: argparse.Namespace) -> None:
    """Pretrains a world's model, and measures the card beside it."""
    from adapop.sandbox import pretrain
    from adapop.sandbox.corpus import write_world
    from adapop.sandbox.pretrain import write_card, write_oracle_card

    out = options.out or SHIPPED[options.world] / (ORACLE if options.oracle else "")
    names = ("seed", "wrong_share", "hidden", "exposures", "spread", "world")
    chosen = {name: getattr(options, name) for name in names}
    without, feed_forward = "forget" if options.oracle else "", 3 * options.hidden
    config = pretrain.PretrainConfig(**chosen, feed_forward=feed_forward, without=without)
    pretrain.build(config, out)
    if options.oracle:
        write_oracle_card(out, options.world)
        return
    if options.world == PEOPLE:
        write_world(out)
    write_card(out, options.world)


def _corpus(options: argparse.Namespace) -> None:
    """The pretraining text of a world's model, for the corpus counter."""
    from adapop.sandbox.corpus import corpus_lines

    with open(options.out or CORPUS, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in corpus_lines(options.seed, options.world))


def _states(options: argparse.Namespace) -> None:
    """The end states between which the Story's pictures move; those that the file has stay."""
    from adapop.runs.states import make

    for about in make(options.out or STATES):
        printing.say(about, flush=True)


def _cities(options: argparse.Namespace) -> None:
    """The set `cities`, drawn from GeoNames."""
    from adapop.facts.catalog import write_cities

    printing.say(write_cities(options.out or SETS, options.seed))


def _places(options: argparse.Namespace) -> None:
    """The facts of `bench survival` on a real model, with what stands in for their popularity."""
    from adapop.experiments.survival_real import PLACES, write_places

    printing.say(write_places(options.out or PLACES, options.seed))


def examples(options: argparse.Namespace) -> None:
    """`sandbox examples`: makes the shipped example runs again."""
    import shutil
    from tempfile import TemporaryDirectory

    from adapop.runs.examples import EXAMPLES, make

    with TemporaryDirectory() as folder:
        for name in EXAMPLES:
            printing.say(f"making {name}", flush=True)
            make(name, Path(folder))
        options.out.mkdir(parents=True, exist_ok=True)
        for name in EXAMPLES:
            shutil.copy(Path(folder) / f"{name}.zip", options.out)
