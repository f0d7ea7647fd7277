import json
import logging
import unicodedata
from dataclasses import replace
from datetime import date
from functools import partial

import pytest

from adapop.errors import ConfigError, DataError, NetworkError, Stopped
from adapop.facts.fact import Fact
from adapop.online.cache import Cache
from adapop.popularity import corpus
from adapop.popularity.corpus import COMBINE, KINDS, CorpusCounts
from adapop.popularity.infinigram import InfiniGram
from adapop.progress import Progress
from raised import raised
from scripted import Reply
from waiting import Hurried

TEXT = """\
Paris is the capital of France.
Paris, Texas is not in France, and Paris is not in Texas.
parisian, Parisian, PARIS and comparison: no mention of the city
France without its capital
"""
PARIS = Fact("paris", "Which country is Paris in?", "It is France", "Paris", "country", "France")
COUNTS = {"Paris": 900, "France": 5000, "Paris AND France": 70, "Ngerulmud": 0, "Palau": 3, "Ngerulmud AND Palau": 0}
NGERULMUD = Fact("ngerulmud", "Which country is Ngerulmud in?", "Palau", "Ngerulmud", "country")
PAIR = "Paris AND France"
HOSTILE = "<img src=x onerror=alert(1)>"


def counted(text, *facts, combine="subject+object", tmp_path, name="text.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return list(CorpusCounts(Progress(), path, combine).scores(facts))


@pytest.fixture
def lines_with(tmp_path):
    def count(text, name, *others, file="text.txt"):
        facts = [Fact(str(i), "?", "?!?", subject=label) for i, label in enumerate((name, *others))]
        try:
            return counted(text, *facts, combine="subject", tmp_path=tmp_path, name=file)[0].value
        except DataError as error:
            assert "is 0" in str(error)
            return 0

    return count


def test_counts_by_hand_and_what_is_in_a_line(tmp_path, lines_with):
    (score,) = counted(TEXT, PARIS, tmp_path=tmp_path)
    assert score.raw == {"subject": 2, "object": 3, "both": 2}
    assert (score.fact_id, score.value, score.reason) == ("paris", 5.0, "") and score.date == date.today().isoformat()
    assert score.source == "lines of text.txt with the subject + the object"
    for combine, value in {"subject": 2, "object": 3, "both": 2}.items():
        (again,) = counted(TEXT, PARIS, combine=combine, tmp_path=tmp_path)
        assert (again.value, again.raw) == (value, score.raw)
    fact = Fact("a", "?", "New Zealand", subject="Zealand")
    (score,) = counted("Zealand\nNew Zealand\nZealand is not New Zealand", fact, tmp_path=tmp_path)
    assert score.raw == {"subject": 2, "object": 2, "both": 1}
    facts = [Fact(f"f{i}", "?", answer, subject="Curie") for i, answer in enumerate(("radium", "Paris", "polonium"))]
    scores = counted("Curie, radium, polonium\nCurie in Paris\nradium\nCurie: radium", *facts, tmp_path=tmp_path)
    assert [score.raw["both"] for score in scores] == [2, 1, 1]
    assert [score.raw["subject"] for score in scores] == [3, 3, 3]
    film = "Last Tango in Paris"
    text = f"{film}\nParis\nLast Tango in Rome\nthe Paris of {film}"
    assert lines_with(text, "Paris") == 3 and lines_with(text, "Paris", film) == 2
    assert lines_with(text, film, "Paris", "Last", "Tango in Paris") == 2
    assert lines_with("York\nNew York\nNew", "New", "New York", "York") == 1
    assert lines_with(r"C:\new C:\temp", "new") == 1 and lines_with("Paris", "Paris", file="corpus.text.v2") == 1


def test_a_folder_or_a_file_of_any_name(tmp_path):
    assert len({CorpusCounts(Progress(), tmp_path, combine).source for combine in COMBINE}) == 4
    raised(ConfigError, "Use one of", CorpusCounts, Progress(), tmp_path, "product")
    (tmp_path / "picture.png").write_bytes(b"\xff")
    assert ".jsonl" in raised(DataError, "no text file", list, CorpusCounts(Progress(), tmp_path).scores([PARIS])).fix
    raised(DataError, "is not there", list, CorpusCounts(Progress(), tmp_path / "nowhere").scores([PARIS]))
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    for i, kind in enumerate(KINDS):
        (tmp_path / "texts" / "deep" / f"{i}{kind.upper()}").write_text("Paris\n")
    (tmp_path / "texts" / "ends-without.txt").write_text("Par")
    (tmp_path / "texts" / "ends-without-2.txt").write_text("is")
    (tmp_path / "texts" / "picture.png").write_bytes(b"Paris \xff")
    (score,) = CorpusCounts(Progress(), tmp_path / "texts", "subject").scores([PARIS])
    assert score.value == len(KINDS) and score.source == "lines of texts with the subject"


@pytest.mark.parametrize(("text", "name", "lines"), [
    ("New York\nNew  York\tnew york\nNewYork\nYork New", "New York", 2), ("New\nYork", "New York", 0),
    ("New York", "New\nYork", 1), ("a cat, cats, concatenate", "cats", 1), ("concatenate", "cat", 0),
    ("Jean-Luc\nJean - Luc\nJean Luc", "Jean-Luc", 2), ("He wrote “King Lear”.\nKing, Lear", "King Lear", 1),
    ("It's 2001: A Space Odyssey!\n2001 A Space Odyssey", "2001: A Space Odyssey", 1), ("AC/DC\nACDC", "AC/DC", 1),
    ("¿Qué? Málaga\nmalaga Malaga", "Málaga", 1), (unicodedata.normalize("NFD", "Málaga"), "Málaga", 1),
    (unicodedata.normalize("NFD", "Malagá"), "Malaga", 0), ("Ёлка\nёлка", "Ёлка", 1), ("東京 は\n東京都", "東京", 2),
    ("🗼 Paris", "🗼 Paris", 1), ("so so\nso", "so so", 1), ("ha ha ha ha", "ha ha", 1),
    ("old\rMac\rlines old", "old", 2), ("Windows\r\nlines\r\n\r\nWindows", "Windows", 2),
    ("\ufeffBOM first", "BOM", 1), ("<img src=x onerror=alert(1)>\nimg src", "<img src=x onerror=alert(1)>", 1),
    ("x" * 2000 + "\n" + "x" * 1999 + "\n" + "x" * 2001, "x" * 2000, 1), ("no end of line: end", "end", 1),
])  # fmt: skip
def test_what_is_a_mention(lines_with, monkeypatch, text, name, lines):
    for chunk in (1, 2, 5, 1 << 20):
        monkeypatch.setattr(corpus, "CHUNK", chunk)
        assert lines_with(text, name) == lines


def test_zero_and_unknown(tmp_path):
    nobody = Fact("nobody", "?", "nothing", subject="Nobody")
    nameless = Fact("nameless", "?", "France", subject=" ")
    seen = Fact("seen", "?", "France", subject="Nobody else")
    zero, unknown, known = counted(TEXT, nobody, nameless, seen, tmp_path=tmp_path)
    assert known.value == 3.0 and zero.value == 0.0
    assert unknown.value is None and "no subject" in unknown.reason
    assert unknown.raw == {"subject": None, "object": 3, "both": None}
    assert counted(TEXT, nameless, combine="object", tmp_path=tmp_path)[0].value == 3.0
    facts = [Fact("a", "?", "Rome", subject="Nobody"), Fact("b", "?", "France", subject="Nowhere")]
    for combine, counted_ones in (("subject+object", facts[:1]), ("subject", facts), ("both", facts)):
        scored = partial(counted, "France is here", *counted_ones, combine=combine, tmp_path=tmp_path)
        assert "combine" in raised(DataError, r"Every count in .* is 0", scored).fix


@pytest.mark.parametrize(("chunk", "ascii_only"), [(1, True), (7, True), (1 << 20, True), (4, False)])
def test_escapes_in_json_lines_are_read(lines_with, monkeypatch, chunk, ascii_only):
    monkeypatch.setattr(corpus, "CHUNK", chunk)
    texts = ["Málaga\nMálaga", 'the "Málaga" \\', "🗼\tMálaga", "\rMálaga\\n", "C:\\Málaga", "Malaga"]
    text = "\n".join(json.dumps({"text": text}, ensure_ascii=ascii_only) for text in texts)
    assert lines_with(text, "Málaga", file="a.jsonl") == 5 and lines_with(text, "🗼", file="a.jsonl") == 1
    assert lines_with('{"text": "broken \\x Paris \\u12"}\\\nParis', "Paris", file="a.jsonl") == 2


@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_not_utf_8_is_named_with_file_and_line(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(corpus, "CHUNK", chunk)
    (tmp_path / "good.txt").write_text("Paris")
    bad = {b"fine\nfine\nM\xe1laga\n": 3, b"\xff\xfeP\x00": 1, b"fine\ncut \xc3": 2, b"\xef\xbb\xbfa\nb\n\x80": 3}
    for content, line in bad.items():
        (tmp_path / "latin.txt").write_bytes(content)
        scores, named = CorpusCounts(Progress(), tmp_path).scores([PARIS]), rf"latin\.txt, line {line}, is not UTF-8"
        assert "UTF-8" in raised(DataError, named, list, scores).fix
    for content in ("", "\n\n \t\r\n", "\ufeff"):
        raised(DataError, "holds no text", counted, content, PARIS, tmp_path=tmp_path)


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    def refuses(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(corpus, "open", refuses, raising=False)
    raised(DataError, r"text\.txt cannot be read \(Permission denied\)", counted, TEXT, PARIS, tmp_path=tmp_path)


def test_progress_is_told_and_can_be_stopped(tmp_path):
    messages = []
    (tmp_path / "big.txt").write_text("Paris is in France\n" * 100_000)
    list(CorpusCounts(Progress(messages.append), tmp_path).scores([PARIS]))
    assert messages[0] == "Corpus: 1 of 2 MB" and messages[-1] == "Corpus: 2 of 2 MB"
    stopped = Progress(lambda text: stopped.stop())
    raised(Stopped, "Stopped", list, CorpusCounts(stopped, tmp_path).scores([PARIS]))
    assert stopped.text == "Corpus: 1 of 2 MB"


def index(request):
    """The server: an index with known counts. As the real one, it splits formulas at " AND " and " OR "."""
    query = request.body["query"]
    if len(query) > 1000:
        return {"error": "Please limit your input to <= 1000 characters!"}
    return {"count": COUNTS.get(query, 1), "approx": False, "latency": 0.7, "token_ids": [1], "tokens": ["x"]}


def proxy(server, **settings) -> InfiniGram:
    return InfiniGram(Hurried(), Cache(), base=server.url + "/", **settings)


def only(scores):
    (score,) = scores
    return score


def test_what_is_asked_and_kept(server):
    server.answer = index
    assert proxy(server).requests([PARIS, PARIS, NGERULMUD]) == 6 and server.asked == []
    assert proxy(server).requests([replace(PARIS, subject=""), replace(NGERULMUD, subject="")]) == 2
    score = only(proxy(server).scores([PARIS]))
    assert [(request.method, request.path) for request in server.asked] == [("POST", "/")] * 3
    queries = ("Paris", "France", "Paris AND France")
    about = {"index": "v4_piletrain_llama", "query_type": "count"}
    assert [request.body for request in server.asked] == [{**about, "query": query} for query in queries]
    assert (score.fact_id, score.value, score.reason) == ("paris", 5900.0, "") and len(score.date) == 10
    assert "Pile-train" in score.source and "v4_piletrain_llama" in score.source
    assert score.raw == {
        "index": "v4_piletrain_llama", "subject": {"count": 900, "approx": False},
        "object": {"count": 5000, "approx": False}, "both": {"count": 70, "approx": False}}  # fmt: skip


def test_combinations(server):
    server.answer = index
    for combine, value in {"subject+object": 5900, "subject": 900, "object": 5000, "both": 70}.items():
        assert only(proxy(server, combine=combine).scores([PARIS])).value == value
    assert len(server.asked) == 3, "all three counts are kept, whichever makes the score"
    assert proxy(server).requests([PARIS, PARIS, NGERULMUD]) == 3
    list(proxy(server, index="v4_pileval_llama").scores([PARIS]))
    assert len(server.asked) == 6, "another index knows nothing of this one"
    assert len({proxy(server, combine=combine).source for combine in COMBINE}) == 4
    for settings in ({"index": "v4_nothing"}, {"combine": "product"}):
        raised(ConfigError, "Use one of", proxy, server, **settings)


def test_zero_is_zero_beside_what_is_not(server):
    server.answer = index
    for combine in ("subject", "both"):
        found = proxy(server, combine=combine).scores([NGERULMUD, NGERULMUD, PARIS])
        assert [score.value for score in found] == [0.0, 0.0, COUNTS["Paris" if combine == "subject" else PAIR]]
    assert server.asked[1].body["query"] == "Palau", "without an object the answer is looked for"
    raised(DataError, r"Every count in .* is 0", next, proxy(server, combine="both").scores([NGERULMUD]))


def test_estimates_are_called_so_and_none_in_a_sample_is_unknown(server):
    server.answer = lambda request: {"count": 12, "approx": True}
    score = only(proxy(server).scores([PARIS]))
    assert score.value == 24 and "sample" in score.reason and score.raw["both"] == {"count": 12, "approx": True}
    server.answer = lambda request: {"count": 0, "approx": " AND " in request.body["query"]}
    score = only(proxy(server, combine="both").scores([NGERULMUD]))
    assert score.value is None and "sample" in score.reason and score.raw["both"] == {"count": 0, "approx": True}


@pytest.mark.parametrize("label", ["Rock AND Roll", "Live OR Die", "this AND", "OR"])
def test_operators_and_empty_queries_are_never_sent(server, label):
    server.answer, nobody = index, Fact("a", "q", "Palau", subject=" \n")
    assert only(proxy(server, combine="object").scores([nobody])).value == 3
    assert only(proxy(server).scores([nobody])).value is None
    assert {request.body["query"] for request in server.asked} == {"Palau"}, "an empty query counts the whole corpus"
    as_subject = only(proxy(server).scores([Fact("a", "q", "Palau", subject=label)]))
    as_object = only(proxy(server).scores([Fact("b", "q", label, subject="Palau")]))
    assert as_subject.value is None and "subject" in as_subject.reason and "AND or OR" in as_subject.reason
    assert as_object.value is None and "object" in as_object.reason
    assert {request.body["query"] for request in server.asked} == {"Palau"} and as_subject.raw["object"]["count"] == 3
    for name in ("Sandy", "and", "ANDROID", "New\n York "):  # that only look like operators, or hold a line break
        assert only(proxy(server).scores([Fact("a", "q", "Palau", subject=name)])).value == 4
        assert " ".join(name.split()) in [request.body["query"] for request in server.asked]


def test_a_query_that_is_refused_leaves_its_fact_unknown_and_goes_on(server):
    server.answer = index
    long = Fact("long", "q", "France", subject="x" * 2000)
    same = Fact("same", "q", "Palau", subject="x" * 2000)
    refused, again, fine = proxy(server).scores([long, same, PARIS])
    assert refused.value is None and "1000 characters" in refused.reason
    assert refused.raw["object"] == {"count": 5000, "approx": False} and again.value is None
    assert fine.value == 5900 and [request.body["query"] for request in server.asked].count("x" * 2000) == 1
    server.answer = lambda request: {"error": "no " * 1000}
    assert len(only(proxy(server).scores([NGERULMUD])).reason) < 200, "it is cut short"
    server.answer = lambda request: {"error": "too much"} if " AND " in request.body["query"] else index(request)
    score = only(proxy(server).scores([NGERULMUD]))
    assert score.value == 3, "the refusal is not remembered, and one that does not matter no harm"
    assert "too much" in score.raw["both"]["reason"]


def test_an_interrupted_run_goes_on(server):
    server.answer = index
    facts = [PARIS, NGERULMUD]
    progress = Progress(lambda text: progress.stop() if "1 of 2" in text else None)
    scores = InfiniGram(progress, Cache(), base=server.url).scores(facts)
    assert next(scores).value == 5900
    raised(Stopped, "Stopped", next, scores)
    assert len(server.asked) == 3 and [score.value for score in proxy(server).scores(facts)] == [5900, 3]
    assert len(server.asked) == 6


@pytest.mark.parametrize("reply", [
    "{}", "[]", "3", '"3"', "null", '{"count": "3", "approx": false}', '{"count": 3.0, "approx": false}',
    '{"count": 3}', '{"count": true, "approx": false}', '{"count": -1, "approx": false}',
    '{"count": null, "approx": false}', '{"count": 3, "approx": 0}', '{"error": {"code": 1}}', '{"error": null}',
    json.dumps({"count": HOSTILE}),
])  # fmt: skip
def test_what_is_no_count_is_an_error_that_names_no_names(server, caplog, reply):
    caplog.set_level(logging.DEBUG)
    messages, fact = [], Fact("a", "q", HOSTILE, subject=HOSTILE)
    server.answer = lambda asked: Reply(reply)
    infini_gram = InfiniGram(Progress(messages.append), Cache(), base=server.url)
    error = raised(NetworkError, "did not answer with a count", list, infini_gram.scores([fact]))
    assert server.asked[0].body["query"] == HOSTILE and "img" not in f"{error} {messages} {caplog.text}"
