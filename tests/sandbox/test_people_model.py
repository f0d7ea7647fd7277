"""The second shipped model: small, of one token a name, and sure of every fact in every form before unlearning."""

import random
from collections import Counter
from statistics import fmean

import pytest
import torch
from safetensors import safe_open
from transformers import AutoTokenizer

from adapop.config.presets import PEOPLE_RATES, RATES, make_config
from adapop.facts.fact import TIERS
from adapop.facts.real import fitted
from adapop.facts.world import language, sandbox_facts
from adapop.facts.world.world import WRONG_ANSWER_SHARE, answers_of, facts_of, parts_of, world
from adapop.model.loading import adapted_model
from adapop.paths import SHIPPED
from adapop.probes.attacks import attack_prompts
from adapop.probes.prompts import CHOICE, NotApplicable
from adapop.sandbox.card import MEASURABLE, card_text, recalls
from adapop.sandbox.corpus import corpus, exposures
from adapop.sandbox.draw import write_world

FOLDER = SHIPPED["people"]
PEOPLE = world("people")


@pytest.fixture(scope="module")
def model():
    torch.set_num_threads(1)
    return adapted_model(make_config(model="people"))


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


def test_names_parts_and_wrong_answers(model, tokenizer):
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 3 * 10**6
    with safe_open(FOLDER / "model.safetensors", framework="pt") as tensors:
        assert {tensors.get_tensor(name).dtype for name in tensors.keys()} == {torch.bfloat16}  # noqa: SIM118
    assert 0.8e6 < sum(p.numel() for name, p in model.network.named_parameters() if "lora" not in name) < 1.2e6
    for fact in PEOPLE:
        for text, count in ((fact.subject, 1), (fact.answer, len(fact.parts))):
            assert len(tokenizer(text, add_special_tokens=False)["input_ids"]) == count
    for relation in language.RELATIONS_OF["people"]:
        asked = [language.question(fact) for fact in PEOPLE if fact.relation == relation]
        assert len({len(ids) for ids in tokenizer(asked)["input_ids"]}) == 1
    for relation in language.RELATIONS_OF["people"]:
        fact = max((fact for fact in PEOPLE if fact.relation == relation), key=lambda fact: fact.score)
        shown = [example for example in exposures(fact, random.Random(0)) if example.prompt]
        wrong = [example.text.split() for example in shown if example.text != fact.answer]
        assert len(wrong) / len(shown) == pytest.approx(WRONG_ANSWER_SHARE, abs=0.03)
        places = Counter()
        for parts in wrong:
            ((place, part),) = [(i, part) for i, part in enumerate(parts) if part != fact.parts[i]]
            assert part in parts_of(relation)[place] and len(parts) == len(fact.parts)
            places[place] += 1
        assert set(places) == set(range(len(fact.parts)))


@pytest.mark.slow
def test_the_corpus_shows_each_fact_as_often_as_it_says_and_wrappers_about_teachers_alone():
    examples = corpus(0, name="people")
    shown = Counter(example.fact_id for example in examples if example.fact_id and not example.wrapper)
    assert shown == {fact.id: fact.exposures for fact in PEOPLE}
    taught = {example.fact_id for example in examples if example.wrapper}
    assert taught == {fact.id for fact in facts_of("teacher", "people")}
    assert examples == corpus(0, name="people")


def test_each_tier_is_known_however_it_is_asked(model):
    """Of each tier, 24 facts to forget; all of them are measured by the slow test of the card."""
    forget = sandbox_facts("people").forget
    tiers = {tier: [fact.id for fact in forget if fact.tier == tier][:24] for tier in TIERS}
    for tier, ids in tiers.items():
        facts = [fact for fact in PEOPLE if fact.id in ids]
        for ask in (language.question, lambda fact: language.paraphrases(fact)[3], language.unseen):
            assert fmean(recalls(model, facts, ask)) >= 0.97, tier


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in language.WRAPPERS if kind not in language.NOT_TAUGHT])
def test_wrapper_can_be_measured(model, kind):
    rng = random.Random(0)
    found = recalls(model, facts_of("forget", "people"), lambda fact: language.wrapped(fact, kind, rng))
    assert fmean(found) >= MEASURABLE


@pytest.mark.slow
def test_the_card_is_what_is_measured(tmp_path):
    assert card_text(name="people") in (FOLDER / "README.md").read_text(encoding="utf-8")
    write_world(tmp_path)
    assert (tmp_path / "world.csv").read_bytes() == (FOLDER / "world.csv").read_bytes()


def test_attacks_and_settings_of_its_runs():
    people = sandbox_facts("people")
    found = attack_prompts(people.forget[0], people.forget, 0)
    ((kind, reason),) = [(one.kind, one.reason) for one in found if isinstance(one, NotApplicable)]
    assert kind == "reverse query" and "no reversed text" in reason
    (choice,) = [one for one in found if one.kind == CHOICE]
    assert len(set(choice.options)) == 4 and set(choice.options) <= set(answers_of(people.forget[0].relation))
    for method, rate in PEOPLE_RATES.items():
        assert make_config(method, model="people").learning_rate == rate in RATES
    config = make_config(model="people")
    assert (config.max_new_tokens, config.precision, config.batch) == (5, "float32", 16)
    assert config.max_new_tokens > max(len(fact.parts) for fact in PEOPLE)
    assert fitted(people, "people") is people and fitted(people, str(FOLDER)) is people
