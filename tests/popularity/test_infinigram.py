"""infini-gram, spoken to as its documentation says: what is asked, what is made of the answers, what is kept."""

import logging

import pytest

from adapop.errors import ConfigError, DataError, NetworkError, Stopped
from adapop.facts.fact import Fact
from adapop.online.cache import Cache
from adapop.popularity.corpus import COMBINE
from adapop.popularity.infinigram import InfiniGram
from adapop.progress import Progress
from scripted import Reply
from waiting import Hurried

COUNTS = {"Paris": 900, "France": 5000, "Paris AND France": 70, "Ngerulmud": 0, "Palau": 3, "Ngerulmud AND Palau": 0}
PARIS = Fact("paris", "Which country is Paris in?", "It is France", "Paris", "country", "France")
NGERULMUD = Fact("ngerulmud", "Which country is Ngerulmud in?", "Palau", "Ngerulmud", "country")
PAIR = "Paris AND France"
HOSTILE = "<img src=x onerror=alert(1)>"


def counted(asked):
    """The server: an index with known counts. As the real one, it splits formulas at " AND " and " OR "."""
    query = asked.body["query"]
    if len(query) > 1000:
        return {"error": "Please limit your input to <= 1000 characters!"}
    return {"count": COUNTS.get(query, 1), "approx": False, "latency": 0.7, "token_ids": [1], "tokens": ["x"]}


def proxy(server, **settings) -> InfiniGram:
    return InfiniGram(Hurried(), Cache(), base=server.url + "/", **settings)


def only(scores):
    (score,) = scores
    return score


def test_what_is_asked_and_kept(server):
    server.answer = counted
    assert proxy(server).requests([PARIS, PARIS, NGERULMUD]) == 6 and server.asked == []
    score = only(proxy(server).scores([PARIS]))
    assert [(asked.method, asked.path) for asked in server.asked] == [("POST", "/")] * 3
    queries = ("Paris", "France", "Paris AND France")
    about = {"index": "v4_piletrain_llama", "query_type": "count"}
    assert [asked.body for asked in server.asked] == [{**about, "query": query} for query in queries]
    assert (score.fact_id, score.value, score.reason) == ("paris", 5900.0, "")
    assert len(score.date) == 10
    assert "Pile-train" in score.source and "v4_piletrain_llama" in score.source
    assert score.raw == {
        "index": "v4_piletrain_llama", "subject": {"count": 900, "approx": False},
        "object": {"count": 5000, "approx": False}, "both": {"count": 70, "approx": False}}  # fmt: skip


def test_combinations(server):
    server.answer = counted
    for combine, value in {"subject+object": 5900, "subject": 900, "object": 5000, "both": 70}.items():
        assert only(proxy(server, combine=combine).scores([PARIS])).value == value
    assert len(server.asked) == 3, "all three counts are kept, whichever makes the score"
    assert len({proxy(server, combine=combine).source for combine in COMBINE}) == 4
    for settings in ({"index": "v4_nothing"}, {"combine": "product"}):
        with pytest.raises(ConfigError, match="Use one of"):
            proxy(server, **settings)


def test_zero_is_zero_beside_what_is_not(server):
    server.answer = counted
    for combine in ("subject", "both"):
        found = proxy(server, combine=combine).scores([NGERULMUD, NGERULMUD, PARIS])
        assert [score.value for score in found] == [0.0, 0.0, COUNTS["Paris" if combine == "subject" else PAIR]]
    assert server.asked[1].body["query"] == "Palau", "without an object the answer is looked for"
    with pytest.raises(DataError, match=r"Every count in .* is 0"):
        next(proxy(server, combine="both").scores([NGERULMUD]))


def test_estimates_are_called_so_and_none_in_a_sample_is_unknown(server):
    server.answer = lambda asked: {"count": 12, "approx": True}
    score = only(proxy(server).scores([PARIS]))
    assert score.value == 24 and "sample" in score.reason
    assert score.raw["both"] == {"count": 12, "approx": True}
    server.answer = lambda asked: {"count": 0, "approx": " AND " in asked.body["query"]}
    score = only(proxy(server, combine="both").scores([NGERULMUD]))
    assert score.value is None and "sample" in score.reason
    assert score.raw["both"] == {"count": 0, "approx": True}


@pytest.mark.parametrize("label", ["Rock AND Roll", "Live OR Die", "this AND", "OR"])
def test_operators_and_empty_queries_are_never_sent(server, label):
    server.answer, nobody = counted, Fact("a", "q", "Palau", subject=" \n")
    assert only(proxy(server, combine="object").scores([nobody])).value == 3
    assert only(proxy(server).scores([nobody])).value is None
    assert {asked.body["query"] for asked in server.asked} == {"Palau"}, "an empty query counts the whole corpus"
    as_subject = only(proxy(server).scores([Fact("a", "q", "Palau", subject=label)]))
    as_object = only(proxy(server).scores([Fact("b", "q", label, subject="Palau")]))
    assert as_subject.value is None and "subject" in as_subject.reason and "AND or OR" in as_subject.reason
    assert as_object.value is None and "object" in as_object.reason
    assert {asked.body["query"] for asked in server.asked} == {"Palau"}
    assert as_subject.raw["object"]["count"] == 3
    for name in ("Sandy", "and", "ANDROID", "New\n York "):  # that only look like operators, or hold a line break
        assert only(proxy(server).scores([Fact("a", "q", "Palau", subject=name)])).value == 4
        assert " ".join(name.split()) in [asked.body["query"] for asked in server.asked]


def test_a_query_that_is_refused_leaves_its_fact_unknown_and_goes_on(server):
    server.answer = counted
    long = Fact("long", "q", "France", subject="x" * 2000)
    same = Fact("same", "q", "Palau", subject="x" * 2000)
    refused, again, fine = proxy(server).scores([long, same, PARIS])
    assert refused.value is None and "1000 characters" in refused.reason
    assert refused.raw["object"] == {"count": 5000, "approx": False}
    assert again.value is None
    assert fine.value == 5900
    assert [asked.body["query"] for asked in server.asked].count("x" * 2000) == 1
    server.answer = lambda asked: {"error": "no " * 1000}
    assert len(only(proxy(server).scores([NGERULMUD])).reason) < 200, "it is cut short"
    server.answer = lambda asked: {"error": "too much"} if " AND " in asked.body["query"] else counted(asked)
    score = only(proxy(server).scores([NGERULMUD]))
    assert score.value == 3, "the refusal is not remembered, and one that does not matter no harm"
    assert "too much" in score.raw["both"]["reason"]


def test_each_query_is_asked_once_and_the_second_run_asks_nothing(server):
    server.answer = counted
    lyon = Fact("lyon", "q", "France", subject="Lyon")
    first = list(proxy(server).scores([PARIS, lyon]))
    assert len(server.asked) == 5, "France is asked once"
    assert list(proxy(server).scores([PARIS, lyon])) == first
    assert len(server.asked) == 5
    list(proxy(server, index="v4_pileval_llama").scores([PARIS]))
    assert len(server.asked) == 8, "another index knows nothing of this one"


def test_an_interrupted_run_goes_on(server):
    server.answer = counted
    facts = [PARIS, NGERULMUD]
    progress = Progress(lambda text: progress.stop() if "1 of 2" in text else None)
    scores = InfiniGram(progress, Cache(), base=server.url).scores(facts)
    assert next(scores).value == 5900
    with pytest.raises(Stopped, match="Stopped"):
        next(scores)
    assert len(server.asked) == 3
    assert [score.value for score in proxy(server).scores(facts)] == [5900, 3]
    assert len(server.asked) == 6


@pytest.mark.parametrize("reply", [
    "{}", "[]", "3", '"3"', "null", '{"count": "3", "approx": false}', '{"count": 3.0, "approx": false}',
    '{"count": 3}', '{"count": true, "approx": false}', '{"count": -1, "approx": false}',
    '{"count": null, "approx": false}', '{"count": 3, "approx": 0}', '{"error": {"code": 1}}', '{"error": null}',
])  # fmt: skip
def test_what_is_no_count_is_an_error(server, reply):
    server.answer = lambda asked: Reply(reply)
    with pytest.raises(NetworkError, match="something else than a count"):
        list(proxy(server).scores([PARIS]))


def test_names_reach_no_message_and_no_log(server, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    told = []
    fact = Fact("a", "q", HOSTILE, subject=HOSTILE)
    server.answer = lambda asked: {"count": HOSTILE}
    with pytest.raises(NetworkError) as caught:
        list(InfiniGram(Progress(told.append), Cache(), base=server.url).scores([fact]))
    assert server.asked[0].body["query"] == HOSTILE
    assert "img" not in "".join(map(str, (caught.value, told, caplog.text, *capfd.readouterr())))
