"""A run as a report may show it to people who are not to read its facts.

Each fact appears by a salted hash. All texts of the facts, prompts and replies are gone from what
`redacted` returns, so that whatever is made of it cannot show them. Numbers stay; scores and
exponents are rounded, because an exact score can be looked up."""

import hmac
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from adapop.config.run import RunConfig
from adapop.errors import ConfigError
from adapop.facts.fact import LISTS, WRITTEN, Fact, FactSet
from adapop.facts.text import mentions
from adapop.facts.tiers import SCALE, TIERS, Tiers
from adapop.model.converted import is_gguf
from adapop.probes.matrix import LeakMatrix, NotAsked
from adapop.probes.prompts import EVERY_KIND, NotApplicable, ProbeRow
from adapop.remark import Remark
from adapop.report.record import Record
from adapop.report.settings import is_folder_s_name
from adapop.training.events import Event, RunDone, RunFailed, RunStarted, Taught
from adapop.training.frames import Frame

LEFT_OUT = "left out"
REDACTED = "redacted"  # the name of a redacted set
NO_REASON = "the reason is left out of a redacted report"
OWN_KIND = "an attack of the set's own"
LETTERS = 16  # of a hash in hexadecimal digits: 64 bits, so that no two facts share one
OF_NUMBERS = ("fine_tuned", "fine_tuned_before")  # notes whose texts are recalls by group
CODE_WORDS = ("tier", "form", "group", "place", "never")  # whose texts in a result are our own
TEXTS = ("question", "answer", "subject", "object", "two_hop", "two_hop_answer", "second_hop")


@dataclass(frozen=True)
class Hashes:
    """Names that hide texts. They are random for each report: nobody can try out which fact gives a
    name, and the same fact has another name in another report."""

    salt: bytes
    """Never written anywhere."""

    def of(self, *texts: str) -> str:
        """The hash of the texts together."""
        # lengths, so that ("ab", "c") and ("a", "bc") differ
        content = "".join(f"{len(text)}:{text}" for text in texts)
        return hmac.digest(self.salt, content.encode("utf-8", "surrogatepass"), "sha256").hex()[
            :LETTERS
        ]


def redacted(records: Sequence[Record], labels: Sequence[str] = ()) -> list[Record]:
    """The records without a text of their facts, with one salt for all.

    labels: texts that the user puts on the report, such as its title. Raises ConfigError: it
    mentions a fact's subject or answer, or another of its texts."""
    own = [text for record in records for text in texts_of(record.facts)]
    for text in labels:
        if any(mentions(text, one) for one in own):
            message = "The title or the author's name contains a text from the facts."
            raise ConfigError(message, "A redacted report cannot show it: choose other words.")
    hashes = Hashes(secrets.token_bytes(32))
    return [_redacted(record, hashes) for record in records]


def texts_of(facts: FactSet) -> set[str]:
    """Every text of every fact that a redacted report is not to show."""
    every = [fact for group in WRITTEN for fact in getattr(facts, group)]
    single = {getattr(fact, name) for fact in every for name in TEXTS}
    return (single | {text for fact in every for name in LISTS for text in getattr(fact, name)}) - {
        ""
    }


def _redacted(record: Record, hashes: Hashes) -> Record:
    facts = record.facts
    every = (fact for group in WRITTEN for fact in getattr(facts, group))
    names = {fact.id: hashes.of(fact.id, fact.question, fact.answer) for fact in every}

    def name_of(fact_id: str) -> str:
        return names.get(fact_id) or hashes.of(fact_id)

    config, prompting = _config(record.config, facts), record.prompting
    return replace(
        record,
        config=config,
        facts=_facts(facts, name_of, hashes),
        betas=record.betas and {name_of(key): round(b, 1) for key, b in record.betas.items()},
        events=tuple(_event(event, config, name_of) for event in record.events),
        probes=tuple(_probe(probe, name_of) for probe in record.probes),
        matrix=_matrix(record.matrix, name_of),
        verdicts={name_of(key): verdict for key, verdict in record.verdicts.items()},
        recovery={key: _result(value, name_of) for key, value in record.recovery.items()},
        prompting=prompting
        and replace(
            prompting, examples=(), unknown=tuple(map(name_of, prompting.unknown)), spoken={}
        ),
        frames=tuple(map(without_answers, record.frames)),
        name="",
        questions=(),
        redacted=True,
    )


def without_answers(frame: Frame) -> Frame:
    """The frame with its probabilities and ranks alone."""
    return replace(frame, answers=())


def rounded(score: float | None) -> float | None:
    """The score to one significant digit; None stays None."""
    return None if score is None else float(f"{score:.1g}")


def _facts(facts: FactSet, name_of: Callable[[str], str], hashes: Hashes) -> FactSet:
    def fact_of(fact: Fact) -> Fact:
        name = name_of(fact.id)
        return Fact(
            id=name,
            question=f"fact {name}",
            answer="",
            subject=fact.subject and f"subject {hashes.of(fact.subject)}",
            score=rounded(fact.score),
            own_tier=fact.tier if fact.tier in TIERS else "",
        )

    groups = {group: tuple(map(fact_of, getattr(facts, group))) for group in WRITTEN}
    groups |= {"attacks": (), "examples": ()}
    return FactSet(REDACTED, **groups, tiers=_tiers(facts.tiers))


def _tiers(tiers: Tiers) -> Tiers:
    """The tiers without a note. Ends that are scores of facts are rounded; the scale's are none."""
    if tiers.source in ("", SCALE):
        return replace(tiers, note="")
    spans = {tier: getattr(tiers, tier) for tier in TIERS}
    ends = {tier: span and tuple(map(rounded, span)) for tier, span in spans.items()}
    return replace(tiers, note="", **ends)


def _config(config: RunConfig, facts: FactSet) -> RunConfig:
    """The settings without texts of the user's own: those can quote a fact."""
    model, arguments = config.model, config.arguments
    if is_folder_s_name(model) or any(mentions(model, text) for text in texts_of(facts)):
        model = "model.gguf" if is_gguf(model) else "model"
    own = {key: LEFT_OUT if isinstance(one, str) else one for key, one in arguments.items()}
    safe = {key: one for key, one in own.items() if isinstance(one, (str, int, float, type(None)))}
    revision, system = config.revision and LEFT_OUT, config.system and LEFT_OUT
    changes = {"revision": revision, "system": system, "arguments": safe}
    changes |= {name: getattr(config, name) and LEFT_OUT for name in ("unlearned", "oracle")}
    return replace(config, model=model, facts=REDACTED, **changes)


def _event(event: Event, config: RunConfig, name_of: Callable[[str], str]) -> Event:
    if isinstance(event, RunStarted):
        return replace(event, model=config.model, facts=REDACTED)
    if isinstance(event, RunFailed):
        return replace(event, message="The message is left out of a redacted report.", fix="")
    if isinstance(event, (RunDone, Taught)):
        return replace(event, notes=tuple(filter(_is_of_numbers, event.notes)))
    return _renamed(event, name_of)


def _is_of_numbers(note: str | Remark) -> bool:
    """Whether a note quotes nothing."""
    if isinstance(note, str):
        return False
    texts = [one for one in note.values.values() if isinstance(one, str)]
    return not texts or note.kind in OF_NUMBERS


def _renamed(value: Any, name_of: Callable[[str], str]) -> Any:
    """A dataclass with the hash in each field `id` and `fact_id`, at any depth."""
    if isinstance(value, tuple):
        return tuple(_renamed(one, name_of) for one in value)
    if not is_dataclass(value):
        return value
    changes = {
        item.name: name_of(old) if item.name in ("id", "fact_id") else _renamed(old, name_of)
        for item in fields(value)
        for old in [getattr(value, item.name)]
    }
    return replace(value, **changes)


def _probe(
    probe: ProbeRow | NotApplicable, name_of: Callable[[str], str]
) -> ProbeRow | NotApplicable:
    name, kind = name_of(probe.fact_id), _kind(probe.kind)
    if isinstance(probe, NotApplicable):
        return NotApplicable(name, kind, NO_REASON)
    sides = {side: replace(getattr(probe, side), text="") for side in ("original", "unlearned")}
    nothing = {"prompt": "", "gold": "", "accepted": (), "parts": ()}
    return replace(probe, fact_id=name, kind=kind, score=rounded(probe.score), **nothing, **sides)


def _kind(kind: str) -> str:
    return kind if kind in EVERY_KIND else OWN_KIND


def _matrix(matrix: LeakMatrix, name_of: Callable[[str], str]) -> LeakMatrix:
    """The matrix by hashes. It is not made again, because replies are judged by their texts."""
    rows = tuple(
        replace(row, fact_id=name_of(row.fact_id), score=rounded(row.score)) for row in matrix.facts
    )
    counts: Counter[str] = Counter()
    for one in matrix.not_asked:
        counts[_kind(one.kind)] += one.facts
    not_asked = tuple(NotAsked(kind, NO_REASON, number) for kind, number in counts.most_common())
    return replace(matrix, facts=rows, not_asked=not_asked)


def _result(value: Any, name_of: Callable[[str], str], field: str = "") -> Any:
    """A recovery probe's result; each text in it but our own words is a fact's id, or hashed."""
    if isinstance(value, Mapping):
        return {key: _result(one, name_of, key) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_result(one, name_of, field) for one in value]
    return name_of(value) if isinstance(value, str) and field not in CODE_WORDS else value
