import json
import time
from dataclasses import replace
from functools import cache, partial

import pytest

from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR
from adapop.errors import DataError
from adapop.facts.fact import Fact, FactSet
from adapop.facts.scale import with_tiers
from adapop.model.loading import adapted_model
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.remark import Remark
from adapop.runs.amount import few_facts
from adapop.runs.check import Check, KnownRow, check
from adapop.runs.execute import execute, prepare
from adapop.runs.known import known_facts
from adapop.runs.preflight import preflight, without_unknown
from adapop.runs.result import nothing_forgotten
from adapop.training.events import Measured, RunDone
from raised import raised
from spoken import in_sentences
from spoken import taught as taught_to_speak
from taught import own_facts, taught
from tiny_runs import ran

FEW = ("few_facts", "few_known")
SETTINGS = dict(precision="float32", max_new_tokens=8, batch=2, frames=0, lora_rank=8)
# a script without spaces, and one with endings and articles
SETS = {
    "chinese": (
        "{s}的首都是哪里？", "{s}的首都是{a}。",
        "法国 巴黎 日本 东京 秘鲁 利马 挪威 奥斯陆 埃及 开罗 古巴 哈瓦那 伊朗 德黑兰 越南 河内",
    ),
    "arabic": (
        "ما هي عاصمة {s}؟",
        "عاصمة {s} هي {a}.",
        "فرنسا باريس اليابان طوكيو بيرو ليما النرويج أوسلو مصر القاهرة كوبا هافانا إيران طهران فيتنام هانوي",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Shape -> the folder of a model that knows the towns but for the last one to forget; made when first asked for."""
    facts, made = own_facts(), {}

    def folder(shape):
        if shape not in made:
            known = [*facts.forget[:-1], *facts.retain, *facts.holdout]
            made[shape] = str(taught(shape, tmp_path_factory.mktemp(shape), known))
        return made[shape]

    return folder


def configured(folder, method="adapop", **changes):
    targets = {"lora_targets": (ALL_LINEAR,)} if "gpt2" in folder else {}
    return make_config(method, model=folder, **{**SETTINGS, "learning_rate": 5e-3, **targets, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["llama", "gpt2"])  # gemma's is looked at in test_sitting
def test_a_stranger_s_model_is_looked_at_as_it_is(folders, shape):
    facts, config = own_facts(), configured(folders(shape))
    model = adapted_model(replace(config, system=""))
    before = {name: value.clone() for name, value in model.adapter_state().items()}
    outcome = check(config, facts, model)
    assert all((value == before[name]).all() for name, value in model.adapter_state().items())
    assert outcome.prompting.unknown == (facts.forget[-1].id,)
    assert outcome.facts.forget == tuple(with_tiers(facts).forget[:-1])
    assert all(outcome.recall[fact.id] > 0.5 for fact in facts.forget[:-1])
    assert outcome.pace.step > 0 and outcome.pace.end > 0 and outcome.peak is None
    rows = {(row.form, row.tier): row for row in outcome.known}
    assert rows[DIRECT, "all"].asked == 5 and rows[DIRECT, "rare"].asked == 2
    assert REWORDED in {form for form, _ in rows} and outcome.impossible
    assert not outcome.waste and not outcome.preflight.problems
    kinds = {remark.kind: remark.values for remark in outcome.remarks if isinstance(remark, Remark)}
    assert kinds["asked_so"]["answered"] == 5 and kinds["asked_so"]["facts"] == 6
    assert kinds["few_known"] == {"share": 1 / 5} and "few_facts" not in kinds, "the sixth cannot be forgotten"
    assert kinds["forms_measurable"]["forms"].startswith(DIRECT)
    assert {"forms_impossible", "time_by_trial", "rate_and_batch", "answered_now"} <= kinds.keys()
    text = "\n".join(outcome.lines)
    assert "GPU" not in text and text.count("Memory: at least") == 1
    as_json = outcome.as_json()
    assert as_json["notes"] == [str(note) for note in outcome.facts.notes]
    assert as_json["tiers"]["note"] == str(outcome.facts.tiers.note) and json.dumps(as_json)
    answered = without_unknown(facts, {**outcome.recall, facts.forget[-1].id: 0.0})
    assert answered.forget == facts.forget[:-1] and answered.notes[-1] == Remark("facts_left_out", {"facts": 1})


@pytest.mark.slow
def test_what_would_be_in_vain_and_a_form_that_too_few_can_answer_are_said(folders):
    facts, folder = own_facts(), folders("llama")
    slow = check(configured(folder, learning_rate=1e-6), facts)
    assert [remark.kind for remark in slow.waste] == ["few_steps"]
    assert "(--lr)" in slow.lines_for("command")[-1] and "(--" not in "".join(slow.lines_for("page"))
    unknown = replace(facts, forget=tuple(replace(fact, answer="Atlantis") for fact in facts.forget))
    (remark,) = check(configured(folder), unknown).waste
    assert (remark.kind, remark.values) == ("unknown_beforehand", {"answered": 0, "facts": 6})
    facts, config = own_facts(), configured(folders("llama"))
    known = (
        KnownRow(DIRECT, "all", 6, 1.0, 6), KnownRow(REWORDED, "all", 6, 0.34, 2),
        KnownRow("role playing", "all", 6, 0.5, 3), KnownRow("raw", "all", 3, 0.6, 2))  # fmt: skip
    remarks = Check(config, facts, preflight(facts, config), known, {"town-0": 1.0}, {}, None, None, "cpu").remarks
    assert Remark("forms_in_part", {"forms": "role playing (3 of 6), raw (2 of 3)", "least": 0.8}) in remarks
    assert Remark("forms_too_low", {"forms": "reworded 0.34", "least": 0.8}) in remarks


@pytest.mark.slow
def test_a_run_after_a_look_is_the_run_without_one(folders, tmp_path):
    facts, config = own_facts(), configured(folders("llama"), epochs=1, measure="off")
    model = adapted_model(replace(config, system=""))
    check(config, facts, model)
    ends = []
    for given in (model, None):
        run = prepare(config, facts, tmp_path)
        assert isinstance(list(execute(run, given))[-1], RunDone)
        ends.append(run.epochs()[-1].retain_loss)
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_a_run_that_forgets_nothing_says_so_and_a_healthy_model_alarms_nobody(folders):
    facts = replace(own_facts(), forget=own_facts().forget[:-1])
    run = prepare(configured(folders("llama"), epochs=1, learning_rate=1e-7), facts)
    done = list(execute(run))[-1]
    nothing = Remark("nothing_forgotten", {"before": 1.0, "after": 1.0, "steps": 3, "rate": 1e-07})
    assert nothing_forgotten(run) == nothing
    remarks = [note for note in done.notes if isinstance(note, Remark)]
    assert [remark.kind for remark in remarks[:2]] == ["asked_so", "controller_idle"]
    assert remarks[2:] == [nothing, Remark("damage_unknown", {"before": 0.0})]
    assert run.events()[-1].notes == done.notes, "as they are read again"
    run = ran(configured(folders("llama"), epochs=4, learning_rate=2e-2), facts)
    assert nothing_forgotten(run) is None and run.measured().recall("forget") < 0.9


@pytest.mark.slow
def test_how_much_and_how_often_is_measured_is_a_setting(folders):
    def measured(**changes):
        run = ran(configured(folders("llama"), epochs=2, **changes), own_facts())
        return [event for event in run.events() if isinstance(event, Measured)]

    every = measured(measure_per_tier=1, frames=1)
    assert [event.full for event in every] == [False] * 3 + [True] * 2
    assert {row["facts"] for row in every[0].rows if row["tier"] != "all"} == {1}
    assert [event.full for event in measured(measure="end", frames=1)] == [True, True]
    assert measured(measure="off") == []


def test_questions_longer_than_the_model_reads_are_refused_before_they_are_asked(tiny):
    """A question of 2,000 letters is up to 8,000 bytes, each a token of its own: one took a minute."""
    first, *others = tiny.forget
    facts = replace(tiny, forget=(replace(first, question="\N{GRINNING FACE}" * 2_000), *others))
    began = time.process_time()
    for look in (check, known_facts):
        raised(DataError, "Too long for the model's context of 1,024 tokens: forget row 1", look, make_config(), facts)
    assert time.process_time() - began < 60


@pytest.mark.slow
@pytest.mark.parametrize("language", SETS)
def test_a_model_of_any_script_is_seen_to_know_its_facts(language, tmp_path):
    asks, answers, names = SETS[language]
    pairs = list(zip(names.split()[::2], names.split()[1::2], strict=True))
    scored = [(subject, answer, 40.0 * 2**i) for i, (subject, answer) in enumerate(pairs)]
    facts = [Fact(f"of {s}", asks.format(s=s), answer, subject=s, score=score) for s, answer, score in scored]

    folder = taught_to_speak(tmp_path / "model", facts, "", partial(in_sentences, sentence=answers))
    own = FactSet(language, tuple(facts[:4]), tuple(facts[4:6]), tuple(facts[6:]))
    outcome = check(make_config("wga", model=str(folder), precision="float32", asking="chat"), own)
    assert outcome.prompting.unknown == ()
    assert [row.recall for row in outcome.known if (row.form, row.tier) == (DIRECT, "all")] == [1.0]
    assert outcome.prompting.own_words, "the answer stands at the end of a sentence"


def test_how_little_a_small_set_can_tell_is_judged_by_what_the_model_knows_of_it(tiny):
    facts = replace(tiny, forget=tiny.forget[:3] + tuple(Fact(f"x{i}", f"Who is {i}?", "Nobody") for i in range(60)))
    (few,) = [one for one in check(make_config("wga"), facts).remarks if getattr(one, "kind", "") in FEW]
    assert few.kind == "few_known" and few.values["share"] > 0.1, "63 facts, of which it knows 3"
    (few,) = [one for one in check(make_config("wga", start="sft"), tiny).remarks if getattr(one, "kind", "") in FEW]
    assert few == Remark("few_facts", {"share": 1 / len(tiny.forget)}), "it is taught all of them first"


@pytest.mark.parametrize(("known", "expected"), [
    (None, []), (40, []), (0, []), (20, [Remark("few_known", {"share": 0.05})])])  # fmt: skip
def test_facts_that_the_model_does_not_know_make_a_set_no_larger(known, expected):
    assert few_facts(60, known) == expected


def test_what_is_slow_once_is_not_taken_for_the_pace(bare, monkeypatch):
    from adapop.probes import recall

    loaded = recall._tokenizer()

    @cache
    def slow_at_first():
        time.sleep(3)
        return loaded

    for judged_before in (value for value in vars(recall).values() if hasattr(value, "cache_clear")):
        judged_before.cache_clear()
    monkeypatch.setattr(recall, "_tokenizer", slow_at_first)
    assert check(make_config(), bare).pace.end < 12, "counted, the 3 s make it 24"
    assert slow_at_first.cache_info().misses == 1
