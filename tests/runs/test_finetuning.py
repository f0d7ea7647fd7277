import shutil
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from adapop.cli.printing import event_text
from adapop.config.presets import make_config
from adapop.errors import ConfigError, ModelError, RunError
from adapop.facts.fact import Fact
from adapop.facts.scale import with_tiers
from adapop.model.adapter import concatenated
from adapop.model.loading import load_tokenizer
from adapop.online.cache import cache_root
from adapop.paths import SANDBOX_FOLDER
from adapop.probes.measure import recall_by_fact
from adapop.progress import Progress
from adapop.report import write_archive
from adapop.report.export import export
from adapop.report.record import read_record
from adapop.report.story import done
from adapop.runs import finetuning, measuring
from adapop.runs.amount import questions_taught
from adapop.runs.check import check
from adapop.runs.execute import execute, load_model, prepare, settled
from adapop.runs.finetuning import FILE, FOLDER, Finetuned, _cached
from adapop.runs.pace import Wait
from adapop.training.events import Measured, RunFailed, RunStarted, Saved, Taught, Teaching, current
from adapop.ui.run.state import RunSeen, log_lines, view
from edited import flipped_bit
from raised import raised
from replying import replies
from tiny_runs import tiny_config, trained

SETTINGS = dict(start="sft", start_epochs=10, start_rate=2e-3, measure="off", frames=0)


@pytest.fixture(scope="module")
def unknown(tiny):
    """Facts that the sandbox never read: its subjects with each other's answers."""
    forget, retain = (
        tuple(replace(fact, answer=other.answer) for fact, other in zip(facts, facts[1:] + facts[:1]))
        for facts in (tiny.forget, tiny.retain)
    )
    return replace(tiny, forget=forget, retain=retain)


def recalls(model, facts):
    return [sum(recall_by_fact(model, group, 3, Progress()).values()) for group in (facts.forget, facts.retain)]


def test_a_run_begins_with_what_was_taught_and_is_probed_beside_it(unknown, tmp_path):
    run = trained(unknown, tmp_path, "wga", **SETTINGS)
    (note,) = (note for note in run.events()[-1].notes if note.kind == "fine_tuned")
    assert (note.values["questions"], note.values["epochs"], note.values["steps"]) == (16, 10, 80), "in every wording"
    assert note.values["recalls"].startswith("forget 0% → 100%, retain 0% → 100%")
    assert f" s, and {note.values['time']:.0f} s before that to teach the model. It began" in " ".join(
        done(read_record(run))
    )
    shutil.rmtree(cache_root() / FOLDER)  # safe to delete
    model = load_model(run)
    with model.original():
        assert recalls(model, unknown) == [4, 4]
    assert recalls(model, unknown)[0] < 4, "it was unlearned"
    whole = (run.folder / FILE).read_bytes()
    for content in (b"{", flipped_bit(whole)):
        (run.folder / FILE).write_bytes(content)
        raised(RunError, f"{FILE} is damaged or missing", load_model, run)


def test_a_damaged_adapter_of_the_cache_is_trained_again(unknown, tmp_path, caplog):
    settings = SETTINGS | {"start_epochs": 1}
    first = trained(unknown, tmp_path / "first", "wga", **settings)
    (cached,) = (cache_root() / FOLDER).glob("*.safetensors")
    flipped = flipped_bit(cached.read_bytes())
    cached.write_bytes(flipped)
    again = trained(unknown, tmp_path / "again", "wga", **settings)
    taught = [safetensors.torch.load((run.folder / FILE).read_bytes()) for run in (first, again)]
    assert all(torch.equal(taught[0][name], taught[1][name]) for name in taught[0])
    assert [note.kind for note in again.events()[-1].notes if "fine_tuned" in note.kind] == ["fine_tuned"]
    assert "is damaged" in caplog.text and "trained again" in caplog.text and cached.read_bytes() != flipped
    caplog.clear()
    third = trained(unknown, tmp_path / "third", "wga", **settings)
    assert "fine_tuned_before" in {note.kind for note in third.events()[-1].notes} and not caplog.text


@pytest.mark.slow
def test_what_was_taught_leaves_as_one_exact_adapter_over_the_untouched_base(unknown, tmp_path):
    """Adapter and merged model, loaded by peft and transformers alone, answer as the run's own model."""
    run = trained(unknown, tmp_path, "wga", **SETTINGS | {"measure": "end"})
    model = load_model(run)
    questions = [fact.question for facts in (unknown.forget, unknown.retain) for fact in facts]
    own = model.generate(questions, 4)
    with model.original():
        taught = model.generate(questions, 4)
    done = export(run, tmp_path / "adapter")
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    assert replies(base, model, questions) not in (own, taught), "the base alone shows nothing"
    loaded = PeftModel.from_pretrained(base, done.folder)
    assert replies(loaded, model, questions) == own != taught
    whole = export(run, tmp_path / "whole", merged=True, dtype="float32")
    merged = AutoModelForCausalLM.from_pretrained(whole.folder, dtype=torch.float32)
    assert replies(merged, model, questions) == own
    assert (done.differing, whole.differing) == (0, 0)
    for one in (done, whole):
        assert one.delivered.measured.recall("forget") == run.measured().recall("forget")
    with zipfile.ZipFile(write_archive(run, tmp_path / "run.zip")) as archive:
        archive.extractall(tmp_path / "zip")
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    loaded = PeftModel.from_pretrained(base, tmp_path / "zip" / "adapter")
    assert replies(loaded, model, questions) == own


def test_two_adapters_become_one_also_where_they_adapt_different_layers():
    torch.manual_seed(0)
    (a, b), (c, d), (e, f) = ((torch.randn(rank, 5), torch.randn(4, rank)) for rank in (2, 2, 3))
    first = {"x.lora_A.weight": a, "x.lora_B.weight": b, "y.lora_A.weight": c, "y.lora_B.weight": d}
    both, rank = concatenated(first, {"y.lora_A.weight": e, "y.lora_B.weight": f})
    assert rank == 5
    for layer, added in (("x", b @ a), ("y", d @ c + f @ e)):
        torch.testing.assert_close(both[f"{layer}.lora_B.weight"] @ both[f"{layer}.lora_A.weight"], added)
    raised(ModelError, "cannot be combined", concatenated, first, {"y.lora_magnitude_vector": c})


def test_what_is_taught_first_says_how_far_it_is(unknown, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "LOG_EVERY", 0.0)
    run, heard = prepare(tiny_config("wga", batch=4, **SETTINGS | {"start_epochs": 2}), unknown, tmp_path), []
    yielded = list(execute(run, heard=heard.append))
    places = [(epoch, 2, step, 4) for epoch in (1, 2) for step in range(4)]
    assert [(one.epoch, one.epochs, one.step, one.steps) for one in heard] == places
    assert isinstance(yielded[0], RunStarted) and not any(isinstance(event, Teaching) for event in run.events())
    assert event_text(heard[-1]) == "fine-tuning first: epoch 2 of 2, 3 of 4 steps"
    now = view(RunSeen((heard[-1],), wait=Wait(0, None)))
    assert (now.state, now.detail) == ("starting", "fine-tuning first: epoch 2 of 2, 75% of it")
    assert current([heard[-1], yielded[0]]) == [yielded[0]], "it is over once the run has begun"


@pytest.mark.slow
def test_what_was_taught_is_taken_by_another_run_of_its_settings_and_by_a_stopped_one(unknown, tmp_path):
    first, again = (trained(unknown, tmp_path, method, **SETTINGS) for method in ("wga", "adapop"))
    assert (first.folder / FILE).exists() and len(list((cache_root() / FOLDER).glob("*.safetensors"))) == 1
    other = trained(unknown, tmp_path, "wga", **SETTINGS | {"start_epochs": 1})
    kinds = [{note.kind for note in run.events()[-1].notes} for run in (first, again, other)]
    assert ["fine_tuned" in found for found in kinds] == [True, False, True]
    assert ["fine_tuned_before" in found for found in kinds] == [False, True, False]
    whole = trained(unknown, tmp_path / "whole", "wga", epochs=2, **SETTINGS)
    run = prepare(tiny_config("wga", epochs=2, **SETTINGS), unknown, tmp_path / "stopped")
    for event in execute(run):
        if isinstance(event, Saved):
            run.request_stop()
    assert (run.state, run.last_epoch) == ("stopped", 1)
    run.clear_stop()
    assert not any(isinstance(event, RunFailed) for event in execute(run)) and run.state == "done"
    weights = [(one.checkpoint(2) / "adapter_model.safetensors").read_bytes() for one in (whole, run)]
    assert weights[0] == weights[1]


def test_a_benchmark_is_taught_in_its_own_questions_alone(unknown):
    named = tuple(replace(fact, id=f"duet-{fact.id}") for fact in unknown.forget)
    assert all(fact.paraphrases for fact in named) and len(questions_taught(unknown)) == 16
    benchmark = questions_taught(replace(unknown, forget=named))
    assert [fact.question for fact in benchmark] == [fact.question for fact in (*unknown.forget, *unknown.retain)]


def test_what_will_be_taught_is_no_reason_to_refuse_a_run_and_its_teaching_is_forecast(unknown):
    useless, ready = (check(tiny_config("wga", **one), unknown) for one in ({}, SETTINGS))
    assert [remark.kind for remark in useless.waste] == ["unknown_beforehand"] and not useless.teaching
    kinds = {remark.kind: remark.values for remark in ready.remarks}
    assert not ready.waste and not ready.preflight.problems and "answered_now" not in kinds
    assert kinds["taught_first"] == {"facts": 4, "answered": 0, "epochs": 10, "questions": 16}
    # 10 passes over 16 wordings, 2 a step
    assert ready.teaching == ready.pace.step * 10 * 8 / 2 + ready.asking > ready.asking > 0
    assert kinds["time_by_trial"]["seconds"] == ready.pace.seconds(1, 2) + ready.teaching
    assert kinds["time_of_teaching"] == {"seconds": ready.teaching}


def test_a_model_that_knows_some_of_the_facts_is_taught_all(unknown, tiny):
    (known, *_), (*others, _) = tiny.forget, unknown.forget
    mixed = replace(unknown, forget=(known, *others))
    found = check(tiny_config("wga", unknown="drop", **SETTINGS), mixed)
    assert found.facts.forget == with_tiers(mixed).forget and not found.preflight.problems
    assert "unknown_left_out" not in {remark.kind for remark in found.remarks}


def test_teaching_that_costs_what_was_held_out_says_so():
    for left, kinds in ((0.75, ["fine_tuned"]), (0.25, ["fine_tuned", "taught_at_a_cost"])):
        recalls = {"forget": 0.0, "holdout": 1.0}, {"forget": 1.0, "holdout": left}
        remarks = Finetuned(8, 10, 1e-3, 40, 1.0, 0.05, *recalls).remarks
        assert [remark.kind for remark in remarks] == kinds
    assert "25% of the held-out facts, 100% before it. Lower --start-rate" in remarks[-1].text("command")


def test_too_little_teaching_says_how_many_epochs_would_do_and_so_many_do(unknown, tmp_path):
    few = trained(unknown, tmp_path, "wga", **SETTINGS | {"start_epochs": 2, "start_rate": 1e-3})
    (taught,) = (event for event in few.events() if isinstance(event, Taught))
    first, lacking = taught.notes
    assert (first.kind, lacking.kind) == ("fine_tuned", "taught_too_few_epochs")
    assert [event.kind for event in few.events()][:2] == ["run_started", "taught"]
    assert lacking.values["now"] == 2 and lacking.values["after"] < 0.8 and {*taught.notes} <= {*few.events()[-1].notes}
    needed = lacking.values["needed"]
    assert f"about {needed} epochs would be enough instead of 2 (--start-epochs)" in event_text(taught)
    enough = trained(unknown, tmp_path, "wga", **SETTINGS | {"start_epochs": needed, "start_rate": 1e-3})
    (taught,) = (event for event in enough.events() if isinstance(event, Taught))
    assert [note.kind for note in taught.notes] == ["fine_tuned"] and 2 < needed < 20


def test_an_estimate_lies_between_a_straight_and_an_exponential_fall_and_needs_a_fall():
    for losses, epochs in (
        ((2.1, 1.1), 4), ((4.0, 2.1, 1.1), 5), ((3.3, 2.9, 2.6, 2.3), 18),  # what a model showed: 12 to 15
        ((2.0,), None), ((), None), ((1.0, 1.5), None), ((0.5, 0.05), None)):  # fmt: skip
        assert finetuning.enough_epochs(losses) == epochs, losses


def test_a_run_of_one_pass_that_taught_too_little_says_that_no_number_can_be_told(unknown, tmp_path):
    run = trained(unknown, tmp_path, "wga", **SETTINGS | {"start_epochs": 1, "start_rate": 1e-4})
    (taught,) = (event for event in run.events() if isinstance(event, Taught))
    assert taught.notes[-1].kind == "taught_too_little" and "Raise --start-epochs or --start-rate" in event_text(taught)
    assert log_lines([taught], run.config) == [note.text() for note in taught.notes[::-1]]


def test_four_bit_weights_cannot_be_merged_into():
    raised(ConfigError, "4-bit", make_config, start="sft", four_bit=True)


def test_another_split_of_the_same_facts_is_measured_anew(unknown, tmp_path, model, monkeypatch):
    monkeypatch.setattr(finetuning, "weights_of", lambda run: SimpleNamespace(sha256="the same"))
    (moved, *forget), retain = unknown.forget[::-1], unknown.retain
    others = unknown, replace(unknown, forget=tuple(forget[::-1]), retain=(moved, *retain))
    assert len({_cached(prepare(tiny_config("wga", **SETTINGS), facts, tmp_path), model) for facts in others}) == 2


def test_replies_of_a_shipped_model_have_room_for_answers_that_are_none_of_its_own(tiny, sandbox):
    """Cut off replies of three tokens say that nobody ever knew a phone number."""
    own = settled(make_config(), sandbox)[0].max_new_tokens
    phone = Fact(
        "p", "What is the phone number of Nell Okabe?", "204-555-0130", paraphrases=("How is Nell Okabe called?",)
    )
    private = replace(tiny, forget=(phone, *tiny.forget[1:]))
    longer = settled(make_config("wga"), private)[0].max_new_tokens
    assert own == make_config().max_new_tokens < len(load_tokenizer(make_config())(phone.answer)["input_ids"]) < longer
    assert settled(make_config("wga", max_new_tokens=64), private)[0].max_new_tokens == 64


def test_what_is_not_yet_taught_is_no_form_that_cannot_be_measured(tiny):
    without = replace(tiny, forget=tuple(replace(fact, question=f"Truly? {fact.question}") for fact in tiny.forget))
    for start, said in (("as-given", True), ("sft", False)):
        kinds = {remark.kind for remark in check(make_config("wga", start=start), without).remarks}
        assert bool(kinds & {"forms_too_low", "forms_measurable", "forms_in_part"}) is said


def test_facts_of_no_tier_have_their_recall_in_the_line_of_an_epoch():
    row = {"group": "forget", "tier": "all", "form": "direct", "facts": 4, "recall": 0.25}
    line = event_text(Measured(run="r", epoch=1, rows=(row, row | {"form": "reworded", "recall": 0.5})))
    assert line.split() == "recall as trained 0.25 first rewording 0.50".split()
    line = event_text(Measured(run="r", epoch=1, rows=(row, row | {"tier": "rare", "recall": 0.75})))
    assert "rare/middle/popular  as trained 0.75/–/–" in line
