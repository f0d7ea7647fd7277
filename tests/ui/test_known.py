from dataclasses import replace

import gradio as gr

from adapop.config.presets import make_config
from adapop.facts.catalog import load_facts
from adapop.facts.fact import SANDBOX, FactSet
from adapop.facts.files import read_table
from adapop.facts.forms import guessed
from adapop.facts.retain import with_retain_rows
from adapop.facts.world import sandbox_facts
from adapop.model.catalogue import MODELS
from adapop.runs.known import known_facts
from adapop.runs.preflight import preflight
from adapop.service.worker import Worker
from adapop.ui.facts import known, upload
from adapop.ui.run import launch
from adapop.ui.run.settings import language_model
from components import run_values
from families import saved

HEADER = "question,answer,score\n"
OWN = "".join(f"Who founded the town of Abc{i}?,Founder {i},{10 * 2**i}\n" for i in range(8))


def shown(facts: FactSet, share: float, mean: float, **changes) -> tuple:
    """What the check says of a set whose first facts the model answers, and which buttons it shows."""
    values = run_values(**changes)
    count = round(share * len(facts.forget))
    recall = {fact.id: float(place < count) for place, fact in enumerate(facts.forget)}
    of_questions = {(fact.id, fact.question): recall[fact.id] for fact in facts.forget}
    answers = known.Answered(known._asked_as(facts, values), of_questions, mean, ())
    assert known._recall_now(facts, answers, values) == recall
    words, *buttons = known._summary_updates(facts, recall, answers, values)
    return words["lines"], [button.visible for button in buttons]


def test_who_has_facts_that_the_model_does_not_know_gets_ways_out(tmp_path):
    facts = with_retain_rows(upload_of(tmp_path, HEADER + OWN), SANDBOX)
    lines, buttons = shown(facts, 0.0, 0.0)
    assert "answers 0 of 8 facts" in lines[0] and "Teach it the facts first" in lines[-1]
    assert buttons == [False, True, True], "none to leave in; another model, or teaching"
    lines, buttons = shown(facts, 0.5, 0.75)
    assert "its recall is 75%" in lines[0] and buttons == [True, True, True]
    lines, buttons = shown(facts, 0.5, 0.5, model="smollm2")
    assert "recall" not in lines[0] and buttons == [True, False, True], "it is a language model"
    lines, buttons = shown(facts, 0.5, 0.5, start="sft")
    assert "fine-tunes" in lines[-1] and buttons == [False, False, False]
    assert shown(facts, 1.0, 1.0) == ([lines_of_all(8)], [False, False, False])


def lines_of_all(count: int) -> str:
    return f"Asked directly, the original model (sandbox) answers {count} of {count} facts."


def test_what_a_model_knows_is_asked_again_where_other_facts_lend_the_examples(tmp_path):
    facts = with_retain_rows(upload_of(tmp_path, HEADER + OWN), SANDBOX)
    values = run_values(model="smollm2")
    recall = {(fact.id, fact.question): 1.0 for fact in facts.forget}
    answers = known.Answered(known._asked_as(facts, values), recall, 1.0, ())
    assert len(known._recall_now(facts, answers, values)) == 8
    fewer = replace(facts, forget=facts.forget[:3])
    assert len(known._recall_now(fewer, answers, values)) == 3
    assert known._recall_now(replace(facts, retain=facts.retain[1:]), answers, values) == {}
    assert known._recall_now(facts, answers, run_values(model="smollm2", seed=1)) == {}


def test_an_answer_counts_in_full_as_known_and_in_part_in_the_tables(sandbox):
    first = sandbox.forget[0]
    half = replace(first, id="half", answer=f"{first.answer} and somebody else altogether")
    facts = replace(sandbox, forget=(first, half))
    answers = known_facts(make_config(), facts)
    assert answers.recall[first.id] == 1.0 and answers.recall["half"] < 0.5
    assert 0.5 < answers.mean < 1.0


def upload_of(tmp_path, text: str) -> FactSet:
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    table = read_table(path)
    return table.facts(columns=guessed(table.columns))


def test_a_file_of_questions_and_answers_alone_can_run_on_every_model(tmp_path):
    bare = "question,answer\n" + "".join(f"{line.rsplit(',', 1)[0]}\n" for line in OWN.splitlines())
    template = upload._template_text().splitlines()
    own = [line.split(",") for line in OWN.splitlines()]
    replaced = "\n".join([template[0], *(",".join([*cells, "forget", "", "", "", ""]) for cells in own)])
    language = str(saved("llama", tmp_path / "model"))
    for text, method in ((HEADER + OWN, "adapop"), (bare, "wga"), (replaced, "adapop")):
        facts = with_retain_rows(upload_of(tmp_path, text), SANDBOX)
        assert len(facts.forget) == 8 and not facts.problems
        for model, doubt in ((SANDBOX, "not_its_world"), (language, "cities_retained")):
            plan = preflight(facts, make_config(method, model=model, facts=facts.name))
            assert plan.readiness == "ready" and doubt in [one.kind for one in plan.doubts], (method, model)
    path = tmp_path / "template.csv"
    path.write_text("\n".join(template), encoding="utf-8")
    as_it_is = preflight(load_facts(path), make_config())
    assert as_it_is.readiness == "ready" and "not_its_world" not in [one.kind for one in as_it_is.doubts]


def test_run_offers_another_model_and_teaching_before_it_starts_in_vain(tmp_path, monkeypatch):
    def buttons(facts: FactSet, **changes) -> list[tuple[str, bool]]:
        values = run_values(**changes)
        updates = launch.look(Worker(tmp_path), "", launch.UNSEEN, "", [], {}, facts, "error", None, *values)
        return [one.visible for one in updates[8:10] if isinstance(one, gr.Button)]

    own = with_retain_rows(upload_of(tmp_path, HEADER + OWN), SANDBOX)
    assert language_model() in MODELS
    assert buttons(own) == [True, True] and buttons(sandbox_facts()) == [False, False]
    assert buttons(own, start="sft") == [False, False] == buttons(own, model="smollm2")
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    assert buttons(own)[1]
