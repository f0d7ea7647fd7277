"""Small files after public bug reports, beside this project where they lie: what each holds, by its description."""

import pytest

from adapop import load_facts
from adapop.paths import ROOT

CASES = ROOT.parent / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the files are not here")

# file -> (answer, other accepted answers, score) of each fact to forget
FACTS = {
    "zh_capitals.csv": [("巴黎", (), 40), ("利马", (), 160), ("奥斯陆", (), 640)],
    "popqa_like.tsv": [("politician", ("political leader", "polit."), 142), ("Brno", ("Brünn",), 2210),
                       ("Ines Farr", (), 90)],
    "answer_json_list_text.csv": [("politician", ("political leader",), 142), ("Brno", ("Brünn",), 2210)],
    "answer_single_list.jsonl": [("Brno", (), 5), ("Ines Farr", ("I. Farr",), 9)],
    "entityquestions_like.json": [("politician", (), None), ("poet", ("writer",), None)],
    "dpr_headerless.tsv": [("Ines Farr", (), None), ("Brno", ("Brünn",), None)],
    "squad_like.jsonl": [("Brno", (), None)],
    "alpaca.json": [("Brno", (), None), ("dog", (), None)],
    "messages_python_repr.csv": [("Brno", (), None)],
    "wrapped_data.json": [("A one", (), None), ("A two", (), None)],
    "wmdp_like.jsonl": [("nmap", (), None), ("22", (), None)],
    "label_class.csv": [("Ines Farr", (), None), ("Brno", (), None)],
    "jsonl_array_one_line.jsonl": [("Anne", (), 3), ("Brno", (), 4)],
    "excel_sep.csv": [("Anne", (), 3)],
    "raw_quotes.tsv": [("Kai Moreau", (), 33), ("Kai Moreau", (), 44)],
    "hf_split_column.csv": [("Ines Farr", (), 90), ("Brno", (), 2210)],
    "nan_scores.jsonl": [("A one", (), 120), ("A two", (), None), ("A three", (), None)],
    "score_thousands_dot.csv": [("A1", (), 25692), ("A2", (), 142), ("A3", (), 1204)],
}  # fmt: skip
REWORDED = {
    "paraphrases_numpy.csv": [("Who is the author of The Quiet Loom?", "The Quiet Loom is by whom?"),
                              ("Name the birthplace of Ostrava Grey.", "In which town was Ostrava Grey born?")],
    "paraphrases_python_escape.csv": [("Who's the author of Ada's \"Loom\"?", "By whom is it?"), ("Name the town",)],
}  # fmt: skip
# what is not read literally is noted, with a word of the note
NOTED = {
    "popqa_like.tsv": "PopQA", "wmdp_like.jsonl": "points to one of its choices", "hf_split_column.csv": "split",
    "score_thousands_dot.csv": "parting thousands", "dpr_headerless.tsv": "No header", "nan_scores.jsonl": "unknown",
    "paraphrases_python_escape.csv": "empty items", "raw_quotes.tsv": "Quotes are characters",
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_answers_and_scores(name):
    facts = load_facts(CASES / name)
    read = [(fact.answer, fact.accepted, fact.score) for fact in facts.forget]
    assert read[: len(FACTS[name])] == FACTS[name] and not facts.problems


@pytest.mark.parametrize("name", REWORDED)
def test_rewordings(name):
    assert [fact.paraphrases for fact in load_facts(CASES / name).forget] == REWORDED[name]


@pytest.mark.parametrize("name", NOTED)
def test_what_is_not_literal_is_noted(name):
    assert any(NOTED[name] in note for note in load_facts(CASES / name).notes)


def test_lines_inputs_and_quotes():
    assert len(load_facts(CASES / "tofu_lines.json").forget) == 3
    one, other = load_facts(CASES / "alpaca.json").forget
    assert one.question == "Where was Ostrava Grey born?" and other.question == "Translate.\n\nchien"
    one, other = load_facts(CASES / "raw_quotes.tsv").forget
    assert (one.question, other.question) == ('"Blue Tide" is a song by whom?', 'Who sings "Blue Tide"?')
