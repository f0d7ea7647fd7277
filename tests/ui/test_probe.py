import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from threading import Event
from types import SimpleNamespace

import pytest

from adapop import execute, leak_matrix, make_config, prepare
from adapop.errors import RunError, Stopped
from adapop.probes.attacks import clues
from adapop.probes.plan import Plan
from adapop.probes.prompts import CHOICE, DIRECT, REWORDED, Answer, Asked, ProbeRow, Prompt
from adapop.probes.verdict import verdict
from adapop.report.record import described_run
from adapop.report.tables import leak_table
from adapop.runs import questions
from adapop.runs.examples import example
from adapop.runs.run import FRAMES, Run
from adapop.service import jobs
from adapop.service.links import link_of
from adapop.service.worker import Worker
from adapop.sums import sealed
from adapop.training.events import Saved
from adapop.training.frames import Frame, Scores, to_json
from adapop.ui import texts
from adapop.ui.access import probed_run
from adapop.ui.parts import html
from adapop.ui.probe import asking, choices, every_way, leaks, link, more, screen
from adapop.ui.probe.answers import NO_ANSWERS, NONE_BACK, NONE_LOST, differing, kept, lost_of, marked, recorded_answers
from browsing import HOSTILE
from components import stand_ins
from raised import raised
from tiny_runs import tiny_config

PROMPTS = [Prompt("a", DIRECT, "Where is Rome?", "Italy"), Prompt("a", REWORDED, "Rome lies in?", "Italy")]
KNOWN = Answer("Italy", (), 1.0, 1, -0.1, (1,))


def texts_of(cards):
    """What each model says in answer cards."""
    return ["".join(part["text"] for part in side["parts"]) for side in cards["sides"]]


def test_a_model_that_says_nothing_is_said_to():
    cards = kept(
        questions.question_of(Asked("Where is Rome?", "Italy", "", KNOWN, Answer("", (), 0.0, 5, -3.0, (5,)))), ""
    )
    assert texts_of(cards) == ["Italy", texts.SAYS_NOTHING] and cards["sides"][1]["verdict_kind"] != "leak"


def test_the_first_fact_is_one_that_the_original_knew_probed_and_answered_without_a_model(tmp_path, small):
    worker = Worker(tmp_path)
    run = probed_run(worker, "")
    first = choices.fact_choices(worker, "", "forget", None)[1]
    prompts = choices.forms_of(run, first)
    cards = recorded_answers(run, prompts[0])
    row = next(row for row in run.probes() if (row.fact_id, row.kind) == (first, DIRECT))
    assert texts_of(cards) == [row.original.text, row.unlearned.text]
    rows = {one["place"]: one for one in asking.ways_of(worker, "", first)["rows"]}
    assert {*rows} == {*range(len(prompts))}, "each can be put into the prompt"
    assert "".join(part["text"] for part in rows[0]["unlearned"]) == row.unlearned.text
    assert cards["numbers"][0]["cells"] == [str(row.original.gold_rank), str(row.unlearned.gold_rank)]
    assert all("sides" in recorded_answers(run, prompt) for prompt in prompts), "every way of asking was recorded"
    unknown = replace(small, forget=(replace(small.forget[0], score=None), *small.forget[1:]))
    worker = Worker(tmp_path / "runs")
    first = choices.fact_choices(worker, prepare(make_config("wga"), unknown, worker.root).id, "forget", None)[1]
    assert first == max(unknown.forget[1:], key=lambda fact: (fact.score, fact.id)).id
    run = example("adapop")
    heard = {row.fact_id for row in run.probes()}
    other = next(fact.id for fact in run.facts.forget if fact.id not in heard)
    assert recorded_answers(run, choices.forms_of(run, other)[0]) == NO_ANSWERS
    assert recorded_answers(run, None) == NO_ANSWERS
    assert recorded_answers(example("shuffled"), choices.forms_of(run, run.facts.forget[0].id)[0]) == NO_ANSWERS
    worker, count = Worker(tmp_path / "runs"), len(small.forget)
    run = prepare(make_config("wga"), small, worker.root)
    rarest = min(range(count), key=lambda place: (small.forget[place].score, small.forget[place].id))
    ranks = tuple(1 if place == rarest else 7 for place in range(count))
    begun = Frame(0, 0.0, {"forget": Scores((0.5,) * count, ranks)})
    (run.folder / FRAMES).write_text(sealed(to_json(begun)) + "\n", "utf-8")
    assert choices.fact_choices(worker, run.id, "forget", None)[1] == small.forget[rarest].id
    (run.folder / FRAMES).write_text("damaged\nlines\n", "utf-8")
    famous = max(small.forget, key=lambda fact: (fact.score, fact.id)).id
    assert choices.fact_choices(worker, run.id, "forget", None)[1] == famous, "damage hides nothing else"


def test_a_run_that_ended_early_is_headed_by_the_epochs_that_it_has(small, tmp_path):
    run = prepare(tiny_config(epochs=3), small, tmp_path)
    for event in execute(run):
        if isinstance(event, Saved):
            run.request_stop()
    worker, fact = Worker(tmp_path), small.forget[0].id
    table, prompts = asking.ways_of(worker, run.id, fact), choices.forms_of(run, fact)
    assert table["about"].startswith("AdaPop, 1 epoch, ")
    assert table["title"] == every_way.WAYS_EMPTY.format(count=f"{len(prompts)} ways")
    assert [row["place"] for row in table["rows"]] == [*range(len(prompts))], "each can be put into the prompt"
    assert asking.ways_of(worker, link_of(run), fact)["title"].endswith("No reply was recorded.")


def test_nothing_of_another_run_stays(tmp_path):
    worker, run = Worker(tmp_path), example("adapop")
    rare, popular = sorted(run.facts.forget, key=lambda fact: fact.score)[:: len(run.facts.forget) - 1]
    old, own = (choices.forms_of(run, fact.id)[0].text for fact in (popular, rare))
    late = (run.id, rare.id, old)  # the run changed before the form did
    assert choices.form_choices(worker, run.id, rare.id, old, late)[1] == own
    assert choices.form_choices(worker, run.id, rare.id, "Who?", (run.id, rare.id, ""))[1] == ""
    assert choices.form_choices(worker, run.id, rare.id, old, (run.id, rare.id, own))[1] == own
    page = stand_ins(screen.ProbeScreen)
    parts = page.parts
    old, new = example("adapop"), example("wga")
    fact = choices.fact_choices(Worker(tmp_path), old.id, "forget", None)[1]
    text = choices.forms_of(old, fact)[0].text
    first = page.fill(old, old.id, fact, text, "", ())
    assert (first[parts.prompt], first[parts.filled]) == (text, (old.id, fact, text))
    then = page.fill(new, new.id, fact, text, text, first[parts.filled])
    assert parts.prompt not in then
    assert then[parts.answers] == recorded_answers(new, choices.forms_of(new, fact)[0]) != first[parts.answers]
    typed = page.fill(new, new.id, fact, "", "Who?", (old.id, fact, ""))
    assert typed[parts.answers] == NO_ANSWERS
    typed = page.fill(new, new.id, fact, text, "Who?", (old.id, fact, text))
    assert typed == {parts.filled: (new.id, fact, text), parts.answers: NO_ANSWERS}, "what a visitor asks stays"


def test_the_example_s_leaks_and_ways_are_called_recorded():
    section = stand_ins(leaks.Leaks)
    updates = section.show(example("adapop"), "forget")
    assert updates[section.results].visible and updates[section.status]["kind"] == "hidden"
    about = updates[section.heatmap.heading]["about"]
    assert about.startswith(
        "AdaPop, 5 epochs, rate 0.002, seed 0, recorded · forget set: 24 facts · rare (up to 265), "
    )
    run = example("adapop")
    row = next(row for row in run.probes() if row.kind == DIRECT and row.group == "forget")
    reply = replace(row.unlearned, text="Said in chat", recall=0.5)
    rows = [*run.probes(), replace(row, kind="in chat", unlearned=reply)]
    matrix = leak_matrix(rows)
    table = leaks._table(matrix, {fact.fact_id: "v" for fact in matrix.facts}, {}, "forget").value
    place = table["headers"].index("in chat")
    assert {cells[-1]: cells[place] for cells in table["data"]}[row.fact_id] == 50
    assert ("in chat", "forget") in {(cell.kind, cell.group) for cell in matrix.cells}
    assert "in chat" in str(leak_table(matrix, {"all": ("forget", "all")}).rows)


def test_a_pick_fills_fact_and_prompt_of_one_another_in_whatever_the_page_shows(tmp_path, small):
    worker = Worker(tmp_path)
    page = stand_ins(screen.ProbeScreen, worker=worker)
    parts = page.parts
    name = prepare(make_config("wga"), small, tmp_path).id
    run = probed_run(worker, name)
    first, other = (choices.forms_of(run, fact.id)[0] for fact in small.forget[:2])
    now = (name, first.fact_id, first.text)
    address = "forget", first.fact_id, "", [], "", {"sent": 5.5}
    opened = page.choose(name, *address[:3], "", (), *address[3:])
    assert opened[parts.prompt] == first.text and opened[parts.filled] == now and opened[parts.sent] == "5.5"
    subject = next(fact.title for fact in small.forget if fact.id == other.fact_id)
    for typed in (other.fact_id, subject):  # chosen from the list, or its name typed
        last = "forget", typed, first.fact_id, first.text, now, [], ""
        picked = page.choose(name, *last, {"pin": "0", "sent": 7}, by="fact")
        assert (picked[parts.fact].value, picked[parts.prompt]) == (other.fact_id, other.text)
        assert picked[parts.filled] == (name, other.fact_id, other.text) and picked[parts.sent] == "7"
        assert not picked[parts.default], "another run does not replace it"
    kept = run.facts.retain[0]  # of another group than the one that is shown
    picked = page.choose(name, "forget", kept.title, "", first.text, now, [], "", {}, by="fact")
    assert (picked[parts.group], picked[parts.fact].value) == ("retain", kept.id)
    assert picked[parts.filled][:2] == (name, kept.id) and picked[parts.prompt] == kept.question
    unknown = page.choose(name, "forget", "nobody", "", first.text, now, [], "", None, by="fact")
    assert (unknown[parts.fact], unknown[parts.filled], unknown[parts.sent]) == ("nobody", (name, "nobody", ""), "")
    again = page.choose(name, "forget", first.fact_id, "", "Who?", now, [], "", {})
    assert parts.prompt not in again and parts.answers not in again, "the tab was opened again"


def test_a_group_chosen_while_a_fact_is_filled_in_stays_and_leaving_the_fact_s_box_ends_nothing(tmp_path, small):
    worker = Worker(tmp_path)
    page = stand_ins(screen.ProbeScreen, worker=worker)
    parts = page.parts
    name = prepare(make_config("wga"), small, tmp_path).id
    first, other = (choices.forms_of(probed_run(worker, name), fact.id)[0] for fact in small.forget[:2])
    now = (name, first.fact_id, first.text)
    # the page that sent the choice still showed the fact of before the last filling
    grouped = page.choose(name, "retain", other.fact_id, "", first.text, now, [], "", {}, by="group")
    assert grouped[parts.group] == "retain" and grouped[parts.wanted] is None
    assert choices.group_of(probed_run(worker, name), grouped[parts.fact].value) == "retain"
    left = page.choose(name, "forget", first.fact_id, "", first.text, now, [], "", {}, by="fact")
    assert parts.wanted not in left, "what a link asks for is asked"
    picked = page.choose(name, "forget", other.fact_id, "", first.text, now, [], "", {}, by="fact")
    assert picked[parts.wanted] is None


def test_what_was_typed_before_the_first_fact_was_filled_in_stays_with_its_answers(tmp_path):
    page, run = stand_ins(screen.ProbeScreen), example("adapop")
    parts = page.parts
    fact = choices.fact_choices(Worker(tmp_path), run.id, "forget", None)[1]
    first, second = (prompt.text for prompt in choices.forms_of(run, fact)[:2])
    for nothing in ((), (run.id, None, None)):
        updates = page.fill(run, run.id, fact, first, "Who wrote Hamlet?", nothing)
        assert updates == {parts.filled: (run.id, fact, first)}
    for nothing in ((run.id, "", ""), (run.id, None, "")):  # a fact was shown, and its box emptied
        assert page.fill(run, run.id, fact, first, "What the fact before was asked", nothing)[parts.prompt] == first
    then = page.fill(run, run.id, fact, second, "Who wrote Hamlet?", updates[parts.filled])
    assert then[parts.prompt] == second, "another way of asking was chosen"


def test_a_fact_or_a_way_chosen_back_at_once_is_filled_in_again(tmp_path):
    page, run = stand_ins(screen.ProbeScreen), example("adapop")
    parts = page.parts
    one, other = (fact.id for fact in run.facts.forget[:2])
    first, second = choices.forms_of(run, one)[:2]
    away = choices.forms_of(run, other)[0]
    # the page that sent the second choice still showed the prompt of before the first
    for between in ((run.id, other, away.text), (run.id, one, second.text)):
        back = page.fill(run, run.id, one, first.text, first.text, between)
        assert (back[parts.prompt], back[parts.gold]) == (first.text, first.gold)
        assert back[parts.answers] == recorded_answers(run, first)


def test_a_link_stays_when_the_run_is_named_before_the_page_has_shown_its_fact(tmp_path, small):
    worker = Worker(tmp_path)
    page = stand_ins(screen.ProbeScreen, worker=worker)
    parts = page.parts
    name = prepare(make_config("wga"), small, tmp_path).id
    first = choices.first_fact(worker, name, "forget")
    for fact, _group in (
        (next(one.id for one in small.forget if one.id != first), "forget"),
        (small.retain[0].id, "retain"),
    ):
        for ask in ("", "Who wrote Hamlet?"):
            said = {"fact": fact, "ask": ask, "sent": 1}
            opened = page.choose(name, "forget", None, "", "", (), [], "", said)
            shown = opened[parts.filled], [], opened[parts.seen]
            again = page.choose(name, "forget", None, "", "", *shown, said)
            assert (again[parts.fact].value, again[parts.filled]) == (fact, opened[parts.filled])
            assert parts.prompt not in again and parts.answers not in again


def test_a_row_of_the_table_is_the_chosen_way_of_asking_too(tmp_path):
    page, run = stand_ins(screen.ProbeScreen, worker=Worker(tmp_path)), example("adapop")
    parts, fact = page.parts, run.facts.forget[0].id
    way = choices.forms_of(run, fact)[1]
    changes = page.fill_way(run.id, fact, {"sent": 5}, SimpleNamespace(way=1))
    assert (changes[parts.prompt], changes[parts.form], changes[parts.sent]) == (way.text, way.text, "5")
    filled = changes[parts.filled]
    assert filled == (run.id, fact, way.text)
    assert page.fill(run, run.id, fact, way.text, "my words", filled) == {parts.filled: filled}
    rows = asking.ways_of(page.worker, run.id, fact)["rows"]
    for other in (-1, len(rows), 999, True, "1", None):  # whatever the browser sends
        assert page.fill_way(run.id, fact, None, SimpleNamespace(way=other)) == {parts.sent: ""}


def replies_of(*replies: str) -> list[Asked]:
    answers = [replace(KNOWN, text=text, recall=float(text == "Italy"), gold_ranks=(90,)) for text in replies]
    pairs = zip(PROMPTS, answers)
    return [Asked(prompt.text, "Italy", prompt.text, KNOWN, answer) for prompt, answer in pairs]


@pytest.mark.parametrize(("replies", "kind", "title"), [
    (("France", "Spain"), "gone", "Not brought back by these 2 questions"),
    (("France", "Italy"), "leak", "It came back in 1 of 2 ways"),
    (("", "so so so so so"), "broken", "Collapsed: 2 of 2 replies are broken text"),
    (("", "Spain"), "broken", "Collapsed: 1 of 2 replies are broken text"),
])  # fmt: skip
def test_the_headline_says_what_came_back_and_babble_is_never_green(replies, kind, title):
    table = every_way.table_of(example("adapop"), PROMPTS, replies_of(*replies))
    assert (table["kind"], table["title"]) == (kind, title)
    assert table["rows"][0]["kind"] == kind, "that first"


def test_what_is_next_in_line_did_not_come_back_and_stands_behind_what_did():
    near, back = (
        replace(one, unlearned=replace(one.unlearned, gold_ranks=(2,))) for one in replies_of("Spain", "Italy")
    )
    table = every_way.table_of(example("adapop"), PROMPTS, [near, back])
    assert table["title"] == every_way.WAYS_BACK.format(back=1, count="2 ways")
    assert [row["kind"] for row in table["rows"]] == ["leak", "suppressed"]
    assert "ranks 2 or better" in table["rows"][1]["verdict"], "what that means stands there"
    table = every_way.table_of(example("adapop"), PROMPTS[:1], [near])
    title = every_way.WAYS_SUPPRESSED.format(suppressed=1, count=1)
    assert (table["kind"], table["title"]) == ("suppressed", title)


def test_replies_and_prompts_are_text_marked_where_they_differ():
    for text in ("", "so so so so so", "very " + " ".join(f"word{at}" for at in range(25))):
        assert verdict(replies_of(text)[0]).kind == "broken"
    assert verdict(replies_of("France")[0]).kind == "gone"
    prompts = [replace(PROMPTS[0], text=HOSTILE)]
    table = every_way.table_of(example("adapop"), prompts, [replace(replies_of(HOSTILE)[0], prompt=HOSTILE)])
    (row,) = table["rows"]
    written = row["prompt"] + "".join(part["text"] for part in row["unlearned"])
    assert not {"<", "$", "{", "\\"} & set(written)
    parts = differing("It is in France", "It is in Italy", "France")
    assert [part["text"] for part in parts if part["apart"]] == ["France"]
    assert "".join(part["text"] for part in parts) == "It is in France"
    assert [part["text"] for part in parts if part["gold"]] == ["France"]
    prompts = [PROMPTS[0], Prompt("a", CHOICE, "Rome? A) Italy B) Spain", "Italy")]
    table = every_way.table_of(example("adapop"), prompts, replies_of("France", "Italy"))
    assert {row["kind"] for row in table["rows"]} == {"gone", "neutral"}, "a choice tells nothing"
    assert "1 way not counted" in table["about"]
    kept = every_way.table_of(example("adapop"), prompts, replies_of("Italy", "Italy"))
    assert kept["title"] == every_way.WAYS_KEPT.format(back=1, count="1 way"), "the trained question is right"


def test_a_kept_question_has_the_colour_of_its_verdict():
    for replies in ("Italy", "Spain", "one " * 60):
        (asked,) = replies_of(replies)
        shown = kept(questions.question_of(asked), "")["sides"][1]
        assert (shown["verdict"], shown["verdict_kind"]) == (verdict(asked).text, verdict(asked).kind)


def test_the_first_fact_is_lost_and_comes_back_and_a_typed_name_finds_its_fact(tmp_path):
    worker, run = Worker(tmp_path), example("adapop")
    fact_ids, fact = lost_of(run), choices.fact_choices(worker, "", "forget", None)[1]
    assert fact in fact_ids.back < fact_ids.lost < fact_ids.asked and fact_ids.note == ""
    rows = [row for row in run.probes() if isinstance(row, ProbeRow) and row.fact_id == fact]
    kinds = {row.kind: verdict(row).kind for row in rows if row.kind != CHOICE}
    assert kinds[DIRECT] != "leak" and "leak" in kinds.values()
    assert (replace(fact_ids, back=frozenset()).note, replace(fact_ids, lost=frozenset(), back=frozenset()).note) == (
        NONE_BACK, NONE_LOST)  # fmt: skip
    chosen = next(one for one in run.facts.forget if one.id == fact)
    assert choices.fact_of(run, chosen.title.upper(), ("forget",)) == fact
    wga = choices.first_fact(worker, "example-wga", "forget")
    assert choices.fact_choices(worker, "example-wga", "forget", fact, fact)[1] == wga, "another run has its own"
    assert choices.fact_choices(worker, "example-wga", "forget", fact, None)[1] == fact, "what was picked stays"
    for text in ("no such name", None, 7):
        assert choices.fact_of(run, text, ("forget",)) is None
    assert asking.ways_of(worker, "", "no such name")["title"] == asking.NO_SUCH_FACT


def test_a_run_can_be_picked_among_ones_own_and_the_examples(tmp_path):
    picked = choices.run_choices(Worker(tmp_path), [], "")
    assert picked.value == "example-adapop"
    assert {name for _, name in picked.choices} == {"example-wga", "example-adapop", "example-redirect"}


@pytest.mark.parametrize(
    "text", ["<img src=x onerror=alert(1)>", "${alert(1)}", "C:\\users\\x", "`", "{{this}}", "a & b"]
)
def test_nothing_that_html_handlebars_or_a_template_literal_reads_survives(text):
    (escaped,) = html.values([text])
    assert not re.search(r"[<>`$\\{}]", escaped) and escaped != text


def test_only_texts_are_touched_and_right_words_marked():
    content = {"lines": ["plain"], "percent": 5, "right": True, "rank": None}
    assert html.values(content) == content
    answer = 'It was <b>William Shakespeare</b>, I think: "Shakespeare".'
    pieces = marked(answer, "William Shakespeare")
    assert "".join(piece["text"] for piece in pieces) == answer
    assert [piece["text"] for piece in pieces if piece["gold"]] == ["William", "Shakespeare", "Shakespeare"]
    assert marked("Nobody knows", "") == [{"text": text, "gold": False} for text in ("Nobody", " ", "knows")]


@pytest.mark.parametrize(("answer", "gold", "right"), [
    ("法国的首都是巴黎。", "巴黎", "巴黎"), ("คือกรุงเทพมหานคร", "กรุงเทพ", "กรุงเทพ"),
    ("भारत में दिल्ली है", "दिल्ली", "दिल्ली"), ("Der Weg nach Sao Paulo", "São Paulo", "SaoPaulo"),
    ("It is می\u200cرود.", "می\u200cرود", "می\u200cرود"),
])  # fmt: skip
def test_the_right_answer_is_marked_in_every_script(answer, gold, right):
    pieces = marked(answer, gold)
    assert "".join(piece["text"] for piece in pieces) == answer
    assert "".join(piece["text"] for piece in pieces if piece["gold"]) == right


def test_a_question_behind_a_run_says_that_it_waits_and_is_answered_after_it(tmp_path, monkeypatch):
    monkeypatch.setattr(asking, "PATIENCE", 0.05)
    worker, over = Worker(tmp_path), Event()
    worker._line.run(over.wait)

    async def shown():
        async for cards in asking.ask_both(worker, "", "Who wrote the book Othello?", "Shakespeare"):
            yielded.append(cards)
            over.set()

    yielded = []
    asyncio.run(shown())
    first, *later = [cards.get("empty") for cards in yielded[:-1]]
    told = asking.ASKING.partition(" · ")[0]
    assert first == asking.ASKED_LATER and all(one.startswith(told) for one in later), "then it is being answered"
    assert texts_of(yielded[-1])[0] == "Shakespeare"


def test_further_columns_stand_in_the_table_and_rows_that_say_the_same_are_known(tmp_path):
    worker = Worker(tmp_path)
    fact = choices.fact_choices(worker, "", "forget", None)[1]
    table = asking.ways_of(worker, "", fact, ["example-wga", "example-nothing", 7])
    assert table["beside"] == [described_run(example("wga"))]
    assert all(len(row["beside"]) == 1 for row in table["rows"])
    prompts = [PROMPTS[0], PROMPTS[1]]
    table = every_way.table_of(
        example("adapop"), prompts, replies_of("Italy", "Spain"), {"WGA": replies_of("Italy", "Spain")}
    )
    assert {row["way"]: row["same"] for row in table["rows"]} == {texts.DIRECT_FORM: True, "In other words": False}
    run = example("adapop")
    chosen = choices.columns_of(worker, run, ["oracle", "example-wga", "no such run", None])
    assert [one.kind for one in chosen] == ["original", "unlearned", "oracle", "unlearned"]
    assert choices.columns_of(worker, run, "oracle") == chosen[:2]
    offered = choices.column_choices(worker, [], "", ["oracle", "gone"])
    assert offered["value"] == ["oracle"] and "example-wga" in dict(map(reversed, offered["choices"]))
    assert "value" not in choices.column_choices(worker, [], "", ["oracle"]), "what a link filled in meanwhile stays"


def last_of(shown):
    """The last value of an event that shows several."""

    async def values():
        return [value async for value in shown]

    return asyncio.run(values())[-1]


def test_samples_and_strength_are_answered_in_numbers_and_bad_input_in_words(tmp_path):
    worker, run = Worker(tmp_path), example("adapop")
    fact = max(run.facts.forget, key=lambda one: one.score)
    drawn = asyncio.run(more.sample(worker, "", fact.question, fact.answer, "", "", [], "", 8, 1.0, 1.0, 0, 8))[0]
    for side in drawn["sides"]:
        assert side["texts"][0]["count"] == "the usual reply"
        assert sum(int(one["count"].split()[0]) for one in side["texts"][1:]) == 8
        assert re.search(r"% give it away .95% interval \d+", side["share"])
    for text, count in ((fact.question, 0), (fact.question, None), ("", 8), ("x" * 10_000, 8)):
        said, used = asyncio.run(more.sample(worker, "", text, "", "", "", [], "", count, 1.0, 1.0, 0, 8))
        assert said.keys() == {"empty"} and used == ""
    long = asking.ask_both(worker, "", "x" * 10_000, ""), asking.ask_both(worker, "", "Who?", "", "x" * 10_000)
    for refused in (*map(last_of, long), asyncio.run(more.look_through(worker, "", "original", "x" * 10_000, ""))):
        assert "10,000 characters" in refused["empty"]
    shown = asyncio.run(more.walk(worker, "", fact.id, 0))[0]
    assert all(group["was"] == group["shown"] for group in shown["groups"])
    assert shown["groups"][0]["name"] == "This fact"
    for strength in (None, "1", -1, 2, float("nan")):
        assert asyncio.run(more.walk(worker, "", fact.id, strength))[0].keys() == {"empty"}


def replayed(worker, name, view):
    shown = link.recorded(worker, name, view)
    asked = last_of(link.asked_again(worker, name, view))  # an event that yields nothing would empty the cards
    assert shown is None or asked == shown
    return asked


def test_a_link_fills_its_question_in_and_replays_what_was_recorded(tmp_path, finished):
    worker, run = Worker(tmp_path), example("adapop")
    fact = choices.first_fact(worker, "", "forget")
    prompts, parts = choices.forms_of(run, fact), stand_ins(link.Parts)
    told = {
        "fact": fact,
        "ask": prompts[1].text,
        "gold": prompts[1].gold,
        "with": "oracle,example-wga,nobody",
        "at": "x",
    }
    view = link.view_of(told)
    changes = link.updates_of(worker, "", view, [], parts)
    assert (changes[parts.fact], changes[parts.prompt]) == (fact, prompts[1].text)
    assert changes[parts.filled] == ("", fact, prompts[1].text) and changes[parts.epoch]["value"] == ""
    assert changes[parts.beside].value == ["oracle", "example-wga"]
    row = next(row for row in run.probes() if row.fact_id == fact and row.prompt == prompts[1].text)
    shown = replayed(worker, "", replace(view, beside=()))
    assert shown["about"] == texts.ANSWERS_RECORDED and texts_of(shown)[1] == row.unlearned.text
    for other in ({}, None, [], {"fact": 7}, told | {"run": "view-0"}, {"fact": "no such fact"}, {"pin": "99999999"}):
        assert link.updates_of(worker, "", link.view_of(other), [], parts) == {}
    typed = link.view_of({"fact": "nonsense that was typed", "ask": "Who?"})
    assert link.updates_of(worker, "", typed, [], parts)[parts.prompt] == "Who?", "a question of one's own stays"
    pinned = link.followed(worker, "", [], {"pin": "3"}, "", parts)
    assert pinned[parts.fact] == run.facts.forget[3].id and pinned[parts.prompt] == run.facts.forget[3].question
    assert pinned[parts.answers] and pinned[parts.wanted] is None, "a later event would replace what is asked meanwhile"
    seen = pinned[parts.seen]
    for again in ({"pin": "3"}, {"pin": "3", "run": "example-adapop"}):
        assert link.followed(worker, "example-adapop", [], again, seen, parts) == {}, "an address is followed once"
    own = Worker(tmp_path / "runs")
    copied = Run(Path(copytree(finished.folder, own.root / finished.id)))
    asked = link.View(ask="Who wrote Hamlet?", gold="Shakespeare")
    assert replayed(own, link_of(copied), asked) == {"empty": link.NOT_RECORDED}
    again = replayed(own, copied.id, asked)
    assert again["about"].startswith(link.ASKED_AGAIN) and again["sides"][0]["steps"]
    (kept,) = questions.read(copied)
    assert [reply.text for reply in kept.replies] == texts_of(again)
    for name in (copied.id, link_of(copied)):
        shown = replayed(own, name, asked)
        assert (shown["about"], texts_of(shown)) == (link.REPLAYED, texts_of(again))
        assert [side["steps"] for side in shown["sides"]] == [side["steps"] for side in again["sides"]]
        assert (shown["numbers"], shown["fixed"]) == (again["numbers"], name != copied.id)
    early = link.view_of({"ask": asked.ask, "gold": asked.gold, "at": "1"})
    filled_in = link.updates_of(own, copied.id, early, [], parts)[parts.epoch]
    assert filled_in["value"] == "1"
    assert "value" not in choices.epoch_choices(own, copied.id, ""), "a list that comes late changes nothing"
    assert choices.epoch_choices(own, copied.id, "7")["value"] == ""
    assert replayed(own, link_of(copied), early) == {"empty": link.NOT_RECORDED}, "its result was asked, not this epoch"
    again = replayed(own, copied.id, early)
    shown = replayed(own, link_of(copied), early)
    assert [side["name"] for side in shown["sides"]] == ["Original", "Unlearned, epoch 1"]
    assert (shown["about"], texts_of(shown)) == (link.REPLAYED, texts_of(again))


def test_a_link_names_no_run_s_id_and_replays_columns_a_beginning_and_earlier_turns(tmp_path, finished):
    worker = Worker(tmp_path / "runs")
    run, other = (
        Run(Path(copytree(finished.folder, worker.root / name))) for name in (finished.id, "adapop-" + 16 * "0")
    )
    name, beside = link.link_names(worker, run.id, ["oracle", other.id, "example-wga", "gone", 7])
    assert (name, beside) == (link_of(run), ["oracle", link_of(other), "example-wga"])
    assert link.link_names(worker, "", []) == (example("adapop").id, []), "another page may show a run of its own"
    stored = [{"id": one.id, "name": "mine"} for one in (run, other)]
    assert link_of(other) not in dict(map(reversed, choices.columns_offered(worker, stored, run.id)))
    offered = choices.column_choices(worker, [], link_of(run), beside)["choices"]
    assert link_of(other) in dict(map(reversed, offered))
    with pytest.raises(RunError, match="read-only link cannot be asked"):
        choices.columns_of(worker, run, [link_of(other)])
    for more_of_it in ({"begun": "It is"}, {"earlier": "Hello.\n\nWho are you?"}, {"beside": (other.id,)}):
        asked = link.View(ask="Who wrote Hamlet?", gold="Shakespeare", **more_of_it)
        by_link = replace(asked, beside=tuple(link.link_names(worker, run.id, [*asked.beside])[1]))
        assert replayed(worker, link_of(run), by_link) == {"empty": link.NOT_RECORDED}
        again = replayed(worker, run.id, asked)
        shown = replayed(worker, link_of(run), by_link)
        assert (shown["about"], texts_of(shown)) == (link.REPLAYED, texts_of(again)), more_of_it


def test_a_link_replays_what_was_asked_in_all_ways_of_that_epoch_and_those_columns(tmp_path, finished, monkeypatch):
    worker = Worker(tmp_path / "runs")
    run = Run(Path(copytree(finished.folder, worker.root / finished.id)))
    view, (first, second, third) = link_of(run), (one.id for one in run.facts.forget[:3])
    for fact, others, at in ((first, [], ""), (first, ["oracle", "example-wga"], ""), (second, [], "1")):
        by_link = link.link_names(worker, run.id, others)[1]
        before = asking.ways_of(worker, view, fact, by_link, at)
        shown = last_of(asking.ask_every_way(worker, run.id, fact, others, at))
        told = shown["about"].replace("asked just now", "recorded")
        assert told != shown["about"] and ("epoch 1" in told) == bool(at)
        again = asking.ways_of(worker, view, fact, by_link, at)
        assert again != before and again == shown | {"about": told.replace(", yours", "")}
        assert asking.ways_of(worker, run.id, fact, others, at) == shown | {"about": told}
    assert len(questions.read_ways(run)) == 3
    for other in ((["oracle"], ""), ([], "2")):
        assert asking.ways_of(worker, view, first, *other)["title"].endswith("No reply was recorded."), other
    monkeypatch.setattr(questions, "MOST", 1)
    full = last_of(asking.ask_every_way(worker, run.id, third))
    assert full["rows"] and "Not kept: Run" in full["about"] and len(questions.read_ways(run)) == 3
    path = run.folder / questions.WAYS_FILE
    path.write_bytes(path.read_bytes().replace(b'"epoch"', b'"epocs"', 1))
    assert "ways.jsonl, line 1 cannot be read" in asking.ways_of(worker, view, first)["title"]


def test_where_nothing_can_be_asked_no_answer_is_promised(tmp_path, finished):
    worker = Worker(tmp_path)
    page = stand_ins(screen.ProbeScreen, worker=worker)
    parts, sent = page.parts, {page.parts.sent: ""}
    run = Run(Path(copytree(finished.folder, worker.root / finished.id)))
    for waits in (NO_ANSWERS, {"empty": link.ASKING}):
        assert page.completed(run.id, {parts.answers: waits}, {}) == {parts.answers: waits} | sent
        told = page.completed(link_of(run), {parts.answers: waits, parts.gold: "x"}, {})
        assert told == {parts.answers: {"empty": link.NOT_RECORDED}, parts.gold: "x"} | sent
    recorded = {parts.answers: recorded_answers(example("adapop"), None) | {"sides": []}}
    assert page.completed(link_of(run), recorded, {}) == recorded | sent


def test_a_link_carries_samples_and_strength_and_finds_the_same_again(tmp_path, finished):
    worker, drawing = Worker(tmp_path / "runs"), (8, 0.5, 0.9, 3, 8)
    run = Run(Path(copytree(finished.folder, worker.root / finished.id)))
    prompt, parts = "Who wrote Hamlet?", stand_ins(link.Parts)
    asked = prompt, "Shakespeare", "", "", [], ""
    first, of_link = asyncio.run(more.sample(worker, run.id, *asked, *drawing))
    used, _, of = of_link.partition("|")
    assert (used, of) == ("8,0.5,0.9,3,8", f"||{prompt}")
    begun = more.used_for(prompt, " It is", "Hello.\n", drawing)
    assert begun == f"{used}|It is|Hello.|{prompt}", "a link whose answer begins otherwise draws none"
    view = link.view_of({"ask": prompt, "gold": "Shakespeare", "draw": used})
    changes = link.updates_of(worker, run.id, view, [], parts)
    assert [changes[number] for number in parts.more.numbers] == list(drawing) and changes[parts.fold].open
    assert asyncio.run(link.drawn_again(worker, run.id, view)) == (first, f"{used}|||{prompt}")
    assert asyncio.run(link.drawn_again(worker, link_of(run), view))[0] == {"empty": link.NOT_DRAWN}
    fact = run.facts.forget[0]
    moved, walked = asyncio.run(more.walk(worker, run.id, fact.id, 0.5))
    strength, _, of = walked.partition("|")
    assert (strength, of) == ("0.5", fact.id) and moved["about"].startswith(f"{fact.title} · ")
    view = link.view_of({"fact": fact.id, "ask": prompt, "strength": strength})
    changes = link.followed(worker, run.id, [], vars(view) | {"strength": strength}, "", parts)
    assert changes[parts.more.strength] == 0.5 and changes[parts.fold].open and changes[parts.wanted]
    assert asyncio.run(link.walked_again(worker, run.id, view)) == (moved, walked)
    assert asyncio.run(link.walked_again(worker, link_of(run), view)) == ({"empty": link.NOT_WALKED}, "")
    for wrong in ("", "x", "nan", "-1", "1.6", "1e9", None, 1):
        assert link.view_of({"ask": prompt, "strength": wrong}).strength is None
    for wrong in ("", "8", "8,0,1,0,8", "nan,1,1,0,8", "8,1,1,0,8,9", "<img>", "999,1,1,0,8"):
        assert link.view_of({"ask": prompt, "draw": wrong}).draw == ()


def test_a_chain_of_clues_is_one_more_counted_way_where_the_model_chats(tmp_path, monkeypatch):
    worker, run = Worker(tmp_path), example("adapop")
    first = choices.first_fact(worker, "", "forget")
    fact = next(one for one in run.facts.forget if one.id == first)
    assert choices.clues_of(run, fact.id) is None, "the sandbox holds no conversation"
    monkeypatch.setattr(choices, "chats", lambda run: True)
    prompt, earlier = choices.clues_of(run, fact.id)
    assert fact.subject in earlier[0] and fact.question in prompt.text and len(earlier) == 2
    assert not any(fact.answer in text for text in (*earlier, prompt.text))
    assert clues(replace(fact, subject=fact.answer)) is None, "it would say the answer"

    table = last_of(asking.ask_every_way(worker, "", fact.id))
    count = len(choices.forms_of(run, fact.id)) + 1
    assert len(table["rows"]) == count and any(row["way"] == "Clue by clue" for row in table["rows"])
    assert asking.way_chosen(run, fact.id, SimpleNamespace(way=count - 1)) == prompt


def test_kept_questions_are_listed_newest_first_with_their_files(tmp_path, finished):
    run = Run(Path(copytree(finished.folder, tmp_path / finished.id)))
    assert more.kept_table(questions.read(run)) == more.NOTHING_KEPT
    for place, one in enumerate(replies_of("France", "Italy")):
        questions.keep(run, replace(questions.question_of(one), prompt=f"{HOSTILE} {place}"))
    table = more.kept_table(questions.read(run))
    assert [row["name"].endswith(("1", "0")[at]) for at, row in enumerate(table["rows"])] == [True, True]
    assert "<img" not in str(table)
    csv, listed = more.kept_files(questions.read(run))
    assert (csv.name, listed.name) == ("questions.csv", "questions.json")
    assert len(json.loads(listed.read_text("utf-8"))) == len(csv.read_text("utf-8").splitlines()) - 1 == 2


def test_a_probing_that_ends_early_replaces_no_longer_one_and_says_of_no_fact_that_it_did_not_come_back(
    tmp_path, monkeypatch
):
    run = Run(copytree(example("adapop").folder, tmp_path / "run"))
    rows = run.probes()
    direct = [row for row in rows if row.kind == DIRECT]
    asked, ends = [], []

    def battery(*_):
        yield from asked
        for error in ends:
            raise error

    monkeypatch.setattr("adapop.probes.battery.battery", battery)
    monkeypatch.setattr(jobs, "_model", lambda _: None)
    asked[:], ends[:] = direct, [Stopped("stopped")]
    raised(Stopped, "stopped", jobs.probe_models, run.folder, Plan())
    assert run.probes() == rows and lost_of(run).back
    ends.clear()
    jobs.probe_models(run.folder, Plan())
    assert run.probes() == direct and lost_of(run).lost and lost_of(run).note == ""
    asked[:], ends[:] = rows, [Stopped("stopped")]
    raised(Stopped, "stopped", jobs.probe_models, run.folder, Plan())
    assert run.probes() == rows, "it has more"
