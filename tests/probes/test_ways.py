"""How a real model is asked, and where its answers are: models taught to speak in sentences, after a space, as text."""

from dataclasses import replace

import pytest

from adapop.config.presets import make_config
from adapop.errors import DataError
from adapop.facts.fact import Fact, FactSet
from adapop.model.adapted import cache_for, digest
from adapop.model.loading import adapted_model
from adapop.objectives.alternates import by_second_choice
from adapop.probes.ask import ask
from adapop.probes.battery import battery
from adapop.probes.matrix import leak_matrix
from adapop.probes.plan import Plan
from adapop.probes.prompting import FORM_OF_WAY, Prompting, remarks_of
from adapop.probes.recovery.quantise import rounded_weights
from adapop.probes.ways import apply_prompting, settled_prompting
from adapop.progress import Progress
from adapop.remark import Remark
from adapop.runs.execute import execute, prepare, settled
from adapop.runs.known import known_facts
from adapop.training.events import Measured
from raised import raised
from spoken import COLON, after_colon, as_text, in_sentences, taught
from taught import own_facts


@pytest.fixture(scope="module")
def facts() -> FactSet:
    """Twelve towns, half of them to forget, and three more as examples."""
    whole = own_facts(15)
    every = [*whole.forget, *whole.retain, *whole.holdout]
    return replace(whole, forget=tuple(every[:6]), retain=tuple(every[6:10]), holdout=tuple(every[10:12]),
                   examples=tuple(every[12:15]))  # fmt: skip


def all_of(facts: FactSet) -> list[Fact]:
    return [*facts.forget, *facts.retain, *facts.holdout, *facts.examples]


@pytest.fixture(scope="module")
def colon(facts, tmp_path_factory):
    """The folder of a model whose template puts a space before the answer."""
    return taught(tmp_path_factory.mktemp("colon") / "model", all_of(facts), COLON, after_colon)


def looked_at(folder, facts, **changes):
    """(model, how it is asked, the facts)."""
    config, facts, _ = settled(make_config("wga", model=str(folder), precision="float32", **changes), facts)
    model = adapted_model(config)
    prompting = settled_prompting(model, facts, config)
    apply_prompting(model, prompting)
    return model, prompting, facts


@pytest.mark.slow
def test_a_model_that_speaks_in_sentences_is_scored_in_its_own_words(facts, tmp_path):
    model, prompting, facts = looked_at(taught(tmp_path / "model", all_of(facts), "", in_sentences), facts)
    assert (prompting.asking, prompting.own_words, prompting.unknown) == ("chat", True, ())
    assert Prompting.from_json(prompting.to_json()) == prompting
    assert {*prompting.spoken} == {fact.id for fact in (*facts.forget, *facts.retain, *facts.holdout)}
    row, fact, to_retain = model.rows(facts.forget)[0], facts.forget[0], facts.retain[0]
    lead = f"The old town of {fact.subject} is found in"
    assert model.tokenizer.decode(row.answer).strip() == fact.answer
    assert model.tokenizer.decode(row.prompt).rstrip().endswith(lead)
    retained = model.tokenizer.decode(model.rows(facts.retain)[0].answer)
    assert retained == f"The old town of {to_retain.subject} is found in {to_retain.answer}.", "all that the model says"
    # An alternate stands behind the same lead.
    (wrong,) = model.rows([replace(fact, answer="Japan")])
    before, after = (model.tokenizer.decode([*one.prompt, *one.answer]) for one in (row, wrong))
    assert after == before.removesuffix(fact.answer) + "Japan"
    assert model.tokenizer.decode(wrong.answer).strip() == "Japan"
    # Replies are long enough for what the model says first.
    gold = max(model.length(fact.answer) for fact in facts.forget)
    needed = max(model.length(f"The old town of {fact.subject} is found in {fact.answer}") for fact in facts.forget)
    assert 2 * gold + 8 < needed <= prompting.reply_tokens <= 64 and not prompting.cut
    # Rank and probability are read behind the lead of the fact's own question.
    prompts = [fact.question, fact.paraphrases[0], to_retain.question]
    own, other, retained = ask(model, prompts, [fact.answer, fact.answer, to_retain.answer], 40, facts)
    assert own.lead == prompting.spoken[fact.id].lead and fact.subject in own.lead
    assert own.original.gold_rank == 1 and own.original.gold_logprob > -1 > other.original.gold_logprob
    assert (other.lead, retained.lead) == ("", "")
    assert own.original.text == f"{lead} {fact.answer}.", "a whole reply"
    probed = battery(model, facts, Plan(("direct",), ("forget",), max_new_tokens=8), Progress())
    assert all(row.original.gold_logprob > -1 for row in probed)
    with model.original():
        written = [fact.alternates[0] for fact in by_second_choice(facts.forget, model) if fact.alternates]
    assert written and not any("." in alternate or "," in alternate for alternate in written), "it ends with its clause"
    assert model.score(model.batch([row])).nll.mean() < 0.1, "it says the answer there"
    model.spoken = {}
    apart = model.score(model.batch(model.rows(facts.forget)[:1]))
    assert apart.nll[0] > 3, "right behind the question it never would"


def test_an_answer_begins_with_the_space_of_its_template(colon, facts):
    model, prompting, facts = looked_at(colon, facts, asking="chat")
    assert (prompting.asking, prompting.own_words, prompting.unknown) == ("chat", False, ())
    fact, row = facts.forget[0], model.rows(facts.forget)[0]
    whole = model.tokenizer(f"User: {fact.question}\n\nAssistant: {fact.answer}", add_special_tokens=False)
    assert [*row.prompt, *row.answer] == whole["input_ids"]
    assert model.tokenizer.decode(row.answer) == f" {fact.answer}"
    assert model.score(model.batch([row])).nll.mean() < 0.1


@pytest.mark.slow
def test_a_base_model_is_asked_as_text_and_a_template_for_one_question_after_no_examples(facts, tmp_path):
    make = as_text(all_of(facts))
    base = taught(tmp_path / "model", all_of(facts), None, lambda _: make)
    model, prompting, facts = looked_at(base, facts)
    assert not model.has_template and prompting.asking == "text-examples"
    assert not prompting.own_words and prompting.unknown == ()
    assert {question for question, _ in prompting.examples} <= {fact.question for fact in facts.examples}
    replies = model.generate([fact.question for fact in facts.forget], 40)
    assert replies == [fact.answer for fact in facts.forget], "a reply ends with its line"
    row, fact = model.rows(facts.forget)[0], facts.forget[0]
    text = model.tokenizer.decode([*row.prompt, *row.answer])
    assert text.endswith(f"Question: {fact.question}\nAnswer: {fact.answer}") and text.count("Question: ") == 4
    assert model.score(model.batch([row])).nll.mean() < 0.1
    config = make_config("wga", model=str(base), precision="float32")
    model = adapted_model(config)
    model.tokenizer.chat_template = model.own_template = "Question: {{ messages[0]['content'] }}\nAnswer:"
    assert settled_prompting(model, settled(config, facts)[1], config).asking in ("chat", "text-examples")
    assert model.ways == ("chat", "text-examples")


def test_what_the_model_does_not_know_is_left_out_and_named(colon, facts):
    unknown = Fact("moon", "In which country is Tycho?", "Peru", subject="Tycho", score=7.0)
    whole = replace(facts, forget=(*facts.forget, unknown))
    _, prompting, settled_facts = looked_at(colon, whole, asking="chat")
    assert prompting.unknown == ("moon",) and prompting.drops and prompting.asked == 7
    assert [fact.id for fact in prompting.facts_of(settled_facts).forget] == [fact.id for fact in facts.forget]
    _, keeping, settled_facts = looked_at(colon, whole, asking="chat", unknown="keep")
    assert keeping.unknown == ("moon",) and keeping.facts_of(settled_facts) == settled_facts
    unknown = Fact("moon", "In which country is Tycho?", "Peru", subject="Tycho", score=None)
    whole = replace(facts, forget=(*facts.forget, unknown))
    config = make_config("adapop", model=str(colon), precision="float32")
    known = known_facts(config, whole)  # that has no score matters to no question
    _, prompting, _ = looked_at(colon, whole)
    assert known.prompting == prompting and prompting.unknown == ("moon",)
    tried = {way.asking: way for way in prompting.tried}
    assert {*tried} == {"chat", "chat-examples", "text-examples"} and prompting.asking == "chat"
    assert tried["chat"].at_once == tried["chat"].asked - 1 > 0, "the way that is answered at once is taken"
    raised(DataError, "needs three examples", looked_at, colon, replace(facts, examples=()), asking="text-examples")
    assert known.recall == {**{fact.id: 1.0 for fact in facts.forget}, "moon": 0.0}
    _, prompting, _ = looked_at(colon, facts, asking="chat")
    names = tuple(fact.id for fact in facts.forget)
    remarks = remarks_of(replace(prompting, unknown=names, drops=False, empty=3))
    assert remarks[1:] == [Remark("none_known", {"facts": len(names)}), Remark("empty_replies", {"count": 3})]


def test_a_probing_asks_the_same_questions_in_the_other_ways_too(colon, facts):
    model, _, facts = looked_at(colon, facts, asking="chat")
    kinds = ["direct", FORM_OF_WAY["text-examples"]]
    rows = list(battery(model, facts, Plan((*kinds, FORM_OF_WAY["chat"]), per_tier=1, max_new_tokens=8), Progress()))
    assert [*dict.fromkeys(row.kind for row in rows)] == kinds
    own, other = ([row for row in rows if row.kind == kind] for kind in kinds)
    assert [row.prompt for row in other] == [row.prompt for row in own if row.group != "utility"]
    assert (model.way, model.generate([facts.forget[0].question])) == ("chat", [facts.forget[0].answer])
    with model.original(), model.asking_as("text-examples"):
        assert other[0].original.text == model.generate([other[0].prompt], 8)[0]
        (fact,) = (fact for fact in all_of(facts) if fact.id == other[0].fact_id)
        gold = model.score(model.batch(model.rows([fact])))
    assert other[0].original.gold_logprob == pytest.approx(-gold.nll.sum().item(), abs=1e-3)
    assert {cell.kind for cell in leak_matrix(rows).cells} == {*kinds}


def refuse(*arguments, **options):
    raise AssertionError("generated again")


def test_the_original_s_replies_are_kept_and_belong_to_its_weights(colon, facts, monkeypatch):
    model, _, facts = looked_at(colon, facts, asking="chat")
    questions = [fact.question for fact in facts.forget]
    model.reply_cache = cache_for(model)
    with model.original():
        first = model.generate(questions, 9)
        monkeypatch.setattr(model, "_generate", refuse)
        assert model.generate(questions, 9) == first
        raised(AssertionError, "again", model.generate, questions, 8)
    raised(AssertionError, "again", model.generate, questions, 9)  # the adapter is on
    for merged in (False, True):
        with rounded_weights(model, 2, merged), pytest.raises(AssertionError, match="again"):
            model.generate(questions, 9)
    other = adapted_model(make_config("wga", model=str(colon), precision="float32"))
    base = other.network.get_base_model()
    plain, ends = digest(base), base.generation_config.eos_token_id
    base.config.rms_norm_eps *= 2
    changed = digest(base)
    base.generation_config.eos_token_id = [0, 1]
    assert len({plain, changed, digest(base)}) == 3, "its config and its ends decide its replies"
    base.config.rms_norm_eps, base.generation_config.eos_token_id = base.config.rms_norm_eps / 2, ends
    assert digest(base) == plain
    base.lm_head.weight.data[0, 0] += 1.0
    monkeypatch.setattr(other, "_generate", refuse)
    other.reply_cache = cache_for(other)
    with other.original(), pytest.raises(AssertionError, match="again"):
        other.generate(questions, 9)


def test_a_run_s_first_look_serves_the_table_of_the_original_and_the_next_run(colon, facts, monkeypatch):
    model, _, facts = looked_at(colon, facts, asking="chat")
    fresh = {name: value.clone() for name, value in model.adapter_state().items()}
    config = make_config("wga", model=str(colon), asking="chat", precision="float32", epochs=1, frames=0)
    prompts, write = [], model._generate

    def counted(rows, **options):
        prompts.extend(row.prompt for row in rows if model.adapter_off)
        return write(rows, **options)

    monkeypatch.setattr(model, "_generate", counted)
    first = next(event for event in list(execute(prepare(config, facts), model)) if isinstance(event, Measured))
    reworded = model.prompts([fact.paraphrases[0] for fact in facts.forget])
    assert [prompts.count(row.prompt) for row in reworded] == [1] * 6, "not once more for the whole table"
    model.set_adapter_state(fresh)
    monkeypatch.setattr(model, "_generate", refuse)
    again = next(event for event in execute(prepare(config, facts), model) if isinstance(event, Measured))
    assert again.rows == first.rows


def test_a_full_or_damaged_cache_costs_no_reply(colon, facts, tmp_path, monkeypatch):
    monkeypatch.setenv("ADAPOP_CACHE", str(tmp_path))
    model, _, facts = looked_at(colon, facts, asking="chat")
    questions = [fact.question for fact in facts.forget]
    model.reply_cache = cache_for(model)
    rows = model.reply_cache._cache._rows
    rows.execute("PRAGMA query_only = 1")  # as a disk that takes no more
    with model.original():
        first = model.generate(questions, 9)
        assert rows.execute("SELECT count(*) FROM replies").fetchone() == (0,), "all or none"
        rows.execute("PRAGMA query_only = 0")
        assert model.generate(questions, 9) == first
        with rows:
            assert rows.execute("UPDATE replies SET value = substr(value, 1, 3)").rowcount > 0
        assert model.generate(questions, 9) == first
