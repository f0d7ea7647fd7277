"""Components outside a page, for tests of what a screen's updates hold."""

from dataclasses import is_dataclass
from typing import TypeVar, get_args, get_origin, get_type_hints

import gradio as gr

from adapop.config.presets import make_config
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.ui.run import charts, configuration

Kind = TypeVar("Kind")
ANCHORS = (RARE_ANCHOR, POPULAR_ANCHOR)  # of the paper
COUNTS = {"by_step": len(charts.STEP_CHARTS)}  # fields of any length, and how long they are


def stand_ins(kind: type[Kind], **given) -> Kind:
    """A dataclass of components, each a `State` that stands for it. given: fields that are not stood in for."""
    wanted = {name: hint for name, hint in get_type_hints(kind).items() if name not in given}
    fields = {name: _stand_in(hint, COUNTS.get(name, 1)) for name, hint in wanted.items()}
    return kind(**fields, **given)


def _stand_in(hint, count=1):
    """count: of a tuple of any length."""
    if is_dataclass(hint):
        return stand_ins(hint)
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        return tuple(map(_stand_in, kinds[:1] * count if kinds[-1] is ... else kinds))
    return "" if hint is str else gr.State()


def run_values(method: str = "adapop", preset: str = "paper", model: str = "sandbox", **changes) -> list:
    """The values of the settings on Run, as its components hold them; with those changed."""
    config = make_config(method, preset, model=model)
    names = (*configuration.VISIBLE, *configuration.ADVANCED)
    chosen = {name: configuration.entry_of(config, name) for name in names}
    return list((chosen | changes).values())
