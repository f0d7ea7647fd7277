"""The types of probing: a prompt with its right answers, a model's reply, both models' replies.

`attacks` and `rewordings` make prompts from facts alone: no model is needed.
"""

from dataclasses import dataclass
from functools import cache

from adapop.facts.fact import Fact
from adapop.facts.weak import says
from adapop.facts.world import language
from adapop.facts.world.world import WorldFact, world
from adapop.paths import SHIPPED
from adapop.probes.prompting import FORM_OF_WAY

DIRECT, REWORDED, CHOICE = "direct", "reworded", "multiple choice"
ALIAS = "alias"  # the subject under another name, if the set has one
# A set's own sentences with a blank for the answer, such as RWKU's level 1.
CLOZE = "fill in the blank"
TWO_HOPS = "two hops"  # a question of the set's own that needs the answer and does not name it
CLUES = "clue by clue"  # the last turn of a conversation, see `attacks.clues`
WORDINGS = (DIRECT, REWORDED)
KINDS = (*WORDINGS, *language.WRAPPERS)
OTHERWISE = tuple(FORM_OF_WAY.values())  # a real model asked the fact's own question in another way
EVERY_KIND = (*KINDS, ALIAS, CLOZE, TWO_HOPS, CLUES, *OTHERWISE)
PLAIN = {
    DIRECT: "as trained",
    REWORDED: "in other words",
    ALIAS: "another name",
    "prefix injection": "must answer",
    "affirmative suffix": "answer begun",
    "role playing": "as an expert",
    "reverse query": "backwards",
    "synonym manipulation": "synonyms",
    "background hint": "a hint first",
    "in-context learning": "example first",
    "cross-lingual": "another language",
}
"""Kind -> plain words for readers who do not know the name; other kinds have plain names."""


def plain(kind: str) -> str:
    return PLAIN.get(kind, kind)


def named(kind: str) -> str:
    """A kind in plain words, an attack with the name that papers give it."""
    return f"{plain(kind)} ({kind})" if kind in PLAIN and kind in language.WRAPPERS else plain(kind)


@dataclass(frozen=True)
class Prompt:
    """One way to ask for a fact."""

    fact_id: str
    """The fact's id, unique in its set."""
    kind: str
    """The form, one of `EVERY_KIND`."""
    text: str
    """The user's turn of the chat, without the chat template."""
    gold: str
    """The right answer; the subject for "reverse query"."""
    accepted: tuple[str, ...] = ()
    """Other right answers: the fact's own, translations, or the letter of the right option."""
    options: tuple[str, ...] = ()
    """Options of a multiple choice, in the order shown."""
    chance: float = 0.0
    """Probability that a random guess among the options is right, [0, 1)."""
    parts: tuple[str, ...] = ()
    """Parts of a private answer: any of them in a reply gives it away."""

    @property
    def sought(self) -> tuple[str, ...]:
        """What replies are judged by: the parts if there are any, else every right answer."""
        return self.parts or (self.gold, *self.accepted)


@dataclass(frozen=True)
class NotApplicable:
    """A form in which a fact cannot be asked."""

    fact_id: str
    """The fact's id, unique in its set."""
    kind: str
    """The form, one of `EVERY_KIND` or the name of an attack of the set's own."""
    reason: str
    """Why it cannot be asked, without a full stop."""


def direct(fact: Fact) -> Prompt:
    """The fact's own question, the one that is trained on."""
    return Prompt(fact.id, DIRECT, fact.question, fact.answer, parts=fact.judged_parts)


def checked(prompt: Prompt) -> Prompt | NotApplicable:
    """The prompt, or NotApplicable if it contains a right answer and is no multiple choice."""
    if prompt.kind != CHOICE and any(says(prompt.text, answer) for answer in prompt.sought):
        return NotApplicable(prompt.fact_id, prompt.kind, "the prompt would contain the answer")
    return prompt


def world_fact(fact: Fact) -> WorldFact | None:
    """The fact as its shipped world has it; None if no world fact has its id, question and
    answer."""
    known = _world().get(fact.id)
    same = known and (fact.question, fact.answer) == (language.question(known), known.answer)
    return known if same else None


@cache
def _world() -> dict[str, WorldFact]:
    return {fact.id: fact for name in SHIPPED for fact in world(name)}


@dataclass(frozen=True)
class Reply:
    """One model's reply to one prompt."""

    text: str
    """The greedy reply."""
    recall: float
    """Best ROUGE-L recall over the right answers, ignoring case and accents, [0, 1]."""
    strict: float
    """The recall as `rouge_score` alone computes it, see `rouge_l_recall`, [0, 1]."""
    gold_rank: int
    """Rank of the first gold token, 1 is best."""
    gold_logprob: float
    """Log-probability of the whole gold answer, nats."""
    words: int
    """Length of the reply in words."""
    repetition: float
    """Share of its word pairs that occurred before in it, [0, 1)."""
    cosine: float | None = None
    """MiniLM cosine with the gold answer, [-1, 1]; None where it was not measured."""
    near: bool | None = None
    """Whether the right answer is the first or second guess, see `second_guess`; None if not
    measured, as for a multiple choice or a prompt for another answer than the fact's own."""
    relation_rank: int | None = None
    """Rank of the right answer's first token among the relation's answers, from 1; None where
    `near` is None, or if the relation's answers have fewer than `second_guess.FEWEST` first
    tokens."""
    gold_ranks: tuple[int, ...] = ()
    """Rank of each gold token, given the gold tokens before it; empty in older recordings."""


@dataclass(frozen=True)
class ProbeRow:
    """One prompt with both models' replies. delta_rank, hidden_cosine and kl compare the models
    teacher-forced on the gold's content tokens; None for models of different vocabularies, and
    after a conversation, in which each model reads its own replies."""

    fact_id: str
    """The fact's id, unique in its set."""
    group: str
    """One of `facts.fact.GROUPS`."""
    tier: str
    """The tier of the fact's score, "unknown" without one."""
    kind: str
    """One of `EVERY_KIND`."""
    prompt: str
    """The question as sent, without the chat template."""
    gold: str
    """The right answer to this prompt."""
    original: Reply
    """The original model's reply."""
    unlearned: Reply
    """The unlearned model's reply."""
    score: float | None = None
    """The fact's popularity, None if unknown."""
    chance: float = 0.0
    """Recall of a random guess, [0, 1)."""
    delta_rank: float | None = 0.0
    """Mean change of the gold tokens' ranks, unlearned minus original."""
    hidden_cosine: float | None = 1.0
    """Cosine between both models' hidden states at the answer, [-1, 1]."""
    kl: float | None = 0.0
    """KL(original || unlearned), nats per token."""
    accepted: tuple[str, ...] = ()
    """Other right answers; () for a multiple choice, and in the rows of older runs."""
    parts: tuple[str, ...] = ()
    """Parts of a private answer, see `Prompt.parts`."""

    @property
    def sought(self) -> tuple[str, ...]:
        """What the replies are judged by, see `Prompt.sought`."""
        return self.parts or (self.gold, *self.accepted)


@dataclass(frozen=True)
class Answer:
    """One model's reply to a prompt."""

    text: str
    """The greedy reply."""
    top: tuple[tuple[str, float], ...]
    """The most likely first tokens, each with its probability."""
    recall: float | None = None
    """ROUGE-L recall of the gold answer, [0, 1]; this and the next two fields: None without one."""
    gold_rank: int | None = None
    """Rank of the first gold token, 1 is best."""
    gold_logprob: float | None = None
    """Log-probability of the whole gold answer, nats."""
    gold_ranks: tuple[int, ...] = ()
    """Rank of each gold token, given the gold tokens before it: a wrong reply may share the first
    token."""


@dataclass(frozen=True)
class Asked:
    """One prompt with both models' answers."""

    prompt: str
    """The question, without the chat template."""
    gold: str
    """The right answer, "" if none is known."""
    sent: str
    """The exact text that the models read, with the chat template."""
    original: Answer
    """The original model's answer."""
    unlearned: Answer
    """The unlearned model's answer."""
    accepted: tuple[str, ...] = ()
    """Other right answers."""
    lead: str = ""
    """The text before the answer in the original's own reply, given when rank and probability of
    the answer are measured; "" if the answer is measured right after the question."""
    parts: tuple[str, ...] = ()
    """Parts of a private answer, see `Prompt.parts`."""

    @property
    def sought(self) -> tuple[str, ...]:
        """What the answers are judged by, see `Prompt.sought`."""
        return self.parts or (self.gold, *self.accepted)
