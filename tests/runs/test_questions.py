"""Questions of one's own are kept with the run, come back as they were, and leave with its report."""

import csv
import json
import zipfile

import pytest

from adapop.errors import RunError
from adapop.probes.prompts import Answer, Asked
from adapop.report import write_archive, write_report
from adapop.runs import questions
from tiny_runs import copied

MARKUP = "<img src=x onerror=alert(1)> =1+1"


def asked(prompt: str = "Who wrote Emma?", text: str = "Jane Austen") -> Asked:
    sides = Answer(text, (("Jane", 0.9),), 1.0, 1, -0.5, (1,)), Answer(MARKUP, (), 0.0, 3, -9.0, (3,))
    return Asked(prompt, "Austen", f"Q: {prompt}", *sides)


@pytest.fixture
def run(finished):
    return copied(finished)


def test_what_was_asked_comes_back_in_order_with_both_replies_and_the_verdict(run):
    assert questions.read(run) == ()
    first = questions.keep(run, questions.question_of(asked(), epoch=1, way="chat"))
    oracle = {"oracle": Answer("Nobody", ())}
    drawn = {"temperature": 0.7, "seed": 3}
    second = questions.keep(run, questions.question_of(asked("半分の言葉?"), others=oracle, sampling=drawn))
    assert questions.read(run) == (first, second)
    assert first.verdict.startswith("Suppressed") and first.time > 0 and first.epoch == 1
    assert [reply.model for reply in second.replies] == ["original", "unlearned", "oracle"]
    assert second.replies[2].recall is None and second.sampling == drawn


def test_a_torn_line_is_ignored_and_a_changed_one_is_refused_by_its_number(run):
    kept = questions.keep(run, questions.question_of(asked()))
    path = run.folder / questions.FILE
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert questions.read(run) == (kept,)
    again = questions.keep(run, questions.question_of(asked("And Persuasion?")))
    assert questions.read(run) == (kept, again)
    path.write_bytes(path.read_bytes().replace(b"Jane Austen", b"Fanny Burney", 1))
    with pytest.raises(RunError, match=r"questions.jsonl, line 1 cannot be read .*SHA-256.* Delete this file"):
        questions.read(run)


def test_a_fact_asked_in_all_ways_comes_back_with_every_column_and_leaves_as_questions(run, tmp_path):
    ways = (asked(), asked("半分の言葉?", "Bram"))
    oracle = (Answer("Nobody", (), 0.0, 7, -4.5, (7, 2)), Answer("", ()))
    kept = questions.keep(run, questions.Ways("emma", 2, ("direct", "reworded"), ways, {"oracle": oracle}))
    own = questions.keep(run, questions.question_of(asked("And Persuasion?")))
    assert questions.read_ways(run) == (kept,) and kept.time > 0
    (column,) = kept.columns.values()
    assert [(one.original, one.unlearned) for one in column] == [(way.original, its) for way, its in zip(ways, oracle)]
    *flat, last = questions.everything(run)
    assert last == own and [(one.prompt, one.way, one.epoch) for one in flat] == [
        ("Who wrote Emma?", "direct", 2), ("半分の言葉?", "reworded", 2)]  # fmt: skip
    assert [reply.text for reply in flat[0].replies] == ["Jane Austen", MARKUP, "Nobody"]
    with zipfile.ZipFile(write_archive(run, tmp_path / "r.zip", measure=False)) as archive:
        assert len(json.loads(archive.read("questions.json"))) == 3
    with zipfile.ZipFile(write_archive(run, tmp_path / "h.zip", measure=False, redacted=True)) as archive:
        assert not any(b"Bram" in archive.read(name) for name in archive.namelist())
    path = run.folder / questions.WAYS_FILE
    path.write_bytes(path.read_bytes().replace(b"Bram", b"Mary", 1))
    with pytest.raises(RunError, match=r"ways.jsonl, line 1 cannot be read .*SHA-256"):
        questions.read_ways(run)


def test_a_run_shown_to_all_and_a_full_file_keep_no_more(run, monkeypatch):
    questions.keep(run, questions.question_of(asked()))
    monkeypatch.setattr(questions, "MOST", 1)
    with pytest.raises(RunError, match="MB of questions already"):
        questions.keep(run, questions.question_of(asked()))
    run.share()
    with pytest.raises(RunError, match="shown to every visitor"):
        questions.keep(run, questions.question_of(asked()))
    assert len(questions.read(run)) == 1


def test_they_go_into_the_report_and_its_archive_unless_it_is_redacted(run, tmp_path):
    kept = questions.keep(run, questions.question_of(asked()))
    page = write_report([run], tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Your own questions" in page and "Who wrote Emma?" in page
    assert "<img src=x" not in page and "&lt;img src=x" in page
    hidden = write_report([run], tmp_path / "h.html", redacted=True).read_text(encoding="utf-8")
    assert "Who wrote Emma?" not in hidden
    with zipfile.ZipFile(write_archive(run, tmp_path / "r.zip", measure=False)) as archive:
        (content,) = json.loads(archive.read("questions.json"))
        rows = list(csv.DictReader(archive.read("questions.csv").decode("utf-8-sig").splitlines()))
    assert content["prompt"] == kept.prompt and content["replies"][1]["text"] == MARKUP
    assert rows[0]["original_text"] == "Jane Austen" and rows[0]["unlearned_gold_rank"] == "3"
    with zipfile.ZipFile(write_archive(run, tmp_path / "h.zip", measure=False, redacted=True)) as archive:
        assert not [name for name in archive.namelist() if name.startswith("questions")]
