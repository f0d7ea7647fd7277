"""Counting in a text of one's own: what is a mention and what is refused."""

import json
import random
import unicodedata
from datetime import date

import pytest

from adapop.errors import ConfigError, DataError, Stopped
from adapop.facts.fact import Fact
from adapop.popularity import corpus
from adapop.popularity.corpus import COMBINE, KINDS, CorpusCounts
from adapop.progress import Progress

TEXT = """\
Paris is the capital of France.
Paris, Texas is not in France, and Paris is not in Texas.
parisian, Parisian, PARIS and comparison: no mention of the city
France without its capital
"""
PARIS = Fact("paris", "Which country is Paris in?", "It is France", "Paris", "country", "France")


def counted(text, *facts, combine="subject+object", tmp_path, name="text.txt"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return list(CorpusCounts(Progress(), path, combine).scores(facts))


@pytest.fixture
def lines_with(tmp_path):
    """How many lines of a text mention a name."""

    def count(text, name, *others, file="text.txt"):
        facts = [Fact(str(i), "?", "?!?", subject=label) for i, label in enumerate((name, *others))]
        try:
            return counted(text, *facts, combine="subject", tmp_path=tmp_path, name=file)[0].value
        except DataError as error:
            assert "is 0" in str(error)
            return 0

    return count


def test_counts_by_hand(tmp_path):
    (score,) = counted(TEXT, PARIS, tmp_path=tmp_path)
    assert score.raw == {"subject": 2, "object": 3, "both": 2}
    assert (score.fact_id, score.value, score.reason) == ("paris", 5.0, "")
    assert score.date == date.today().isoformat()
    assert score.source == "lines of text.txt with the subject + the object"
    for combine, value in {"subject": 2, "object": 3, "both": 2}.items():
        (again,) = counted(TEXT, PARIS, combine=combine, tmp_path=tmp_path)
        assert (again.value, again.raw) == (value, score.raw)
    fact = Fact("a", "?", "New Zealand", subject="Zealand")
    (score,) = counted("Zealand\nNew Zealand\nZealand is not New Zealand", fact, tmp_path=tmp_path)
    assert score.raw == {"subject": 2, "object": 2, "both": 1}
    facts = [Fact(f"f{i}", "?", answer, subject="Curie") for i, answer in enumerate(("radium", "Paris", "polonium"))]
    found = counted("Curie, radium, polonium\nCurie in Paris\nradium\nCurie: radium", *facts, tmp_path=tmp_path)
    assert [score.raw["both"] for score in found] == [2, 1, 1]
    assert [score.raw["subject"] for score in found] == [3, 3, 3]


def test_a_folder_or_a_file_of_any_name(tmp_path):
    assert len({CorpusCounts(Progress(), tmp_path, combine).source for combine in COMBINE}) == 4
    with pytest.raises(ConfigError, match="Use one of"):
        CorpusCounts(Progress(), tmp_path, "product")
    (tmp_path / "picture.png").write_bytes(b"\xff")
    with pytest.raises(DataError, match="no text file") as caught:
        list(CorpusCounts(Progress(), tmp_path).scores([PARIS]))
    assert ".jsonl" in caught.value.fix
    with pytest.raises(DataError, match="is not there"):
        list(CorpusCounts(Progress(), tmp_path / "nowhere").scores([PARIS]))
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    for i, kind in enumerate(KINDS):
        (tmp_path / "texts" / "deep" / f"{i}{kind.upper()}").write_text("Paris\n")
    (tmp_path / "texts" / "ends-without.txt").write_text("Par")
    (tmp_path / "texts" / "ends-without-2.txt").write_text("is")
    (tmp_path / "texts" / "picture.png").write_bytes(b"Paris \xff")
    (score,) = CorpusCounts(Progress(), tmp_path / "texts", "subject").scores([PARIS])
    assert score.value == len(KINDS)
    assert score.source == "lines of texts with the subject"


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


def test_what_is_in_a_line(lines_with):
    text = "Last Tango in Paris\nParis\nLast Tango in Rome\nthe Paris of Last Tango in Paris"
    assert lines_with(text, "Paris") == 3
    assert lines_with(text, "Paris", "Last Tango in Paris") == 2
    assert lines_with(text, "Last Tango in Paris", "Paris", "Last", "Tango in Paris") == 2
    assert lines_with("York\nNew York\nNew", "New", "New York", "York") == 1
    assert lines_with(r"C:\new C:\temp", "new") == 1
    assert lines_with("Paris", "Paris", file="corpus.text.v2") == 1


def test_zero_and_unknown(tmp_path):
    nobody = Fact("nobody", "?", "nothing", subject="Nobody")
    nameless = Fact("nameless", "?", "France", subject=" ")
    seen = Fact("seen", "?", "France", subject="Nobody else")
    zero, unknown, known = counted(TEXT, nobody, nameless, seen, tmp_path=tmp_path)
    assert known.value == 3.0
    assert zero.value == 0.0
    assert unknown.value is None and "no subject" in unknown.reason
    assert unknown.raw == {"subject": None, "object": 3, "both": None}
    assert counted(TEXT, nameless, combine="object", tmp_path=tmp_path)[0].value == 3.0
    facts = [Fact("a", "?", "Rome", subject="Nobody"), Fact("b", "?", "France", subject="Nowhere")]
    for combine, counted_ones in (("subject+object", facts[:1]), ("subject", facts), ("both", facts)):
        with pytest.raises(DataError, match=r"Every count in .* is 0") as caught:
            counted("France is here", *counted_ones, combine=combine, tmp_path=tmp_path)
        assert "--combine" in caught.value.fix


def test_chunks_change_nothing(tmp_path, monkeypatch):
    rng = random.Random(0)
    words = ["New", "York", "é", "e\u0301", "New York", "!", "-", "\n", " ", "\t", "NewYork", "a" * 40, "🗼"]
    text = "".join(rng.choice(words) + rng.choice(["", " "]) for _ in range(2000))
    names = ["New York", "York", "York New", "é", "!", "New York - New", "a" * 40, "🗼 !"]
    facts = [Fact(f"{s}{o}", "?", o, subject=s) for s in names for o in names]
    whole = counted(text, *facts, tmp_path=tmp_path)
    assert sum(score.value for score in whole) > 0
    for chunk in (1, 3, 64):
        monkeypatch.setattr(corpus, "CHUNK", chunk)
        assert counted(text, *facts, tmp_path=tmp_path) == whole


@pytest.mark.parametrize(("chunk", "ascii_only"), [(1, True), (7, True), (1 << 20, True), (4, False)])
def test_escapes_in_json_lines_are_read(lines_with, monkeypatch, chunk, ascii_only):
    monkeypatch.setattr(corpus, "CHUNK", chunk)
    texts = ["Málaga\nMálaga", 'the "Málaga" \\', "🗼\tMálaga", "\rMálaga\\n", "C:\\Málaga", "Malaga"]
    text = "\n".join(json.dumps({"text": text}, ensure_ascii=ascii_only) for text in texts)
    assert lines_with(text, "Málaga", file="a.jsonl") == 5
    assert lines_with(text, "🗼", file="a.jsonl") == 1
    assert lines_with('{"text": "broken \\x Paris \\u12"}\\\nParis', "Paris", file="a.jsonl") == 2


@pytest.mark.parametrize("chunk", [1, 3, 1 << 20])
def test_not_utf_8_is_named_with_file_and_line(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(corpus, "CHUNK", chunk)
    (tmp_path / "good.txt").write_text("Paris")
    bad = {b"fine\nfine\nM\xe1laga\n": 3, b"\xff\xfeP\x00": 1, b"fine\ncut \xc3": 2, b"\xef\xbb\xbfa\nb\n\x80": 3}
    for content, line in bad.items():
        (tmp_path / "latin.txt").write_bytes(content)
        with pytest.raises(DataError, match=rf"latin\.txt, line {line}, is not UTF-8") as caught:
            list(CorpusCounts(Progress(), tmp_path).scores([PARIS]))
        assert "UTF-8" in caught.value.fix
    for content in ("", "\n\n \t\r\n", "\ufeff"):
        with pytest.raises(DataError, match="holds no text"):
            counted(content, PARIS, tmp_path=tmp_path)


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    def refuses(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(corpus, "open", refuses, raising=False)
    with pytest.raises(DataError, match=r"text\.txt cannot be read \(Permission denied\)"):
        counted(TEXT, PARIS, tmp_path=tmp_path)


def test_progress_is_told_and_can_be_stopped(tmp_path):
    told = []
    (tmp_path / "big.txt").write_text("Paris is in France\n" * 100_000)
    list(CorpusCounts(Progress(told.append), tmp_path).scores([PARIS]))
    assert told[0] == "Corpus: 1 of 2 MB" and told[-1] == "Corpus: 2 of 2 MB"
    stopped = Progress(lambda text: stopped.stop())
    with pytest.raises(Stopped, match="Stopped"):
        list(CorpusCounts(stopped, tmp_path).scores([PARIS]))
    assert stopped.text == "Corpus: 1 of 2 MB"
