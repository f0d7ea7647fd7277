"""What the README says is what there is."""

import re
import shlex
from pathlib import Path

from adapop.cli import parser
from adapop.config.methods import METHODS
from adapop.config.presets import PRESETS

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    return re.findall(r"```bash\n(.*?)\n```", TEXT, re.DOTALL)


def test_two_commands_at_the_top_name_files_that_exist():
    start, test = commands()
    assert start.endswith("python app.py")
    assert test.endswith("python -m pytest tests -n 2")
    for command in (start, test):
        for word in shlex.split(command.replace("&&", " ")):
            if word.endswith((".txt", "app.py")):
                assert (ROOT / word).is_file()


def test_every_command_preset_and_method_of_the_usage_exists():
    usage = re.search(r"```text\n(.*?)\n```", TEXT, re.DOTALL).group(1)
    top = parser().format_help()
    for name in re.findall(r"python -m adapop (\w+)", usage):
        assert re.search(rf"^    {name}\b", top, re.MULTILINE), name
    for preset in PRESETS:
        assert preset in usage
    for method in METHODS:
        assert method in usage


def test_linked_files_exist():
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_the_space_header_matches_the_requirements():
    header = re.match(r"---\n(.*?)\n---", TEXT, re.DOTALL).group(1)
    assert "sdk: gradio" in header
    version = re.search(r"sdk_version: (\d+)\.(\d+)", header).groups()
    floor = re.search(r"gradio>=(\d+)\.(\d+)", (ROOT / "requirements.txt").read_text(encoding="utf-8")).groups()
    assert tuple(map(int, version)) >= tuple(map(int, floor))
