import re
import shlex
from importlib import import_module

import pytest

import adapop
from adapop import METHODS, PRESETS
from adapop.paths import ROOT
from commands import commands
from house import ORDER

DOCS = ROOT / "assets" / "docs"
PAGES = [ROOT / "README.md", ROOT / "assets/recorded/README.md", *sorted(DOCS.glob("*.md"))]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PAGES}
README = TEXTS["README.md"]
each_page = pytest.mark.parametrize("page", TEXTS)


def heading(line: str) -> str:
    """The name by which a heading is linked to."""
    return re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")


@each_page
def test_linked_files_and_headings_exist(page):
    for target, place in re.findall(r"\]\(((?!http)[^)#]*)(?:#([^)]+))?\)", TEXTS[page]):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        if place:
            lines = path.read_text(encoding="utf-8").splitlines()
            assert place in map(heading, (line for line in lines if line.startswith("#"))), (target, place)


@each_page
def test_named_files_exist(page):
    for name in re.findall(r"(?<![\w./-])((?:adapop|tests|assets)/[\w./-]*\w)", TEXTS[page]):
        assert (ROOT / name).exists(), name
    assert not re.findall(r"@[A-Z_]+@|\bTODO\b|\bXX+\b", TEXTS[page]), "a number is left to be put in"


def written() -> list[tuple[str, str]]:
    """Every command line of the pages, as (page, what follows `python -m adapop`)."""
    found = re.compile(r"python -m adapop (?=[a-z])([^`\n]+)").findall
    return [(page, line) for page, text in TEXTS.items() for line in found(text)]


def test_every_command_that_is_written_exists_with_its_options():
    known = commands()
    assert len(written()) > 20
    for page, line in written():
        words = line.split("&&")[0].split()
        name = next((name for name in (" ".join(words[:2]), words[0]) if name in known), None)
        assert name, (page, line)
        options = {option for action in known[name]._actions for option in action.option_strings}
        assert {word for word in words if word.startswith("--")} <= options, (page, line)
        choices = next((action.choices for action in known[name]._actions if action.dest == "name"), None)
        assert not choices or len(words) == 1 or words[1] in (*choices, "NAME"), (page, line)


def test_docs_and_readme_name_what_there_is():
    for name in (*METHODS, *PRESETS):
        assert f"`{name}`" in TEXTS["assets/docs/api.md"], name
    documented_names = set(re.findall(r"`(\w+)", TEXTS["assets/docs/api.md"]))
    assert set(adapop.__all__) <= documented_names, set(adapop.__all__) - documented_names
    assert len(examples()) == 5
    assert len(re.findall(r"!\[", README)) == 2, "the gap, and the method"
    start, test = re.findall(r"```bash\n(.*?)\n```", README, re.DOTALL)
    assert start.endswith("python app.py") and test.endswith("python -m pytest tests -n 2")
    for command in (start, test):
        for word in shlex.split(command.replace("&&", " ")):
            if word.endswith((".txt", "app.py")):
                assert (ROOT / word).is_file()
    section = re.search(r"## Command line\n(.*?)\n## ", README, re.DOTALL).group(1)
    command_names = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(command_names) == sorted({name.split()[0] for name in commands()})


def test_the_house_is_drawn_as_it_stands():
    text = TEXTS["assets/docs/house.md"]
    drawn = next(block for block in re.findall(r"```text\n(.*?)\n```", text, re.DOTALL) if block.startswith("errors"))
    levels = tuple(tuple(re.split(r",\s+", level)) for level in re.split(r"\s\|\s", drawn))
    assert levels == tuple(rooms for rooms in ORDER if rooms != ("__main__",))
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))
    assert {path.name for path in (ROOT / "adapop").iterdir() if (path / "__init__.py").exists()} == set(rows)


def examples() -> list[tuple[str, int, str]]:
    """Every piece of Python on the pages but those that need a running app, which tests/ui runs, or files of one's own,
    which tests/cli/test_sitting.py brings, as it does the cells of the notebook."""
    texts = [(page, re.sub(r"### In a notebook\n.*?\n### ", "", text, flags=re.DOTALL)) for page, text in TEXTS.items()]
    blocks = [(page, re.findall(r"```python\n(.*?)\n```", text, re.DOTALL)) for page, text in texts]
    every = [(page, place, block) for page, found in blocks for place, block in enumerate(found)]
    return [one for one in every if "gradio_client" not in one[2] and "people.csv" not in one[2]]


@pytest.mark.quick("README.md 0")
@pytest.mark.parametrize(
    ("page", "place", "block"), examples(), ids=[f"{page} {place}" for page, place, _ in examples()]
)
def test_examples_run(page, place, block, bare, tmp_path, monkeypatch, capsys):
    """As a module of a user's own, on fewer facts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(adapop, "load_facts", lambda source: bare)
    name = f"example_{len(page)}_{place}"
    (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
    import_module(name)
    assert len(capsys.readouterr().out.splitlines()) >= block.count("print(")
