import json
import subprocess
import sys

import pytest

from adapop import BetaMap, Fact, FactSet, read_facts
from adapop.errors import NetworkError
from adapop.facts.world.world import EXPOSURES_PER_SCORE, facts_of
from adapop.paths import ROOT
from adapop.popularity import pageviews, wikidata
from adapop.popularity.base import given, write_scored
from fact_files import write
from little_wikidata import FRANCE, PARIS, PRINCE, STATES, TEXAS, LittleWikidata
from scripted import Reply

HOSTILE = "=cmd|' /C calc'!A0"
HOSTILE_CELLS = ["=1+1", "+1", "-40", "@a", "'=1", "''-1", "'", "'n Boer", 'a "b", c', "a\nb", "a\r\nb", "[x", "é🦜"]


@pytest.fixture
def places(tmp_path):
    rows = """id,question,answer,subject,relation,score,hits,group
a,Where is Paris?,France,Paris,country,3000,7,forget
b,Where is Nowhere?,Utopia,Nowhere,country,,5,forget
d,Where is Rome?,Italy,Rome,country,900,1,retain
"""
    return write(tmp_path, "places.csv", f"{rows}c,{HOSTILE},France,Paris,country,100,,forget\n")


@pytest.fixture
def little(server, monkeypatch):
    server.answer = LittleWikidata(PRINCE, PARIS, TEXAS, FRANCE, STATES)
    defaults = wikidata.Wikidata.__init__.__defaults__
    monkeypatch.setattr(wikidata.Wikidata.__init__, "__defaults__", (defaults[0], server.url, defaults[2]))
    return server


def test_page_views_of_a_language_and_a_year(places, little, monkeypatch, cli):
    monkeypatch.setattr(pageviews.PageViews.__init__, "__defaults__", ("en", None, little.url, little.url))
    world, views = little.answer, {"items": [{"views": 30}, {"views": 10}]}
    little.answer = lambda request: world(request) if request.path == "/w/api.php" else views
    output = cli("score", places, "--proxy", "pageviews", "--year", 2021, "--json")
    rows = {row["fact_id"]: row for row in output.rows}
    assert (rows["a"]["value"], rows["a"]["raw"]["article"]) == (20, "Paris")
    assert rows["a"]["source"] == "page views a month in 2021, en.wikipedia, subject"
    paths = "".join(request.path for request in little.asked)
    assert "/en.wikipedia/all-access/user/Paris/monthly/2021010100/2021123100" in paths
    little.asked.clear()
    cli("score", places, "--language", "fr", "--json")
    assert {request.query["language"] for request in little.asked if "search" in request.query} == {"fr"}


def test_wikidata_scores_stream_and_are_written(places, little, tmp_path, cli):
    out = tmp_path / "scored.csv"
    output = cli("score", places, "--proxy", "wikidata", "--out", out, "--json")
    rows = {row["fact_id"]: row for row in output.rows}
    assert rows["a"]["value"] == rows["c"]["value"] == 26
    assert rows["b"]["value"] is None and rows["a"]["raw"]["subject"]["qid"] == "Q90"
    scored = read_facts(out)
    assert [fact.score for fact in scored.forget] == [26, None, 26]
    assert scored.forget[0].score_source.startswith("Wikidata sitelinks + statements")
    assert [fact.score for fact in scored.retain] == [900]
    text = out.read_text(encoding="utf-8")
    assert "'=cmd" in text and "Q90" in text and "not found" in text
    assert "requests" in output.err
    assert "no request" in cli("score", places, "--proxy", "wikidata").err, "what is known costs nothing"


def test_what_was_found_before_a_fault_is_written(places, little, tmp_path, cli, monkeypatch):
    original_scores = wikidata.Wikidata.scores

    def breaks(self, facts):
        scores = original_scores(self, facts)
        yield next(scores)
        little.answer = lambda request: Reply(status=403)
        little.replies = []
        raise NetworkError("Wikidata is gone.", "Try again later.")

    monkeypatch.setattr(wikidata.Wikidata, "scores", breaks)
    out = tmp_path / "scored.jsonl"
    output = cli("score", places, "--out", out, status=2)
    assert "Wikidata is gone" in output.err and "1 of 3 facts have a score" in output.err
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["score"] for row in rows if row["group"] == "forget"].count(None) == 2
    assert {row["score_reason"] for row in rows if row["group"] == "forget" and row["score"] is None} == {"not reached"}


@pytest.mark.slow
def test_corpus_counts_of_the_sandbox_are_its_exposures(tmp_path, cli):
    corpus = tmp_path / "corpus.txt"
    cli("sandbox", "build", "--part", "corpus", "--out", corpus)
    rows = cli("score", "sandbox", "--proxy", "corpus", "--corpus", corpus, "--combine", "subject", "--json").rows
    counted = {row["fact_id"]: row["value"] for row in rows}
    assert counted == {fact.id: fact.exposures for fact in facts_of("forget")}
    assert counted == {fact.id: round(fact.score * EXPOSURES_PER_SCORE) for fact in facts_of("forget")}


@pytest.mark.parametrize(("options", "values"), [
    (["--proxy", "column", "--column", "hits"], [7, 5, None]), (["--proxy", "column"], [3000, None, 100]),
    (["--proxy", "constant", "--value", "12"], [12, 12, 12]), (["--proxy", "inverted"], [100, None, 3000]),
    (["--proxy", "swapped", "--share", "1"], [100, None, 3000]),
    (["--proxy", "noisy", "--sigma", "0"], [3000, None, 100])])  # fmt: skip
def test_controls(places, options, values, cli):
    assert [row["value"] for row in cli("score", places, *options, "--json").rows] == values


def test_beta_with_anchors_of_ones_own(places, cli, tmp_path):
    rows = {row["id"]: row for row in cli("beta", places, "--anchors", "100:1.5,3000:0.2", "--json").rows}
    assert (rows["a"]["beta"], rows["c"]["beta"]) == (pytest.approx(0.2), pytest.approx(1.5))
    assert (rows["b"]["beta"], rows["b"]["regime"]) == (None, "unknown score")
    assert f"{BetaMap()(100):.3f}" in cli("beta", places).out
    cli("beta", places, "--anchors", "3000:1,100:2", status=2)
    flat = [{"question": f"q{i}", "answer": "a", "score": 100 + i} for i in range(9)]
    assert "a factor of ten" in cli("beta", write(tmp_path, "flat.csv", flat)).err


def test_two_scorings_agree_or_not(places, tmp_path, cli):
    other = tmp_path / "other.jsonl"
    cli("score", "sandbox", "--proxy", "inverted", "--out", other)
    (found,) = cli("agree", "sandbox", other, "--json").rows
    assert (found["facts"], found["spearman"]) == (256, pytest.approx(-1, abs=0.02))
    assert "too few" in cli("agree", "sandbox", places, status=2).err


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m adapop beta sandbox | head -1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr


def test_the_judge_writes_rewordings(places, server, tmp_path, cli, monkeypatch):
    def judge(asked):
        question = asked.body["messages"][-1]["content"]
        place = "Paris" if "Paris" in question else "Nowhere"
        texts = [f"In which land is {place}?", f"What holds {place}?"] if "Where" in question else ["no idea"]
        return {"choices": [{"message": {"content": json.dumps(texts)}}]}

    server.answer = judge
    monkeypatch.setenv("ADAPOP_JUDGE_URL", server.url)
    monkeypatch.setenv("ADAPOP_JUDGE_MODEL", "judge")
    out = tmp_path / "reworded.jsonl"
    cli("reword", places, "--out", out)
    again = read_facts(out)
    assert again.forget[0].paraphrases == ("In which land is Paris?", "What holds Paris?")
    assert [fact.score for fact in again.forget] == [3000, None, 100]
    asked = len(server.asked)
    cli("reword", places, "--out", out)
    assert len(server.asked) == asked
    server.answer = lambda asked: Reply(status=401)
    assert "refuses access" in cli("reword", places, "--out", out, "--refresh", status=2).err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_what_is_written_is_read_back_exactly(tmp_path, suffix):
    texts = [(cell, f"{cell}{place}", *[cell] * 4) for place, cell in enumerate(HOSTILE_CELLS)]
    facts = tuple(Fact(*six, 1.0, six[0], (six[0], "a|b"), (six[0],)) for six in texts)
    written = FactSet("scored", facts[1:], retain=facts[:1])
    path = tmp_path / f"scored{suffix}"
    write_scored(written, given(facts[1:]).scores, path)
    again = read_facts(path)
    assert again == written
    write_scored(again, given(again.forget).scores, tmp_path / f"again{suffix}")
    assert (tmp_path / f"again{suffix}").read_bytes() == path.read_bytes()


def test_a_source_is_not_borrowed(tmp_path, cli):
    path = write(tmp_path, "facts.csv", "question,answer,score,score_source,mine\na?,b,7,Wikidata sitelinks,9\n")
    (row,) = cli("score", path, "--proxy", "column", "--column", "mine", "--json").rows
    assert (row["value"], row["source"]) == (9, "column, of column mine")


def test_the_facts_that_differ_most_are_named_with_what_a_model_knows_of_them(sandbox, tmp_path, cli):
    """Of three facts the sandbox's model answers two; nobody ever taught it the third."""
    known = [(fact.question, fact.answer) for fact in sandbox.retain[:2]]
    facts = [*known, ("Who wrote the ledger of Nowhere?", "Sartre")]
    command = ["agree"]
    for name, scores in (("one.csv", (1, 10, 100)), ("two.csv", (100, 10, 1))):
        rows = [{"question": fact[0], "answer": fact[1], "score": score} for fact, score in zip(facts, scores)]
        command.append(write(tmp_path, name, rows))
    (bare,) = cli(*command, "--json").rows
    (with_model,) = cli(*command, "--model", "sandbox", "--json").rows
    recall = with_model.pop("recall")
    assert with_model == bare and len(with_model["discordant"]) == 2 and recall == {"row-2": 1.0, "row-4": 0.0}


@pytest.mark.parametrize("command", ["score", "reword"])
@pytest.mark.parametrize(("out", "message"), [("scored.xlsx", ".csv, .jsonl"), ("none/scored.csv", "no folder")])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_asked(
    places, server, tmp_path, cli, monkeypatch, command, out, message
):
    monkeypatch.setenv("ADAPOP_JUDGE_URL", server.url)
    monkeypatch.setenv("ADAPOP_JUDGE_MODEL", "judge")
    proxy = ["--proxy", "judge"] if command == "score" else []
    assert message in cli(command, places, *proxy, "--out", str(tmp_path / out), status=2).err and server.asked == []


def test_facts_may_be_named_as_run_names_them(tmp_path, cli):
    path = str(write(tmp_path, "facts.csv", "question,answer,score\nWho wrote Emma?,Austen,70\n"))
    assert cli("beta", "--facts", path, "--json").out == cli("beta", path, "--json").out
    assert "given twice" in cli("beta", path, "--facts", path, status=2).err
    assert "facts is empty" in cli("beta", "--facts=", status=2).err
    nowhere = str(tmp_path / "nowhere.csv")
    assert cli("check", "--facts", nowhere, status=2).err == cli("check", nowhere, status=2).err != ""
