"""The house: a package imports only from the packages below it, and what must stay light loads no torch."""

from functools import cache
from pathlib import Path

import pytest

from adapop.paths import ROOT
from house import ORDER, imports_of
from launching import printed

LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
LIGHT_ROOMS = (
    "errors", "paths", "progress", "limits", "sums", "online", "facts", "popularity", "config", "report", "service",
)  # fmt: skip
LIGHT_MODULES = (
    "training.events", "training.controller", "training.frames",
    "model.catalogue", "runs.run", "runs.preflight", "cli",
)  # fmt: skip
HEAVY = ("torch", "transformers", "peft", "gradio")
ONLY_IN = {"gradio": ("ui",), "plotly": ("report/figures",)}
VAGUE = {"utils", "util", "common", "helpers", "helper", "manager", "handler", "misc"}


@cache
def modules() -> dict[Path, list[str]]:
    """What each module of the package imports."""
    paths = (ROOT / "adapop").rglob("*.py")
    return {path.relative_to(ROOT / "adapop"): imports_of(path.read_text(encoding="utf-8")) for path in paths}


def upwards(room: str, names: list[str]) -> list[str]:
    """The imports of a room's module that do not run down."""
    rooms = [(name, name.split(".")[1]) for name in names if name.startswith("adapop.")]
    return [name for name, other in rooms if other in LEVEL and other != room and LEVEL[other] >= LEVEL[room]]


def test_a_package_imports_only_from_packages_below_it():
    assert {path.parts[0].removesuffix(".py") for path in modules()} - {"__init__"} == set(LEVEL)
    arrows = {str(path): upwards(path.parts[0].removesuffix(".py"), names) for path, names in modules().items()
              if path.name != "__init__.py" or len(path.parts) > 1}  # fmt: skip
    assert {path: names for path, names in arrows.items() if names} == {}
    assert upwards("facts", ["adapop.runs.run", "adapop.errors", "adapop.facts.text", "torch"]) == ["adapop.runs.run"]
    assert imports_of("def f():\n    from a.b import c") == ["a.b", "a.b.c"]


def test_a_library_and_a_name_are_used_where_they_belong():
    for library, places in ONLY_IN.items():
        users = {path for path, names in modules().items() if any(name.split(".")[0] == library for name in names)}
        assert users, f"nobody uses {library}: does the reader still see imports?"
        assert {path for path in users if not path.as_posix().startswith(places)} == set()
    names = imports_of((ROOT / "adapop" / "training" / "trainer.py").read_text(encoding="utf-8"))
    assert {name.split(".")[0] for name in names} & {"threading", "pathlib", "shutil", "queue"} == set()
    assert [path for path in modules() if VAGUE & {part.removesuffix(".py") for part in path.parts}] == []
    own = {"tests", *(path.stem for path in (ROOT / "tests").rglob("*.py") if path.stem != "__init__")}
    assert {path: names for path, names in modules().items() if {name.split(".")[0] for name in names} & own} == {}


def test_what_must_be_light_loads_no_torch():
    """Asked of Python itself: importing all of it, and the package's own front door, loads nothing heavy."""
    rooms = [path for path in modules() if path.parts[0].removesuffix(".py") in LIGHT_ROOMS]
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in rooms] + list(LIGHT_MODULES)
    every = ", ".join(f"adapop.{name}" for name in names)
    code = f"import sys, adapop, {every}; print(*(set({HEAVY}) & sys.modules.keys()))"
    assert printed(code).strip() == ""


@pytest.mark.slow
def test_the_first_page_waits_for_neither_torch_nor_the_stemmer():
    """The Story judges recorded replies; ROUGE's stemmer would bring nltk and scipy, more than a second."""
    code = "import sys, adapop.ui.page; from adapop.ui.story.content import story; story()"
    assert printed(f"{code}; print(*({{'torch', 'nltk', 'scipy'}} & sys.modules.keys()))").strip() == ""
