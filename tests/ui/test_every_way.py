from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest

from adapop.probes.ask import Answer, Asked
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, ProbeRow, Prompt
from adapop.probes.verdict import verdict
from adapop.runs.examples import example
from adapop.service.worker import Worker
from adapop.ui import texts
from adapop.ui.access import probed_run
from adapop.ui.probe import choices, every_way, screen
from adapop.ui.probe.answers import lost_of
from browsing import HOSTILE

PROMPTS = [Prompt("a", DIRECT, "Where is Rome?", "Italy"), Prompt("a", REWORDED, "Rome lies in?", "Italy")]
KNOWN = Answer("Italy", (), 1.0, 1, -0.1, (1,))


def asked(*replies: str) -> list[Asked]:
    answers = [replace(KNOWN, text=text, recall=float(text == "Italy"), gold_ranks=(90,)) for text in replies]
    pairs = zip(PROMPTS, answers)
    return [Asked(prompt.text, "Italy", prompt.text, KNOWN, answer) for prompt, answer in pairs]


@pytest.mark.parametrize(("replies", "kind", "title"), [
    (("France", "Spain"), "gone", "Not brought back by these 2 questions"),
    (("France", "Italy"), "leak", "It came back in 1 of 2 ways"),
    (("", "so so so so so"), "broken", "Collapsed: 2 of 2 replies are no answers"),
    (("", "Spain"), "broken", "Collapsed: 1 of 2 replies are no answers"),
])  # fmt: skip
def test_the_headline_says_what_came_back_and_babble_is_never_green(replies, kind, title):
    table = every_way.table_of(example("adapop"), PROMPTS, asked(*replies))
    assert (table["kind"], table["title"]) == (kind, title)
    assert table["rows"][0]["kind"] == kind, "that first"


def test_what_is_next_in_line_did_not_come_back_and_stands_behind_what_did():
    near, back = (replace(one, unlearned=replace(one.unlearned, gold_ranks=(2,))) for one in asked("Spain", "Italy"))
    table = every_way.table_of(example("adapop"), PROMPTS, [near, back])
    assert table["title"] == "It came back in 1 of 2 ways"
    assert [row["kind"] for row in table["rows"]] == ["leak", "suppressed"]
    assert "number 2" in table["rows"][1]["verdict"], "what that means stands there"
    table = every_way.table_of(example("adapop"), PROMPTS[:1], [near])
    assert (table["kind"], table["title"]) == ("suppressed", "Never said, but next in line in 1 of 1 ways")


def test_replies_and_prompts_are_text_marked_where_they_differ():
    for text in ("", "so so so so so", "very " + " ".join(f"word{at}" for at in range(25))):
        assert verdict(asked(text)[0]).kind == "broken"
    assert verdict(asked("France")[0]).kind == "gone"
    prompts = [replace(PROMPTS[0], text=HOSTILE)]
    table = every_way.table_of(example("adapop"), prompts, [replace(asked(HOSTILE)[0], prompt=HOSTILE)])
    (row,) = table["rows"]
    written = row["prompt"] + "".join(part["text"] for part in row["unlearned"])
    assert not {"<", "$", "{", "\\"} & set(written)
    parts = every_way.differing("It is in France", "It is in Italy", "France")
    assert [part["text"] for part in parts if part["apart"]] == ["France"]
    assert "".join(part["text"] for part in parts) == "It is in France"
    assert [part["text"] for part in parts if part["gold"]] == ["France"]
    prompts = [PROMPTS[0], Prompt("a", CHOICE, "Rome? A) Italy B) Spain", "Italy")]
    table = every_way.table_of(example("adapop"), prompts, asked("France", "Italy"))
    assert {row["kind"] for row in table["rows"]} == {"gone", "neutral"}, "a choice tells nothing"


def test_probe_shows_recorded_replies_at_once_and_a_row_can_be_changed(tmp_path):
    worker = Worker(tmp_path)
    run = probed_run(worker, "")
    fact = choices.fact_choices(worker, "", "forget", None).value
    prompts = choices.forms_of(run, fact)
    table = screen.ways_of(worker, "", fact)
    assert {row["place"] for row in table["rows"]} == {*range(len(prompts))}
    direct = next(row for row in run.probes() if (row.fact_id, row.kind) == (fact, DIRECT))
    first = next(row for row in table["rows"] if row["place"] == 0)
    assert "".join(part["text"] for part in first["unlearned"]) == direct.unlearned.text
    text, gold, _ = screen.way_chosen(worker, "", fact, SimpleNamespace(way=1))
    assert (text, gold) == (prompts[1].text, prompts[1].gold)
    for other in (-1, len(prompts), True, "1", None):
        assert screen.way_chosen(worker, "", fact, SimpleNamespace(way=other))[0] == gr.skip()


def test_the_first_fact_is_lost_and_comes_back_and_a_typed_name_finds_its_fact(tmp_path):
    worker, run = Worker(tmp_path), example("adapop")
    seen, fact = lost_of(run), choices.fact_choices(worker, "", "forget", None).value
    assert fact in seen.back < seen.lost < seen.asked and seen.note == ""
    rows = [row for row in run.probes() if isinstance(row, ProbeRow) and row.fact_id == fact]
    kinds = {row.kind: verdict(row).kind for row in rows if row.kind != CHOICE}
    assert kinds[DIRECT] != "leak" and "leak" in kinds.values()
    assert (replace(seen, back=frozenset()).note, replace(seen, lost=frozenset(), back=frozenset()).note) == (
        texts.NONE_BACK, texts.NONE_LOST)  # fmt: skip
    chosen = next(one for one in run.facts.forget if one.id == fact)
    assert choices.typed(worker, "", chosen.title.upper(), "forget") == fact
    wga = choices.first_fact(worker, "example-wga", "forget")
    assert choices.offered(worker, "example-wga", "forget", fact, fact)[1] == wga, "another run has its own"
    assert choices.offered(worker, "example-wga", "forget", fact, None)[0].value == fact, "what was picked stays"
    for text in (fact, "no such name", None, 7):
        assert choices.typed(worker, "", text, "forget") == gr.skip()
    assert screen.ways_of(worker, "", "no such name")["title"] == texts.NO_SUCH_FACT


def test_a_run_can_be_picked_among_ones_own_and_the_examples(tmp_path):
    picked = choices.run_choices(Worker(tmp_path), [], "")
    assert picked.value == "example-adapop"
    assert {name for _, name in picked.choices} == {"example-wga", "example-adapop", "example-redirect"}
