"""Which module may import what. Read from the sources with `ast`; one test then looks at what really gets loaded.

An import inside a function or under `if TYPE_CHECKING:` is not run when the module is loaded, so it does not make a
module depend on torch. It does count for the rules on who may use a library or a layer at all.
"""

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "transformers", "peft", "safetensors.torch")
LIGHT = (
    "errors", "facts", "factfile", "catalog", "beta", "controller", "events", "config", "runs", "figures", "console",
    "sandbox", "sandbox.world", "sandbox.language", "sandbox.skills", "web", "cache", "limits", "progress", "hub",
    "benchmarks", "calibration", "retain", "cells", "cli", "probes.prompts", "probes.pool", "probes.wording",
    "probes.translations", "probes.attacks", "probes.paraphrase", "probes.rows", "probes.matrix",
    "probes.plan", "probes.verdict", "probes.recovery.choice", "report", "published", "recorded", "spreadsheet",
    "methods", "models", "replication", "alternates", "words", "sets",
    "disk", "lock", "janitor", "pace", "forecast", "slices", "worker", "admission", "lending", "line", "links",
)  # fmt: skip
ONLY_IN = {
    "gradio": ("adapop.ui", "app"),
    "plotly": ("adapop.figures",),
    "requests": ("adapop.web",),
    "adapop.web": ("adapop.popularity", "adapop.hub"),
    "peft": ("adapop.loading", "adapop.model"),
    "transformers": (
        "adapop.loading",
        "adapop.model",
        "adapop.tokens",
        "adapop.chat",
        "adapop.sandbox",
        "adapop.bench.shapes",
    ),
    "spaces": ("app",),
    "adapop.ui": ("adapop.ui", "app"),
    "adapop.cli": ("adapop.__main__", "adapop.cli"),
}
DOWNWARDS = (
    "app", "adapop.ui", "adapop.worker", "adapop.execution", "adapop.trainer", "adapop.ranks", "adapop.gradient",
    "adapop.forgetting", "adapop.objectives", "adapop.loading", "adapop.sharding", "adapop.model",
    "adapop.tokens", "adapop.chat", "adapop.facts",
)  # fmt: skip
VAGUE = {"utils", "util", "common", "helpers", "helper", "manager", "handler", "misc"}


@dataclass(frozen=True)
class Import:
    """One imported module. loads: the import is run when the module that holds it is loaded."""

    name: str
    loads: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in (ROOT / "app.py", *sorted(ROOT.glob("adapop/**/*.py"))) if path.exists()}


def imports_of(source: str, name: str, is_package: bool) -> list[Import]:
    """Every import of a source. `from a import b` gives both a and a.b, for b may be a module."""
    found = []

    def visit(node: ast.AST, loads: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, loads) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = name if is_package else name.rpartition(".")[0]
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found.append(Import(base, loads))
            found.extend(Import(f"{base}.{alias.name}", loads) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                visit(child, False)
            for child in node.orelse:
                visit(child, loads)
        else:
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for child in ast.iter_child_nodes(node):
                visit(child, loads and not inside)

    visit(ast.parse(source), True)
    return found


IMPORTS = {
    name: imports_of(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
    for name, path in MODULES.items()
}


def within(name: str, layer: str) -> bool:
    return name == layer or name.startswith(layer + ".")


def loaded_by(name: str) -> dict[str, str]:
    """Everything that loading a module loads, each with the module that asks for it."""
    asked = {name: ""}
    waiting = [name]
    while waiting:
        module = waiting.pop()
        parents = [module.rpartition(".")[0]] if "." in module else []
        for other in (*parents, *(item.name for item in IMPORTS.get(module, ()) if item.loads)):
            if other not in asked:
                asked[other] = module
                waiting.append(other)
    return asked


def light_modules() -> list[str]:
    names = {f"adapop.{name}" for name in LIGHT} | {name for name in MODULES if within(name, "adapop.popularity")}
    return sorted(names & MODULES.keys())


def test_the_reader_of_imports_sees_every_form():
    source = """
import torch.nn
from . import sibling
from ..other import thing
try:
    import at_load
except ImportError:
    pass
if TYPE_CHECKING:
    import for_types
class A:
    import in_class
    def f(self):
        import in_method
def g():
    from late import it
"""
    found = {item.name: item.loads for item in imports_of(source, "adapop.ui.page", False)}
    assert found == {
        "torch.nn": True, "adapop.ui": True, "adapop.ui.sibling": True, "adapop.other": True,
        "adapop.other.thing": True, "at_load": True, "for_types": False, "in_class": True, "in_method": False,
        "late": False, "late.it": False,
    }  # fmt: skip


def test_the_reader_of_imports_sees_this_package():
    """Without this, an empty reading would pass every other test."""
    assert "torch" in loaded_by("adapop.trainer")
    assert Import("adapop.execution", False) in IMPORTS["adapop.worker"]
    assert "adapop.sandbox" in loaded_by("adapop.sandbox.world"), "loading a module loads the packages around it"


@pytest.mark.parametrize("name", light_modules())
def test_light_modules_load_no_torch(name):
    loaded = loaded_by(name)
    heavy = {f"{other} (by {asked})" for other, asked in loaded.items() if any(within(other, lib) for lib in HEAVY)}
    assert not heavy


def test_light_modules_really_load_no_torch():
    code = f"import sys, {', '.join(light_modules())}; print(*(set({HEAVY!r}) & sys.modules.keys()))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.parametrize(("library", "allowed"), ONLY_IN.items())
def test_library_or_layer_is_used_only_where_it_belongs(library, allowed):
    users = {name for name, items in IMPORTS.items() if any(within(item.name, library) for item in items)}
    assert {name for name in users if not any(within(name, layer) for layer in allowed)} == set()


@pytest.mark.parametrize("position", range(1, len(DOWNWARDS)))
def test_arrows_run_one_way(position):
    layer, above = DOWNWARDS[position], DOWNWARDS[:position]
    upwards = {
        (name, item.name)
        for name, items in IMPORTS.items()
        if within(name, layer)
        for item in items
        if any(within(item.name, other) for other in above)
    }
    assert upwards == set()


def test_trainer_knows_no_disk_and_no_queue():
    known = {item.name for item in IMPORTS["adapop.trainer"]}
    layers = ("adapop.runs", "adapop.execution", "adapop.worker", "threading", "pathlib", "shutil", "queue")
    assert {name for name in known if any(within(name, layer) for layer in layers)} == set()


def test_no_module_has_a_name_that_says_nothing():
    assert [name for name in MODULES if VAGUE & set(name.split("."))] == []
