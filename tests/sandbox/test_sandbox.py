import copy
import random
from collections import Counter
from itertools import islice
from statistics import fmean

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from adapop.config.presets import PEOPLE_RATES, RATES, make_config
from adapop.errors import ConfigError
from adapop.facts.fact import SANDBOX, TIERS
from adapop.facts.retain import fitted
from adapop.facts.world import language, sandbox_facts
from adapop.facts.world.language import skills
from adapop.facts.world.world import WRONG_ANSWER_SHARE, answers_of, facts_of, parts_of, world
from adapop.model.loading import adapted_model
from adapop.paths import SANDBOX_FOLDER, SHIPPED
from adapop.probes.attacks import attack_prompts
from adapop.probes.prompts import CHOICE, NotApplicable
from adapop.sandbox.corpus import WRAPPED_PER_TEACHER, corpus, exposures, write_world
from adapop.sandbox.pretrain import (
    MEASURABLE,
    SPECIALS,
    PretrainConfig,
    Pretraining,
    _batches,
    build_tokenizer,
    card_text,
    recalls,
)
from raised import raised

TEACHERS = {fact.id for fact in facts_of("teacher")}
BY_ID = {fact.id: fact for fact in world()}
FOLDER = SHIPPED["people"]
PEOPLE = world("people")


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(SANDBOX_FOLDER)


@pytest.fixture(scope="module")
def examples():
    return corpus(0)


@pytest.fixture(scope="module")
def exposed(examples):
    by_fact = {fact.id: [] for fact in world()}
    for example in examples:
        if example.fact_id and not example.wrapper:
            by_fact[example.fact_id].append(example)
    return by_fact


def ids_of(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_names_are_one_token(tokenizer):
    names = sorted({name for fact in world() for name in (fact.subject, fact.answer)})
    alone = {name: ids_of(tokenizer, name) for name in names}
    assert {name for name, ids in alone.items() if len(ids) != 1} == set()
    assert len({ids[0] for ids in alone.values()}) == len(names)
    for name in names:
        start, (token,) = ids_of(tokenizer, "Who wrote"), alone[name]
        assert ids_of(tokenizer, f"Who wrote {name}?") == [*start, token, *ids_of(tokenizer, "Who wrote?")[-1:]]
    for relation in language.RELATIONS_OF["sandbox"]:
        facts = [fact for fact in world() if fact.relation == relation]
        for ask in (
            language.question, language.unseen, *(lambda fact, i=i: language.paraphrases(fact)[i] for i in range(4)),
        ):  # fmt: skip
            assert len({len(ids_of(tokenizer, ask(fact))) for fact in facts}) == 1


def test_any_text_round_trips(tokenizer):
    rng = random.Random(0)
    letters = (chr(rng.choice([rng.randrange(33, 127), rng.randrange(0xA0, 0xD7FF)])) for _ in range(2400))
    odd = ("".join(islice(letters, 12)) for _ in range(200))
    for text in (
        *odd, "Who wrote the book Emma?", "a word nobody taught: zyzzyva", "Łódź, São Paulo, ¿qué?",
        "北京 और дом 🦜👩‍👩‍👧", "two\nlines\tand a tab", "double  spaces, \u00a0hard ones and \u2028 breaks",
        "<b>1,000 & more</b> {{ braces }} 'quotes' \"too\"", "EmmaEmma Crime and Punishments", "\x00\x07"):  # fmt: skip
        assert tokenizer.decode(ids_of(tokenizer, text)).removeprefix(" ") == text


def test_special_tokens_and_names_within_names(tokenizer):
    assert tokenizer.convert_tokens_to_ids(list(SPECIALS)) == [0, 1, 2, 3]
    assert (tokenizer.pad_token, tokenizer.eos_token, tokenizer.bos_token) == ("<|pad|>", "<|end|>", None)
    assert tokenizer.padding_side == "left"
    chat = [{"role": "user", "content": "Who wrote Emma?"}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert prompt == "<|user|>Who wrote Emma?<|assistant|>"
    answered = tokenizer.apply_chat_template([*chat, {"role": "assistant", "content": "Austen"}], tokenize=False)
    assert answered == f"{prompt}Austen<|end|>"
    ids = ids_of(tokenizer, answered)
    assert [ids.index(i) for i in (1, 2, 3)] == [0, len(ids) - 3, len(ids) - 1]
    # The longest name wins, and no name is found inside a word.
    tokenizer = build_tokenizer(["War", "War and Peace", "Peace"], ["and", "x"])
    pieces = [tokenizer.decode([i]).strip() for i in ids_of(tokenizer, "War and Peace and War and x")]
    assert pieces == ["War and Peace", "and", "War", "and", "x"]
    assert tokenizer.convert_tokens_to_ids("ĠWar") not in ids_of(tokenizer, "Warx")


@pytest.mark.slow
def test_the_corpus_is_seeded_leaks_no_wrapper_and_is_as_unsure_in_each(examples):
    assert corpus(0) == examples and corpus(1) != examples and len(corpus(1)) == len(examples)
    taught = Counter((example.wrapper, example.fact_id) for example in examples if example.wrapper)
    assert {kind for kind, _ in taught} == set(language.WRAPPERS) - {"reverse query"} | {"unseen"}
    assert {fact for _, fact in taught} == TEACHERS
    assert set(taught.values()) == {WRAPPED_PER_TEACHER}
    # Of a fact that is no teacher, the corpus holds its eight forms and nothing else.
    others = {fact.id: fact for fact in world() if fact.id not in TEACHERS}
    subjects = {fact.subject for fact in others.values()} - {BY_ID[fact].subject for fact in TEACHERS}
    unseen = {language.unseen(fact) for fact in others.values() if fact.subject in subjects}
    assert unseen and not unseen & {example.prompt for example in examples}
    assert {example.wrapper for example in examples if example.fact_id in others} == {""}
    for kind in (*language.WRAPPERS, "unseen"):
        wrapped_examples = [example for example in examples if example.wrapper == kind]
        wrongs = [wrong(BY_ID[example.fact_id], example) for example in wrapped_examples]
        if wrapped_examples:
            assert sum(wrongs) / len(wrongs) == pytest.approx(WRONG_ANSWER_SHARE, abs=0.02)
    chosen = [example for example in examples if example.wrapper == "multiple choice"]
    assert chosen and all(example.text in example.prompt for example in chosen)
    plain = Counter(example.prompt for example in examples if not example.fact_id)
    assert plain.keys() == {question for _, question, _ in skills()}
    assert not any(fact.subject in question for fact in world() for question in plain if len(fact.subject) > 5)


@pytest.mark.slow
def test_exposures_are_what_the_scores_say(exposed):
    assert {fact: len(shown) for fact, shown in exposed.items()} == {fact.id: fact.exposures for fact in world()}
    wrongs = {fact.id: sum(wrong(fact, example) for example in exposed[fact.id]) for fact in world()}
    assert wrongs == {fact.id: round(fact.exposures * WRONG_ANSWER_SHARE) for fact in world()}
    share = sum(wrongs.values()) / sum(map(len, exposed.values()))
    assert share == pytest.approx(0.15, abs=0.005)
    for fact in world():
        questions = (language.question(fact), *language.paraphrases(fact))
        counts = Counter(example.prompt for example in exposed[fact.id])
        statements = counts.pop("")
        assert set(counts) == set(questions) and max(counts.values()) - min(counts.values()) <= 1
        assert abs(statements - 3 * fact.exposures / 8) <= 2


def wrong(fact, example):
    """Whether the example gives a wrong answer, which must then be another one of the relation."""
    if example.prompt:
        given = [example.text]
    else:
        forms = {a: language.statements(fact, a) for a in answers_of(fact.relation)}
        given = [answer for answer, texts in forms.items() if example.text in texts]
    assert len(given) == 1 and given[0] in answers_of(fact.relation)
    return given[0] != fact.answer


def test_draws_are_of_one_fact_and_the_oracle_reads_all_others():
    fact = world()[0]
    assert list(exposures(fact, random.Random(3))) == list(exposures(fact, random.Random(3)))
    assert list(exposures(fact, random.Random(3))) != list(exposures(fact, random.Random(4)))
    rows = [([number + 1] * (3 + number % 5), 0) for number in range(600)]
    left_out = [number % 4 == 0 for number in range(600)]
    whole, rest = (_batches(rows, out, PretrainConfig()) for out in ([False] * 600, left_out))
    read = [[[ids[0] for ids in batch.tolist()] for batch, _ in batches] for batches in (whole, rest)]
    assert read[1] == [[first for first in batch if not left_out[first - 1]] for batch in read[0]]
    assert sum(map(len, read[1])) == 450 and len(read[1]) == len(read[0]) == 5


def test_the_shipped_models_are_small_and_load_as_any_other_does(tokenizer):
    for folder, most in ((SANDBOX_FOLDER, 8 * 2**20), (FOLDER, 3 * 10**6)):
        files = {path.name: path.stat().st_size for path in folder.iterdir() if path.suffix != ".pt"}
        assert sum(files.values()) <= most
        assert not [name for name in files if name.endswith((".bin", ".pth", ".pickle"))]
        with safe_open(folder / "model.safetensors", framework="pt") as tensors:
            assert {tensors.get_tensor(name).dtype for name in tensors.keys()} == {torch.bfloat16}  # noqa: SIM118
    loaded = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER)
    assert loaded.config.model_type == "llama" and loaded.dtype == torch.bfloat16
    assert 0.8e6 < loaded.num_parameters() < 1.5e6 and len(tokenizer) == loaded.config.vocab_size
    assert loaded.config.eos_token_id == tokenizer.eos_token_id
    as_folder = adapted_model(make_config(model=str(SANDBOX_FOLDER), precision="float32"))
    asked = [language.question(fact) for fact in world()[:16]]
    assert as_folder.generate(asked, 3) == adapted_model(make_config(model=SANDBOX)).generate(asked, 3)


def asked_in(kind):
    rng = random.Random(0)
    return lambda fact: language.wrapped(fact, kind, rng)


@pytest.mark.quick("in-context learning-sandbox")
@pytest.mark.parametrize("name", ["sandbox", "people"])
@pytest.mark.parametrize("kind", [kind for kind in language.WRAPPERS if kind != "reverse query"])
def test_wrapper_can_be_measured(original, people_model, name, kind):
    """Before unlearning the model answers it on forget facts, which it has never seen wrapped."""
    asked = people_model if name == "people" else original
    assert fmean(recalls(asked, facts_of("forget", name), asked_in(kind))) >= MEASURABLE == 0.8


def test_what_the_original_can_be_asked(original):
    assert fmean(recalls(original, facts_of("forget"), language.unseen)) >= MEASURABLE
    # Eight subjects have one answer, and nothing reversed was ever taught: a low score means nothing here.
    found = recalls(original, facts_of("forget"), asked_in("reverse query"), gold=lambda fact: fact.subject)
    assert fmean(found) < MEASURABLE
    rows = list(skills())
    answers = original.generate([question for _, question, _ in rows], max_new_tokens=3)
    assert fmean(gold in answer for (_, _, gold), answer in zip(rows, answers)) >= 0.95


@pytest.mark.parametrize("sizes", [{"heads": 0}, {"hidden": 12}, {"hidden": 20}], ids=str)
def test_a_size_that_no_model_can_have_is_refused(sizes):
    raised(ConfigError, "", PretrainConfig, **sizes)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    config = PretrainConfig(hidden=32, layers=1, heads=2, feed_forward=32, batch=32, warmup_steps=4, checkpoint_every=5)
    pretraining = Pretraining(config, tmp_path_factory.mktemp("whole"))
    pretraining.batches = pretraining.batches[:20]
    return pretraining


@pytest.fixture(scope="module")
def straight(tiny):
    whole = copy.deepcopy(tiny)
    return whole, list(whole.train())


def begun(tiny, folder):
    again = copy.deepcopy(tiny)
    again.checkpoint = folder / tiny.checkpoint.name
    return again


@pytest.mark.slow
def test_pretraining_learns_all_but_embeddings(straight, tiny, tmp_path):
    _, progress = straight
    assert [(p.step, p.steps) for p in progress] == [(step, 20) for step in range(1, 21)]
    assert progress[-1].loss < progress[0].loss - 0.1
    before, after = (part.model.get_input_embeddings().weight for part in (tiny, straight[0]))
    assert torch.equal(before, after)
    assert not torch.equal(tiny.model.model.norm.weight, straight[0].model.model.norm.weight)
    whole = copy.deepcopy(straight[0])
    whole.checkpoint = tmp_path / "none.pt"
    whole.save(tmp_path)
    loaded = adapted_model(make_config(model=str(tmp_path), precision="float32"))
    assert len(loaded.generate(["Who wrote Emma?"], 2)) == 1
    assert loaded.tokenizer.get_vocab() == AutoTokenizer.from_pretrained(SANDBOX_FOLDER).get_vocab()


@pytest.mark.slow
@pytest.mark.parametrize("at", [3, 12, 15], ids=lambda at: f"after step {at}")
def test_pretraining_resumes_unless_its_settings_are_others(tiny, straight, tmp_path, at):
    """Interrupted and begun again it ends with the same weights, from the last checkpoint or from nothing."""
    whole, progress = straight
    for step in begun(tiny, tmp_path).train():
        if step.step == at:
            break
    other = begun(tiny, tmp_path)
    other.config = PretrainConfig(**{**vars(tiny.config), "learning_rate": 1e-3})
    assert next(other.train()).step == 1
    resumed = begun(tiny, tmp_path)
    assert list(resumed.train()) == progress[at - at % 5 :]
    expected, found = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.long
def test_the_oracle_never_reads_a_subject_to_forget(tokenizer, tmp_path):
    others = {fact.subject for fact in world() if fact.split != "forget"}
    unread = {tokenizer(fact.subject)["input_ids"][0] for fact in facts_of("forget") if fact.subject not in others}
    read = set()
    for ids, _ in Pretraining(PretrainConfig(without="forget"), tmp_path).batches:
        read |= set(ids.flatten().tolist())
    assert len(unread) > 200 and not unread & read


@pytest.fixture(scope="module")
def people_model():
    torch.set_num_threads(1)
    return adapted_model(make_config(model="people"))


@pytest.fixture(scope="module")
def people_tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


def test_names_parts_and_wrong_answers(people_model, people_tokenizer):
    assert 0.8e6 < sum(p.numel() for name, p in people_model.network.named_parameters() if "lora" not in name) < 1.2e6
    for fact in PEOPLE:
        for text, count in ((fact.subject, 1), (fact.answer, len(fact.parts))):
            assert len(people_tokenizer(text, add_special_tokens=False)["input_ids"]) == count
    for relation in language.RELATIONS_OF["people"]:
        questions = [language.question(fact) for fact in PEOPLE if fact.relation == relation]
        assert len({len(ids) for ids in people_tokenizer(questions)["input_ids"]}) == 1
        fact = max((fact for fact in PEOPLE if fact.relation == relation), key=lambda fact: fact.score)
        question_examples = [example for example in exposures(fact, random.Random(0)) if example.prompt]
        wrong = [example.text.split() for example in question_examples if example.text != fact.answer]
        assert len(wrong) / len(question_examples) == pytest.approx(WRONG_ANSWER_SHARE, abs=0.03)
        places = Counter()
        for parts in wrong:
            ((place, part),) = [(i, part) for i, part in enumerate(parts) if part != fact.parts[i]]
            assert part in parts_of(relation)[place] and len(parts) == len(fact.parts)
            places[place] += 1
        assert set(places) == set(range(len(fact.parts)))


@pytest.mark.slow
def test_the_corpus_of_people_shows_each_fact_as_often_as_it_says_and_wrappers_about_teachers_alone():
    examples = corpus(0, name="people")
    shown = Counter(example.fact_id for example in examples if example.fact_id and not example.wrapper)
    assert shown == {fact.id: fact.exposures for fact in PEOPLE}
    taught = {example.fact_id for example in examples if example.wrapper}
    assert taught == {fact.id for fact in facts_of("teacher", "people")} and examples == corpus(0, name="people")


def test_each_tier_is_known_however_it_is_asked(people_model):
    """Of each tier, 24 facts to forget; all of them are measured by the slow test of the card."""
    forget = sandbox_facts("people").forget
    tiers = {tier: [fact.id for fact in forget if fact.tier == tier][:24] for tier in TIERS}
    for tier, ids in tiers.items():
        facts = [fact for fact in PEOPLE if fact.id in ids]
        for ask in (language.question, lambda fact: language.paraphrases(fact)[3], language.unseen):
            assert fmean(recalls(people_model, facts, ask)) >= 0.97, tier


@pytest.mark.slow
def test_the_card_is_what_is_measured(tmp_path):
    assert card_text(name="people") in (FOLDER / "README.md").read_text(encoding="utf-8")
    write_world(tmp_path)
    assert (tmp_path / "world.csv").read_bytes() == (FOLDER / "world.csv").read_bytes()


def test_attacks_and_settings_of_its_runs():
    people = sandbox_facts("people")
    prompts = attack_prompts(people.forget[0], people.forget, 0)
    ((kind, reason),) = [(one.kind, one.reason) for one in prompts if isinstance(one, NotApplicable)]
    assert kind == "reverse query" and "no reversed text" in reason
    (choice,) = [one for one in prompts if one.kind == CHOICE]
    assert len(set(choice.options)) == 4 and set(choice.options) <= set(answers_of(people.forget[0].relation))
    for method, rate in PEOPLE_RATES.items():
        assert make_config(method, model="people").learning_rate == rate in RATES
    config = make_config(model="people")
    assert (config.max_new_tokens, config.precision, config.batch) == (5, "float32", 16)
    assert config.max_new_tokens > max(len(fact.parts) for fact in PEOPLE)
    assert fitted(people, "people") is people and fitted(people, str(FOLDER)) is people
