import ast
import json

import pytest

from adapop.cli import main, printing
from adapop.facts.fact import Fact, FactSet
from adapop.paths import ROOT
from adapop.probes.prompts import Answer, Asked
from adapop.runs.run import create_run
from adapop.training.events import RunFailed
from fact_files import write
from raised import raised
from tiny_runs import tiny_config

# clear the screen, set the title, C1 (CSI, OSC), go back to the line's start, right to left, delete, bell, half a
# character, a line end of Unicode, a tag
ATTACKS = (
    "\033[2J", "\033]0;title\a", "\x9b31m", "\x9d0;x\x9c", "\rdone", "\u202eexe.txt", "\u2066x", "\x7f", "\b\b",
    "\x85", "\u2028", "\udc9b", "\U000e0041")  # fmt: skip
KEPT = "Zoë 🦜 \u200d سلام‌ \t|\nβ"


def harmless(text: str) -> bool:
    steering = "\u202e\u2066\u2028\udc9b\U000e0041"
    return not any(
        (ord(letter) < 32 and letter not in "\n\t") or 127 <= ord(letter) < 160 or letter in steering for letter in text
    )


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
def test_what_a_terminal_obeys_is_escaped_and_json_stays_the_same(attack, capsys):
    printing.say(f"a{attack}b")
    assert harmless(capsys.readouterr().out)
    printing.say_json({"text": attack})
    out = capsys.readouterr().out
    assert harmless(out) and json.loads(out) == {"text": attack}


def test_replies_and_progress_are_quoted_harmlessly(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    printing.overwritten("Asking \x9b2J\r\033]0;x\a")
    err = capsys.readouterr().err
    assert harmless(err.removeprefix("\r").removesuffix("\033[K\r")) and "2J" in err
    printing.say(KEPT)
    assert capsys.readouterr().out == KEPT + "\n"
    hostile = "\033[2J\x9b\r"
    answer = Answer(hostile, ())
    printing.say(printing.asked_text(Asked(hostile, hostile, hostile, answer, answer)))
    out = capsys.readouterr().out
    assert harmless(out) and "2J" in out
    for options in (["run", "--method\x9b31m"], ["run", "--preset", "\x9b31m"], ["\x9b31m"]):
        raised(SystemExit, "", main, options)
        assert harmless(capsys.readouterr().err)
    # Who prints by himself escapes nothing.
    for path in sorted((ROOT / "adapop" / "cli").glob("*.py")):
        names = [node.func.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                 if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]  # fmt: skip
        assert "print" not in names or path.name in ("printing.py", "reference.py"), path


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_facts_and_file_names_are_quoted_harmlessly(tmp_path, cli, capsys, as_json):
    texts = [attack for attack in ATTACKS if attack != "\udc9b"]
    rows = [{"id": f"Who{text}", "question": f"Who{text}?", "answer": f"x{text}", "score": 9} for text in texts]
    path = write(tmp_path, "\033[31mfacts.json", rows)
    for command in (["beta", str(path)], ["score", str(path), "--proxy", "column"]):
        said = cli(*command, *as_json)
        assert harmless(said.out) and harmless(said.err) and "Who" in said.out + said.err
    assert main(["beta", str(tmp_path / "\x9b31m.json")]) == 2 and harmless(capsys.readouterr().err)


def test_runs_are_listed_harmlessly(tmp_path, cli):
    facts = FactSet("own\033[2J", (Fact("f", "q?", "a", score=1.0),), (Fact("r", "p?", "b"),))
    run = create_run(tiny_config(facts="\x9b2J"), facts, None)
    run.append(RunFailed(run=run.id, message="\033]0;x\a", fix="\r"))
    run.folder.rename(tmp_path / "runs" / "\033[31m\x9b31m")
    for options in ([], ["--json"]):
        out = cli("runs", *options).out
        assert harmless(out) and "failed" in out
