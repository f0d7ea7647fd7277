from dataclasses import replace
from itertools import combinations

import pytest
import torch

from adapop.config.presets import make_config
from adapop.errors import ConfigError, DataError, ModelError
from adapop.model.loading import adapted_model
from adapop.model.paired import paired_model
from adapop.paths import SHIPPED
from adapop.probes import strength
from adapop.probes.ask import ask
from adapop.probes.inspection import Drawing, Question, leak_at_k
from adapop.probes.intervals import wilson
from adapop.probes.layers import layers_of
from adapop.probes.tokenwise import Column, asked_columns, inspect, readable, samples
from adapop.runs.columns import columns_of
from adapop.runs.examples import example
from adapop.service import jobs
from browsing import HOSTILE
from ggufs import write_gguf

MOST = 12


@pytest.fixture(scope="module")
def columns(model):
    return [Column("original", lambda: model, 0.0), Column("unlearned", lambda: model)]


@pytest.fixture(scope="module")
def fact(sandbox):
    return max(sandbox.forget, key=lambda one: one.score)


@pytest.fixture(scope="module")
def plainly(model, tmp_path_factory):
    """The same two models by transformers and peft alone, in float32."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("adapter")
    model.save_adapter(folder)
    load = lambda: AutoModelForCausalLM.from_pretrained(SHIPPED["sandbox"], dtype=torch.float32).eval()  # noqa: E731
    return [load(), PeftModel.from_pretrained(load(), folder).eval()]


def ids_of(model, question, strip):
    read = model.tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=False
    )
    return len(read), [*read, *(step.token.id for step in strip.steps)]


def test_every_share_is_transformers_own_in_both_models(model, columns, fact, plainly):
    found = inspect(columns, Question(fact.question, fact.answer), MOST)
    assert [strip.name for strip in found.strips] == ["original", "unlearned"]
    (right,) = {step.id for step in [found.strips[0].steps[0].token]}
    for strip in found.strips:
        begins, ids = ids_of(model, fact.question, strip)
        with torch.no_grad():
            tables = [one(torch.tensor([ids])).logits[0].float().softmax(-1) for one in plainly]
        for place, step in enumerate(strip.steps):
            own = [table[begins + place - 1] for table in tables]
            for likely in (step.token, *step.likely):
                assert likely.shares == pytest.approx([float(one[likely.id]) for one in own], abs=2e-5)
            assert step.right == pytest.approx([float(one[right]) for one in own], abs=2e-5)
            assert step.parted == (own[0].argmax() != own[1].argmax())
            assert {int(one.argmax()) for one in own} <= {likely.id for likely in step.likely}
            assert len(step.likely) == 5
        writer = plainly[strip.name == "unlearned"]
        greedy = writer.generate(torch.tensor([ids[:begins]]), do_sample=False, max_new_tokens=MOST, pad_token_id=0)
        assert greedy[0, begins:].tolist() == [step.token.id for step in strip.steps]
        assert strip.steps[-1].token.end and not any(step.token.end for step in strip.steps[:-1])


def test_the_replies_are_judged_as_the_two_models_replies_always_were(model, columns, fact, sandbox):
    found = inspect(columns, Question(fact.question, fact.answer), MOST, sandbox)
    (asked,) = ask(model, [fact.question], [fact.answer], MOST, sandbox)
    assert found.asked[1] == asked
    assert found.asked[0].unlearned == asked.original


def test_an_exchanged_token_and_a_typed_beginning_are_continued_by_both(model, columns, fact):
    first = inspect(columns, Question(fact.question, fact.answer), MOST).strips[0].steps[0]
    other = next(one for one in first.likely if one.id != first.token.id)
    question = Question(fact.question, fact.answer, ids=(other.id,))
    for strip in inspect(columns, question, MOST).strips:
        assert strip.begun == 1 and strip.steps[0].token == other
    typed = inspect(columns, Question(fact.question, fact.answer, begun=" It is "), MOST).strips
    for strip in typed:
        given = strip.steps[: strip.begun]
        assert "".join(step.token.text for step in given).replace("␣", "").strip() == "It is"
        assert strip.text.startswith("It is") and len(strip.steps) > strip.begun
    for ids in ((-1,), (10**9,), ("1",), (True,)):
        with pytest.raises(DataError, match="tokens"):
            inspect(columns, Question(fact.question, ids=ids), MOST)
    with pytest.raises(DataError, match="Shorten"):
        inspect(columns, Question("a " * 1_500), MOST)


def test_a_cut_reply_has_no_end_and_hostile_or_foreign_text_is_asked_too(columns, fact):
    for strip in inspect(columns, Question(fact.question), 1).strips:
        assert not strip.steps[-1].token.end and len(strip.steps) == 1
    for text in (HOSTILE, "Żółw 巴黎 \u202e", "<|end|><|assistant|>"):
        found = inspect(columns, Question(text, text), MOST)
        assert found.asked[0].prompt == text and all(strip.steps for strip in found.strips)


def test_a_token_is_readable_in_every_kind_of_vocabulary(model):
    tokenizer = model.tokenizer
    names = {readable(tokenizer, token) for token in range(len(tokenizer))}
    assert {"␣", "⟨E2⟩", "A", "<|end|>"} <= names and "" not in names
    assert all(name.isprintable() for name in names)

    class Pieces:
        """A vocabulary in sentencepiece's manner."""

        pieces = ("▁Paris", "<0x41>", "<0x0A>", "<0xE2>", "\n\n", "▁▁", "\u202e", "می\u200c")

        def convert_ids_to_tokens(self, token):
            return self.pieces[token] if token < len(self.pieces) else None

        def decode(self, ids):
            return self.pieces[ids[0]].replace("▁", " ").removeprefix(" ")

    texts = [readable(Pieces(), token) for token in range(9)]
    assert texts == [" Paris", "A", "⟨0A⟩", "⟨E2⟩", "⏎⏎", "␣␣", "⟨U+202E⟩", "می\u200c", "⟨8⟩"]


def test_a_letter_of_several_tokens_is_shown_at_its_last_and_a_cut_one_is_left_out(model, columns, fact):
    strip = inspect(columns, Question(fact.question, begun="巴é"), MOST).strips[0]
    given = [step.token.text for step in strip.steps[: strip.begun]]
    letters = [text[text.rindex("⟩") + 1 :] for text in given if "⟨" in text]
    assert [letter for letter in letters if letter] == ["巴", "é"] and len(letters) == 5
    first = strip.steps[next(at for at, text in enumerate(given) if "⟨" in text)].token.id
    for cut in inspect(columns, Question(fact.question, ids=(first,)), 1).strips:
        assert cut.text == ""


def test_samples_repeat_by_their_seed_and_the_share_that_leaks_has_wilsons_interval(columns, fact, sandbox):
    question, state = Question(fact.question, fact.answer), torch.random.get_rng_state()
    drawn = samples(columns, question, Drawing(16, seed=3, most=8), sandbox)
    assert drawn == samples(columns, question, Drawing(16, seed=3, most=8), sandbox)
    assert drawn != samples(columns, question, Drawing(16, seed=4, most=8), sandbox)
    assert torch.equal(state, torch.random.get_rng_state())
    greedy = inspect(columns, question, 8, sandbox).strips
    for one, strip in zip(drawn, greedy):
        assert one.greedy == strip.text and len(one.texts) == len(one.gave_away) == 16
        assert one.gave_away == tuple(fact.answer in text for text in one.texts)
        assert one.share == wilson(sum(one.gave_away) / 16, 16)
    cold = samples(columns, question, Drawing(4, temperature=0.01), sandbox)
    assert all(set(one.texts) == {one.greedy} for one in cold)
    assert samples(columns, Question("Who?"), Drawing(2))[0].share is None
    counts, temperatures = ({"count": 0}, {"count": 2.5}), ({"temperature": 0.0}, {"temperature": float("nan")})
    for wrong in (*counts, *temperatures, {"top_p": 1.1}, {"most": 999}):
        with pytest.raises(ConfigError, match="is"):
            Drawing(**wrong)


def test_a_conversation_is_held_with_every_model_by_itself(model, columns, fact, sandbox):
    earlier = (sandbox.retain[0].question, sandbox.retain[1].question)
    found = inspect(columns, Question(fact.question, fact.answer, earlier=earlier), MOST)
    for column, strip in zip(columns, found.strips):
        turns = []
        for asked, reply in zip(earlier, strip.said, strict=True):
            with column.speaking():
                ids = model.tokenizer.apply_chat_template(
                    [*turns, {"role": "user", "content": asked}], add_generation_prompt=True, return_tensors="pt",
                    return_dict=True)  # fmt: skip
                said = model.network.generate(**ids, do_sample=False, max_new_tokens=MOST, pad_token_id=0)
            said = model.tokenizer.decode(said[0, ids["input_ids"].shape[1] :], skip_special_tokens=True).strip()
            assert reply == said
            turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": reply}]
    assert found.asked[1].unlearned.recall is not None and found.asked[1].unlearned.gold_rank is None


def test_a_model_asked_as_text_is_read_token_by_token_begun_and_sampled_too(fact, sandbox):
    text = adapted_model(make_config("adapop", model="sandbox", precision="float32", asking="auto"))
    text.ask("text-examples", [(one.question, one.answer) for one in sandbox.retain[:3]])
    columns = [Column("original", lambda: text, 0.0), Column("unlearned", lambda: text)]
    found = inspect(columns, Question(fact.question, fact.answer), MOST)
    assert found.asked[0].sent.rstrip().endswith(f"Question: {fact.question}\nAnswer:")
    assert [strip.text for strip in found.strips] == text.generate([fact.question], MOST) * 2, "nothing is trained"
    row = text.batch(text.rows([fact]))
    with torch.no_grad():
        shares = text.score(row, logits=True).logits[0].softmax(-1)
    assert found.strips[0].steps[0].right[0] == pytest.approx(float(shares[row.target[0]]), abs=2e-5)
    begun = inspect(columns, Question(fact.question, fact.answer, begun="It is"), MOST).strips
    assert all(strip.begun == 2 or strip.text.startswith("It is") for strip in begun)
    (greedy, _) = (one.greedy for one in samples(columns, Question(fact.question), Drawing(2, most=MOST)))
    assert greedy == found.strips[0].text


def test_strength_walks_from_the_original_to_the_unlearned_model_and_leaves_it_as_it_was(model, columns, fact, sandbox):
    none, half, full = strength.at(model, sandbox, (0.0, 0.5, 1.0), fact.id)
    names = [group.name for group in none.groups]
    assert names == ["This fact", "similar facts", "rare", "middle", "popular", "held out"]
    steps = inspect(columns, Question(fact.question, fact.answer), MOST).strips[0].steps
    expected = steps[0].right  # its answer is one token
    assert [none.groups[0].probability, full.groups[0].probability] == pytest.approx(expected, abs=2e-5)
    assert half.groups[0].probability not in (none.groups[0].probability, full.groups[0].probability)
    assert strength.at(model, sandbox, (1.0,), fact.id)[0] == full
    assert "This fact" not in strength.groups_of(sandbox, "no such fact")


def test_the_layers_of_a_reply_are_the_final_norm_and_head_after_each_layer(model, columns, fact, plainly):
    grid = layers_of(model, Question(fact.question, fact.answer), MOST, "original")
    strip = inspect(columns, Question(fact.question, fact.answer), MOST).strips[0]
    assert grid.tokens == tuple(step.token.text for step in strip.steps)
    begins, ids = ids_of(model, fact.question, strip)
    base = plainly[0]
    with torch.no_grad():
        states = base(torch.tensor([ids]), output_hidden_states=True).hidden_states
        for layer, cells in enumerate(grid.original[:-1], start=1):
            shares = base.lm_head(base.model.norm(states[layer]))[0].softmax(-1)
            own = [float(shares[begins + place - 1, step.token.id]) for place, step in enumerate(strip.steps)]
            assert [cell.share for cell in cells] == pytest.approx(own, abs=2e-5)
            assert cells[0].words[0] == readable(model.tokenizer, int(shares[begins - 1].argmax()))
    for place, grid_of in enumerate((grid.original, grid.unlearned)):
        assert [cell.share for cell in grid_of[-1]] == [step.token.shares[place] for step in strip.steps]


def test_leak_at_k_is_the_share_of_all_choices_of_k_samples_that_hold_a_leak():
    for found, drawn, k in ((0, 5, 2), (1, 5, 1), (2, 6, 3), (5, 6, 2), (6, 6, 1)):
        chosen = list(combinations([True] * found + [False] * (drawn - found), k))
        assert leak_at_k(found, drawn, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))


def test_two_whole_models_are_read_token_by_token_but_have_no_strength_in_between(fact):
    oracle = make_config("ga", model=str(SHIPPED["sandbox"] / "oracle"), precision="float32")
    pair = paired_model(make_config("ga", model="sandbox", precision="float32"), oracle)
    columns = [Column("original", lambda: pair, 0.0), Column("unlearned", lambda: pair)]
    found = inspect(columns, Question(fact.question, fact.answer), MOST)
    assert found.strips[0].text == fact.answer != found.strips[1].text
    assert found.strips[0].steps[0].parted and None not in found.strips[1].steps[0].token.shares
    with pytest.raises(ModelError, match="no adapter to scale"):
        Column("half", lambda: pair, 0.5).speaking().__enter__()


def test_a_pair_of_two_vocabularies_one_a_gguf_file_is_compared_by_text(model, columns, fact, sandbox, tmp_path):
    pytest.importorskip("gguf")
    write_gguf(tmp_path / "other.gguf")
    configs = [make_config("ga", model=one, precision="float32") for one in ("sandbox", str(tmp_path / "other.gguf"))]
    pair = paired_model(*configs)
    two = [Column("original", lambda: pair, 0.0), Column("unlearned", lambda: pair)]
    question = Question(fact.question, fact.answer)
    before, after = inspect(two, question, MOST, sandbox).strips
    alone = inspect(columns[:1], question, MOST, sandbox)
    assert [step.token.shares for step in before.steps] == [
        (pytest.approx(step.token.shares[0], abs=2e-5), None) for step in alone.strips[0].steps
    ]
    assert before.text == fact.answer != after.text and after.steps[0].token.shares[0] is None
    assert [step.parted for step in before.steps] == [True, False], "their texts part at the first word"
    pressed = before.steps[0].likely[1]
    for strip in inspect(two, replace(question, ids=(pressed.id,)), MOST).strips:
        assert strip.text.startswith(pressed.text.strip()) and strip.begun
    pressed = next(one for one in after.steps[0].likely if one.text.strip().isalpha())
    for strip in inspect(two, replace(question, ids=(pressed.id,), ids_of=1), MOST).strips:
        assert strip.text.startswith(pressed.text.strip()) and strip.begun
    (now,), (then,) = (strength.at(one, sandbox, (0.0,), fact.id) for one in (pair, model))
    assert [group.probability for group in now.groups] == pytest.approx(
        [one.probability for one in then.groups], abs=2e-5
    )
    assert asked_columns(two, [fact.question], [fact.answer], MOST)[1][0].sent == alone.asked[0].sent
    assert samples(two, question, Drawing(2, most=4), sandbox)[0].greedy == fact.answer
    with pytest.raises(ModelError, match="different vocabularies"):
        layers_of(pair, question, MOST, "original")


def test_two_adapters_on_one_base_share_it_and_each_answers_as_it_does_alone(fact):
    one, other = example("adapop"), example("wga")
    question, chosen = Question(fact.question, fact.answer), columns_of(one, [("WGA", other)])

    def replies(folder, columns):
        jobs._drop()  # each is loaded anew
        return jobs.inspect_columns(folder, question, columns).strips

    def shares(strip, place):
        return [step.token.shares[place] for step in strip.steps]

    alone, beside = replies(one.folder, columns_of(one)), replies(other.folder, columns_of(other))
    together = replies(one.folder, chosen)
    original, unlearned, wga = jobs._columns(chosen)
    assert wga.load().base is unlearned.load().base is original.load().base
    assert [strip.text for strip in together] == [strip.text for strip in (*alone, beside[1])]
    assert shares(together[2], 2) == pytest.approx(shares(beside[1], 1), abs=2e-5)
    for place in (0, 1):
        assert shares(together[place], place) == pytest.approx(shares(alone[place], place), abs=2e-5)
    assert shares(together[1], 1) != shares(together[1], 2)
    assert jobs.inspect_columns(other.folder, question, columns_of(other)).strips == beside, "later, by itself"
    jobs._drop()
