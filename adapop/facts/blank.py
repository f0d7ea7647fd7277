"""A fact's subject and relation, guessed from its question where the set names none: "Who wrote
Emma?" is about Emma; its relation "Who wrote …?" is shared with other books."""

import re

from adapop.facts.fact import Fact
from adapop.facts.text import mentions, span_of

BLANK = "…"
_QUOTED = re.compile(r"[\"“«„]([^\"“”«»„]+)[\"”»“]")
# words that may stand between two words of a name
_JOINING = frozenset("of the de la le du da di del von van and in on al el".split())


def name_in(question: str) -> str:
    """The one name in a question: a quoted text, or words with a capital or a digit. "" if there is
    none, if there are several, and in scripts without capitals."""
    if quoted := _QUOTED.findall(question):
        return quoted[0].strip() if len(quoted) == 1 else ""
    names: list[list[str]] = [[]]
    waiting: list[str] = []
    for word in question.split()[1:]:
        if word[0].isupper() or word[0].isdigit():
            names[-1] += [*waiting, word] if names[-1] else [word]
            waiting = []
        elif names[-1] and word in _JOINING:
            waiting.append(word)
        elif names[-1]:
            names.append([])
            waiting = []
    texts = [" ".join(name) for name in names if name]
    return re.sub(r"(?:['’]s)?[^\w)]*$", "", texts[0]) if len(texts) == 1 else ""


def subject_of(fact: Fact) -> str:
    """The fact's subject, or the name in its question."""
    return fact.subject or name_in(fact.question)


def blanked(fact: Fact) -> str:
    """The question with `BLANK` for its subject and signs around it; "" unless it occurs once."""
    subject = subject_of(fact)
    span = span_of(fact.question, subject) if subject else None
    if span is None:
        return ""
    lead, tail = re.match(r"\W*", subject)[0], re.search(r"[^\w?]*$", subject)[0]
    before = fact.question[: span[0]].removesuffix(lead)
    after = fact.question[span[1] :].removeprefix(tail)
    return "" if mentions(after, subject) else f"{before}{BLANK}{after}"


def relation_of(fact: Fact) -> str:
    """The fact's relation, or its question with a blank for the subject. "" if neither is known."""
    return fact.relation or blanked(fact)
