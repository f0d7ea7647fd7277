"""Pretraining of the sandbox model: minutes on two cores, resumable, bit-identical for a seed; and
its card: recall by exposure level, by form, and under each attack.

In a chat turn only the answer is trained on, in a statement everything. The embeddings are fixed
random vectors. A name is one token, so a trained embedding would store the name's answer where an
adapter on the layers cannot reach it (measured: after 5 epochs of WGA at 2e-3 the recall of famous
facts was still 1, against 0.67 with fixed embeddings).

Its tokenizer has one token for each name and each word of the world; other text is bytes. So a rare
name is never split into more tokens than a famous one, and each part of an answer is one scored
token: popularity stays the only difference. It is built from parts that `AutoTokenizer` loads: a
byte-level BPE without merges that reads a known word whole, like Llama 3's (`ignore_merges`)."""

import math
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from statistics import fmean

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from torch.nn.functional import cross_entropy
from tqdm import tqdm
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from adapop.config.presets import make_config
from adapop.errors import ConfigError
from adapop.facts.fact import FACT_GROUPS, SANDBOX, TIERS, Fact
from adapop.facts.tiers import ON_SCALE
from adapop.facts.world import language
from adapop.facts.world.language import RELATIONS_OF, skills
from adapop.facts.world.world import (
    EXPOSURES_PER_SCORE,
    LEVELS,
    WRONG_ANSWER_SHARE,
    WorldFact,
    facts_of,
    parts_of,
    world,
)
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.model.tokens import encode_facts
from adapop.paths import ASSETS
from adapop.probes.oracle import write_guesses
from adapop.probes.recall import rouge_l_recall
from adapop.sandbox.corpus import TrainingText, corpus

PAD, USER, ASSISTANT, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"
SPECIALS = (PAD, USER, ASSISTANT, END)
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|end|>"
    "{% else %}<|user|>{{ message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def build_tokenizer(names: Iterable[str], texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of the special tokens, 256 bytes, every name, and every word of the texts."""
    longest_first = sorted(set(names), key=lambda name: (-len(name), name))
    any_name = "|".join(map(re.escape, longest_first))
    pattern = rf" ?(?:{any_name})(?!\w)| ?\w+| ?[^\w\s]|\s"
    words = {piece for text in texts for piece in re.findall(pattern, f" {text}")}
    words = sorted(words | {f" {name}" for name in longest_first})
    byte_alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = dict.fromkeys([*SPECIALS, *byte_alphabet, *(_byte_level(word) for word in words)])
    numbered = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocab=numbered, merges=[], ignore_merges=True))
    # so that a word is the same token after <|assistant|> as within a sentence
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    specials = [AddedToken(token, special=True, normalized=False) for token in SPECIALS]
    tokenizer.add_special_tokens(specials)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )


def _byte_level(word: str) -> str:
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    (piece, _), *rest = bytewise.pre_tokenize_str(word)
    assert not rest
    return piece


IGNORED = -100
MOST_TIMES, MOST_SPREAD, MOST_HIDDEN = 100, 4, 4_096  # beyond what any experiment of ours used
BATCHES_PER_CHUNK = 16  # rows are sorted by length within a chunk, to reduce padding


@dataclass(frozen=True)
class PretrainConfig:
    """The settings of pretraining. Weights are bit-identical for a seed, thread count and machine.

    wrong_share: share of exposures with a wrong answer, [0, 1]. exposures, spread: per_score and
    spread of `world.exposures_of`. world: name of a shipped world. without: the split whose facts
    are never shown, "" for none; every other sentence keeps its step and its learning rate."""

    seed: int = 0
    wrong_share: float = WRONG_ANSWER_SHARE
    exposures: float = EXPOSURES_PER_SCORE
    spread: float = 1.0
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    feed_forward: int = 384
    batch: int = 128
    learning_rate: float = 2e-3
    final_rate_share: float = 0.02
    warmup_steps: int = 200
    weight_decay: float = 0.05
    clip: float = 1.0
    embedding_std: float = 0.1
    threads: int = 1
    checkpoint_every: int = 200
    world: str = SANDBOX
    without: str = ""

    def __post_init__(self) -> None:
        """Refuses settings out of range before a corpus is written. Raises ConfigError."""
        ranges = {
            "seed": (0, 2**63 - 1),
            "wrong_share": (0, 1),
            "exposures": (0, MOST_TIMES * EXPOSURES_PER_SCORE),
            "spread": (0, MOST_SPREAD),
            "heads": (1, MOST_HIDDEN // 2),
            "hidden": (2 * self.heads, MOST_HIDDEN),
        }
        for name, (low, high) in ranges.items():
            if not low <= getattr(self, name) <= high:
                fix = f"It must be from {low:,} to {high:,}."
                raise ConfigError(f"{name} is {getattr(self, name)}.", fix)
        if self.hidden % (2 * self.heads):  # position encodings rotate pairs
            fix = f"It must be a multiple of {2 * self.heads}."
            raise ConfigError(f"hidden is {self.hidden}.", fix)


@dataclass(frozen=True)
class PretrainStep:
    """The state after `step` of `steps` optimiser steps. loss: nats per trained token."""

    step: int
    steps: int
    loss: float


class Pretraining:
    """Builds the sandbox model; iterate `train()` to the end, then `save(folder)`."""

    def __init__(self, config: PretrainConfig, work: Path) -> None:
        self.config, self.checkpoint = config, work / f"pretrain-seed{config.seed}.pt"
        torch.manual_seed(config.seed)
        torch.set_num_threads(config.threads)
        corpus_of = config.wrong_share, config.exposures, config.spread, config.world
        examples = corpus(config.seed, *corpus_of)
        self.tokenizer = world_tokenizer(examples, config.world)
        self.model = LlamaForCausalLM(_architecture(config, self.tokenizer))
        codes = self.model.get_input_embeddings().weight.requires_grad_(False)
        with torch.no_grad():
            codes.normal_(0, config.embedding_std)
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        rates = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
        self.optimizer = torch.optim.AdamW(trained, betas=(0.9, 0.98), **rates)
        unseen = {fact.id for fact in facts_of(config.without, config.world)}
        left_out = [example.fact_id in unseen for example in examples]
        self.batches = _batches(_rows(examples, self.tokenizer), left_out, config)

    def train(self) -> Iterator[PretrainStep]:
        """One pass over the corpus, from the checkpoint in the work folder if there is one."""
        steps = len(self.batches)
        for step in range(self._restore(), steps):
            ids, labels = self.batches[step]
            for group in self.optimizer.param_groups:
                group["lr"] = _rate(step, steps, self.config)
            logits = self.model(input_ids=ids).logits[:, :-1].float()
            targets = labels[:, 1:].flatten()
            loss = cross_entropy(logits.flatten(0, 1), targets, ignore_index=IGNORED)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
            self.optimizer.step()
            if (step + 1) % self.config.checkpoint_every == 0:
                self._keep(step + 1)
            yield PretrainStep(step + 1, steps, loss.item())

    def save(self, folder: Path) -> None:
        """Writes model (safetensors, bf16) and tokenizer as `from_pretrained` expects them."""
        self.model.to(torch.bfloat16).save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        self.checkpoint.unlink(missing_ok=True)

    def _keep(self, step: int) -> None:
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        part = self.checkpoint.with_suffix(".writing")
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**state, "step": step, "config": asdict(self.config)}, part)
        os.replace(part, self.checkpoint)

    def _restore(self) -> int:
        if not self.checkpoint.exists():
            return 0
        state = torch.load(self.checkpoint, weights_only=True)
        if state["config"] != asdict(self.config):
            return 0
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        return state["step"]


def build(config: PretrainConfig, folder: Path) -> None:
    """Builds the sandbox model in `folder`, or resumes its checkpoint, with a progress bar."""
    folder.mkdir(parents=True, exist_ok=True)
    pretraining = Pretraining(config, folder)
    title = f"pretraining the {config.world}"
    with tqdm(total=len(pretraining.batches), desc=title, unit="step") as bar:
        for progress in pretraining.train():
            bar.update(progress.step - bar.n)
            bar.set_postfix(loss=f"{progress.loss:.3f}", refresh=False)
    pretraining.save(folder)


def world_tokenizer(examples: list[TrainingText], name: str) -> PreTrainedTokenizerFast:
    """The tokenizer of a world: its names and every word of the corpus."""
    names = {piece for fact in world(name) for piece in (fact.subject, *fact.parts)}
    texts = {text for example in examples for text in (example.prompt, example.text)}
    texts |= {relation.reverse for relation in RELATIONS_OF[name].values()}
    return build_tokenizer(names, sorted(texts))


def _architecture(config: PretrainConfig, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden,
        intermediate_size=config.feed_forward,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )


def _rows(
    examples: list[TrainingText], tokenizer: PreTrainedTokenizerFast
) -> list[tuple[list[int], int]]:
    """(token ids, index of the first trained token) of each example; a text is tokenised once."""
    user, assistant = tokenizer.convert_tokens_to_ids(["<|user|>", "<|assistant|>"])
    texts = {text for example in examples for text in (example.prompt, example.text)}
    distinct = sorted(filter(None, texts))
    ids = dict(zip(distinct, tokenizer(distinct, add_special_tokens=False)["input_ids"]))
    rows = []
    for example in examples:
        head = [user, *ids[example.prompt], assistant] if example.prompt else []
        rows.append(([*head, *ids[example.text], tokenizer.eos_token_id], len(head)))
    return rows


def _batches(
    rows: list[tuple[list[int], int]], left_out: list[bool], config: PretrainConfig
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The batches, (ids, labels) as `_padded` gives them. A row that is left out still takes its
    place in a batch, so that all other rows keep theirs."""
    generator = torch.Generator().manual_seed(config.seed)
    size = config.batch * BATCHES_PER_CHUNK
    batches = []
    for start in range(0, len(rows), size):
        chunk = sorted(range(start, min(start + size, len(rows))), key=lambda i: len(rows[i][0]))
        pieces = [chunk[i : i + config.batch] for i in range(0, len(chunk), config.batch)]
        order = torch.randperm(len(pieces), generator=generator).tolist()
        batches += [_padded([rows[i] for i in pieces[k] if not left_out[i]]) for k in order]
    return batches


def _padded(rows: list[tuple[list[int], int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-padded ids (pad is 0) and labels, [B, T]. Attention is causal, so no mask is needed."""
    length = max(len(ids) for ids, _ in rows)
    padded = torch.tensor([ids + [0] * (length - len(ids)) for ids, _ in rows])
    rest = [[IGNORED] * first + ids[first:] for ids, first in rows]
    labels = torch.tensor([own + [IGNORED] * (length - len(own)) for own in rest])
    return padded, labels


def _rate(step: int, steps: int, config: PretrainConfig) -> float:
    """The rate of a step: linear warm-up, then cosine decay to `final_rate_share` of the peak."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, steps - config.warmup_steps)
    left = 0.5 * (1 + math.cos(math.pi * done))
    share = config.final_rate_share + (1 - config.final_rate_share) * left
    return config.learning_rate * share


MEASURABLE = 0.8
SPARE_TOKENS = 3  # for a reply that goes on after the answer
CARD = "README.md"
GROUP_TITLES = {"forget": "to forget", "retain": "retained", "holdout": "held out"}


def recalls(
    model: AdaptedModel,
    facts: Sequence[WorldFact],
    ask: Callable[[WorldFact], str],
    gold=lambda f: f.answer,
):
    """ROUGE-L recall of each fact, asked in the given form, [0, 1]."""
    longest = max(len(fact.parts) for fact in facts)
    answers = model.generate([ask(fact) for fact in facts], max_new_tokens=longest + SPARE_TOKENS)
    return [rouge_l_recall(gold(fact), answer) for fact, answer in zip(facts, answers)]


def card_text(folder: Path | None = None, name: str = SANDBOX) -> str:
    """The measured part of a world's model card, as Markdown tables. folder: of the build to
    measure, by default the shipped one."""
    config = make_config(model=name if folder is None else str(folder), precision="float32")
    model = adapted_model(config)
    forget, several = facts_of("forget", name), any(len(fact.parts) > 1 for fact in world(name))
    parameters = sum(p.numel() for n, p in model.network.named_parameters() if "lora" not in n)
    lines = [
        f"{parameters:,} parameters, {len(model.tokenizer):,} tokens, {len(world(name)):,} facts. "
        f"A score of s stands for {EXPOSURES_PER_SCORE:g} s exposures in pretraining.",
        "",
        "### Canonical question, all facts",
        "",
        f"| level | score | exposures | facts | recall | mean probability of "
        f"{'a token of ' * several}the answer |",
        "|---|---|---|---|---|---|",
    ]
    for level in range(LEVELS):
        facts = [fact for fact in world(name) if fact.level == level]
        recall = fmean(recalls(model, facts, language.question))
        scores, counts = [fact.score for fact in facts], [fact.exposures for fact in facts]
        cells = f"{_span(scores)} | {_span(counts)} | {len(facts)} | {recall:.3f}"
        lines.append(f"| {level} | {cells} | {_probability(model, facts):.3f} |")
    head = f"| form | {' | '.join(TIERS)} | |"
    lines += ["", "### Facts to forget, by form of the question", "", head, "|---|---|---|---|---|"]
    for form, ask in _forms().items():
        reverse = form == "reverse query"
        gold = attrgetter("subject" if reverse else "answer")
        by_tier = _by_tier(forget, recalls(model, forget, ask, gold))
        verdict = "" if min(by_tier) >= MEASURABLE else "not measurable"
        lines.append(f"| {form} | {' | '.join(f'{value:.2f}' for value in by_tier)} | {verdict} |")
    lines += ["", "### Not facts", "", "| family | questions | recall |", "|---|---|---|"]
    for family in dict.fromkeys(family for family, _, _ in skills()):
        rows = [(question, answer) for of, question, answer in skills() if of == family]
        answers = model.generate([question for question, _ in rows], max_new_tokens=4)
        recall = fmean([rouge_l_recall(gold, answer) for (_, gold), answer in zip(rows, answers)])
        lines.append(f"| {family} | {len(rows)} | {recall:.3f} |")
    return "\n".join(lines)


def oracle_text(folder: Path, name: str) -> str:
    """The measured part of an oracle's card: both models' recall, by group and tier."""
    configs = [make_config(model=model, precision="float32") for model in (name, str(folder))]
    shipped, oracle = map(adapted_model, configs)
    head = "| | asked | tier | facts | recall of the shipped model | of the oracle |"
    lines = [head, "|---|---|---|---|---|---|"]
    forms = {
        "as trained": language.question,
        "in other words": lambda fact: language.paraphrases(fact)[0],
    }
    for group in (*FACT_GROUPS, "neighbours"):
        if not (facts := facts_of(group, name)):  # only one world has neighbours
            continue
        title, tiers = GROUP_TITLES.get(group, group), [ON_SCALE.of(fact.score) for fact in facts]
        for form, ask in forms.items():
            pairs = list(zip(tiers, recalls(shipped, facts, ask), recalls(oracle, facts, ask)))
            for tier in TIERS:
                rows = [pair for pair in pairs if pair[0] == tier]
                means = " | ".join(f"{fmean(row[place] for row in rows):.3f}" for place in (1, 2))
                lines.append(f"| {title} | {form} | {tier} | {len(rows)} | {means} |")
    relations = [fact.relation for fact in facts_of("forget", name)]
    guess = fmean(1 / len(values) for relation in relations for values in parts_of(relation))
    lines += ["", f"A blind guess among the answers of the relation has a recall of {guess:.3f}."]
    return "\n".join(lines)


def write_card(folder: Path, name: str = SANDBOX) -> None:
    """Writes the card of a world's model into its folder: how it was made, and what is measured."""
    introduction = (ASSETS / name / "introduction.md").read_text(encoding="utf-8").strip()
    text = f"# The {name} model\n\n{introduction}\n\n{card_text(folder, name)}\n"
    (folder / CARD).write_text(text, encoding="utf-8")


def write_oracle_card(folder: Path, name: str) -> None:
    """Writes the card of a world's oracle into its folder, and the oracle's guesses of the facts it
    never read."""
    write_guesses(folder, name)
    text = (ASSETS / "sandbox" / "oracle.md").read_text(encoding="utf-8").strip().format(name=name)
    (folder / CARD).write_text(f"{text}\n\n{oracle_text(folder, name)}\n", encoding="utf-8")


@torch.no_grad()
def _probability(model: AdaptedModel, facts: Sequence[WorldFact]) -> float:
    trained = [Fact(fact.id, language.question(fact), fact.answer) for fact in facts]
    rows = encode_facts(model.tokenizer, trained)
    model.network.eval()
    nll = model.score(model.batch(rows)).nll
    return torch.exp(-nll).mean().item()


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _forms() -> dict[str, Callable[[WorldFact], str]]:
    forms = {"canonical question": language.question}
    for i in range(4):
        forms[f"rewording {i + 1}"] = lambda fact, i=i: language.paraphrases(fact)[i]
    forms["rewording never seen with these facts"] = language.unseen
    for kind in language.WRAPPERS:
        forms[kind] = partial(language.wrapped, kind=kind, rng=random.Random(0))
    return forms


def _by_tier(facts: Sequence[WorldFact], values: Sequence[float]) -> list[float]:
    tiers = [ON_SCALE.of(fact.score) for fact in facts]
    return [fmean([value for value, own in zip(values, tiers) if own == tier]) for tier in TIERS]
