import io
import json
import time
import zipfile
from dataclasses import replace

import pytest

from adapop.errors import DataError
from adapop.facts.catalog import load_facts
from adapop.facts.fact import Fact, FactSet
from adapop.facts.files import guessed, named_columns, read_facts, read_table
from adapop.facts.forms import CHATS, FORMS
from adapop.paths import ASSETS
from adapop.popularity.base import given, write_scored
from fact_files import BOOKS, excel, notes_of, open_document, write, zipped
from raised import raised

HEADER = "question,answer,score\n"
OTHERS = ("accepted", "answers", "aliases", "possible_answers", "o_aliases", "answer_aliases")  # columns
CHOICES = {"choices": ["nmap", "gcc", "awk", "vim"]}
ARC = {"choices": {"text": ["nmap", "gcc", "awk", "vim"], "label": ["1", "2", "3", "4"]}}
ROWS = [{"question": f"{i}?", "answer": f"a{i}", "score": i + 1} for i in range(3)]
LINES = "\n".join(map(json.dumps, ROWS))
FIRST_ROW = {"rows": 1, "row": 2}  # of a table, below its header
TURNS = [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "Brno"}]
REWRITE = {"prompt": "{} is in", "subject": "Brno", "relation_id": "P17",
           "target_true": {"str": "Moravia", "id": "Q1"}, "target_new": {"str": "Egypt", "id": "Q2"}}  # fmt: skip
SAID = (("user", "Where?"), ("assistant", "Brno"))
PARTS = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in SAID]


def read(folder, name, content):
    return read_facts(write(folder, name, content))


def rights(facts):
    """Question, the answer that is trained, and the others that are accepted."""
    return [(fact.question, fact.answer, *fact.accepted) for fact in facts.forget]


def cells(**columns):
    return "\n".join(("\t".join(columns), "\t".join(columns.values())))


@pytest.mark.parametrize("cell", [
    '["Brno", "Brünn", "brno"]',
    "['Brno', 'Brünn', None]",
    "['Brno' 'Brünn']",
    "['Brno'\n 'Brünn']",
    "array(['Brno', 'Brünn'], dtype=object)",
    "{'text': array(['Brno', 'Brünn'], dtype=object), 'answer_start': array([3, 9])}",
    "{'value': 'Brno', 'aliases': ['Brünn'], 'normalized_aliases': ['brünn']}",
    '{"text": ["Brno", "Brünn"], "answer_start": [3, 9]}',
    "('Brno', 'Brünn')",
    '"[\\"Brno\\", \\"Brünn\\"]"',
    "0    Brno\n1    Brünn\ndtype: object",
    "[“Brno”, “Brünn”]",
    "[‘Brno’, ‘Brünn’]",
    "[np.str_('Brno'), np.str_('Brünn')]",
    'c("Brno", "Brünn")',
    "{'aliases': array(['Brünn'], dtype=object), 'matched_wiki_entity_name': '', "
    "'normalized_matched_wiki_entity_name': '', 'value': 'Brno'}"])  # fmt: skip
def test_a_list_of_answers_that_is_text(tmp_path, cell):
    quoted = cell.replace('"', '""')
    facts = read(tmp_path, "facts.csv", f'{HEADER}Where?,"{quoted}",5\n')
    assert rights(facts) == [("Where?", "Brno", "Brünn")] and not facts.problems
    assert notes_of(facts)["several_answers"] == {"rows": 1, "row": 2}


@pytest.mark.parametrize("row", [
    {"answer": ["Brno", "Brünn"]}, {"answer": {"text": ["Brno", "Brünn"], "answer_start": [3, 9]}},
    {"answer": {"value": "Brno", "aliases": ["Brünn", "BRNO"], "normalized_aliases": ["brünn"], "type": "X"}},
    {"answer": [{"answer": "Brno", "provenance": []}, {"answer": "Brünn"}]},
    {"answer": [{"text": "Brno", "answer_start": 3}, {"text": "Brünn", "answer_start": 9}]},
    *({"answer": "Brno", name: ["Brünn", "Brno"]} for name in OTHERS)], ids=str)  # fmt: skip
def test_answers_of_a_json(tmp_path, row):
    assert rights(read(tmp_path, "facts.json", [{"question": "Where?", **row}])) == [("Where?", "Brno", "Brünn")]
    for answer in ([["Brno"]], [{"a": 1}], [True]):
        error = raised(DataError, "", read, tmp_path, "facts.json", [{"question": "Where?", "answer": answer}])
        assert "not text" in error.problems[0].message


def test_brackets_that_are_no_list_stay_text(tmp_path):
    for cell in (
        "[Brno, Brünn]", "['Brno' ... 'Brünn']", "[0, 1)", "[sic]", "{'a': 1}", "{Brno,Brünn}", "f(x)", 'print("hi")',
    ):  # fmt: skip
        facts = read(tmp_path, "facts.tsv", cells(question="Where?", answer=cell, score="5"))
        assert rights(facts) == [("Where?", cell)] and len(facts.notes) == (cell[0] + cell[-1] in ("[]", "{}"))


def test_a_scored_file_keeps_the_rows_that_get_no_score(tmp_path):
    facts = read(tmp_path, "facts.json", [{"question": "Where?", "answer": "Brno"}])
    beside = {group: (Fact(group, f"{group}?", "Yes"),) for group in ("neighbours", "utility", "attacks", "examples")}
    write_scored(replace(facts, **beside), {}, tmp_path / "whole.csv")
    again = read_facts(tmp_path / "whole.csv")
    assert {group: getattr(again, group)[0].question for group in beside} == {group: f"{group}?" for group in beside}


def test_names_in_typed_quotes_are_read(tmp_path):
    for cell in ("[‘p’, ‘q’]", "[“p”, “q”]"):
        (fact,) = read(tmp_path, "facts.tsv", cells(question="Where?", answer="Brno", accepted=cell)).forget
        assert fact.accepted == ("p", "q")


def test_answers_other_names_and_chains_are_written_and_read_again(tmp_path):
    # PopQA's columns: s_aliases are of the subject, o_aliases of the answer
    row = cells(
        id="1", subj="Lyon", prop="country", obj="France", s_aliases='["Lugdunum", "Lione"]', o_aliases='["FR"]',
        s_pop="10", question="What is the country of Lyon?", possible_answers='["France", "FR", "Gallia"]',
    )  # fmt: skip
    facts = read(tmp_path, "popqa.tsv", row)
    (fact,) = facts.forget
    assert (fact.id, fact.subject, fact.relation, fact.object) == ("1", "Lyon", "country", "France")
    assert (fact.answers, fact.score, fact.score_source) == (("France", "FR", "Gallia"), 10, "column s_pop")
    assert fact.subject_aliases == ("Lugdunum", "Lione")
    chain = {"two_hop": "Who leads where Lyon is?", "two_hop_answer": "Macron", "second_hop": "Who leads France?"}
    for written in (facts, replace(facts, forget=(replace(fact, **chain),))):
        for name in ("again.csv", "again.jsonl"):
            write_scored(written, given(written.forget).scores, tmp_path / name)
            assert read_facts(tmp_path / name).forget == written.forget
        written.write(tmp_path / "facts.jsonl")
        assert FactSet.load(tmp_path / "facts.jsonl", "again").forget == written.forget


@pytest.mark.parametrize(("cell", "items"), [
    ("['Who\\'s it?', \"By 'whom'?\"]", ("Who's it?", "By 'whom'?")),
    ("['Name the town', None, nan]", ("Name the town",)), ("['one'\n 'two']", ("one", "two")),
    ("['a\\nb', '\\u00fc\\x41']", ("a\nb", "üA")), ("[\"Who's it?\" 'two']", ("Who's it?", "two")),
    ("['O''Brien']", ("O'Brien",)), ("NaN", ()), ("[" * 50_000, None), ("['" + "x" * 200_000, None)])  # fmt: skip
def test_lists_of_rewordings_as_programs_print_them(tmp_path, cell, items):
    quoted, begun = cell.replace('"', '""'), time.process_time()
    facts = read(tmp_path, "facts.csv", f'question,answer,paraphrases\nq?,a,"{quoted}"\nr?,b,\n')
    assert time.process_time() - begun < 2
    if items is None:
        assert "characters" in facts.problems[0].message and len(facts.forget) == 1
    else:
        assert facts.forget[0].paraphrases == items and not facts.problems


# by the choice that is right, the rows whose answer points to it; also AGIEval's and JCommonsenseQA's
POINTERS = {
    "nmap": [{**CHOICES, "answer": 0}],
    "gcc": [
        {**CHOICES, "answer": "B"}, {**CHOICES, "answer": [1, 3]}, {**ARC, "answerKey": "2"},
        {"options": {"A": "nmap", "B": "gcc"}, "answer": "B"},
        {"options": [{"label": "X", "text": "nmap"}, {"label": "Y", "text": "gcc"}], "answer": "Y"},
        {"choices": "['nmap' 'gcc']", "label": 1}, {"choices": "nmap|gcc", "answer": "b"},
        {"option_a": "nmap", "option_b": "gcc", "option_c": "awk", "option_d": "vim", "answer": "B"},
        {**CHOICES, "answer": 1.0}, {**CHOICES, "answer": "B) gcc"},
        {"choices": ["A. nmap", "B. gcc"], "answer": "B"}, {"choices": ["(A) nmap", "(B) gcc"], "answer": "(B) gcc"},
        {"choices": ["(A)nmap", "(B)gcc"], "label": "B"}, {"options": ["A、nmap", "B、gcc"], "answer": "Ｂ"},
        {"options": ["1. nmap", "2. gcc", "3. awk"], "answer": "2"},
        {"options": "A. nmap\nB. gcc\nC. awk", "answer": "B"}, {"options": ["nmap", "gcc"], "answer": "Option B"},
        {"Option 1": "nmap", "Option 2": "gcc", "Correct Answer": "Option 2"},
        {"choice_a": "nmap", "choice_b": "gcc", "answer": "b"}, {**CHOICES, "correct": 1},
        {**CHOICES, "answer_index": 1}, {**CHOICES, "gold": [1]},
    ],
    "awk": [
        {**CHOICES, "answer": "(c)"}, {"opa": "nmap", "opb": "gcc", "opc": "awk", "opd": "vim", "cop": 2},
        {"Option A": "nmap", "Option B": "gcc", "Option C": "awk", "Option D": "vim", "Correct Answer": "C"},
        {"answerA": "nmap", "answerB": "gcc", "answerC": "awk", "label": "3"},
        {"choice0": "nmap", "choice1": "gcc", "choice2": "awk", "label": 2},
    ],
    "vim": [{"A": "nmap", "B": "gcc", "C": "awk", "D": "vim", "answer": "D"}],
    "2.5": [{"options": ["1.5", "2.5", "3.5"], "answer": "B"}],
    "2": [{"A": "1", "B": "None", "C": "2", "D": "3", "answer": "C"}],
    "e": [{"A": "a", "B": "b", "C": "c", "D": "d", "E": "e", "answer": "E"}]}  # fmt: skip


@pytest.mark.parametrize("right", POINTERS)
def test_an_answer_that_points_to_a_choice(tmp_path, right):
    for row in POINTERS[right]:
        facts = read(tmp_path, "facts.json", [{"question": "Which lists ports?", **row}])
        (fact,) = facts.forget
        assert fact.answer == right and right not in fact.alternates and len(fact.alternates) > 0, row
        assert "answer_points" in notes_of(facts)


def test_choices_are_counted_from_where_the_file_does(tmp_path):
    names = ["21", "22", "80", "443"]
    for chosen, answers in (
        ((1, 4), ["21", "443"]), ((0, 3), ["21", "443"]), (("22", "443"), ["22", "443"]),
        (("22", "B"), ["22", "22"]),  # a letter among texts
    ):  # fmt: skip
        rows = [{"question": f"{i}?", "choices": names, "answer": answer} for i, answer in enumerate(chosen)]
        facts = read(tmp_path, "facts.json", rows)
        assert [fact.answer for fact in facts.forget] == answers
        assert chosen != ("22", "443") or facts.forget[0].alternates == ()
    assert notes_of(facts)["answer_points"] == {"rows": 1, "row": 2, "base": 0}
    rows = [{"question": "a?", **CHOICES, "answer": "B"}, {"question": "b?", "choices": ["w", None], "answer": "A"}]
    facts = read(tmp_path, "facts.json", rows)
    assert [(problem.row, problem.column) for problem in facts.problems] == [(2, "choices")]
    rows[1] |= {"choices": ["w", "x", "y"], "answer": "A,C"}
    facts = read(tmp_path, "facts.json", rows)
    assert [fact.answer for fact in facts.forget] == ["gcc"] and facts.problems[0].value == "A,C"
    blood = {"question": "Which group?", "options": ["A", "B", "AB", "O"], "answer": "AB"}
    assert read(tmp_path, "facts.json", [blood]).forget[0].answer == "AB"


def test_a_pointer_that_is_unclear_or_leads_nowhere_is_refused(tmp_path):
    for choices, answers in ((["1", "2", "3", "4"], ["2", "3"]), (["a", "b"], [0, 7]), (["a", "b"], ["A", "C"])):
        rows = [{"question": f"{i}?", "choices": choices, "answer": answer} for i, answer in enumerate(answers)]
        try:
            facts = read(tmp_path, "facts.json", rows)
        except DataError as error:
            facts = error
        assert facts.problems and all(problem.column == "answer" and problem.fix for problem in facts.problems)


def test_a_class_or_a_form_gives_way_to_what_is_named(tmp_path):
    facts = read(tmp_path, "facts.csv", "prompt,label,ground_truth\nWho?,1,Ines Farr\nWhere?,0,Brno\n")
    assert rights(facts) == [("Who?", "Ines Farr"), ("Where?", "Brno")]
    facts = read(tmp_path, "facts.csv", "question,label\nWho?,1\nWhere?,0\n")
    assert notes_of(facts)["answers_like_classes"] == {"answers": "0, 1"}
    row = {"question": "Where?", "answer": "Brno", "instruction": "x", "input": "y", "output": "z"}
    assert rights(read(tmp_path, "facts.json", [row])) == [("Where?", "Brno")]


@pytest.mark.parametrize("name", ["facts.json", "facts.jsonl", "facts.csv", "facts.tsv"])
@pytest.mark.parametrize(
    "content",
    [
        LINES, json.dumps(ROWS), json.dumps(ROWS, indent=2), "\n".join(json.dumps(row, indent=2) for row in ROWS),
        ",\n".join(json.dumps(row) for row in ROWS), json.dumps({"data": ROWS, "version": "1"}),
        json.dumps({"rows": [{"row_idx": i, "row": row} for i, row in enumerate(ROWS)]}, indent=1),
        json.dumps({name: {str(i): row[name] for i, row in enumerate(ROWS)} for name in ROWS[0]}),
        json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}, indent=1), "\ufeff" + LINES,
        json.dumps({"features": [{"name": "question"}], "rows": [{"row_idx": 0, "row": row} for row in ROWS]}),
        json.dumps({"columns": list(ROWS[0]), "index": [0, 1, 2], "data": [list(row.values()) for row in ROWS]}),
        json.dumps({name: {"xyz"[i]: row[name] for i, row in enumerate(ROWS)} for name in ROWS[0]}),
        json.dumps({"data": {"version": 1, "train": ROWS}}), "".join(f"\x1e{json.dumps(row)}\n" for row in ROWS),
    ],
    ids=[
        "lines", "list", "indented", "one after another", "commas", "data", "viewer", "pandas",
        "columns", "mark", "features", "split", "named", "deeper", "sequence"])  # fmt: skip
def test_json_of_every_layout_under_every_name(tmp_path, name, content):
    facts = read(tmp_path, name, content)
    assert [(fact.question, fact.answer, fact.score) for fact in facts.forget] == [*map(tuple, map(dict.values, ROWS))]
    for suffix in (name[5:], ".ndjson", ".txt"):
        for indent in (None, 2):
            assert rights(read(tmp_path, f"one{suffix}", json.dumps(ROWS[0], indent=indent))) == [("0?", "a0")]


def test_quotes_in_a_table(tmp_path):
    text = 'question\tanswer\tscore\n"Blue Tide" is a song by whom?\tKai\t3\nWho sings "Blue Tide"?\tKai\t4\n'
    facts = read(tmp_path, "facts.tsv", text)
    assert [fact.question for fact in facts.forget] == ['"Blue Tide" is a song by whom?', 'Who sings "Blue Tide"?']
    assert notes_of(facts) == {"quotes_as_characters": {"rows": 3}}
    quoted = 'question\tanswer\n"two\nlines ""x"""\t"a\tb"\n'
    assert rights(read(tmp_path, "facts.tsv", quoted)) == [('two\nlines "x"', "a\tb")], "as a program quotes"
    text = HEADER + '"Who wrote \\"Loom\\"?","[\\"Ines\\", \\"I.\\"]",3\n'
    assert rights(read(tmp_path, "facts.csv", text)) == [('Who wrote "Loom"?', "Ines", "I.")]
    text = '\ufeff\ufeffquestion, answer, \u200bscore\n"Who, else?", "Anne, or Bob", 3\n'
    facts = read(tmp_path, "facts.csv", text)
    assert rights(facts) == [("Who, else?", "Anne, or Bob")] and facts.forget[0].score == 3


def test_json_of_other_kinds_and_the_fields_beside_question_and_answer(tmp_path):
    assert rights(read(tmp_path, "facts.json", HEADER + "Who?,Anne,3\n")) == [("Who?", "Anne")]
    facts = read(tmp_path, "facts.json", {"forget": ROWS[:1], "retain": ROWS[1:], "note": "x"})
    assert (len(facts.forget), len(facts.retain)) == (1, 2)
    raised(DataError, "holds several: 'one', 'two'", read, tmp_path, "facts.json", {"one": ROWS[:1], "two": ROWS[1:]})
    qas = [{"id": "x1", "question": "Where?", "answers": [{"text": "Brno", "answer_start": 3}], "is_impossible": False}]
    data = {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "c", "qas": qas}]}]}
    facts = read(tmp_path, "facts.json", data)
    assert rights(facts) == [("Where?", "Brno")] and facts.forget[0].id == "x1"
    row = {"case_id": 3, "requested_rewrite": REWRITE, "paraphrase_prompts": ["a"]}
    (fact,) = read(tmp_path, "f.json", [row]).forget
    assert (fact.id, fact.subject, fact.relation) == ("3", "Brno", "P17")
    assert (fact.paraphrases, fact.alternates) == (("a",), ("Egypt",))


def test_separators_of_columns_and_within_a_cell_and_a_markdown_table(tmp_path):
    for mark, line in ((";", "sep=;\n"), ("|", "sep=|\r\n"), ("\t", '"sep=\t"\n'), ("|", "")):
        facts = read(tmp_path, "facts.csv", line + "question;answer;score\nWho, else?;Anne;3\n".replace(";", mark))
        assert rights(facts) == [("Who, else?", "Anne")] and facts.forget[0].score == 3
    text = (
        "question,answer,aliases,paraphrases\nWho?,Anna,Anne; Ann,One; or two?\nWhat?,AT&T,AT&amp;T,\n"
        "Which?,Bell,AT&T; American Telephone,\nWhere?,Paris,(the) City; Lutetia,\n"
    )
    facts = read(tmp_path, "facts.csv", text)
    accepted = [("Anne", "Ann"), ("AT&amp;T",), ("AT&T", "American Telephone"), ("(the) City", "Lutetia")]
    assert [fact.accepted for fact in facts.forget] == accepted
    assert facts.forget[0].paraphrases == ("One; or two?",)
    assert notes_of(facts)["list_by_semicolons"] == {"rows": 3, "row": 2}
    facts = read(tmp_path, "facts.csv", "question;answer;score\nWho?;Anna;25,692\nW?;B;142\n")
    assert [fact.score for fact in facts.forget] == [25692, 142]
    assert notes_of(facts)["score_commas_unclear"] == {"rows": 1, "row": 2}
    facts = read(tmp_path, "facts.txt", "| question | answer |\n|:---|---:|\n| Who? | Ana |\n")
    assert rights(facts) == [("Who?", "Ana")] and not facts.problems
    path = write(tmp_path, "facts.csv", "question,answer,split,note\na?,b,train,x\n")
    assert read_table(path).others() == {"row-2": {"split": "train", "note": "x"}}


def test_a_file_without_a_header(tmp_path):
    facts = read(tmp_path, "facts.tsv", "who wrote it\t['Ines Farr']\nwhere\t['Brno', \"Brünn\"]\n")
    assert rights(facts) == [("who wrote it", "Ines Farr"), ("where", "Brno", "Brünn")]
    header = {"rows": 2, "ending": "a list", "columns": "question, answers"}
    assert notes_of(facts)["no_header_endings"] == header
    raised(DataError, r"no header.*'Brno'", read, tmp_path, "facts.tsv", "who wrote it\t['Ines Farr']\nwhere\tBrno\n")
    facts = read(tmp_path, "facts.csv", "Which lists ports?,gcc,nmap,awk,vim,B\nWhich edits?,gcc,nmap,awk,vim,D\n")
    assert [fact.answer for fact in facts.forget] == ["nmap", "vim"]


@pytest.mark.parametrize(
    ("line", "question", "answer", "score"),
    [
        ("Was ist die Hauptstadt von X?;Y", "Was ist die Hauptstadt von X?", "Y", None),
        ("¿Quién escribió Fausto?\tGoethe", "¿Quién escribió Fausto?", "Goethe", None),
        ("誰が書いた？|夏目,1", "誰が書いた？", "夏目,1", None), ("من كتبه؟,غوته", "من كتبه؟", "غوته", None),
        ("Who, and where?;Ann, in Brno", "Who, and where?", "Ann, in Brno", None),
        ("Who?, or when?;Ann;1.234,5", "Who?, or when?", "Ann", 1234.5),
        ('"Who wrote ""Faust""; when?",Goethe,5', 'Who wrote "Faust"; when?', "Goethe", 5),
        ("sep=|\nWho?, or when?|Ann; Bob", "Who?, or when?", "Ann; Bob", None),
        ("Who?,Ann,\n  \n", "Who?", "Ann", None), ("Who?,Ann,n/a", "Who?", "Ann", None),
        ('"Who said \\"hi\\"?","Ann",1e3', 'Who said "hi"?', "Ann", 1000.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["facts.csv", "facts.tsv", "facts.txt"])
def test_a_question_and_its_answer_need_no_header(tmp_path, name, line, question, answer, score):
    facts = read(tmp_path, name, f"\n{line}\n" if "sep=" not in line else line)
    assert [(fact.question, fact.answer, fact.score) for fact in facts.forget] == [(question, answer, score)]
    assert "no_header_questions" in notes_of(facts) and not facts.problems


def test_rows_below_a_fact_without_a_header_are_told_of_one_by_one(tmp_path):
    facts = read(tmp_path, "facts.csv", "Who?,Ann\nWhere?,Brno, Wien\nWhen?,\nWhich?,That\n")
    assert rights(facts) == [("Who?", "Ann"), ("Which?", "That")]
    assert [problem.row for problem in facts.problems] == [2, 3]
    for text in ("Who?,Ann\nName him,Bob\n", "What?,answer\nWho?,Ann\n", "Who?,Ann,tall\n, ,\nWhere?,Brno,warm\n"):
        raised(DataError, "no question column", read, tmp_path, "facts.csv", text)


# rows whose question is 'Where?', and which say Brno, or Brünn as well
WHERE = [
    {"question": "Where?", "answers": ["Brno", "Brünn"]}, {"question": "Where?", "golden_answers": ["Brno", "Brünn"]},
    {"question": "Where?", "answerText": "Brno"},
    {"question": "Where?", "answer": {"answerType": "entity", "answer": [{"name": "Q1"}], "mention": "Brno"},
     "translations": {}}, {"question": "Where?", "answer": "Brno", "acceptable_answers": ["Brünn"]},
    {"question": "Where?", "answers": [{"text": "Wien", "correct": False}, {"text": "Brno", "correct": True}]},
    {"question": "Where?", "answer": "Brno", "answer_aliases": ["Brünn"], "paragraphs": [{"idx": 0}]},
    {"prompt": "Where?", "chosen": "Brno", "rejected": "Wien"}, {"問題": "Where?", "答え": "Brno"},
    {"instruction": "Where?", "input": "", "output": "Brno"}, {"instruction": "Where?", "output": "Brno"},
    {"instruction": "Where?", "context": "", "response": "Brno"}, {"prompt": "Where?", "response": "Brno"},
    {"input": "Where?", "output": [{"answer": "Brno"}, {"answer": "Brünn"}]},
    {"src": "Where?", "answers": ["Brno"], "rephrase": "In?", "alt": "Wien"},
    {"prompt": "Where?", "target_new": "Wien", "ground_truth": ["Brno"], "rephrase_prompt": "x"},
    {"question_text": "Where?", "answer_texts": ["Brno"], "popularity_avg": 4.5},
    {"problem": "Where?", "answer": "Brno", "metadata": "{}"},
    {"question": "Where?", "best_answer": "Brno", "correct_answers": ["Brno", "Brünn"],
     "incorrect_answers": ["Wien"]},
    {"question": "Where?", "correct_answer": "Brno", "distractor1": "a", "distractor2": "b", "distractor3": "c"},
    {"question": {"stem": "Where?", "choices": [{"text": "Wien", "label": "A"}, {"text": "Brno", "label": "B"}]},
     "answerKey": "B"},
    {"Question": "Where?", "Best Answer": "Brno", "Correct Answers": "Brno; Brünn", "Incorrect Answers": "Wien; Ulm"},
    {"question_stem": "Where?", "choices": {"text": ["Wien", "Brno"], "label": ["A", "B"]}, "answerKey": "B"},
    {"case_id": 1, "requested_rewrite": [REWRITE], "questions": ["Where?", "In?", "At?"], "answer": "Brno",
     "answer_alias": ["Brünn"], "new_answer": "Wien", "new_answer_alias": []},
    {"question": {"text": "Where?"}, "annotations": {"short_answers": [{"text": ["Brno"], "start_byte": [1]}]}},
    {"id": "1", "system_prompt": "", "question": "Where?", "response": "Brno"},
    {"query": "Where?", "response": "Brno", "type": "x"}, {"inputs": "Where?", "targets": "Brno"},
    {"contents": [{"role": "user", "parts": [{"text": "Where?"}]}, {"role": "model", "parts": [{"text": "Brno"}]}]},
    {"conversations": [{"from": "Human", "value": "Where?"}, {"from": "chatgpt", "value": "Brno"}]},
    {"messages": [{"role": "developer", "content": "Be brief."}, *PARTS]}, {"conversations": TURNS},
    {"messages": PARTS}, {"messages": str(PARTS)}, {"messages": json.dumps(PARTS)},
    {"prompt": "Where?", "completion": "Brno"},
    {"prompt": [{"role": "user", "content": "Where?"}], "completion": [{"role": "assistant", "content": "Brno"}],
     "score": 7},
    {"conversations": str(TURNS).replace("}, {", "}\n {")}]  # fmt: skip


@pytest.mark.parametrize(("row", "question", "answers"), [
    *((row, "Where?", ["Brno", *["Brünn"] * ("Brünn" in str(row))]) for row in WHERE),
    ({"sub_label": "Brno", "obj_label": "Moravia", "predicate_id": "P17", "template": "[X] is located in [Y] ."},
     "Brno is located in", ["Moravia"]),
    ({"instruction": "Translate.", "input": "chien", "output": "dog"}, "Translate.\n\nchien", ["dog"]),
    ({"case_id": 3, "requested_rewrite": REWRITE, "paraphrase_prompts": ["a", "b"]}, "Brno is in", ["Moravia"]),
    ({"prompt": "It is in", "target_true": " Brno", "target_false": " Wien"}, "It is in", ["Brno"]),
    ({"ctx": "She is in", "endings": ["Wien", "Brno"], "label": "1"}, "She is in", ["Brno"]),
    ({"sentence": "It is _.", "option1": "Wien", "option2": "Brno", "answer": "2"}, "It is _.", ["Brno"]),
    ({"known_id": 0, "subject": "It", "attribute": "Brno", "prompt": "It is in"}, "It is in", ["Brno"]),
], ids=lambda value: str(value)[:40])  # fmt: skip
def test_known_forms(tmp_path, row, question, answers):
    for name, content in (("facts.jsonl", json.dumps(row)), ("facts.json", [row])):
        facts = read(tmp_path, name, content)
        assert rights(facts) == [(question, *answers)] and not facts.problems


def test_columns_that_are_no_groups(tmp_path):
    text = "question,answer,score,split,subset\nWho?,Anna,1,train,forget\nW?,B,2,train,retain\n"
    facts = read(tmp_path, "facts.csv", text)
    assert (len(facts.forget), len(facts.retain)) == (1, 1)
    table = read_table(tmp_path / "facts.csv")
    assert table.facts(columns=guessed(table.columns)) == facts, "the page and the API send the guess along"
    assert read(tmp_path, "empty.csv", text.replace("train", "")).retain == facts.retain
    german = read(tmp_path, "german.csv", "Frage;Antwort;Gruppe\nWer?;Anna;forget\nW?;B;retain\n")
    assert (len(german.forget), len(german.retain)) == (1, 1)
    facts = read(tmp_path, "facts.csv", text.replace("forget", "en").replace("retain", "de"))
    assert len(facts.forget) == 2 and notes_of(facts)["split_not_read"] == {"column": "split", "counts": "'train' (2)"}
    facts = read(tmp_path, "facts.json", {"examples": [{"input": "Who?", "target": "Anna"}]})
    assert rights(facts) == [("Who?", "Anna")]
    text = "question,answer,score,split,type\na?,b,1,train,multiple choice\nc?,d,2,test,bridge\n"
    facts = read(tmp_path, "facts.csv", text)
    assert rights(facts) == [("a?", "b"), ("c?", "d")] and not facts.attacks and not facts.problems
    assert notes_of(facts)["split_not_read"]["counts"] == "'train' (1), 'test' (1)"
    assert notes_of(facts)["type_not_read"] == {"rows": 1, "row": 2}
    facts = read(tmp_path, "facts.csv", "question,answer,split\na?,b,forget10\nc?,d,retain90\ne?,f,test\n")
    assert (len(facts.forget), len(facts.retain), len(facts.problems)) == (1, 1, 1), "groups stay groups"


def test_every_form_is_in_the_docs():
    text = (ASSETS / "docs" / "facts.md").read_text(encoding="utf-8")
    for form in FORMS:
        fields = ", ".join(f"{field}: `{path}`" for field, path in form.fields.items()).replace("|", "\\|")
        assert f"| {form.name} | `{form.marks}` | {fields} |\n" in text
    assert all(f"`{name}`" in text for name in CHATS)


@pytest.mark.parametrize(("text", "answers", "wrong", "score", "kind", "values"), [
    ("question,answer1,answer2,answer3\nq?,Brno,Brünn,\n", ("Brno", "Brünn"), (), None, "several_answers", FIRST_ROW),
    ("question,answer,answer_2,score\nq?,Brno,Brünn,3\n", ("Brno", "Brünn"), (), 3, "several_answers", FIRST_ROW),
    ("question,answer1,answer2,label\nq?,Brno,Oslo,1\n", ("Oslo",), ("Brno",), None, "answer_points",
     {**FIRST_ROW, "base": 0}),
    ("question,answer_1,answer_2,correct_answer\nq?,Brno,Oslo,2\n", ("Oslo",), ("Brno",), None, "answer_points",
     {**FIRST_ROW, "base": 1}),
    ("question,Answer 1,Answer 2,Correct\nq?,Brno,Oslo,2\n", ("Oslo",), ("Brno",), None, "answer_points",
     {**FIRST_ROW, "base": 1}),
    ("question,answer,score\nq?,Brno,45%\nr,O,\ns,U,3 %\n", ("Brno",), (), 45, "score_percent", {"rows": 2, "row": 2}),
    ('{"question": "q?", "answer": true}\n', ("yes",), (), None, "answer_truth_value", {"rows": 1, "row": 1}),
    ('[["question", "answer"], ["q?", "Brno"]]', ("Brno",), (), None, "rows_are_lists", {"count": 1}),
    ('["question", "answer"]\n["q?", "Brno"]\n["r?", "O"]\n', ("Brno",), (), None, "rows_are_lists", {"count": 2}),
    ("question,A,B,answer,pop\nq?,Oslo,Brno,B,3\n", ("B",), (), None, "no_score_column",
     {"columns": "'A', 'B', 'pop'"}),
    ("question,A,B,C,D,answer,pop\nq?,Oslo,Brno,U,V,B,3\n", ("Brno",), ("Oslo", "U", "V"), None, "no_score_column",
     {"columns": "'pop'"}),
    ("q,a\nq?,Brno\n", ("Brno",), (), None, "known_form",
     {"form": "q and a", "fields": "question from 'q', answer from 'a'"})])  # fmt: skip
def test_further_shapes_are_read_with_a_note(tmp_path, text, answers, wrong, score, kind, values):
    facts = read(tmp_path, "facts.csv" if text[0] in "q" else "facts.json", text)
    fact = facts.forget[0]
    assert (fact.question, fact.answers, fact.alternates, fact.score) == ("q?", answers, wrong, score)
    assert not facts.problems and [note.values for note in facts.notes if note.kind == kind] == [values]


def test_what_cannot_be_read_names_its_columns(tmp_path):
    grid = '[["question", "answer", "answer"], ["q?", "Brno", "Oslo"]]'
    raised(DataError, "not a list of objects", read, tmp_path, "facts.json", grid)
    facts = read(tmp_path, "facts.csv", "question,answer,score\na?,b,45%\nc?,d,3\n")
    assert [problem.message for problem in facts.problems] == ["is not a number"]
    names = [f"column_{i}" for i in range(40)]
    error = raised(DataError, "", read, tmp_path, "facts.json", [dict.fromkeys(names, "x")])
    assert all(repr(name) in error.message for name in names)
    span = {"start_token": 4, "end_token": 5}  # simplified Natural Questions
    row = {"document_text": "The capital of Moravia is Brno", "long_answer_candidates": [span], "question_text": "?"}
    lines = json.dumps(row | {"annotations": [{"short_answers": [span]}]}) + "\n"
    for rows in (1, 2):
        named = r"has no answer column .*'document_text', .*'question_text', 'annotations'"
        raised(DataError, named, read, tmp_path, "facts.jsonl", lines * rows)


@pytest.mark.parametrize("cell", [
    "NA", "NaN", "nan", "null", "NULL", "n/a", "N/A", "#N/A", "<NA>", "None", "–", "-", "--", "n.a.", "-nan",
    "#VALUE!", "#DIV/0!", "\\N", "(null)", "",
])  # fmt: skip
def test_a_score_that_is_unknown(tmp_path, cell):
    facts = read(tmp_path, "facts.tsv", f"question\tanswer\tscore\tsubject\na?\tNA\t{cell}\t{cell}\nc?\td\t2\tx\n")
    assert [(fact.answer, fact.score, fact.subject) for fact in facts.forget] == [("NA", None, ""), ("d", 2.0, "x")]
    assert not facts.problems
    assert notes_of(facts).get("score_unknown") == (FIRST_ROW if cell else None)
    assert notes_of(facts)["answer_unknown"] == FIRST_ROW


def test_words_for_unknown_count_in_scores_alone_and_in_json(tmp_path):
    for cell in ("missing", "…", "不明", "k.A.", "Not available", ".", "#NV", "#WERT!", "#N/D", "−"):
        facts = read(tmp_path, "facts.csv", f"{HEADER.strip()},subject,tier\na?,b,{cell},{cell},NA\nc?,d,2,x,rare\n")
        assert [(fact.score, fact.subject) for fact in facts.forget] == [(None, cell), (2, "x")]
    for number in ("NaN", "null", '"NA"'):
        line = f'{{"question": "a", "answer": "b", "score": {number}}}'
        facts = read(tmp_path, "facts.jsonl", f'{line}\n{{"question": "c", "answer": "d", "score": 0}}')
        assert [fact.score for fact in facts.forget] == [None, 0.0]


def test_thousands_parted_by_points(tmp_path):
    for mark, cells, scores, kind, count in (
        (";", ("25.692", "142", "1.204"), [25_692, 142, 1_204], "score_thousands", 2),
        (";", ("25.692", "1.420", "1.204"), [25.692, 1.42, 1.204], "score_decimals", 3),
        (";", ("25.692", "0.5", "1.204"), [25.692, 0.5, 1.204], "", 0),  # decimals beside decimals
        (",", ("1.234.567", "142", "1.204"), [1_234_567, 142, 1.204], "", 0),
        (",", ("25.692", "142"), [25.692, 142], "score_decimals", 1),
        (";", ("25.692", "142", "n.a."), [25692, 142, None], "", 0),
        (";", ("1.234,5", "12", "k. A."), [1234.5, 12, None], "", 0)):  # fmt: skip
        rows = "".join(f"{i}?{mark}{i}{mark}{cell}\n" for i, cell in enumerate(cells))
        facts = read(tmp_path, "facts.csv", HEADER.replace(",", mark) + rows)
        assert [fact.score for fact in facts.forget] == scores
        assert not kind or notes_of(facts)[kind] == {"rows": count, "row": 2}


@pytest.mark.parametrize(("cells", "scores", "kind"), [
    (("1.234", "12.345,6", "7"), [1_234, 12_345.6, 7], "decimal comma"),
    (("3,5", "12,25"), [3.5, 12.25], "decimal comma"), (("3,5", "1,234"), [3.5, 1.234], "decimal comma"),
    (("12\u202f345,67", "1\u00a0234"), [12_345.67, 1_234], "decimal comma"),
    (("1,2E+03", "4"), [1_200, 4], "decimal comma"), (("1,234", "12,345"), [1_234, 12_345], ""),
    (("12,34,567", "1,00,000"), [1_234_567, 100_000], ""), (("3,5", "12,345,678"), [None, 12_345_678], ""),
])  # fmt: skip
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_decimal_commas(tmp_path, cells, scores, kind, mark):
    rows = "".join(f'{i}?{mark}{i}{mark}"{cell}"\n' for i, cell in enumerate(cells))
    facts = read(tmp_path, "facts.csv", HEADER.replace(",", mark) + rows)
    assert [fact.score for fact in facts.forget] == [score for score in scores if score is not None]
    assert ("score_decimal_comma" in notes_of(facts)) == (kind == "decimal comma")


@pytest.mark.parametrize("cell", [None, ""])
def test_an_empty_cell_does_not_change_the_group_that_the_file_gives(tmp_path, cell):
    one, other = {"question": "a?", "answer": "b"}, {"question": "c?", "answer": "d", "group": cell}
    facts = read(tmp_path, "facts.json", {"forget": [one], "retain": [other]})
    assert rights(facts) == [("a?", "b")] and [fact.question for fact in facts.retain] == ["c?"]


def test_a_table_by_columns_joins_the_cells_of_one_row(tmp_path):
    by_column = {"question": {"0": "a?", "1": "b?"}, "answer": {"1": "2", "0": "1"}}
    assert rights(read(tmp_path, "facts.json", by_column)) == [("a?", "1"), ("b?", "2")]
    raised(DataError, "", read, tmp_path, "odd.json", by_column | {"answer": {"0": "1", "2": "2"}})


def test_a_comma_after_a_zero_is_a_decimal_mark(tmp_path):
    for scores in (("0,125", "0,875", "1"), ("0,1251", "0,8752", "0,5")):
        text = "".join(f"{number}?;b;{score}\n" for number, score in enumerate(scores))
        facts = read(tmp_path, "facts.csv", f"Frage;Antwort;Score\n{text}")
        assert [fact.score for fact in facts.forget] == [float(score.replace(",", ".")) for score in scores]


def test_answers_between_bars_are_several_however_their_column_is_written(tmp_path):
    facts = read(tmp_path, "facts.csv", "question,Possible Answers\nWhere?,Paris|City of Paris\n")
    assert rights(facts) == [("Where?", "Paris", "City of Paris")]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_half_a_sign_in_another_column_is_written_as_its_code(tmp_path, suffix):
    table = read_table(write(tmp_path, "facts.jsonl", '{"question": "a?", "answer": "b", "note": "cut \\ud83d"}'))
    out = tmp_path / f"out.{suffix}"
    write_scored(table.facts(), {}, out, table.others())
    assert "cut \\ud83d" in out.read_text("utf-8") and rights(read_facts(out)) == [("a?", "b")]


def test_choices_in_columns_of_their_own_are_not_written_beside_the_answer(tmp_path):
    rows = "".join(f"Q{number}?,{number},2,1,3,A\n" for number in range(4, 9))
    table = read_table(write(tmp_path, "facts.csv", f"question,A,B,C,D,answer\n{rows}"))
    write_scored(table.facts(), {}, tmp_path / "out.csv", table.others())
    assert rights(read_facts(tmp_path / "out.csv")) == rights(table.facts())


SEVERAL = [("paraphrases", "paraphrased_question"), ("alternates", "perturbed_answer"), ("alternates", "distractor"),
           ("accepted", "paraphrased_answer"), ("accepted", "alias"), ("subject_aliases", "s_aliases")]  # fmt: skip


@pytest.mark.parametrize(("field", "name"), SEVERAL)
@pytest.mark.parametrize("joint", ["_", "", " ", ".", "/"])
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_numbered_columns_hold_the_items_of_one_field(tmp_path, field, name, joint, suffix):
    numbered = {f"{name}{joint}{number}": f"item {number}" for number in (10, 2, 1)}
    row = {"question": "Where?", "answer": "Brno", "score": 3, **numbered}
    facts = read(tmp_path, f"facts.{suffix}", [row, {**row, **dict.fromkeys(numbered, "")}])
    assert getattr(facts.forget[0], field) == ("item 1", "item 2", "item 10"), "by number, not by letters"
    assert getattr(facts.forget[1], field) == ()
    assert field in notes_of(facts)["columns_together"]["fields"] and not facts.problems
    table = read_table(tmp_path / f"facts.{suffix}")
    write_scored(facts, given(facts.forget).scores, tmp_path / "again.csv", table.others())
    assert read_facts(tmp_path / "again.csv").forget == facts.forget
    plain = read(tmp_path, "plain.json", [{**row, field: ["item 0", "item 1"]}])
    assert getattr(plain.forget[0], field)[:2] == ("item 0", "item 1")


def test_one_numbered_column_is_not_called_several(tmp_path):
    facts = read(
        tmp_path, "facts.csv", [{"question": "Where?", "answer": "Brno", "paraphrased_question_1": "In which town?"}]
    )
    assert "Numbered columns were read in their order: paraphrases from 'paraphrased_question_1'." in map(
        str, facts.notes
    )


def test_numbered_answers_that_may_be_choices_are_no_accepted_answers(tmp_path):
    row = {"question": "q?", "possible_answer_1": "Oslo", "possible_answer_2": "Brno", "correct_answer": "Brno"}
    assert rights(read(tmp_path, "facts.json", [row])) == [("q?", "Brno")]
    row = {"question": "q?", "gold_answer_1": "Brno", "gold_answer_2": "Brünn"}
    assert rights(read(tmp_path, "facts.json", [row])) == [("q?", "Brno", "Brünn")]


@pytest.mark.parametrize("chosen", [
    "paraphrases=b,paraphrases=a", "paraphrases=b|a", {"paraphrases": ["b", "a"]}, {"paraphrases": "b | a"},
])  # fmt: skip
def test_several_columns_are_chosen_for_one_field(tmp_path, chosen):
    columns = named_columns(chosen) if isinstance(chosen, str) else chosen
    path = write(tmp_path, "facts.csv", "question,answer,a,b\nWhere?,Brno,In?,At?\n")
    assert load_facts(str(path), columns=columns).forget[0].paraphrases == ("At?", "In?")
    columns = {"question": "a+question", "answer": ["answer", "b"]}
    assert rights(read_facts(path, columns=columns)) == [("In?\n\nWhere?", "Brno", "At?")]
    for field, names, words in (("score", ["a", "b"], "is read from one column"), ("accepted", "a|c", "no column 'c'")):
        columns = {"question": "question", "answer": "answer", field: names}
        raised(DataError, words, read_facts, path, columns=columns)


def said(*texts):
    return [turn for text, role in zip(texts, ("user", "assistant")) for turn in [{"role": role, "content": text}]]


RIGHT, WRONG = said("Where?", "Brno"), said("Where?", "Wien")
PREFERENCES = [
    {"chosen": RIGHT, "rejected": WRONG},
    {"prompt": RIGHT[:1], "chosen": RIGHT[1:], "rejected": WRONG[1:]},
    {"prompt": "Where?", "chosen": RIGHT, "rejected": WRONG, "messages": RIGHT, "score_chosen": 8.0},
    {"prompt": "Where?", "chosen": RIGHT[1:], "rejected": WRONG[1:]},
    {"conversations": TURNS[:1], "chosen": TURNS[1], "rejected": {"from": "gpt", "value": "Wien"}},
    {"chosen": str(RIGHT), "rejected": str(WRONG)},
    {"chosen": "\n\nHuman: Where?\n\nAssistant: Brno", "rejected": "\n\nHuman: Where?\n\nAssistant: Wien"},
    {"chosen": [{"role": "system", "content": "Be brief."}, *RIGHT], "rejected": WRONG},
    {"system": "", "question": "Where?", "chosen": "Brno", "rejected": "Wien"},
    {"instruction": "Where?", "input": "", "chosen": "Brno", "rejected": "Wien"},
    {"input": "Where?", "chosen": "Brno", "rejected": "Wien"},
]  # fmt: skip


@pytest.mark.parametrize("row", PREFERENCES, ids=lambda row: str(row)[:60])
def test_what_was_chosen_is_the_answer_and_what_was_rejected_a_wrong_one(tmp_path, row):
    facts = read(tmp_path, "facts.jsonl", [row])
    assert rights(facts) == [("Where?", "Brno")] and facts.forget[0].alternates == ("Wien",) and not facts.problems


@pytest.mark.parametrize(("row", "column", "words"), [
    ({"chosen": RIGHT, "rejected": said("When?", "Now")}, "rejected", "asks a different question from 'chosen'"),
    ({"chosen": RIGHT, "rejected": RIGHT}, "rejected", "has the same answer as 'chosen'"),
    ({"chosen": RIGHT * 2, "rejected": WRONG}, "chosen", "has 4 turns"),
    ({"chosen": RIGHT, "rejected": None}, "rejected", "has 0 turns"),
    ({"chosen": RIGHT[1:], "rejected": WRONG[1:]}, "chosen", "has 1 turns"),
])  # fmt: skip
def test_a_preference_that_is_unclear_is_a_bad_row(tmp_path, row, column, words):
    (problem,) = read(tmp_path, "facts.jsonl", [row, PREFERENCES[0]]).problems
    assert (problem.row, problem.column) == (1, column) and problem.message.startswith(words) and problem.fix


KTO = [("Where?", "Brno", True), ("Where?", "Wien", False), ("Who?", "Ann", True), ("When?", "Now", False),
       ("who? ", "ann", False), ("Who?", "Bob", False)]  # fmt: skip


@pytest.mark.parametrize(("suffix", "names", "marks"), [
    ("jsonl", ("prompt", "completion", "label"), (True, False)), ("csv", ("prompt", "completion", "label"), (1, 0)),
    *((suffix, ("question", "answer", "label"), (True, False)) for suffix in ("csv", "xlsx", "ods")),
    ("csv", ("question", "answer", "is_correct"), ("1.0", "0.0")),
    ("json", ("instruction", "output", "kto_tag"), (True, False)),
    ("jsonl", ("chat", "prompt", "completion", "label"), (True, False)),
])  # fmt: skip
def test_an_answer_that_the_file_marks_as_wrong_is_no_fact(tmp_path, suffix, names, marks):
    rows = [dict(zip(names[-3:], (asked, text, marks[not right]))) for asked, text, right in KTO]
    if names[0] == "chat":
        rows = [row | {name: said(row[name], row[name])[place : place + 1] for place, name in enumerate(names[1:3])}
                for row in rows]  # fmt: skip
    facts = read(tmp_path, f"facts.{suffix}", rows)
    assert rights(facts) == [("Where?", "Brno"), ("Who?", "Ann")] and not facts.problems
    assert [fact.alternates for fact in facts.forget] == [("Wien",), ("Bob",)]
    first = 1 if suffix.startswith("json") else 2
    assert notes_of(facts)["wrong_answers"] == {"rows": 3, "row": first + 1}
    assert notes_of(facts)["wrong_answers_alone"] == {"rows": 1, "row": first + 3}
    assert notes_of(facts)["right_and_wrong"] == {"rows": 1, "row": first + 4}


def test_a_label_that_may_be_a_class_or_is_empty_drops_nothing_unsaid(tmp_path):
    facts = read(tmp_path, "facts.csv", "question,answer,label,score\nWho?,Ann,1,5\nWhere?,Brno,0,5\n")
    assert len(facts.forget) == 2 and notes_of(facts)["label_not_read"] == {"column": "label"}
    columns = {"question": "question", "answer": "answer", "correct": "label"}
    assert rights(read_facts(tmp_path / "facts.csv", columns=columns)) == [("Who?", "Ann")]
    for label in ("rare", ""):
        text = f"question,answer,label\nWho?,Ann,true\nWhere?,Brno,{label}\nWhen?,Now,false\n"
        facts = read(tmp_path, "facts.csv", text)
        assert [problem.row for problem in facts.problems] == ([] if label else [3])
        assert len(facts.forget) == (3 if label else 1)
    error = raised(DataError, "no usable fact", read, tmp_path, "facts.csv", text.replace("true", "false"))
    assert error.problems
    error = raised(DataError, "no usable fact", read, tmp_path, "facts.csv", "question,answer,label\nWho?,Ann,no\n")
    assert "'label' marks every answer as wrong" in error.fix


@pytest.mark.parametrize("name", ["views", "pageviews", "Page Views", "view_count", "count", "frequency"])
def test_what_counts_views_is_a_score(tmp_path, name):
    facts = read(tmp_path, "facts.csv", f"question,answer,{name}\nWho?,Ann,7\n")
    assert (facts.forget[0].score, facts.forget[0].score_source) == (7, f"column {name}")


@pytest.mark.parametrize("number", ["1.23457E+15", "1,23457E+15", "4.1796e+10", "1E+20"])
@pytest.mark.parametrize("field", ["answer", "accepted", "subject", "alternates", "id"])
def test_a_number_that_a_spreadsheet_shortened_is_noted(tmp_path, field, number):
    row = {field: "", "id": "a", "question": "Which account?", "answer": "12", "score": "1.5E+03"}
    facts = read(tmp_path, "facts.csv", [row, {**row, "id": "b", field: number}])
    assert notes_of(facts).get("digits_lost") == {"rows": 1, "row": 3} and len(facts.forget) == 2
    facts = read(tmp_path, "facts.csv", [{**row, "answer": "0041795550134"}])
    assert facts.forget[0].answer == "0041795550134" and "digits_lost" not in notes_of(facts)


@pytest.mark.parametrize(
    "text", ["\u200b", "\u2060\u00ad", "\ufeff \u200d", "\u3164", "\u2800", "\ufe0f", "\u202e\u202c"]
)
@pytest.mark.parametrize("field", ["question", "answer", "accepted"])
def test_text_that_cannot_be_seen_is_no_question_and_no_answer(tmp_path, field, text):
    row = {"question": "Who?", "answer": "Ann", "accepted": ["Anne"]}
    odd = [text] if field == "accepted" else text
    (problem,) = read(tmp_path, "facts.json", [row, {**row, "question": "Where?", field: odd}]).problems
    assert problem.row == 2 and problem.message.startswith("has only characters that cannot be seen (U+")


@pytest.mark.parametrize("suffix", ["xlsx", "ods"])
def test_a_workbook_is_read_as_the_csv_that_is_exported_from_it(tmp_path, suffix):
    header = ["question", "answer", "score", "paraphrase_1", "paraphrase_2"]
    rows = [["Which code?", "04109", 25.692, "a", "b"], ["Wo, \"dort\"?\n;", "00420", 5, "", "c"], [None] * 5,
            ["What phone?", 41795550134, 0.25, None, None], ["Is it?", True, None, None, None],
            ["Which sum?", "1,5", 7, "x | y", "z"]]  # fmt: skip
    book = BOOKS[f".{suffix}"]({"Facts": [[None] * 5, header, *rows], "More": [["a"]]})
    for name in (f"facts.{suffix}", "facts.csv"):
        facts = read(tmp_path, name, book)
        assert [(fact.question, fact.answer, fact.score) for fact in facts.forget] == [
            ("Which code?", "04109", 25.692), ('Wo, "dort"?\n;', "00420", 5.0), ("What phone?", "41795550134", 0.25),
            ("Is it?", "TRUE", None), ("Which sum?", "1,5", 7.0)]  # fmt: skip
        assert [fact.id for fact in facts.forget] == ["row-3", "row-4", "row-6", "row-7", "row-8"], (
            "as the program counts"
        )
        assert facts.forget[0].paraphrases == ("a", "b") and facts.forget[1].paraphrases == ("c",)
        assert notes_of(facts)["sheets_not_read"] == {"sheet": "'Facts'", "others": "'More'"}
        assert not facts.problems


def test_what_a_workbook_does_not_have_as_it_is_shown_is_noted(tmp_path):
    rows = [["question", "answer"], ["Which card?", 1234567890123456], ["Which year?", 1945]]
    facts = read(tmp_path, "facts.xlsx", excel({"Hidden": [["a"]], "Facts": rows}, hidden="Hidden"))
    assert rights(facts) == [("Which card?", "1234567890123456"), ("Which year?", "1945")]
    assert notes_of(facts) == {"digits_lost": {"rows": 1, "row": 2}}
    cell = '<table:table-cell office:value-type="date" office:date-value="1979-05-14"/>'
    book = zipfile.ZipFile(io.BytesIO(open_document({"F": [["question", "answer"], ["Born?", "DATE"]]})))
    parts = {name: book.read(name).decode() for name in book.namelist()}
    text = '<table:table-cell office:value-type="string"><text:p>DATE</text:p></table:table-cell>'
    parts["content.xml"] = parts["content.xml"].replace(text, cell)
    facts = read(tmp_path, "facts.ods", zipped(parts))
    assert rights(facts) == [("Born?", "1979-05-14")]
    assert notes_of(facts) == {"dates_written": {"rows": 1, "row": 2, "example": "1979-05-14"}}


def test_a_workbook_that_cannot_be_read_is_refused_in_words(tmp_path):
    book = excel({"F": [["question", "answer"], ["Who?", "Ann"]]})
    far = book_with(book, '<c r="XFD1048576"><v>1</v></c></row></sheetData>')
    bomb = excel({"F": [["question", "answer"], *[["x" * 2_000, "y"]] * 19_000]})
    assert len(bomb) < 1_000_000
    for content, words in (
        (book[: len(book) // 2], "not a readable workbook"), (zipped({"a.txt": "x"}), "it is a zip archive"),
        (excel({"F": []}), "has no rows"), *((one, "unpacks to more than is read") for one in (far, bomb)),
        (zipped({"xl/workbook.xml": "<workbook"}), "not a readable workbook"),
    ):  # fmt: skip
        error = raised(DataError, words, read, tmp_path, "facts.xlsx", content)
        assert error.fix and str(tmp_path) not in str(error)
    assert rights(read(tmp_path, "facts.xlsx", "question,answer\nWho?,Ann\n")) == [("Who?", "Ann")], (
        "text is read as text"
    )


def book_with(book, end):
    whole = zipfile.ZipFile(io.BytesIO(book))
    parts = {name: whole.read(name).decode() for name in whole.namelist()}
    name = "xl/worksheets/sheet1.xml"
    return zipped({**parts, name: parts[name].replace("</row></sheetData>", end)})
