"""One fact asked in every way: what came back stands first, broken replies are never green, replies are text."""

from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest

from adapop.probes.ask import Answer, Asked
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, Prompt
from adapop.runs.examples import example
from adapop.service.worker import Worker
from adapop.ui.access import probed_run
from adapop.ui.probe import choices, every_way, screen
from browsing import HOSTILE

PROMPTS = [Prompt("a", DIRECT, "Where is Rome?", "Italy"), Prompt("a", REWORDED, "Rome lies in?", "Italy")]
KNOWN = Answer("Italy", (), 1.0, 1, -0.1, (1,))


def asked(*replies: str) -> list[Asked]:
    answers = [replace(KNOWN, text=text, recall=float(text == "Italy"), gold_ranks=(90,)) for text in replies]
    pairs = zip(PROMPTS, answers)
    return [Asked(prompt.text, "Italy", prompt.text, KNOWN, answer) for prompt, answer in pairs]


@pytest.mark.parametrize(
    ("replies", "kind", "title"),
    [
        (("France", "Spain"), "gone", "Not brought back by these 2 questions"),
        (("France", "Italy"), "leak", "It came back in 1 of 2 ways"),
        (("", "so so so so so"), "broken", "Collapsed: 2 of 2 replies are no answers"),
        (("", "Spain"), "broken", "Collapsed: 1 of 2 replies are no answers"),
    ],
)
def test_the_headline_says_what_came_back_and_babble_is_never_green(replies, kind, title):
    table = every_way.table_of(example("adapop"), PROMPTS, asked(*replies))
    assert (table["kind"], table["title"]) == (kind, title)
    assert table["rows"][0]["kind"] == kind, "that first"


def test_replies_and_prompts_are_text():
    prompts = [replace(PROMPTS[0], text=HOSTILE)]
    table = every_way.table_of(example("adapop"), prompts, [replace(asked(HOSTILE)[0], prompt=HOSTILE)])
    (row,) = table["rows"]
    written = row["prompt"] + "".join(part["text"] for part in row["unlearned"])
    assert not {"<", "$", "{", "\\"} & set(written)


def test_replies_are_marked_where_they_differ():
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
