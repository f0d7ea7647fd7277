import os
import shutil
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from adapop import BetaMap, FactSet, Problem, load_facts
from adapop.cli import scores
from adapop.errors import ConfigError, DataError
from adapop.facts import files
from adapop.facts.fact import SANDBOX, Fact
from adapop.facts.files import guessed, read_table
from adapop.facts.retain import with_retain_rows
from adapop.paths import ASSETS
from adapop.progress import Progress
from adapop.ui import api_values
from adapop.ui.facts import screen, upload
from adapop.ui.facts.screen import notes_of
from adapop.ui.facts.table import matching
from adapop.ui.parts import download
from fact_files import write
from raised import raised

ROWS = [{"Rätsel": f"{i}?", "Lösung": f"answer {i}", "Punkte": i, "Notiz": "x"} for i in range(20)]
OWN = ("Rätsel", "Lösung", upload.NONE, upload.NONE, upload.NONE, "Punkte", upload.NONE, upload.NONE)
SCORED = """question,answer,score
a?,1,"3,766"
b?,2,2 131
c?,3,many
d?,4,-1
"""


def grid(*rows) -> str:
    """Rows as the grid of the page sends them."""
    return "\n".join("\t".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)


@pytest.fixture
def read(monkeypatch):
    """The names of the files that were read, one for each time; what ships with the app is read once for all."""
    names, rows_of = [], files.rows_of

    def noted(path, *more):
        names.extend([path.name] * (not path.is_relative_to(ASSETS)))
        return rows_of(path, *more)

    monkeypatch.setattr(files, "rows_of", noted)
    return names


@pytest.fixture
def table(tmp_path):
    return str(write(tmp_path, "mine.json", ROWS))


def test_a_file_is_read_once_whenever_it_arrives(read, table, events, tmp_path):
    rows = [{"question": row["Rätsel"], "answer": row["Lösung"], "score": row["Punkte"]} for row in ROWS]
    done = events.accept("own", str(write(tmp_path, "known.json", rows)), "own", None)
    assert len(done[events.session.facts].forget) == 20 and done[events.form.columns[5]].value == "score"
    assert read == ["known.json"]
    read.clear()
    done = events.accept("own", table, "own", None)
    assert done[events.form.mapping].open and ("Rätsel", "Rätsel") in done[events.form.columns[0]].choices
    assert done[events.session.facts] is None and "no question column" in str(done[events.notes])
    assert read == ["mine.json"]
    read.clear()
    broken = str(write(tmp_path, "broken.json", "["))
    done = events.accept("own", broken, "own", None)
    assert not done[events.form.mapping].visible and "is not JSON" in str(done[events.notes])
    assert read == ["broken.json"]
    for path in (table, broken):
        late = events.accept("pair", path, "own", None)
        assert not {events.session.facts, events.notes} & late.keys(), "after another set was chosen it waits"


def test_to_retain_another_file_is_read_once_and_without_one_there_is_nothing(read, table, tmp_path):
    more = str(write(tmp_path, "more.json", [{"question": f"more {i}?", "answer": "x"} for i in range(10)]))
    facts = upload.facts_chosen(table, "upload", more, *OWN)
    assert (len(facts.forget), len(facts.retain), read) == (20, 7, ["mine.json", "more.json"])
    raised(upload.NoFile, "No file yet", upload.facts_chosen, None, "own", None, *OWN)
    bad = FactSet("x", (), (), problems=(Problem(2, "a", "b", "is long", "Cut it."),))
    assert screen.notes_of(bad, BetaMap())["lines"][1] == f"{upload.DROPPED}: 1.", "problems first"
    for columns in ([upload.NONE] * 8, ["frage", "antwort", *[upload.NONE] * 6]):
        # the page may ask with the columns it shows while those of a new file are on their way to it
        assert len(upload.facts_chosen(more, "own", None, *columns).forget) == 10


def test_other_columns_are_read_from_the_file_once(read, table, events, tmp_path):
    facts = upload.facts_chosen(table, "sandbox", None, *OWN)
    assert [fact.score for fact in facts.forget] == list(range(20)) and read == ["mine.json"]
    events.accept("own", table, "own", None)
    for scored in ("Punkte", upload.NONE):
        columns = [scored if column == "Punkte" else column for column in OWN]
        facts = events.read(table, "sandbox", None, False, *columns)[events.session.facts]
        assert facts == upload.facts_chosen(table, "sandbox", None, *columns)
        assert (facts.forget[1].score is None) == (scored == upload.NONE) and len(facts.forget) == 20
    assert read == ["mine.json"]
    other = str(write(tmp_path, "other.json", [*ROWS, {**ROWS[0], "Rätsel": "one more?"}]))
    done = events.read(other, "sandbox", None, False, *OWN)
    assert len(done[events.session.facts].forget) == 21 and read == ["mine.json", "other.json"], "not of another file"


def test_several_columns_are_offered_and_chosen_for_one_field(events, tmp_path):
    rows = [
        {"question": f"{i}?", "answer": "a", "Paraphrase 1": "b", "Paraphrase 2": "c", "more": "d"} for i in range(20)
    ]
    path, shown = str(write(tmp_path, "mine.json", rows)), events.form.columns[upload.FIELDS.index("paraphrases")]
    done = events.accept("own", path, "own", None)
    assert done[shown].value == ["Paraphrase 1", "Paraphrase 2"]
    assert [name for name, _ in done[shown].choices] == ["question", "answer", "Paraphrase 1", "Paraphrase 2", "more"]
    assert done[events.session.facts].forget[0].paraphrases == ("b", "c")
    columns = ["question", "answer", *[upload.NONE] * 5, ["more", "Paraphrase 1"], [], []]
    done = events.read(path, "own", None, False, *columns)
    assert done[events.session.facts].forget[0].paraphrases == ("d", "b")
    none = events.read(path, "own", None, False, *columns[:7], [], ["more"], [])[events.session.facts].forget[0]
    assert (none.paraphrases, none.alternates) == ((), ("d",))


def test_a_program_names_several_columns_for_one_field():
    rows = [{"question": f"{i}?", "answer": "a", "p": "b", "q": "c"} for i in range(20)]
    facts = api_values.facts_of(rows, columns={"paraphrases": ["q", "p"]})
    assert facts.forget[0].paraphrases == ("c", "b")
    raised(ConfigError, "a column", api_values.facts_of, rows, columns={"paraphrases": ["q", 1]})
    raised(ConfigError, "a column", api_values.facts_of, rows, columns={"paraphrases": []})


def test_the_command_line_reads_it_once(read, tmp_path):
    path = write(tmp_path, "asked.json", [{"question": row["Rätsel"], "answer": "x"} | row for row in ROWS])
    options = Namespace(columns=None, column="Punkte", drop_bad=False)
    assert [fact.score for fact in scores.facts_of(str(path), Progress(), options).forget] == list(range(20))
    assert read == ["asked.json"]


def test_the_template_is_one_file_for_all_pages_and_comes_again(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "UPLOADS", tmp_path)
    upload._template_path.cache_clear()
    path = upload.template_path()
    assert Path(path).read_bytes().startswith(b"\xef\xbb\xbfquestion,answer,score,group,")
    text = read_table(Path(path)).facts(columns=guessed(read_table(Path(path)).columns))
    assert len(text.forget) >= upload.TEMPLATE_FACTS
    os.utime(path, (1, 1))
    assert upload.template_path() == path and os.path.getmtime(path) > 1, "young again: what is old is deleted"
    shutil.rmtree(Path(path).parent)
    assert upload.template_path() == path
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["adapop-template.csv"]
    upload._template_path.cache_clear()


def test_bad_scores_stop_the_upload_until_their_rows_may_be_left_out(events, tmp_path, table):
    path, own = str(write(tmp_path, "mine.csv", SCORED)), events.form
    done = events.accept("own", path, "own", None)
    notes = str(done[events.notes])
    assert done[events.session.facts] is None and "dropped" not in notes
    assert all(
        text in notes for text in ("2 scores are below 0 or not numbers", "Leave out rows", "row 4", "row 5", "many")
    )
    assert done[own.drop_bad].visible and done[own.drop_bad].value is False
    columns = ("question", "answer", *[upload.NONE] * 3, "score", *[upload.NONE] * 2)
    done = events.read(path, "own", None, True, *columns)
    assert [fact.score for fact in done[events.session.facts].forget] == [3766, 2131] and done[own.drop_bad].visible
    without = events.read(path, "own", None, False, *columns[:5], upload.NONE, *columns[6:])
    assert len(without[events.session.facts].forget) == 4 and not without[own.drop_bad].visible, "no score is read"
    good = str(write(tmp_path, "good.csv", "question,answer,score\na?,1,5\n"))
    done = events.accept("own", good, "own", None)
    assert done[events.session.facts] is not None and not done[own.drop_bad].visible
    done = events.read(table, "upload", path, False, *OWN)
    assert done[events.session.facts] is None and done[own.drop_bad].visible
    done = events.read(table, "upload", path, True, *OWN)
    facts = done[events.session.facts]
    assert len(facts.retain) + len(facts.holdout) == 2


@pytest.mark.parametrize(("text", "rows"), [
    ("Who wrote Hamlet?, Shakespeare, many\n\nWho wrote Emma?, Austen, -1", (1, 3)),
    ("question;answer;score\nWho wrote Hamlet?;Shakespeare;many\nWho wrote Emma?;Austen;-1", (2, 3)),
    (grid(["", ""], ["Who wrote Hamlet?", "He", "many"], [""], ["Who wrote Emma?", "Austen", "-1", "By?"]), (2, 4)),
])  # fmt: skip
def test_messages_about_typed_facts_name_the_rows_as_they_were_typed(events, text, rows):
    done = events.accept("own", upload.typed_file(text), "own", None)
    notes = str(done[events.notes])
    assert all(f"row {row}, " in notes for row in rows) and done[events.session.facts] is None
    facts = upload.facts_chosen(upload.typed_file(text.replace("many", "5").replace("-1", "")), "own", None).forget
    assert [fact.score for fact in facts] == [5, None]


def test_every_text_typed_into_a_cell_stays_a_text(events):
    hostile = ["<img src=x onerror=alert(1)>", '"quoted" ${x} {{this}}', "a\u2028b; c, d", "'=1+1", "\ud800"]
    hostile.append("x" * 2001)
    rows = [[text, "answer", "5", "a | b"] for text in hostile]
    done = events.accept("own", upload.typed_file(grid(*rows)), "own", None)
    facts = done[events.session.facts]
    assert [fact.question for fact in facts.forget] == [*hostile[:3], "=1+1"], "as in a CSV that was written here"
    assert facts.forget[0].paraphrases == ("a", "b") and [one.row for one in facts.problems] == [5, 6]
    for text, why in (
        ("x" * (upload.MOST_TYPED + 1), "50,000 characters"), (None, "Type a fact"), (["a"], "Type a fact"),
        ("a?, b\nc?, d, 1, e, f", "Row 2 has a cell in no named column: 'f'"),
        (grid(["question", "answer", ""], ["a?", "b", "5"]), "Row 2 has a cell in no named column: '5'"),
        ("question, answer, answer\na?, b, c", "'answer'"), ("question, Answer, answer\na?, b, c", "'answer'"),
    ):  # fmt: skip
        raised(DataError, why, upload.typed_file, text)


def test_the_search_finds_letters_in_any_encoding():
    """A CSV that was written on a Mac has accents as characters of their own."""
    facts = [Fact("a", "Where is Zu\u0308rich?", "Switzerland"), Fact("b", "Who?", "A")]
    assert matching(facts, "ZÜRICH") == facts[:1] and matching(facts, "Zu\u0308ri", unscored=True) == facts[:1]


def test_facts_that_all_lack_a_score_are_told_of_methods_without_scores():
    bare = FactSet("private", tuple(Fact(f"{i}", f"Where does {i} live?", "Mill Row") for i in range(3)))
    lines = " ".join(notes_of(bare, BetaMap())["lines"])
    assert "need a method without scores: choose SatImp or WGA on Run" in lines
    some = replace(bare, forget=(replace(bare.forget[0], score=9.0), *bare.forget[1:]))
    assert "without scores" not in " ".join(notes_of(some, BetaMap())["lines"])


def test_the_notes_do_not_promise_the_sandbox_s_facts_to_a_model_that_is_given_others():
    def is_said(facts: FactSet) -> bool:
        return "facts about cities take the place" in " ".join(notes_of(facts, BetaMap())["lines"])

    own = FactSet("mine", (Fact("a", "Where is Abc?", "Town"),))
    assert is_said(with_retain_rows(own, SANDBOX))
    kept = replace(own, retain=(Fact("b", "Where is Bcd?", "City"), Fact("c", "Where is Cde?", "Port")))
    assert not is_said(with_retain_rows(kept, SANDBOX))


def test_what_a_run_on_own_facts_cannot_tell_is_said_before_it(tiny):
    """What is missing without rewordings is said with the buttons that add them, see `test_rewording`."""

    def is_said(facts):
        return screen.NOT_READ in notes_of(facts, BetaMap())["lines"]

    own = replace(
        tiny, name="mine", forget=tuple(Fact(f"f{n}", f"Where is {n}?", f"Town {n}", score=n) for n in range(4))
    )
    assert is_said(own)
    assert is_said(replace(own, forget=tuple(replace(fact, paraphrases=("Where?",)) for fact in own.forget)))
    for name in ("sandbox", "people", "pair", "invented", "cities"):
        assert not is_said(load_facts(name)), name
