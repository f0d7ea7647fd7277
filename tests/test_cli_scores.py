"""The commands on popularity, in process: what is printed, what is written, what is kept when something breaks."""

import csv
import json

import pytest
from test_wikidata import FRANCE, PARIS, PRINCE, STATES, TEXAS, LittleWikidata

from adapop.beta import BetaMap
from adapop.cli import main
from adapop.factfile import read_facts
from adapop.popularity import wikidata
from adapop.sandbox.world import EXPOSURES_PER_SCORE, facts_of
from scripted import Reply

HOSTILE = "=cmd|' /C calc'!A0"


def lines(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def places(tmp_path):
    """Three facts about places, one of which no Wikidata knows and one that a spreadsheet would run."""
    path = tmp_path / "places.csv"
    rows = [["id", "question", "answer", "subject", "relation", "score", "hits", "group"]]
    rows += [["a", "Where is Paris?", "France", "Paris", "country", 3000, 7, "forget"]]
    rows += [["b", "Where is Nowhere?", "Utopia", "Nowhere", "country", "", 5, "forget"]]
    rows += [["c", HOSTILE, "France", "Paris", "country", 100, "", "forget"]]
    rows += [["d", "Where is Rome?", "Italy", "Rome", "country", 900, 1, "retain"]]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture
def little(server, monkeypatch):
    """Wikidata on this machine."""
    server.answer = LittleWikidata(PRINCE, PARIS, TEXAS, FRANCE, STATES)
    defaults = wikidata.Wikidata.__init__.__defaults__
    monkeypatch.setattr(wikidata.Wikidata.__init__, "__defaults__", (defaults[0], server.url, defaults[2]))
    return server


def test_wikidata_scores_stream_and_are_written(places, little, tmp_path, capsys):
    out = tmp_path / "scored.csv"
    assert main(["score", str(places), "--proxy", "wikidata", "--out", str(out), "--json"]) == 0
    rows = {row["fact_id"]: row for row in lines(capsys)}
    assert rows["a"]["value"] == rows["c"]["value"] == 26
    assert rows["b"]["value"] is None
    assert rows["a"]["raw"]["subject"]["qid"] == "Q90"
    scored = read_facts(out)
    assert [fact.score for fact in scored.forget] == [26, None, 26]
    assert scored.forget[0].score_source.startswith("Wikidata sitelinks + statements")
    assert [fact.score for fact in scored.retain] == [900]
    text = out.read_text(encoding="utf-8")
    assert "'=cmd" in text
    assert "Q90" in text
    assert "not found" in text


def test_what_was_found_before_a_fault_is_written(places, little, tmp_path, capsys, monkeypatch):
    found = wikidata.Wikidata.scores

    def breaks(self, facts):
        scores = found(self, facts)
        yield next(scores)
        little.answer = lambda asked: Reply(status=403)
        little.replies = []
        raise wikidata.NetworkError("Wikidata is gone.", "Try again later.")

    monkeypatch.setattr(wikidata.Wikidata, "scores", breaks)
    out = tmp_path / "scored.jsonl"
    assert main(["score", str(places), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert "Wikidata is gone" in said.err
    assert "1 of 3 facts have a score" in said.err
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["score"] for row in rows if row["group"] == "forget"].count(None) == 2
    assert {row["score_reason"] for row in rows if row["group"] == "forget" and row["score"] is None} == {"not reached"}


def test_corpus_counts_of_the_sandbox_are_its_exposures(tmp_path, capsys):
    corpus = tmp_path / "corpus.txt"
    assert main(["sandbox", "corpus", "--out", str(corpus)]) == 0
    capsys.readouterr()
    options = ["--proxy", "corpus", "--corpus", str(corpus), "--combine", "subject", "--json"]
    assert main(["score", "sandbox", *options]) == 0
    counted = {row["fact_id"]: row["value"] for row in lines(capsys)}
    assert counted == {fact.id: fact.exposures for fact in facts_of("forget")}
    assert counted == {fact.id: round(fact.score * EXPOSURES_PER_SCORE) for fact in facts_of("forget")}


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (["--proxy", "column", "--column", "hits"], [7, 5, None]),
        (["--proxy", "column"], [3000, None, 100]),
        (["--proxy", "constant", "--value", "12"], [12, 12, 12]),
        (["--proxy", "inverted"], [100, None, 3000]),
        (["--proxy", "swapped", "--share", "1"], [100, None, 3000]),
        (["--proxy", "swapped", "--share", "0"], [3000, None, 100]),
        (["--proxy", "noisy", "--sigma", "0"], [3000, None, 100]),
    ],
)
def test_controls(places, options, values, capsys):
    assert main(["score", str(places), *options, "--json"]) == 0
    assert [row["value"] for row in lines(capsys)] == values


def test_beta_with_anchors_of_ones_own(places, capsys):
    assert main(["beta", str(places), "--anchors", "100:1.5,3000:0.2", "--json"]) == 0
    rows = {row["id"]: row for row in lines(capsys)}
    assert (rows["a"]["beta"], rows["c"]["beta"]) == (pytest.approx(0.2), pytest.approx(1.5))
    assert (rows["b"]["beta"], rows["b"]["regime"]) == (None, "unknown score")
    assert main(["beta", str(places)]) == 0
    assert f"{BetaMap()(100):.3f}" in capsys.readouterr().out
    assert main(["beta", str(places), "--anchors", "3000:1,100:2"]) == 2


def test_beta_warns_of_scores_that_cannot_matter(tmp_path, capsys):
    path = tmp_path / "flat.csv"
    path.write_text("question,answer,score\n" + "".join(f"q{i},a,{100 + i}\n" for i in range(9)), encoding="utf-8")
    assert main(["beta", str(path)]) == 0
    assert "less than a factor of ten" in capsys.readouterr().err


def test_two_scorings_agree_or_not(places, tmp_path, capsys):
    other = tmp_path / "other.jsonl"
    assert main(["score", "sandbox", "--proxy", "inverted", "--out", str(other)]) == 0
    capsys.readouterr()
    assert main(["agree", "sandbox", str(other), "--json"]) == 0
    (found,) = lines(capsys)
    assert (found["facts"], found["spearman"]) == (256, pytest.approx(-1, abs=0.02))
    assert main(["agree", "sandbox", str(other)]) == 0
    assert "have both scored 256 facts" in capsys.readouterr().out
    assert main(["agree", "sandbox", str(places)]) == 2
    assert "too few" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["score", "nothing.csv"], "no set and no file"),
        (["score", "pair", "--proxy", "corpus"], "--corpus FILE"),
        (["score", "pair", "--proxy", "judge"], "ADAPOP_JUDGE_MODEL"),
        (["score", "pair", "--proxy", "shuffled", "--out", "scores.xlsx"], ".csv, .jsonl"),
    ],
)
def test_what_is_missing_is_named(arguments, said, capsys, monkeypatch):
    monkeypatch.delenv("ADAPOP_JUDGE_MODEL", raising=False)
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    import subprocess
    import sys
    from pathlib import Path

    command = f"{sys.executable} -m adapop beta sandbox | head -1"
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, shell=True, cwd=root, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def test_the_judge_writes_rewordings(places, server, tmp_path, capsys, monkeypatch):
    def judge(asked):
        question = asked.body["messages"][-1]["content"]
        place = "Paris" if "Paris" in question else "Nowhere"
        texts = [f"In which land is {place}?", f"What holds {place}?"] if "Where" in question else ["no idea"]
        return {"choices": [{"message": {"content": json.dumps(texts)}}]}

    server.answer = judge
    monkeypatch.setenv("ADAPOP_JUDGE_URL", server.url)
    monkeypatch.setenv("ADAPOP_JUDGE_MODEL", "judge")
    out = tmp_path / "reworded.jsonl"
    assert main(["reword", str(places), "--out", str(out)]) == 0
    again = read_facts(out)
    assert again.forget[0].paraphrases == ("In which land is Paris?", "What holds Paris?")
    assert [fact.score for fact in again.forget] == [3000, None, 100]
    asked = len(server.asked)
    assert main(["reword", str(places), "--out", str(out)]) == 0
    assert len(server.asked) == asked
    server.answer = lambda asked: Reply(status=401)
    assert main(["reword", str(places), "--out", str(out), "--refresh"]) == 2
    assert "refuses access" in capsys.readouterr().err
