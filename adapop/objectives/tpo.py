"""Targeted preference optimisation, and which words of an answer carry the fact."""

from collections.abc import Sequence
from dataclasses import dataclass

import regex
from torch.nn.functional import logsigmoid

from adapop.facts.weak import ARTICLES, STOP_WORDS
from adapop.model.adapted import AdaptedModel
from adapop.objectives.objective import ForgetBatch, Loss, Objective

WORD = regex.compile(r"\w+(?:['’]\w+)*")  # with combining marks, which re leaves out


@dataclass(frozen=True)
class TargetedPreference(Objective):
    """L_f = gamma * mean_i [-(2/beta) log sigmoid(beta * d_i) + mean NLL of the general tokens of
    y_i], d_i = mean over the unwanted tokens of y_i of z_ref[gold] - z[gold], on raw logits.

    Zhou et al., AAAI 2026, arXiv 2506.03142, per example and with gamma 0.1 and beta 0.2 as in
    TPO's LoRA port. Unwanted tokens are those of words that carry the fact; general ones are stop
    words, punctuation and the end of the turn (see `unwanted`). The loss acts on logits, so its
    gradient does not fade as p -> 0, only once d is well above 1 / beta.
    """

    beta: float = 0.2
    gamma: float = 0.1
    name = "tpo"
    uses = frozenset({"reference", "words"})
    reduce = "row"
    above_zero = ("beta", "gamma")

    def forget_loss(self, model: AdaptedModel, batch: ForgetBatch) -> Loss:
        """Per row, [B]; positive. A row without general tokens has no second term."""
        scored = model.score(batch.tokens)
        drop = scored.row_mean(batch.reference_gold - scored.gold, batch.unwanted)
        general = scored.row_mean(scored.nll, ~batch.unwanted)
        preference = -(2 / self.beta) * logsigmoid(self.beta * drop)
        return Loss(self.gamma * (preference + general), scored.nll)


def unwanted(text: str, spans: Sequence[tuple[int, int]]) -> tuple[bool, ...]:
    """For each token of a text, whether it is part of a word that carries the fact. spans: (start,
    end) in characters.

    Stop words, punctuation and white space do not carry the fact. A capitalised stop word counts as
    a name ("US Army", "Will Smith"), except at the start of the text if it is an article ("The
    Beatles") or the next word has no capital ("It is"). A token is judged by the whole word it
    belongs to: the "an" of "Anne" is no article. In a text of stop words alone every token carries
    the fact.
    """
    tokens = WORD.findall(text)
    words = [match.span() for i, match in enumerate(WORD.finditer(text)) if not _general(tokens, i)]

    def carries(start: int, end: int) -> bool:
        return any(start < after and before < end for before, after in words)

    flags = tuple(carries(*span) for span in spans)
    return flags if any(flags) else (True,) * len(flags)


def _general(words: Sequence[str], place: int) -> bool:
    """Whether the word at a place is a function word."""
    word, plain = words[place], words[place].casefold()
    small_next = any(not after[0].isupper() for after in words[1:2])
    begins = place == 0 and (plain in ARTICLES or small_next)
    return plain in STOP_WORDS and (word.islower() or begins)
