"""The command line, in process: exit codes, plain text, JSON lines."""

import json

import pytest

from adapop.cli import main
from adapop.training.events import from_json


def lines(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def small_file(tmp_path):
    from adapop.facts.world import sandbox_facts

    facts = sandbox_facts()
    path = tmp_path / "small.jsonl"
    rows = [
        {"id": fact.id, "question": fact.question, "answer": fact.answer, "score": fact.score, "group": group}
        for group, members in (("forget", facts.forget), ("retain", facts.retain), ("holdout", facts.holdout))
        for fact in members[::16]
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_beta_prints_a_line_a_fact(capsys):
    assert main(["beta", "--json"]) == 0
    rows = lines(capsys)
    assert len(rows) == 256
    assert {"id", "score", "beta", "regime"} == set(rows[0])
    rarest = min(rows, key=lambda row: row["score"])
    assert (rarest["beta"], rarest["regime"]) == (pytest.approx(1.995, abs=1e-3), "self-limiting")


def test_run_resume_probe_and_list(small_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path / "runs"))
    assert main(["run", "--facts", str(small_file), "--epochs", "1", "--json"]) == 0
    said = capsys.readouterr().out.splitlines()
    kinds = [from_json(line).kind for line in said]
    assert kinds[0] == "run_started"
    assert kinds[-1] == "run_done"
    run = json.loads(said[0])["run"]

    assert main(["runs", "--json"]) == 0
    assert [(row["run"], row["state"]) for row in lines(capsys)] == [(run, "done")]

    assert main(["probe", run, "--prompt", "Who wrote the book Hamlet?", "--gold", "Shakespeare", "--json"]) == 0
    (asked,) = lines(capsys)
    assert asked["original"]["text"] == "Shakespeare"
    assert asked["original"]["gold_rank"] == 1

    assert main(["resume", run]) == 2
    assert "complete" in capsys.readouterr().err


def test_run_ends_with_the_table(small_file, tmp_path, capsys):
    assert main(["run", "--facts", str(small_file), "--epochs", "1", "--lr", "1e-6", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for word in ("to forget, direct", "retained, direct", "held out, direct", "λ by epoch", "never activated"):
        assert word in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--facts", "no-such-file.csv"], "no-such-file.csv"),
        (["run", "--lr", "-1"], "learning_rate"),
        (["run", "--epochs", "0"], "epochs"),
        (["run", "--model", "/no/such/folder"], "cannot be loaded"),
        (["probe", "no-such-run"], "no run 'no-such-run'"),
        (["resume", "no-such-run"], "no run"),
    ],
)
def test_mistakes_get_one_clear_message(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ADAPOP_RUNS", str(tmp_path))
    status = main(arguments)
    captured = capsys.readouterr()
    assert status in (1, 2)
    assert message in captured.err + captured.out
    assert "Traceback" not in captured.err


def test_a_missing_score_is_refused_with_the_choices(tmp_path, capsys):
    path = tmp_path / "facts.csv"
    path.write_text("question,answer,score\nWho wrote the book Hamlet?,Shakespeare,\n", encoding="utf-8")
    assert main(["run", "--facts", str(path), "--out", str(tmp_path / "runs")]) == 2
    error = capsys.readouterr().err
    assert "1 of 1 facts have no score" in error
    assert "drop" in error


def test_bad_rows_are_named_and_the_good_ones_used(tmp_path, capsys):
    path = tmp_path / "facts.csv"
    path.write_text("id,question,answer,score\na,Q?,A,100\nb,Q?,,5\nc,Q?,A,-1\n", encoding="utf-8")
    assert main(["beta", str(path), "--json"]) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == ["a"]
    assert "row 3" in captured.err
    assert "row 4" in captured.err
