"""Scored sets as CSV or JSONL files, one fact per line, which `read_facts` can read. Each score
comes with its source, its date, its counts, and the reason if it is unknown."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from adapop.errors import DataError, named_place
from adapop.facts.fact import CHAIN, LISTS, WRITTEN, FactSet
from adapop.facts.formulas import write_csv
from adapop.facts.tiers import COLUMN
from adapop.popularity.base import Score

FORMATS = (".csv", ".jsonl")


def write_scored(
    facts: FactSet,
    scores: Mapping[str, Score],
    path: Path,
    others: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    """Writes forget facts with their scores, and all other rows with their own unless `scores` has
    others.

    others: fact id -> further cells of its row, written after our columns; ours win where names are
    equal.

    In CSV, a text that a spreadsheet would run gets an apostrophe, which `read_facts` removes.
    Raises DataError: not a .csv or .jsonl file, or it cannot be written."""
    check_place(path)
    rows = []
    for row in _rows(facts, scores):
        beside = (others or {}).get(row["id"], {}).items()
        rows.append(row | {name: cell for name, cell in beside if name.strip().lower() not in row})
    form = {"encoding": "utf-8", "errors": "backslashreplace", "newline": ""}  # half an emoji
    with named_place(path, DataError), open(path, "w", **form) as file:
        if path.suffix.lower() == ".jsonl":
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        else:
            write_csv(file, list(dict.fromkeys(name for row in rows for name in row)), rows)


def check_place(path: Path) -> None:
    """Checks that a file can be written at a path, before scores are looked up. Raises DataError:
    not a .csv or .jsonl file, or its folder does not exist."""
    if path.suffix.lower() not in FORMATS:
        message = f"{path.name} is not one of {', '.join(FORMATS)}."
        raise DataError(message, "Name a .csv or .jsonl file.")
    if not path.parent.is_dir():
        raise DataError(f"There is no folder {path.parent}.", "Make it, or choose another place.")


def _rows(facts: FactSet, scores: Mapping[str, Score]) -> Iterator[dict[str, object]]:
    for group in WRITTEN:
        for fact in getattr(facts, group):
            # facts to forget lose an old score, so that sources are not mixed
            own = Score(fact.id, None, "", reason="not reached")
            if group != "forget":
                own = Score(fact.id, fact.score, fact.score_source)
            score = scores.get(fact.id, own)
            texts = ("question", "answer", "subject", "relation", "object")
            yield {
                "id": fact.id,
                "group": "forget_level3" if group == "attacks" else group,  # RWKU's name of them
                **{name: getattr(fact, name) for name in texts},
                "score": score.value,
                "score_source": score.source,
                "score_date": score.date,
                "score_reason": score.reason,
                "score_raw": dict(score.raw),
                **{name: list(getattr(fact, name)) for name in LISTS[:3]},
                **({"subject_aliases": list(fact.subject_aliases)} if fact.subject_aliases else {}),
                **{name: text for name in CHAIN if (text := getattr(fact, name))},
                **({"tier": fact.own_tier} if facts.tiers.source == COLUMN else {}),
            }
