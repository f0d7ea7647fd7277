"""What the README says is what there is, and short enough to be read."""

import re
import shlex

from adapop.experiments.run import Place, as_markdown
from adapop.paths import ROOT
from commands import commands

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_BYTES = 8_192


def test_it_is_short_and_names_what_exists():
    assert len(TEXT.encode()) <= MOST_BYTES
    assert len(re.findall(r"!\[", TEXT)) == 2, "the gap, and the method"
    start, test = re.findall(r"```bash\n(.*?)\n```", TEXT, re.DOTALL)
    assert start.endswith("python app.py") and test.endswith("python -m pytest tests -n 2")
    for command in (start, test):
        for word in shlex.split(command.replace("&&", " ")):
            if word.endswith((".txt", "app.py")):
                assert (ROOT / word).is_file()
    section = re.search(r"## Command line\n(.*?)\n## ", TEXT, re.DOTALL).group(1)
    told = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(told) == sorted({name.split()[0] for name in commands()})


def table(text: str, first: str) -> dict[str, dict[str, str]]:
    """The cells of the first table that has such a row, by row and column."""
    lines = text.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith(f"| {first} |"))
    begin = max(number for number in range(place) if re.match(r"\|\s*\|", lines[number]))
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[begin:] if line][:40]
    return {row[0]: dict(zip(head[1:], row[1:])) for row in rows if len(row) == len(head)}


def test_its_five_rows_are_the_recorded_ones():
    recorded = table(as_markdown(Place("main", ROOT / "assets" / "recorded", (0, 1, 2))), "AdaPop")
    told = table(TEXT, "AdaPop")
    assert list(told) == ["AdaPop", "AdaPop, scores shuffled", "WGA", "SatImp", "TPO"]
    for name, cells in told.items():
        assert cells == {column: recorded[name][column] for column in cells}
        assert {"rare", "popular", "gap", "holdout"} <= cells.keys()
