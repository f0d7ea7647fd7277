import inspect
import json
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from huggingface_hub import RepoCard

from adapop import PageViews, Run, Wikidata, make_config
from adapop.errors import AdaPopError
from adapop.paths import ROOT
from adapop.runs.lock import held
from adapop.runs.run import create_run
from adapop.service.worker import Worker
from adapop.training.frames import from_json
from adapop.ui.api import Api, endpoints
from adapop.ui.api_values import facts_of
from browsing import HOSTILE
from raised import raised
from run_events import START
from scripted import ScriptedServer
from waiting import wait_until

FACTS = [
    {"id": "h", "question": "Who wrote the book Hamlet?", "answer": "Shakespeare", "subject": "Hamlet", "score": 3766},
    {"id": "c", "question": "Who wrote the book Cymbeline?", "answer": "Shakespeare", "subject": "C", "score": 70},
]
REST = [
    {"question": "Who wrote the book Emma?", "answer": "Austen", "group": "retain"},
    {"question": "Who wrote the book Ulysses?", "answer": "Joyce", "group": "retain"},
    {"question": "What is one plus two?", "answer": "three", "group": "utility"},
]
RUN = [*({**row, "group": "forget"} for row in FACTS), *REST]  # with so little beside them a run takes a second
LONG = {"epochs": 900}
FEW_ASKED = {"measure_per_tier": 2}  # of the hundreds that the sandbox adds to a pair
NO_SCORE = "It came without a score."
NO_RUNS = [
    "adapop-0123456789abcdef", "", "..", "../../etc/passwd", "/etc/passwd", "http://127.0.0.1/x",
    HOSTILE, 7, None, [1], {"path": "x"}, "\0", "x" * 10_000,
]  # fmt: skip
NO_FACTS = [
    ("https://example.org/facts.csv", "There is no set"),
    (str(ROOT / "assets" / "sets" / "invented.csv"), "There is no set"), (HOSTILE, "There is no set"),
    (None, "Give the name of a set"), ({"question": "Who?", "answer": "Me"}, "Give the name of a set"),
    ([], "has no rows"), (["Who?"], "is not a list of objects"),
    ([{"asks": "Who?", "says": "Me"}], "has no question column"),
    ([{"question": "Who?", "answer": "Me", "score": -1}], "row 1"),
    ([FACTS[0], {"question": HOSTILE, "answer": "", "score": HOSTILE}], "row 2"),
    ([FACTS[0], {"question": ["Who?"], "answer": "Me"}], "is a list, not text"),
    ([FACTS[0], FACTS[0]], "already the id of row 1"),
]  # fmt: skip


@pytest.fixture(scope="module")
def client(address):
    return Client(address, verbose=False, ssl_verify=False)  # no certificate is asked for here; reading them takes time


@pytest.fixture(scope="module")
def run(client):
    """The id of a run that is done."""
    begun = client.predict(RUN, epochs=2, learning_rate=2e-3, seed=3, settings={"lora_rank": 16}, api_name="/start_run")
    assert begun["ahead"] in (0, 1) and ended(client, begun["run"])["state"] == "done"
    return begun["run"]


def ended(client, run: str) -> dict:
    """The status of a run that is over, once it is."""

    def over():
        status = client.predict(run, api_name="/status")
        assert 0 <= status["percent"] <= 100
        return status["state"] in ("done", "failed", "stopped") and status

    return wait_until(over)


def refusal(client, *values, **named) -> str:
    """The words of the error that these values get."""
    with pytest.raises(AppError) as caught:
        client.predict(*values, **named)
    message = str(caught.value)
    assert "has not enabled verbose error reporting" not in message, "an error without words"
    for leak in ("Traceback", 'File "', "/tmp", str(Path.home()), "<", ">"):
        assert leak not in message or leak in str((values, named)), message
    return message


def test_exactly_these_endpoints_are_offered_and_documented(client, worker):
    offered = client.view_api(return_format="dict")
    names = "/score /beta /check /start_run /status /frames /stop /probe /tokens /samples /report".split()
    assert (list(offered["named_endpoints"]), offered["unnamed_endpoints"]) == (names, {})
    described = {endpoint.__name__: endpoint for endpoint in endpoints(worker)}
    for name, endpoint in offered["named_endpoints"].items():
        parameters = list(inspect.signature(described[name[1:]]).parameters)
        assert [parameter["parameter_name"] for parameter in endpoint["parameters"]] == parameters
        words = endpoint["description"]
        assert all(re.search(rf"\b{parameter}: ", words) for parameter in parameters)
        assert " Gives " in words and " Errors: " in words


def test_beta_of_given_rows_and_of_a_set(client):
    own = client.predict(FACTS, api_name="/beta")["facts"]
    assert [row["beta"] for row in own] == [pytest.approx(0.1), pytest.approx(1.5)], "quantiles of these scores"
    betas = client.predict(FACTS, "paper", api_name="/beta")
    assert {row["id"]: row["regime"] for row in betas["facts"]} == {"h": "pressure-sustaining", "c": "self-limiting"}
    assert betas["facts"][1]["beta"] == pytest.approx(58.7 * 70**-0.796)
    assert betas["crossover"] == pytest.approx(166.7, abs=0.1)
    anchored = client.predict("sandbox", "100:1.5,3000:0.1", api_name="/beta")
    assert len(anchored["facts"]) == 256 and anchored["b"] == pytest.approx(0.796, abs=1e-3)
    unknown = client.predict([{"question": "Who?", "answer": "Me"}], api_name="/beta")["facts"][0]
    assert (unknown["score"], unknown["beta"], unknown["regime"]) == (None, None, "unknown")


def test_check_says_what_a_run_would_meet_and_starts_none(client, worker):
    before = len(list(worker.root.glob("*/config.json")))
    twice = [*RUN, {**RUN[0], "id": "h2", "answer": "Marlowe"}]
    check = client.predict(twice, "wga", epochs=2, settings={"lora_layers": [0, 1]}, api_name="/check")
    assert (check["forget"], check["retain"], check["betas"]) == (3, 1, None)
    (note,) = [note for note in check["notes"] if "different answers" in note]
    assert "'Shakespeare' or 'Marlowe'" in note
    assert check["recall"]["h"] == 1 and check["recall"]["h2"] == 0
    assert check["seconds"] > 0 and check["pace"]["step"] > 0 and any("s a step" in line for line in check["lines"])
    assert len(list(worker.root.glob("*/config.json"))) == before
    assert "Use one of adapop" in refusal(client, RUN, "none", api_name="/check")
    assert "adapop has no x" in refusal(client, RUN, settings={"x": 1}, api_name="/check")


def test_score_gives_what_came_or_asks_in_a_language_about_a_year(client, monkeypatch):
    rows = client.predict([*FACTS, {"question": "Who?", "answer": "Me"}], "given", api_name="/score")
    assert [row["score"] for row in rows] == [3766, 70, None]
    assert (rows[0]["source"], rows[2]["reason"]) == ("column score", NO_SCORE)
    with ScriptedServer() as server:
        monkeypatch.setattr(Wikidata.__init__, "__defaults__", ("sitelinks+statements", server.url, "en"))
        monkeypatch.setattr(PageViews.__init__, "__defaults__", ("en", None, server.url, server.url))
        server.answer = lambda request: {"search": [], "entities": {}, "items": [{"views": 8}, {"views": 4}]}
        rows = client.predict(FACTS, "pageviews", "de", 2022, api_name="/score")
        assert {row["score"] for row in rows} == {6}
        assert {"2022,", "de.wikipedia,", "subject"} <= {*rows[0]["source"].split()}
        assert {request.query["language"] for request in server.asked if request.query} == {"de"}
        server.asked.clear()
        rows = client.predict(FACTS, "wikidata", "zh", api_name="/score")
        assert {request.query["language"] for request in server.asked} == {"zh"}
    assert all(row["score"] is None and row["reason"] for row in rows)
    for language, year, words in ((7, None, "language is 7"), ("de", "x", "year is 'x'")):
        assert words in refusal(client, FACTS, "pageviews", language, year, api_name="/score")


def test_a_run_from_start_to_report(client, run, worker):
    status = client.predict(run, api_name="/status")
    assert (status["percent"], status["ahead"], status["wait_seconds"]) == (100, None, None)
    assert [row["epoch"] for row in status["epochs"]] == [0, 1, 2]
    assert status["recall"]["epoch"] == 2
    before, after = ({(row["group"], row["form"], row["tier"]): row["recall"] for row in status["measured"][side]}
                     for side in ("before", "after"))  # fmt: skip
    assert before["forget", "direct", "all"] == 1 and after.keys() == before.keys()
    config = Run(worker.root / run).config
    assert (config.epochs, config.learning_rate, config.seed, config.facts) == (2, 2e-3, 3, "own facts")
    assert config.lora_rank == 16
    answer = client.predict(run, FACTS[0]["question"], "Shakespeare", api_name="/probe")
    assert (answer["original"]["text"], answer["original"]["gold_rank"]) == ("Shakespeare", 1)
    assert len(answer["unlearned"]["top"]) == 5 and answer["verdict"] and FACTS[0]["question"] in answer["sent"]
    assert client.predict(run, HOSTILE, api_name="/probe")["verdict"] is None
    for prompt in ("   ", "x" * 401, None, 3, ["Who?"], {"path": "x"}):
        assert "prompt" in refusal(client, run, prompt, api_name="/probe")
    asked = run, FACTS[0]["question"], "Shakespeare", "", ["Who?"], [run], 1
    tokens = client.predict(*asked, api_name="/tokens")["columns"]
    assert [one["name"] for one in tokens][:2] == ["Original", "Unlearned, epoch 1"]
    assert tokens[0]["text"] == "Shakespeare" == tokens[0]["steps"][0]["token"]["text"].strip()
    assert all(len(step["token"]["shares"]) == 3 for one in tokens for step in one["steps"])
    drawn = client.predict(run, FACTS[0]["question"], "Shakespeare", count=3, length=2, api_name="/samples")["columns"]
    assert [(len(one["texts"]), one["share"]["mean"] <= 1) for one in drawn] == [(3, True)] * 2
    for named, words in (
        ({"count": 0}, "samples is 0"), ({"temperature": "hot"}, "temperature"), ({"earlier": "Who?"}, "list"),
        ({"beside": ["nobody"]}, "no run"), ({"beside": ["oracle"]}, "never read"),
        ({"epoch": 7}, "no epoch 7"), ({"prompt": ""}, "no prompt"),
        ({"beside": [run] * 5}, "at most 4"), ({"begun": "x" * 10_000}, "ADAPOP_MAX_PROMPT")):  # fmt: skip
        given = {"run": run, "prompt": "Who?"} | named
        assert words in refusal(client, **given, api_name="/samples"), named
    path = client.predict(run, "Ours <b>", api_name="/report")
    with zipfile.ZipFile(path) as archive:
        assert {"report.html", "facts.csv", "adapter/adapter_model.safetensors"} <= set(archive.namelist())
        assert json.loads(archive.read("config.json"))["seed"] == 3
        assert "<h1>Ours &lt;b&gt;</h1>" in archive.read("report.html").decode()
        assert from_json(archive.read("frames.jsonl").decode().splitlines()[-1]) == Run(worker.root / run).frames()[-1]
    assert Path(path).name == "adapop-report-adapop.zip"
    with zipfile.ZipFile(client.predict(run, "", True, "Ann <b>", api_name="/report")) as archive:
        assert {"facts.jsonl", "config.json"}.isdisjoint(archive.namelist())
        assert FACTS[0]["question"] not in archive.read("facts.csv").decode()
        assert "Run by Ann &lt;b&gt;</p>" in archive.read("report.html").decode()
    assert "redacted is 'yes'" in refusal(client, run, "", "yes", api_name="/report")
    assert "choose other words" in refusal(client, run, FACTS[0]["question"], True, api_name="/report")


def test_frames_of_a_run(client, run, worker, monkeypatch):
    """All in one answer, the newer ones alone, and no more numbers in an answer than are allowed."""
    frames = Run(worker.root / run).frames()
    answer = client.predict(run, api_name="/frames")
    assert answer["facts"]["forget"] == ["h", "c"] and len(answer["facts"]["holdout"]) == 1
    assert [frame["step"] for frame in answer["frames"]] == [frame.step for frame in frames] == [0, 1, 2]
    assert answer["frames"][0]["scores"]["forget"]["p"] == list(frames[0].scores["forget"].p)
    assert (answer["frames"][2]["answers"], answer["more"]) == (list(frames[2].answers), False)
    assert [frame["step"] for frame in client.predict(run, 1, api_name="/frames")["frames"]] == [2]
    assert client.predict(run, 2, api_name="/frames")["frames"] == []
    # a frame has eight: p and rank of two to forget, one to retain, one held out
    monkeypatch.setattr("adapop.ui.api.NUMBERS", 9)
    first = client.predict(run, api_name="/frames")
    assert ([frame["step"] for frame in first["frames"]], first["more"]) == ([0], True)
    monkeypatch.setattr("adapop.ui.api.NUMBERS", 1)
    assert [frame["step"] for frame in client.predict(run, 0, api_name="/frames")["frames"]] == [1], "one at least"
    assert "whole number" in refusal(client, run, "last", api_name="/frames")


def test_stop_is_heard_and_may_be_said_twice(client, run):
    started = client.predict(RUN, **LONG, api_name="/start_run")["run"]
    assert client.predict(started, api_name="/stop") == {"run": started, "stopping": True}
    client.predict(started, api_name="/stop")
    assert ended(client, started)["state"] == "stopped"
    assert client.predict(started, api_name="/stop")["stopping"] is False
    assert client.predict(run, api_name="/stop") == {"run": run, "stopping": False}
    assert client.predict(run, api_name="/status")["state"] == "done"


def test_a_run_of_another_process_is_stopped(tiny, tmp_path):
    run = create_run(make_config(), tiny, None, tmp_path)
    run.append(replace(START, run=run.id))
    with held(run.folder):
        assert Api(Worker(tmp_path)).stop(run.id) == {"run": run.id, "stopping": True} and run.stop_requested


def test_runs_and_facts_that_are_none_are_named(client, run, worker):
    for name in NO_RUNS:
        assert "no run" in refusal(client, name, api_name="/status"), name
    for endpoint in ("/frames", "/stop", "/report"):
        assert "no run" in refusal(client, NO_RUNS[0], api_name=endpoint), endpoint
    method, _, tail = run.rpartition("-")
    patterns = (f"{method}-{int(tail, 16) ^ 1:016x}", f"{method}-*", f"{method}-", tail, run.upper())
    for name in (*patterns, str(worker.root / run), f"./{run}", f"{run}/", f"{run}\n", f"{run}/../{run}"):
        assert "no run" in refusal(client, name, "Who?", api_name="/probe")
        assert "no run" in refusal(client, name, api_name="/stop")
    for facts, said in NO_FACTS:
        assert said in refusal(client, facts, api_name="/beta")
    for endpoint in ("/score", "/start_run"):
        assert NO_FACTS[0][1] in refusal(client, NO_FACTS[0][0], api_name=endpoint)


@pytest.mark.parametrize(("setting", "message"), [
    ({"method": HOSTILE}, "method is"), ({"method": ["ga"]}, "method is of type list"),
    ({"preset": {}}, "preset is of type dict"), ({"method": "ga", "preset": "gentle"}, "changes AdaPop"),
    ({"epochs": 0}, "epochs is 0"), ({"epochs": 2.5}, "whole number"), ({"epochs": True}, "whole number"),
    ({"epochs": 10**9}, "the limit is 1,000"), ({"seed": -1}, "seed is -1"), ({"seed": None}, "whole number"),
    ({"learning_rate": "fast"}, "must be a number"), ({"learning_rate": -1}, "finite number"),
    ({"anchors": "1:2"}, "cannot be read"), ({"anchors": 3}, "must be text"),
    ({"preset": "beta-1", "anchors": "quantiles"}, "takes no beta from the scores"),
    ({"missing_score": "guess"}, "missing_score is"), ({"retain": HOSTILE}, "no retain rows called"),
    ({"settings": {"nope": 1}}, "adapop has no nope"), ({"settings": {"epochs": 10**6}}, "There is no setting"),
    ({"settings": {"batch": "many"}}, "which is not of type int"), ({"model": 3}, "must be text"),
])  # fmt: skip
def test_settings_that_do_not_exist_are_named_and_nothing_is_started(client, worker, setting, message):
    before = set(worker.root.iterdir())
    assert message in refusal(client, "pair", **setting, api_name="/start_run")
    assert set(worker.root.iterdir()) == before


@pytest.mark.parametrize("row", [
    {"question": ["q"] * 10**5}, {"question": 10**5000}, {"question": "q\ud800"},
    {"question": "q", "score": float("-inf")},
    {"question": "q", "paraphrases": ["a"] * 10**5}, {"question": "q", "\udfff": "x"},
    {"question": "q", "answer": {1, 2}},
    {"question": "q"} | {f"k{number}": number for number in range(10**4)}, {1: 2}, {}, [], None, 7,
])  # fmt: skip
def test_rows_of_a_program_that_are_none_are_refused_in_words(row):
    rows = [{"question": "fine", "answer": "fine"}, {"answer": "a"} | row if isinstance(row, dict) else row]
    error = raised(AdaPopError, "", facts_of, rows, retain="own")
    assert error.fix and "".join((str(error), *map(str, getattr(error, "problems", ())))).encode()


def test_missing_scores_and_a_proxy_need_a_decision(client, monkeypatch):
    rows = [{"question": "Who wrote the book Hamlet?", "answer": "Shakespeare", "group": "forget"}, *REST]
    assert "score" in refusal(client, rows, api_name="/start_run")
    run = client.predict(rows, missing_score="uniform", epochs=1, api_name="/start_run")["run"]
    assert ended(client, run)["state"] == "done"
    monkeypatch.delenv("ADAPOP_JUDGE_MODEL", raising=False)
    for proxy, said in ((HOSTILE, "proxy is"), ([], "proxy is of type list"), ("judge", "ADAPOP_JUDGE_MODEL")):
        assert said in refusal(client, FACTS, proxy, api_name="/score")


def test_in_public_a_program_may_not_ask_for_more_than_the_page_offers(client, public):
    assert "the limit is 10" in refusal(client, "pair", epochs=11, api_name="/start_run")
    assert "more than 200 rows" in refusal(client, [FACTS[0]] * 201, api_name="/beta")


@pytest.mark.slow
def test_the_snippet_of_the_docs_runs(address, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "assets/docs/api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)\n```", text, re.DOTALL)
    (snippet,) = [block for block in blocks if "http://127.0.0.1:7860" in block]
    begins = "app.predict(facts, epochs=3, "
    assert begins in snippet
    exec(snippet.replace("http://127.0.0.1:7860", address).replace(begins, f"{begins}settings={FEW_ASKED}, "), {})
    said = capsys.readouterr().out
    assert "pressure-sustaining" in said and ".zip" in said


def test_settings_columns_and_notes_are_as_on_the_page_and_the_command_line(client, run):
    twice = [{"prompt": row["question"], **row} for row in (*RUN, {**RUN[0], "id": "h2"})]
    named = [{name: value for name, value in row.items() if name != "question"} for row in twice]
    columns, settings = {"question": "prompt"}, {"beta": 0.1, "lora_rank": 8}
    begun = client.predict(named, "wga", epochs=1, settings=settings, columns=columns, api_name="/start_run")
    assert any("Duplicates, which count twice" in note for note in begun["notes"])
    assert ended(client, begun["run"])["state"] == "done"
    assert "has no column 'x'" in refusal(client, named, columns={"question": "x"}, api_name="/check")
    assert "columns is 'x'" in refusal(client, named, columns="x", api_name="/check")
    assert "no columns" in refusal(client, "pair", columns=columns, api_name="/check")
    assert "facts.json" not in refusal(client, [{"q": "Who?"}], api_name="/start_run")
    assert client.predict(run, api_name="/status")["notes"], "of a run that is done"


def test_info_describes_each_parameter_of_every_endpoint(address):
    info = httpx.get(f"{address}gradio_api/info").json()["named_endpoints"]
    assert len(info) == 11
    for name, endpoint in info.items():
        for parameter in endpoint["parameters"]:
            words = parameter["type"]["description"]
            assert words == parameter["python_type"]["description"] and words.endswith("."), (name, parameter)
            assert f"{parameter['parameter_name']}: {words}" in endpoint["description"], (name, parameter)
    settings = next(one for one in info["/start_run"]["parameters"] if one["parameter_name"] == "settings")
    assert '"unknown": "keep"' in settings["type"]["description"], "its last line too"
    for name, values in (("beta", {"facts": "pair", "anchor": "paper"}), ("status", {}), ("none", {})):
        reply = httpx.post(f"{address}gradio_api/call/v2/{name}", json=values)
        assert reply.status_code == 400 and "gradio_api/info says" in reply.text


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_an_agent_follows_the_skill_with_curl(address, client):
    text = (ROOT / "assets" / "docs" / "SKILL.md").read_text(encoding="utf-8")
    head = RepoCard(text).data.to_dict()
    assert set(head) == {"name", "description"} and re.fullmatch("[a-z0-9-]{1,64}", head["name"])
    assert len(head["description"]) <= 1024
    check, start, status, probe = re.findall(r"```bash\n(.*?)\n```", text, re.DOTALL)
    there = {**os.environ, "APP": address.rstrip("/")}

    def shell(lines, **more):
        done = subprocess.run(
            ["bash", "-c", lines], env=there | more, capture_output=True, text=True, timeout=300, check=True
        )
        return done.stdout

    def result(lines, **more):
        printed = shell(lines, **more)
        assert "event: complete" in printed, printed
        return json.loads(re.search(r"^data: (.*)$", printed.partition("event: complete")[2], re.MULTILINE)[1])[0]

    looked = result(check)
    assert looked["problems"] == [] and looked["forget"] == 2 and looked["seconds"] > 0
    assert '"epochs": 2}' in start
    start = start.replace('"epochs": 2}', f'"epochs": 2, "settings": {json.dumps(FEW_ASKED)}}}')
    run = shell(f"{start}\necho $RUN").strip()
    assert re.fullmatch("wga-[0-9a-f]{16}", run) and ended(client, run)["state"] == "done"
    assert result(status, RUN=run)["measured"]["after"]
    asked = result(probe, RUN=run)
    assert "Kubrick" in asked["original"]["text"] and asked["verdict"]
