from dataclasses import replace

from adapop.config.presets import make_config
from adapop.probes.matrix import leak_matrix
from adapop.probes.prompts import DIRECT
from adapop.report.tables import leak_table
from adapop.runs.examples import example
from adapop.runs.execute import prepare
from adapop.runs.run import FRAMES
from adapop.service.worker import Worker
from adapop.training.frames import Frame, Scores, to_json
from adapop.ui.access import probed_run
from adapop.ui.probe import choices, leaks, screen
from adapop.ui.probe.answers import NO_ANSWERS, recorded_answers
from components import stand_ins


def said(cards):
    """What each model says in answer cards."""
    return ["".join(part["text"] for part in side["parts"]) for side in cards["sides"]]


def test_the_first_fact_is_one_that_the_original_knew_probed_and_answered_without_a_model(tmp_path, small):
    worker = Worker(tmp_path)
    run = probed_run(worker, "")
    first = choices.fact_choices(worker, "", "forget", None).value
    asked = choices.forms_of(run, first)
    cards = recorded_answers(run, asked[0])
    row = next(row for row in run.probes() if (row.fact_id, row.kind) == (first, DIRECT))
    assert said(cards) == [row.original.text, row.unlearned.text]
    assert cards["numbers"][0]["cells"] == [str(row.original.gold_rank), str(row.unlearned.gold_rank)]
    assert all("sides" in recorded_answers(run, prompt) for prompt in asked), "every way of asking was recorded"
    unknown = replace(small, forget=(replace(small.forget[0], score=None), *small.forget[1:]))
    worker = Worker(tmp_path / "runs")
    first = choices.fact_choices(worker, prepare(make_config("wga"), unknown, worker.root).id, "forget", None).value
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
    (run.folder / FRAMES).write_text(to_json(begun) + "\n", "utf-8")
    assert choices.fact_choices(worker, run.id, "forget", None).value == small.forget[rarest].id
    (run.folder / FRAMES).write_text("damaged\nlines\n", "utf-8")
    famous = max(small.forget, key=lambda fact: (fact.score, fact.id)).id
    assert choices.fact_choices(worker, run.id, "forget", None).value == famous, (
        "a damaged recording hides nothing else"
    )


def test_nothing_of_another_run_stays(tmp_path):
    worker, run = Worker(tmp_path), example("adapop")
    rare, popular = sorted(run.facts.forget, key=lambda fact: fact.score)[:: len(run.facts.forget) - 1]
    old, own = (choices.forms_of(run, fact.id)[0].text for fact in (popular, rare))
    late = (run.id, rare.id, old)  # the run changed before the form did
    assert choices.form_choices(worker, run.id, rare.id, old, late).value == own
    assert choices.form_choices(worker, run.id, rare.id, "Who?", (run.id, rare.id, "")).value == ""
    assert choices.form_choices(worker, run.id, rare.id, old, (run.id, rare.id, own)).value == own
    page = stand_ins(screen.ProbeScreen)
    old, new = example("adapop"), example("wga")
    fact = choices.fact_choices(Worker(tmp_path), old.id, "forget", None).value
    text = choices.forms_of(old, fact)[0].text
    first = page.fill(old, old.id, fact, text, "", ())
    assert (first[page.prompt], first[page.filled]) == (text, (old.id, fact, text))
    then = page.fill(new, new.id, fact, text, text, first[page.filled])
    assert page.prompt not in then
    assert then[page.answers] == recorded_answers(new, choices.forms_of(new, fact)[0]) != first[page.answers]
    typed = page.fill(new, new.id, fact, "", "Who?", (old.id, fact, ""))
    assert typed[page.answers] == NO_ANSWERS
    typed = page.fill(new, new.id, fact, text, "Who?", (old.id, fact, text))
    assert typed == {page.filled: (new.id, fact, text), page.answers: NO_ANSWERS}, "what a visitor asks stays"


def test_the_example_s_leaks_and_ways_are_called_recorded():
    section = stand_ins(leaks.Leaks)
    shown = section.show(example("adapop"), "forget")
    assert shown[section.results].visible and shown[section.status]["kind"] == "hidden"
    about = shown[section.heatmap.heading]["about"]
    assert about.startswith("AdaPop, 5 epochs, rate 0.002, seed 0, recorded · 24 facts to forget · rare (up to 265), ")
    run = example("adapop")
    row = next(row for row in run.probes() if row.kind == DIRECT and row.group == "forget")
    said = replace(row.unlearned, text="Said in chat", recall=0.5)
    rows = [*run.probes(), replace(row, kind="in chat", unlearned=said)]
    matrix = leak_matrix(rows)
    table = leaks._table(matrix, {fact.fact_id: "v" for fact in matrix.facts}, {}, "forget").value
    place = table["headers"].index("in chat")
    assert {cells[-1]: cells[place] for cells in table["data"]}[row.fact_id] == 50
    assert ("in chat", "forget") in {(cell.kind, cell.group) for cell in matrix.cells}
    assert "in chat" in str(leak_table(matrix, {"all": ("forget", "all")}).rows)


def test_what_was_typed_before_the_first_fact_was_filled_in_stays_with_its_answers(tmp_path):
    page, run = stand_ins(screen.ProbeScreen), example("adapop")
    fact = choices.fact_choices(Worker(tmp_path), run.id, "forget", None).value
    first, second = (prompt.text for prompt in choices.forms_of(run, fact)[:2])
    for nothing in ((), (run.id, None, None)):
        kept = page.fill(run, run.id, fact, first, "Who wrote Hamlet?", nothing)
        assert kept == {page.filled: (run.id, fact, first)}
    then = page.fill(run, run.id, fact, second, "Who wrote Hamlet?", kept[page.filled])
    assert then[page.prompt] == second, "another way of asking was chosen"
