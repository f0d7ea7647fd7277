"""Commands on what we ship: the sandbox model and its corpus."""

import argparse
from pathlib import Path

from adapop.cli import printing


def build(options: argparse.Namespace) -> None:
    """`sandbox build`: pretrains the model from nothing."""
    from adapop.sandbox import pretrain
    from adapop.sandbox.card import write_card

    config = pretrain.PretrainConfig(
        seed=options.seed,
        wrong_share=options.wrong_share,
        hidden=options.hidden,
        feed_forward=3 * options.hidden,
        exposures=options.exposures,
        spread=options.spread,
    )
    pretrain.build(config, options.out)
    write_card(options.out)


def card(options: argparse.Namespace) -> None:
    """`sandbox card`: what the model knows."""
    from adapop.sandbox.card import card_text

    printing.say(card_text(options.folder))


def corpus(options: argparse.Namespace) -> None:
    """`sandbox corpus`: what the sandbox was pretrained on, for the corpus counter."""
    from adapop.sandbox.corpus import corpus_lines

    with open(options.out, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in corpus_lines(options.seed))


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
