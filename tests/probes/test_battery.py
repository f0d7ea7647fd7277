import time
from collections import Counter
from dataclasses import replace

import pytest
import torch

from adapop.config.presets import make_config
from adapop.errors import ConfigError, DataError, ModelError, RunError, Stopped
from adapop.facts.fact import Fact, FactSet
from adapop.probes import battery as under_test
from adapop.probes import measure
from adapop.probes.ask import ask
from adapop.probes.attacks import clues
from adapop.probes.battery import battery
from adapop.probes.matrix import leak_matrix
from adapop.probes.plan import Plan, Question, evenly, in_tiers, questions
from adapop.probes.prompts import CHOICE, CLOZE, CLUES, DIRECT, KINDS, REWORDED, TWO_HOPS, NotApplicable, ProbeRow
from adapop.probes.tokenwise import Column, asked_columns
from adapop.probes.verdict import verdicts
from adapop.progress import Progress
from adapop.runs import checkpoints
from adapop.runs.execute import prepare
from adapop.service import jobs
from adapop.service.worker import Worker
from adapop.training.controller import Drift
from adapop.training.trainer import Trainer, TrainerState
from raised import raised
from waiting import PATIENCE_SECONDS

TOKENS = make_config().max_new_tokens
PLAN = Plan(max_new_tokens=TOKENS)


@pytest.fixture(scope="module")
def few(small):
    """Eight facts a group, one of each exposure level, and ten utility questions."""
    groups = {group: getattr(small, group)[::4] for group in ("forget", "retain", "holdout")}
    return replace(small, **groups, utility=small.utility[::2])


@pytest.fixture(scope="module")
def probed(model, few):
    return list(battery(model, few, PLAN, Progress()))


def rows_of(probed):
    return [result for result in probed if isinstance(result, ProbeRow)]


def test_every_group_is_asked_in_every_form(probed, few):
    rows = rows_of(probed)
    forms = {kind: 4 if kind == REWORDED else 1 for kind in KINDS if kind != "reverse query"}
    expected = {(group, kind): 8 * n for group in ("forget", "retain", "holdout") for kind, n in forms.items()}
    assert Counter((row.group, row.kind) for row in rows) == {**expected, ("utility", DIRECT): len(few.utility)}
    assert list(dict.fromkeys(result.kind for result in probed)) == list(KINDS), "kind by kind"
    reasons = [result for result in probed if isinstance(result, NotApplicable)]
    assert [reason.kind for reason in reasons] == ["reverse query"] * 24
    facts = {fact.id: fact for group in ("forget", "retain", "holdout") for fact in getattr(few, group)}
    for row in rows:
        if row.group != "utility":
            fact = facts[row.fact_id]
            assert (row.tier, row.score, row.gold) == (fact.tier, fact.score, fact.answer)
            assert row.chance == (0.25 if row.kind == CHOICE else 0)
            assert fact in getattr(few, row.group)
            assert (None in (row.original.near, row.unlearned.near)) == (row.kind == CHOICE)
        assert row.kind != DIRECT or row.original.near
        assert row.kind != CHOICE or row.original.relation_rank is None
        if row.kind == DIRECT and row.group == "forget":
            assert (row.prompt, row.original.relation_rank) == (facts[row.fact_id].question, 1)


def test_a_chain_of_clues_is_one_more_way_where_the_model_converses(model, few, monkeypatch):
    plan = Plan((CLUES,), per_tier=2, max_new_tokens=4)
    refused = list(battery(model, few, plan, Progress()))
    assert {one.reason for one in refused} == {"the model is not asked in chat"}
    monkeypatch.setattr(model, "converses", True)
    rows = rows_of(battery(model, few, plan, Progress()))
    assert {row.group for row in rows} == {"forget", "retain", "holdout"} and len(rows) == len(refused)
    columns = [Column("original", lambda: model, 0.0), Column("unlearned", lambda: model)]
    prompts, turns = zip(*(clues(fact) for row in rows[:4] for fact in few.forget if fact.id == row.fact_id))
    texts = [prompt.text for prompt in prompts]
    before, after = asked_columns(columns, texts, [row.gold for row in rows[:4]], 4, few, dict(enumerate(turns)))
    for row, one, other, text in zip(rows, before, after, texts):
        assert (row.prompt, row.kl, row.hidden_cosine) == (text, None, None)
        assert (row.original.text, row.unlearned.text) == (one.original.text, other.unlearned.text)
    cell = leak_matrix(rows).cell("forget", "all", CLUES)
    assert cell.facts == len([row for row in rows if row.group == "forget"]) and cell.kl is None
    monkeypatch.setattr(type(model), "context", 20)
    left_out = list(battery(model, few, plan, Progress()))
    assert {one.reason for one in left_out} == {"the conversation does not fit into the model's context"}


def test_a_question_that_needs_the_answer_without_naming_it_is_one_more_way(model, few):
    first, second, third, *rest = few.forget
    hop = dict(two_hop=second.question, two_hop_answer=second.answer, second_hop="x")
    named = replace(third, two_hop=f"{second.question} {second.answer}", two_hop_answer=second.answer, second_hop="x")
    facts = replace(few, forget=(replace(first, **hop), second, named, *rest))
    plan = Plan((TWO_HOPS,), ("forget",), max_new_tokens=TOKENS)
    *others, row = battery(model, facts, plan, Progress())
    assert (row.fact_id, row.prompt, row.gold) == (first.id, second.question, second.answer)
    assert (row.original.recall == 1.0 and row.original.near is None) or first.answer == second.answer
    assert [one.fact_id for one in others] == [fact.id for fact in facts.forget[1:]]
    assert {one.reason for one in others} == {
        "the set has no two-hop question",
        "the prompt would contain the answer",
    }
    assert TWO_HOPS not in questions(few, Plan()), "no fact brings one"


def test_kinds_groups_seeds_and_attacks_of_the_set_are_chosen(few):
    chosen = questions(few, Plan(kinds=("role playing", DIRECT), groups=("holdout", "utility")))
    assert {kind: len(items) for kind, items in chosen.items()} == {DIRECT: 8 + len(few.utility), "role playing": 8}
    assert list(chosen) == [DIRECT, "role playing"]
    texts = [[item.prompt.text for item in questions(few, Plan(seed=seed))["role playing"]] for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]
    first, *rest = few.holdout
    named = replace(few, holdout=(replace(first, subject_aliases=("Nom de plume",)), *rest))
    alias_items = questions(named, Plan(("alias",)))["alias"]
    (question,) = [item for item in alias_items if isinstance(item, Question)]
    assert (question.group, question.fact.id) == ("holdout", first.id) and "Nom de plume" in question.prompt.text
    assert len(alias_items) == len((*few.forget, *few.retain, *few.holdout)), "the others with the reason"
    assert "alias" not in questions(few, Plan())
    brought = [("a0", "Role Play"), ("a1", "role playing"), ("a2", "role playing"), ("a3", "hypnosis")]
    attacks = tuple(Fact(name, f"Question {name}?", "Carrie", "King", kind) for name, kind in brought)
    facts = FactSet("set", (Fact("f", "Who?", "Me"),), attacks=attacks)
    by_kind = questions(facts, Plan())
    assert [item.fact.id for item in by_kind["role playing"]] == ["f", "a0", "a1", "a2"]
    assert by_kind["role playing"][1] == Question("forget", attacks[0], by_kind["role playing"][1].prompt)
    assert [result.fact_id for result in by_kind["hypnosis"]] == ["a3"]
    assert [item.fact.id for item in questions(facts, Plan(per_tier=1))["role playing"]] == ["f", "a1"]
    clozes = replace(facts, attacks=(Fact("c", "___ wrote Carrie.", "Stephen King", "King", CLOZE),))
    for kinds in ((CLOZE,), (DIRECT, CLOZE)):
        assert [item.fact.id for item in questions(clozes, Plan(kinds=kinds))[CLOZE]] == ["c"]
    for plan in (Plan(kinds=(DIRECT,)), Plan(groups=("holdout",))):
        assert all("a" not in item.fact.id for items in questions(facts, plan).values() for item in items)


def test_plan_that_makes_no_sense_and_facts_taken_evenly_over_the_ranking():
    wrong = {"kinds": ("hypnosis",), "groups": ("attacks",), "per_tier": 0, "max_new_tokens": 0}
    for name, value in wrong.items():
        with pytest.raises(ConfigError, match=value[0] if isinstance(value, tuple) else name):
            Plan(**{name: value})
    for count, per_tier, positions in ((9, 1, [4]), (9, 3, [1, 4, 7]), (2, 3, [0, 1]), (0, 2, [])):
        facts = [Fact(f"f{i}", "?", "!", score=float(i)) for i in range(count)]
        assert [fact.id for fact in evenly(facts[::-1], per_tier)] == [f"f{i}" for i in positions[::-1]]
        assert evenly(facts, None) == facts
    scores = [1.0, 2.0, 300.0, 400.0, 500.0, 5000.0, None, None, None]
    facts = [Fact(f"f{i}", "?", "!", score=score) for i, score in enumerate(scores)]
    assert [fact.id for fact in evenly(facts, 1)] == ["f1", "f3", "f5", "f7"]
    assert in_tiers(facts, "abcdefghi") == {
        "all": [*"abcdefghi"],
        "rare": ["a", "b"],
        "middle": [*"cde"],
        "popular": ["f"],
    }
    assert in_tiers((), ()) == {}


def test_a_thinned_set_has_the_wordings_of_what_is_not_forgotten_in_turn():
    facts = tuple(Fact(f"f{i}", "?", "!", paraphrases=("a", "b")) for i in range(3))
    few = measure.thinned(FactSet("set", facts, facts), 9)
    assert few.forget == facts and [fact.paraphrases for fact in few.retain] == [("a",), ("b",), ("a",)]


def test_same_as_asking_prompt_by_prompt(model, probed):
    rows = rows_of(probed)[::37]
    asked = ask(model, [row.prompt for row in rows], [row.gold for row in rows], TOKENS)
    for row, one in zip(rows, asked):
        for reply, answer in ((row.original, one.original), (row.unlearned, one.unlearned)):
            assert (reply.text, reply.gold_rank) == (answer.text, answer.gold_rank)
            assert reply.gold_logprob == pytest.approx(answer.gold_logprob, abs=1e-4)
            assert (reply.words, reply.cosine) == (len(answer.text.split()), None)
            if row.kind != CHOICE:
                assert reply.recall == answer.recall


def test_answers_of_several_tokens_and_accents(model):
    # The rank is the first token's, the log-probability the whole answer's, whatever stands beside them.
    answers = ("Shakespeare", "Jane Austen Kafka", "Franz", "Kafka Kafka")
    facts = tuple(Fact(f"f{i}", "Who wrote the book Hamlet?", answer) for i, answer in enumerate(answers))
    rows = rows_of(battery(model, FactSet("set", facts), Plan(kinds=(DIRECT,), max_new_tokens=2), Progress()))
    replies = ask(model, [fact.question for fact in facts], [fact.answer for fact in facts], 2)
    assert [row.unlearned.gold_rank for row in rows] == [one.unlearned.gold_rank for one in replies]
    logprobs = [one.original.gold_logprob for one in replies]
    assert [row.original.gold_logprob for row in rows] == pytest.approx(logprobs, abs=1e-4)
    raised(DataError, "", ask, model, ["Who?"], ["one " * model.context], 2)
    facts = FactSet("set", (Fact("f", "Who wrote the book Hamlet?", "Shakespeáre"),))
    (row,) = battery(model, facts, replace(PLAN, kinds=(DIRECT,)), Progress())
    assert (row.original.text, row.original.recall, row.original.strict) == ("Shakespeare", 1, 0)
    assert list(battery(model, FactSet("set", ()), PLAN, Progress())) == []


def test_same_as_the_tables_of_a_run(model, few, probed):
    """`measure.full` goes its own way; means over the same facts must be the same."""
    matrix = leak_matrix(probed)
    for row in measure.full(model, few, TOKENS).rows:
        cell = matrix.cell(row.group, row.tier, row.form)
        assert (cell.facts, cell.unlearned.recall.mean) == (row.facts, pytest.approx(row.recall))
        assert cell.unlearned.words == pytest.approx(row.words)
        for name in ("delta_logprob", "delta_rank", "hidden_cosine", "kl"):
            if row.form == DIRECT:
                assert getattr(cell, name) == pytest.approx(getattr(row, name), abs=1e-4), name


def test_equal_models_and_broken_weights(fresh, few):
    for row in rows_of(battery(fresh(), few, replace(PLAN, groups=("forget",)), Progress())):
        assert row.original == row.unlearned
        assert (row.delta_rank, row.kl) == (0, 0)
        assert row.hidden_cosine == pytest.approx(1, abs=1e-6)
    model = fresh()
    with torch.no_grad():
        model.parameters[-1].fill_(float("nan"))
    raised(ModelError, "not finite", list, battery(model, few, PLAN, Progress()))


def test_same_rows_every_time_and_whatever_the_chunks(model, few, probed, monkeypatch):
    plan = replace(PLAN, kinds=(DIRECT, CHOICE))
    chosen = [row for row in probed if row.kind in plan.kinds]
    assert list(battery(model, few, plan, Progress())) == chosen
    monkeypatch.setattr(under_test, "CHUNK", 5)
    for one, other in zip(battery(model, few, plan, Progress()), chosen, strict=True):
        texts, before = ((row.prompt, row.unlearned.text, row.original.text) for row in (one, other))
        assert texts == before and one.kl == pytest.approx(other.kl, abs=1e-4)


def test_cosine_where_it_is_wanted(model, few, monkeypatch):
    monkeypatch.setattr(under_test, "cosines", lambda golds, texts: [len(gold) / 100 for gold in golds])
    plan = replace(PLAN, kinds=(DIRECT,), groups=("forget",), cosine=True)
    for row in battery(model, few, plan, Progress()):
        assert row.original.cosine == row.unlearned.cosine == len(row.gold) / 100


def test_known_hole_is_found(fresh, few):
    """A model trained to forget the question and to keep its first rewording leaks when reworded, and only then."""
    config, model = make_config("gd", learning_rate=4e-3, epochs=20), fresh("gd")
    kept = tuple(replace(fact, question=fact.paraphrases[0]) for fact in few.forget)
    for _ in Trainer("hole", config, model, few.forget, kept, betas=None).train():
        pass
    asked = replace(few, forget=tuple(replace(fact, paraphrases=fact.paraphrases[:1]) for fact in few.forget))
    results = list(battery(model, asked, replace(PLAN, groups=("forget",), kinds=(DIRECT, REWORDED)), Progress()))
    matrix = leak_matrix(results)
    assert matrix.cell("forget", "all", DIRECT).unlearned.recall.mean <= 0.25
    assert matrix.cell("forget", "all", REWORDED).unlearned.recall.mean >= 0.75
    names = Counter(verdict.name for verdict in verdicts(results).values())
    assert names["Leaks in other words"] >= 5, names


def test_what_was_found_before_a_stop_stays(model, few, probed):
    lines, results = [], []
    progress = Progress(lambda line: lines.append(line) or (progress.stop() if "multiple choice" in line else None))
    with pytest.raises(Stopped, match="Stopped"):
        for result in battery(model, few, PLAN, progress):
            results.append(result)
    assert results == probed[: len(results)] and lines[1].endswith("direct, 0 of 34 prompts")
    assert {result.kind for result in results} == set(KINDS[: KINDS.index(CHOICE)])
    with model.original():
        pass
    assert not model.network.base_model.model.model.layers[0].self_attn.q_proj.disable_adapters


@pytest.fixture
def run(small, model, tmp_path):
    run = prepare(make_config(), small, tmp_path)
    drift = Drift(1, retain_loss=1.0, reference=1.0, drift=0.0, lam=0.0, alpha=1.0, start_loss=1.0)
    checkpoints.save(run, 1, model, TrainerState(drift, None, {"0.step": torch.tensor(1.0)}))
    return run


def test_probes_are_kept_in_the_run_of_its_epoch(run, probed):
    assert run.probes() is None
    odd = NotApplicable("é", "a\u2028kind", "because “so”\n")
    run.save_probes([*probed, odd])
    assert run.probes() == [*probed, odd]
    run.save_probes([])
    assert run.probes() == []
    assert not list(run.folder.glob("writing*"))
    run.save_probes(probed)
    run.checkpoint(2).mkdir()
    assert run.probes() is None
    run.save_probes(probed, 1)  # asked before another process resumed the run
    assert run.probes() is None
    for epoch in (1, 2):
        run.checkpoint(epoch).rename(run.folder / f"gone-{epoch}")
    assert run.probes() == probed, "a recorded run comes without checkpoints"


def test_probes_of_another_version_are_named(run):
    for line in ('{"fact_id": "f"}', '{"fact_id": "f", "reason": "r", "mood": "m"}'):
        run.save_probes([])
        with open(run.folder / "probes.jsonl", "a", encoding="utf-8") as file:
            file.write(line + "\n")
        assert raised(RunError, "", run.probes).fix.startswith("Probe ")


def test_worker_probes_and_keeps_or_says_that_there_is_nothing(run, tmp_path, small):
    plan = replace(PLAN, kinds=(DIRECT, REWORDED), per_tier=1, groups=("forget",))
    future, progress = Worker(tmp_path).work_on(run, jobs.probe_models, plan)
    rows = future.result(PATIENCE_SECONDS)
    assert len(rows) == 3 * 5 and run.probes() == rows
    assert progress.text == "Probing: reworded, 0 of 12 prompts"
    future, _ = Worker(tmp_path).work_on(prepare(make_config(), small, tmp_path), jobs.probe_models, PLAN)
    raised(RunError, "no checkpoint", future.result, PATIENCE_SECONDS)


def test_worker_keeps_what_was_found_when_stopped(run, tmp_path):
    worker = Worker(tmp_path)
    future, progress = worker.work_on(run, jobs.probe_models, PLAN)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not progress.text.startswith("Probing: reworded"):
        assert time.monotonic() < deadline, "the worker took too long"
        time.sleep(0.005)
    progress.stop()
    raised(Stopped, "Stopped", future.result, PATIENCE_SECONDS)
    probes = run.probes()
    assert {row.kind for row in probes} <= {DIRECT, REWORDED} and probes[0].kind == DIRECT
    again, progress = worker.work_on(run, jobs.probe_models, PLAN)
    progress.stop()
    raised(Stopped, "Stopped", again.result, PATIENCE_SECONDS)
    assert run.probes() == probes, "nothing probed takes nothing away"
