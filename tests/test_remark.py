"""Remarks as data, and the wording of each kind of note on a set, which other tests know by kind and values alone."""

import json
import re
from dataclasses import asdict

import pytest

from adapop.assets import as_kind, read_json
from adapop.facts.cells import READINGS
from adapop.facts.files import read_facts
from adapop.paths import ROOT
from adapop.remark import Remark, sentences
from fact_files import write
from raised import raised

KINDS = read_json("remarks.json", dict[str, dict[str, str]])["sentences"]
FEW = Remark("few_steps", {"steps": 1, "rate": 1e-9})
LENT = {"retain": 1256, "holdout": 256, "world": "sandbox"}
EMMA = {"questions": 1, "question": "'Who wrote Emma?'", "places": "2, 4", "answers": "'a' or 'b'", "scores": "1 or 9"}
CITIES = {"low": 69.0, "below": 141, "above": 2364.0, "high": 3763}
# kind of a note on a set -> values and the sentence, or what follows the number of rows
WORDING = {
    "columns_together": (
        {"fields": "paraphrases from 'a | b'"}, "Several columns were joined into one: paraphrases from 'a | b'."),
    "label_not_read": (
        {"column": "label"},
        "The column label has 0 and 1 and is not read. If 0 marks wrong answers, name the column is_correct."),
    "sheets_not_read": (
        {"sheet": "'A'", "others": "'B', 'C'"},
        "Only the first sheet of the workbook, 'A', was read. These were not: 'B', 'C'."),
    "dates_written": (
        {"rows": 2, "row": 3, "example": "1979-05-14"},
        "2 rows, the first row 3, have a date or time, which a workbook stores as a number. It was read as "
        "1979-05-14."),
    "utf16": ({}, "The file was read as UTF-16, because its first bytes say so."),
    "no_header_questions": (
        {"columns": "question, answer"}, "The file has no header: every row begins with a question. The columns "
                                         "were read as question, answer."),
    "no_header_endings": (
        {"rows": 1200, "ending": "a list", "columns": "question, answers"},
        "The file has no header: all 1,200 rows end in a list. The columns were read as question, answers."),
    "quotes_as_characters": (
        {"rows": 3}, "Quotes were read as ordinary characters, because only then the file is a table (3 rows)."),
    "backslash_before_quotes": (
        {"rows": 3}, "A backslash was read as escaping quotes, because only then the file is a table (3 rows)."),
    "rows_are_lists": ({"count": 1}, "The rows are lists (1): the first of them names the columns."),
    "rows_found_under": (
        {"names": "'data' (3)"}, "Rows were found under 'data' (3). Other entries beside them are not read."),
    "system_prompts_not_read": (
        {"count": 1200}, "System prompts in the rows are not read: 1,200. A run has one system prompt for all "
                         "rows."),
    "known_form": (
        {"form": "q and a", "fields": "question from 'q'"}, "The file was recognised as q and a. Columns: "
                                                            "question from 'q'."),
    "split_not_read": (
        {"column": "split", "counts": "'dev' (2)"}, "The column split does not name the groups forget, retain "
                                                    "and holdout, so it is not read: 'dev' (2)."),
    "no_score_column": (
        {"columns": "'a', 'b'"},
        "No column of scores was found. These columns were not read: 'a', 'b'. If one of them holds the scores, "
        "choose it as score."),
    "answers_like_classes": (
        {"answers": "0, 1"}, "All answers in the column label are 0, 1. "
        "If these are classes, choose the column that holds the answers."),
    "unseen_characters": (
        {"codes": "U+202E", "count": 1, "row": 3}, "Rows with invisible characters (U+202E): 1. The first is row "
                                                   "3. The characters are kept, and the model reads them."),
    "attack_prompts": (
        {"count": 2}, "Attack prompts: 2. They are used for probing and are not trained on."),
    "different_answers": (EMMA, "Contradiction: 1 question with different answers in different rows. The first "
                                "is 'Who wrote Emma?' in rows 2, 4: 'a' or 'b'."),
    "different_scores": (EMMA, "Contradiction: 1 question with different scores in different rows. The first is "
                               "'Who wrote Emma?' in rows 2, 4: 1 or 9."),
    "asked_twice": (EMMA, "Duplicates, which count twice: 1 question. The first is 'Who wrote Emma?' in rows 2, "
                          "4."),
    "tiers_equal_scores": ({"counts": "2 middle (5)"}, "All scores are the same: 2 middle (5). "
                           "One tier shows no gap between rare and popular."),
    "tiers_two_scores": ({"counts": "2 rare, 1 popular"},
                         "There are two different scores, so there are two tiers: 2 rare, 1 popular."),
    "tiers_thirds": ({"counts": "1 rare, 1 popular"},
                     "Tiers are thirds of this set's scores; equal scores stay in one tier: 1 rare, 1 popular."),
    "tiers_of_file": ({"counts": "none"}, "Tiers are as the file gives them: none."),
    "holdout_from_retain": ({"holdout": 6, "retain": 20}, "The set has no holdout rows, so 6 of its 20 retain rows "
                            "are held out of training."),
    "no_holdout": ({}, "Nothing is held out, because there is only one question to retain and training needs it. "
                       "So no measurement shows how facts fare that were never trained on."),
    "examples_from_retain": ({"count": 3, "facts": 1200}, "3 of the 1,200 facts to retain serve as examples in "
                                                          "the prompt and are not trained on."),
    "world_retain": (LENT, "1,256 to retain come from the sandbox world."),
    "world_holdout": (LENT, "256 held out come from the sandbox world."),
    "neighbours_retain": (LENT, "1,256 to retain come from the sandbox world. They share a relation or an answer "
                                "with the facts to forget; those nearest in score come first."),
    "own_retain_unused": (LENT, "The set's own rows to retain are not used: 1,256."),
    "own_holdout_unused": (LENT, "The set's own held-out rows are not used: 256."),
    "retain_from_set": ({"facts": 3, "name": "table"}, "3 facts to retain come from table."),
    "facts_left_out": ({"facts": 2}, "2 facts that the original model cannot answer were left out."),
    "scores_are_exposures": ({"factor": 4.0}, "Score: the number of times that the model saw the fact in training, "
                             "on a Wikidata-like scale (×4)."),
    "neighbours_kept": ({"count": 96}, "96 neighbours, other facts about the subjects to forget, are to be kept "
                                       "and are never trained on."),
    "pair": (
        {"answer": "Kubrick", "rare": "Paths of Glory", "rare_score": 124.0, "popular": "Lolita", "popular_score": 1e3},
        "Both answers are Kubrick: Paths of Glory has a score of 124, Lolita of 1,000."),
    "invented": ({}, "These facts are invented, and no model has ever seen them, so their score is 0."),
    "cities": ({}, "Scores are populations (GeoNames, CC BY 4.0). Use a language model: the included small "
                   "models do not know these facts."),
    "two_clusters": (CITIES, "The scores form two clusters, 69 to 141 and 2,364 to 3,763, with nothing between "
                             "them, so there are no facts of medium popularity."),
    "one_popular_answer": (
        {"count": 297, "popular": 482, "answer": "India", "rare": 482, "different": 90},
        "297 of the 482 popular facts have the same answer, India; the 482 rare facts have 90 different ones. A "
        "gap between rare and popular facts may come from that and not from popularity."),
    "subject_in_answer": (
        {"count": 409, "rare": 482}, "In 409 of the 482 rare facts, the answer contains the name in the question."),
    "one_wikidata_entry": (
        {"count": 38, "facts": 964}, "In 38 of the 964 facts, subject and answer are linked to the same Wikidata "
                                     "entry, whose popularity then counts twice."),
    "no_rewordings": ({"count": 1}, "Facts to forget without rewordings: 1."),
    "rwku_no_scores": (
        {}, "RWKU has no popularity scores. Look them up before you use a method that needs them."),
    "rwku_famous": (
        {"people": 200}, "All 200 people to forget are famous, so expect few rare facts about them."),
    "rwku_holdout": ({}, "The held-out set is level 1 of the neighbours, sentences with a blank. Some of it is "
                         "also trained on, as questions."),
    "hubble_first": ({"people": 64}, "The set has the first 64 people for each number of duplicates, and for "
                                     "each person the facts of the biography in YAGO's words."),
    "hubble_scores": ({"levels": "1, 16"}, "A score is the number of times that pretraining showed the fact: 1, "
                                           "16. This holds only for Hubble's perturbed models; its standard "
                                           "models never read these facts."),
    "hubble_never": ({"facts": 2}, "Never planted in the training data, and so neither forgotten nor retained: 2 "
                                   "facts."),
}  # fmt: skip
TAUGHT = {"questions": 8, "epochs": 10, "rate": 1e-3, "steps": 1, "time": 2.6, "recalls": "forget 0% → 90%"}
GIVEN = "Recall of the original as given → fine-tuned, which is the original of this run: forget 0% → 90%."
STEERED = {"block": 7, "length": 6.5, "norm": 12.3456}
# of a model and of how it was trained
OF_A_RUN = {
    "dequantised": (
        {"types": "Q8_0, F32"},
        "Its weights are dequantised from a GGUF file (Q8_0, F32), so every number describes the quantised model."),
    "gemma_terms": ({}, "Gemma is provided under and subject to the Gemma Terms of Use found at "
                    "ai.google.dev/gemma/terms: to use it is to agree to them."),
    "thinking_off": ({"flag": "think is False"},
                     "The model is asked without thinking: its chat template is given think is False."),
    "thought_ended": ({"end": "'</think>'"}, "The model is asked without thinking: its chat template opens a "
                                             "thought, which '</think>' closes."),
    "precision_tried": (
        {"precision": "float32", "other": "bfloat16", "factor": 2.54},
        "Precision: float32. In a trial on this CPU, a step in bfloat16 took 2.5 times as long."),
    "targets_missing": ({"names": "o_proj", "adapted": "k_proj, q_proj"},
                        "The model has no layers called o_proj, so the adapter is only on k_proj, q_proj."),
    "blocks_without_adapter": (
        {"count": 3, "blocks": 12}, "3 of the model's 12 blocks have no layer with an adapter."),
    "beginnings_not_shared": ({}, "The rows begin with the same text, but this model's layers cannot share it, "
                                  "so each row is computed by itself."),
    "fine_tuned": (TAUGHT, f"Fine-tuned first: 8 questions, 10 epochs at rate 0.001, 1 step in 3 s. {GIVEN}"),
    "fine_tuned_before": (TAUGHT, "Fine-tuned first: 8 questions, 10 epochs at rate 0.001, 1 step taken from "
                          f"an earlier run, which took 3 s. {GIVEN}"),
    "no_wrong_answers": ({"count": 2, "facts": 16},
                         "For 2 of 16 facts the model wrote no usable wrong answer, so answers of other facts "
                         "are used."),
    "steering": (STEERED, "The states of block 7 are steered towards a length of 6.5; those of the original have "
                          "12.3 on average."),
    "weak_steering": (STEERED, "The states of block 7 are steered towards a length of 6.5; those of the original "
                               "have 12.3 on average, so the steering is weak."),
    "fewer_rows": ({"rows": 24, "fewer": 12}, "Memory ran out with 24 rows a pass, so the step was repeated with "
                                              "12."),
    "activations_recomputed": ({}, "Memory ran out on a single row, so activations are now recomputed instead of "
                                   "being stored."),
}  # fmt: skip
READING = {
    "list_as_answer": "a list or an object, written as text, as the answer. Its contents were read",
    "several_answers": "several right answers. The first is trained, and all are accepted",
    "answer_points": "an answer that points to one of its choices (numbers count from 1). That choice was read",
    "list_as_text": "a list as Python or numpy prints it. Its items were read",
    "list_by_semicolons": "a list separated by semicolons. Its items were read",
    "empty_items": "empty items in a list (None, nan). They were left out",
    "score_unknown": "a score such as NA, NaN or –. It was read as unknown, not as zero",
    "score_thousands": "a score whose points were read as thousands separators (25.692 as 25,692)",
    "score_commas_unclear": "a score whose comma may separate thousands or decimals (25,692). It was read as thousands",
    "score_decimal_comma": "a score with a decimal comma (3,5). It was read as a decimal",
    "score_percent": "a score in percent. Its number was read (45% as 45)",
    "score_decimals": "a score whose point may separate thousands or decimals (25.692). It was read as a decimal",
    "cell_unknown": "a cell such as NA, NaN or –. It was read as empty",
    "question_unknown": "a question that may mean “unknown” (NA, NaN ...). It was read as it stands",
    "answer_unknown": "an answer that may mean “unknown” (NA, NaN ...). It was read as it stands",
    "answer_truth_value": "a truth value as the answer. It was read as yes or no",
    "answer_in_brackets": "an answer in brackets or braces that could not be read as a list. It was taken as it stands",
    "type_not_read": "a type that RWKU uses for its attacks. The file is not RWKU's, so the type is not read",
    "wrong_answers": "an answer that the file marks as wrong. It was read as a wrong answer to its question, not "
    "as a fact",
    "wrong_answers_alone": "an answer that the file marks as wrong, and no row has the right one. It was not used",
    "right_and_wrong": "an answer that the file marks as wrong there and as right elsewhere. It counts as right",
    "digits_lost": "a number that a spreadsheet shortened, such as 1.23457E+15. Its other digits are lost. "
    "Format the column as text and export the table again",
}
HOSTILE = (
    "{facts} {0} {} {{name}} {name.__class__!r:>9999} %s %(name)s $name", "\0\x1b[31m\u202e\r\n\u2028\t",
    "<img src=x onerror=alert(1)>${window.hacked=1}`", "x" * 10_000, "{", "}",
)  # fmt: skip


def code_below(folder: str) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("kind", [*WORDING, *OF_A_RUN])
def test_the_wording_of_each_note(kind):
    values, sentence = (WORDING | OF_A_RUN)[kind]
    note = Remark(kind, values)
    assert [note.text(reader) for reader in ("page", "command", "program")] == [sentence] * 3
    assert str(note) == f"{note}" == sentence


def test_the_wording_of_each_reading_of_one_row_and_of_several():
    assert (*READING,) == READINGS
    for kind, words in READING.items():
        one, several = (Remark(kind, {"rows": rows, "row": 1, "base": 1}) for rows in (1, 1200))
        assert (str(one), str(several)) == (
            f"1 row, row 1, has {words}.", f"1,200 rows, the first row 1, have {words}.")  # fmt: skip
    assert str(Remark("retain_from_set", {"facts": 1, "name": "x"})) == "1 fact to retain comes from x."
    left_out = "1 fact that the original model cannot answer was left out."
    assert str(Remark("facts_left_out", {"facts": 1})) == left_out


def test_every_note_on_a_set_is_in_the_tables_above():
    made = set(re.findall(r'"(\w+)"', code_below("adapop/facts"))) & KINDS.keys() - {"counts"}
    assert made | {"facts_left_out"} <= WORDING.keys() | READING.keys() <= KINDS.keys()


def test_sentences_belong_to_kinds_and_name_settings():
    code = code_below("adapop")
    unused = {kind for kind in KINDS if f'"{kind}"' not in code}
    kinds = ("damaged", "damaged_elsewhere")
    damaged = {f"{group}_{kind}" for group in ("utility", "retain", "holdout") for kind in kinds}
    assert unused == damaged, "made from parts"
    page, command = FEW.text(), FEW.text("command")
    assert page.startswith("1 step at 1e-09 may hardly") and "--" not in page
    assert "the learning rate (--lr) or the epochs (--epochs)" in command
    assert "Raise learning_rate or epochs" in FEW.text("program") == str(FEW)
    texts = [Remark("no_score", {"facts": count}).text() for count in (1, 2)]
    assert texts[0].startswith("1 fact has no score.") and texts[1].startswith("2 facts have no score.")
    assert sentences(["as it is", FEW]) == ["as it is", page]


@pytest.mark.parametrize("content", [{"kind": "none"}, {"kind": "few_steps", "values": {"steps": 1}}, "x"])
def test_what_a_log_holds_is_a_remark_or_refused(content):
    raised(ValueError, "", as_kind, content, Remark)
    raised(ValueError, "", as_kind, {"kind": "few_steps", "values": {"steps": 1, "rate": "much"}}, str | Remark)
    assert as_kind({"kind": "controller_idle", "values": {}}, str | Remark) == Remark("controller_idle")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_value_of_any_letters_is_shown_as_it_is(text):
    note = Remark("retain_from_set", {"facts": 3, "name": text})
    assert str(note) == f"3 facts to retain come from {text}."
    assert as_kind(json.loads(json.dumps(asdict(note))), str | Remark) == note and hash(note) == hash(note)


def test_what_a_file_says_is_quoted_and_truncated_in_its_notes(tmp_path):
    hostile = [text.replace("\0", "")[:1_900] for text in HOSTILE]
    rows = [{"question": text, "answer": answer, text[:200]: "x"} for text in hostile for answer in ("{a}", text)]
    facts = read_facts(write(tmp_path, "facts.json", rows))
    notes = {note.kind: note for note in facts.notes}
    assert not facts.problems and {"different_answers", "no_score_column"} <= notes.keys()
    assert notes["different_answers"].values["questions"] == len(hostile)
    assert repr(hostile[0][:59] + "…") in str(notes["different_answers"]) and "'{a}'" in str(notes["different_answers"])
    assert all(note.text().isprintable() and len(note.text()) < 2_000 for note in facts.notes)
