"""Commands on what we ship: the models of the worlds and what they were trained on."""

import argparse
from pathlib import Path

from adapop.cli import printing
from adapop.facts.fact import PEOPLE
from adapop.paths import SHIPPED


def build(options: argparse.Namespace) -> None:
    """`sandbox build`: pretrains the model from nothing."""
    from adapop.sandbox import pretrain
    from adapop.sandbox.card import write_card
    from adapop.sandbox.draw import write_world

    out = options.out or SHIPPED[options.world]
    config = pretrain.PretrainConfig(
        seed=options.seed,
        wrong_share=options.wrong_share,
        hidden=options.hidden,
        feed_forward=3 * options.hidden,
        exposures=options.exposures,
        spread=options.spread,
        world=options.world,
    )
    pretrain.build(config, out)
    if options.world == PEOPLE:
        write_world(out)
    write_card(out, options.world)


def card(options: argparse.Namespace) -> None:
    """`sandbox card`: what the model knows."""
    from adapop.sandbox.card import card_text

    printing.say(card_text(options.folder, options.world))


def corpus(options: argparse.Namespace) -> None:
    """`sandbox corpus`: what a world's model was pretrained on, for the corpus counter."""
    from adapop.sandbox.corpus import corpus_lines

    with open(options.out, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in corpus_lines(options.seed, options.world))


def examples(options: argparse.Namespace) -> None:
    """`sandbox examples`: makes the runs that ship again."""
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
