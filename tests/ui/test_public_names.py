"""The app uses Gradio by its public names alone: any release of Gradio 6 may be installed."""

import ast
from pathlib import Path

import gradio as gr
import pytest

from adapop.paths import ROOT

FILES = [*sorted((ROOT / "adapop").rglob("*.py")), ROOT / "app.py"]
# attributes of Gradio that have no underscore and that its documentation does not name, and the files that use them:
# the list of events, each with its sender, its progress and its turn; the components, whose settings are kept, and
# whose parameters are described in `/info`
EVENTS, ENDPOINTS = ROOT / "adapop/ui/events.py", ROOT / "adapop/ui/api.py"
UNDOCUMENTED = {
    **dict.fromkeys(("fns", "show_progress_on", "concurrency_id", "get_config", "get_component_class_id"), (EVENTS,)),
    "blocks": (EVENTS, ENDPOINTS),
    "api_info": (ENDPOINTS,),
}
THEIRS = "gradio", "gradio_client", "fastapi", "uvicorn"


OWN = {
    getattr(node, "name", getattr(node, "attr", ""))
    for path in FILES
    for node in ast.walk(ast.parse(path.read_text("utf-8")))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    or (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and getattr(node.value, "id", "") == "self")
}  # names that the app gives itself


def uses(path: Path) -> list[str]:
    """What a file takes from Gradio that is not public, and what it puts into Gradio."""
    wrong, modules = [], set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name.partition(".")[0] in THEIRS]
            modules |= {alias.asname or alias.name for alias in names}
            wrong += [alias.name for alias in names if alias.name != "gradio"]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in THEIRS:
            wrong += [f"{node.module}.{alias.name}" for alias in node.names
                      if node.module != "gradio" or alias.name not in gr.__all__]  # fmt: skip
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Attribute):
            continue
        of_module = isinstance(node.value, ast.Name) and node.value.id in modules
        if of_module and (node.attr not in {*gr.__all__, "themes", "api"} or isinstance(node.ctx, ast.Store)):
            wrong.append(f"gr.{node.attr}")
        own = node.attr in OWN or (isinstance(node.value, ast.Name) and node.value.id in ("os", "sys"))
        if node.attr.startswith("_") and not node.attr.startswith("__") and not own:
            wrong.append(node.attr)
        if path not in UNDOCUMENTED.get(node.attr, (path,)):
            wrong.append(node.attr)
    return wrong


@pytest.mark.parametrize("path", [path for path in FILES if "gradio" in path.read_text("utf-8")], ids=str)
def test_nothing_private_of_gradio_is_used(path):
    assert uses(path) == []


def test_each_undocumented_name_is_still_needed():
    texts = {path: path.read_text("utf-8") for path in (EVENTS, ENDPOINTS)}
    assert all(f".{name}" in texts[path] for name, paths in UNDOCUMENTED.items() for path in paths)


def test_what_is_private_would_be_found(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import gradio as gr\nfrom gradio import routes\nfrom gradio.utils import x\n"
                    "demo._queue = 1\ngr.Blocks = 2\ndemo.fns\n", "utf-8")  # fmt: skip
    assert uses(path) == ["gradio.routes", "gradio.utils.x", "_queue", "gr.Blocks", "fns"]
