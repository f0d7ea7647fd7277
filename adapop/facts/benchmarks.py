"""The benchmarks DUET (arXiv 2602.19612) and RWKU (arXiv 2406.10890) as the paper uses them, from
the Hub, and Hubble. Known flaws become notes, unusable rows problems.

Hubble's perturbed models have read its facts a known number of times, its standard models never
(Wei et al. 2025, arXiv 2510.19811). A fact's score is its number of `duplicates` in the pretraining
corpus. A file has a row for each text, with `text` and `meta`, a JSON object, as
github.com/allegro-lab/hubble reads it (hubble-lm-eval-tasks/popqa_hubble and yago_hubble_gen).
Questions are PopQA's own, and ours for biographies; rewordings are ours.
"""

import gzip
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path

from adapop.assets import read_json
from adapop.errors import DataError, NetworkError, truncated
from adapop.facts.cells import Reading, items_of
from adapop.facts.fact import Fact, FactSet, Problem, separated
from adapop.facts.rows import fact_of
from adapop.facts.tables import lines_of
from adapop.facts.text import normalized
from adapop.online.hub import Hub
from adapop.paths import SHIPPED
from adapop.remark import Remark

DUET_SUM = "DUET pop_sum"  # the source of its scores
DUET_TIERS = ("rare", "popular")
DUET, RWKU = "SwetieePawsss/DUET", "jinzhuoran/RWKU"
DUET_COLUMNS = {
    "question": "question", "answer": "answer", "subject": "subjectLabel", "relation": "relation",
    "object": "objectLabel", "score": "pop_sum",
}  # fmt: skip
FILL_IN = "Fill in the blank:"
MOST_UTILITY = 500  # of RWKU's questions of general knowledge
RWKU_COLUMNS = {"question": "query", "answer": "answer", "subject": "subject"}
ADDED = {name: name for name in ("id", "score_source", "paraphrases")}
REWORDED = ("paraphras", "rephras", "reword")
# the paper's system prompt, in our words
SYSTEM = (
    "You are a terse assistant that states facts and nothing else. Answer in a few correct words."
)
# bytes of a file's unpacked rows; RWKU repeats its worked examples, 270 kB of BBH, for each person
MAX_BYTES = 256 * 1024 * 1024  # of a file, unpacked
SUBJECTS, ANSWERS = ("subjectLabel", "subject"), ("answer", "objectLabel", "object")


def duet(hub: Hub, tiers: Sequence[str] = DUET_TIERS) -> FactSet:
    """DUET's cities: 482 rare and 482 popular facts to forget, reworded; 500 to retain; all scored.

    tiers: the tiers to forget; the paper's figures by tier use one tier each.

    Raises NetworkError: the download fails, or a column is missing. Stopped."""
    problems: list[Problem] = []

    def rows_of(split: str) -> list[dict]:
        return checked_rows(hub, DUET, hub.config_of(DUET, split), split, DUET_COLUMNS.values())

    def facts_of(rows: Sequence[Mapping], prefix: str) -> tuple[Fact, ...]:
        return _facts(rows, prefix, DUET_COLUMNS, problems, DUET_SUM)

    rows = {tier: rows_of(f"city_forget_{tier}_5") for tier in tiers}
    forget = {}
    for tier, members in rows.items():
        reworded = _reworded(hub, f"paraphrases_city_forget_{tier}_5", members)
        forget[tier] = facts_of(reworded, f"duet-{tier}")
    retain = facts_of(rows_of("city_fast_retain_500"), "duet-retain")
    every = [row for tier in tiers for row in rows[tier]]
    notes = _flaws(*(forget.get(tier, ()) for tier in DUET_TIERS), every)
    facts = tuple(fact for tier in tiers for fact in forget[tier])
    name = "duet" if len(tiers) > 1 else f"duet-{tiers[0]}"
    return separated(FactSet(name, facts, retain, problems=tuple(problems), notes=tuple(notes)))


def rwku(hub: Hub) -> FactSet:
    """RWKU: questions about 200 famous people to forget, neighbours to retain, attacks by kind.

    Level 1 (sentences with a blank for the answer) is never trained on: those about people to
    forget are a kind of attack, those about their neighbours are the holdout. The utility questions
    are the first 500 on general knowledge (TriviaQA's). RWKU's other sets are read in
    `adapop.probes.capability`. Raises as `duet`."""
    problems: list[Problem] = []

    def facts_of(config: str, prefix: str, **columns: str) -> tuple[Fact, ...]:
        names = {**RWKU_COLUMNS, **columns}
        rows = checked_rows(hub, RWKU, config, "test", names.values())
        return _facts(rows, prefix, names, problems)

    def blanks(config: str, prefix: str, **columns: str) -> tuple[Fact, ...]:
        facts = facts_of(config, prefix, **columns)
        return tuple(replace(fact, question=f"{FILL_IN} {fact.question}") for fact in facts)

    forget = facts_of("forget_level2", "rwku-forget")
    general = facts_of("utility_factuality", "rwku-utility", question="question", answer="answers")
    people = {"people": len({fact.subject for fact in forget})}
    groups = {
        "retain": facts_of("neighbor_level2", "rwku-neighbour", subject="neighbor"),
        "holdout": blanks("neighbor_level1", "rwku-neighbour-blank", subject="neighbor"),
        # their `subject` is the person for whom RWKU asks them, not what they are about
        "utility": tuple(replace(fact, subject="") for fact in general[:MOST_UTILITY]),
        "attacks": facts_of("forget_level3", "rwku-attack", relation="type")
        + blanks("forget_level1", "rwku-blank", relation="type"),
    }
    notes = Remark("rwku_no_scores"), Remark("rwku_famous", people), Remark("rwku_holdout")
    return separated(FactSet("rwku", forget, **groups, problems=tuple(problems), notes=notes))


def benchmark_of(facts: FactSet) -> str | None:
    """ "duet" or "rwku" if the ids of all facts to forget begin with it; None for other sets."""
    prefixes = {fact.id.partition("-")[0] for fact in facts.forget}
    return prefixes.pop() if prefixes in ({"duet"}, {"rwku"}) else None


def system_prompt(model: str, facts: FactSet) -> str:
    """The paper's system prompt for a benchmark; "" for other facts and a shipped model."""
    return SYSTEM if model not in SHIPPED and benchmark_of(facts) else ""


def _table(hub: Hub, dataset: str, config: str, split: str) -> list[dict]:
    """All rows of a split, in order. Raises NetworkError: a file is damaged."""
    rows: list[dict] = []
    for path in hub.files(dataset, config, split):
        try:
            _, *lines = lines_of(path, MAX_BYTES)
        except DataError as error:
            message = f"{dataset}, {split}: {error.message}"
            raise NetworkError(message, f"Delete {path}, and download it again.") from None
        rows += map(json.loads, lines)
    return rows


def checked_rows(
    hub: Hub, dataset: str, config: str, split: str, columns: Iterable[str]
) -> list[dict]:
    """The rows of a split, which must have these columns. Raises NetworkError and Stopped, as
    `duet`."""
    rows = _table(hub, dataset, config, split)
    present = list(rows[0]) if rows else []
    if missing := [column for column in columns if column not in present]:
        raise _lacks(f"{dataset}, {config}/{split}, has no column {missing[0]!r}", present)
    return rows


def _lacks(what: str, columns: Sequence[str]) -> NetworkError:
    names = ", ".join(repr(truncated(name)) for name in columns) or "none"
    message = f"{what} (its columns: {names})."
    return NetworkError(message, "The data set has changed; upload its rows as a file.")


def _facts(
    rows: Sequence[Mapping],
    prefix: str,
    columns: Mapping[str, str],
    problems: list[Problem],
    source: str = "",
) -> tuple[Fact, ...]:
    """The facts of the rows, numbered from 0 in their ids. Adds unusable rows to `problems`."""
    facts = []
    for number, row in enumerate(rows):
        given = {**row, "id": f"{prefix}-{number}", "score_source": source}
        read = fact_of(number + 1, given, {**columns, **ADDED})
        if isinstance(read, Problem):
            problems.append(replace(read, column=f"{prefix}: {read.column}"))
        else:
            facts.append(read[1])
    return tuple(facts)


def _reworded(hub: Hub, split: str, rows: Sequence[Mapping]) -> list[dict]:
    """The rows with the rewordings of a split, matched by question, or by subject and answer. The
    columns of these splits are undocumented. Columns named for rewordings are read; without any,
    `question`, as in the paper's code. Raises NetworkError: none fits."""
    others = _table(hub, DUET, hub.config_of(DUET, split), split)
    columns = list(others[0]) if others else []
    texts = [name for name in columns if any(part in name.lower() for part in REWORDED)]
    texts = texts or ["question"]
    places: dict[object, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[normalized(str(row["question"]))].append(place)
        if labels := _labels(row):
            places[labels].append(place)
    rewordings: list[dict[str, str]] = [{} for _ in rows]
    for other in others:
        cells = [cell for name, cell in other.items() if name not in texts]
        questions = [normalized(cell) for cell in cells if isinstance(cell, str)]
        key = next((question for question in questions if question in places), _labels(other))
        sentences = [text for name in texts for text in _sentences(other.get(name))]
        for place in places.get(key, ()):
            for text in sentences:
                if normalized(text) != normalized(str(rows[place]["question"])):
                    rewordings[place].setdefault(normalized(text), text)
    if not any(rewordings):
        raise _lacks(f"{DUET}, {split}, has no rewordings that fit the questions", columns)
    return [{**row, "paraphrases": list(texts.values())} for row, texts in zip(rows, rewordings)]


def _labels(row: Mapping) -> tuple[str, str] | None:
    """Subject and answer of a row; None if either is missing."""

    def first(names: Sequence[str]) -> str:
        return next((row[name] for name in names if isinstance(row.get(name), str)), "")

    subject, answer = first(SUBJECTS), first(ANSWERS)
    return (normalized(subject), normalized(answer)) if subject and answer else None


def _sentences(cell: object) -> list[str]:
    """The texts in a cell, except single words, which may name the model that wrote the texts."""
    items = [item for item in items_of(cell, 0, Reading()) if isinstance(item, str)]
    return [item for item in items if " " in item.strip()]


def _flaws(rare: Sequence[Fact], popular: Sequence[Fact], rows: Sequence[Mapping]) -> list[Remark]:
    """The known flaws of DUET's forget set, with numbers from this download."""
    notes = []
    known = [[fact for fact in facts if fact.score is not None] for facts in (rare, popular)]
    ends = [sorted(fact.score for fact in facts) for facts in known]
    if all(ends) and ends[0][-1] < ends[1][0]:
        (low, below), (above, high) = ((scores[0], scores[-1]) for scores in ends)
        values = {"low": low, "below": below, "above": above, "high": high}
        notes.append(Remark("two_clusters", values))
    if popular:
        answer, count = Counter(fact.answer for fact in popular).most_common(1)[0]
        values = {"count": count, "popular": len(popular), "answer": truncated(answer)}
        values |= {"rare": len(rare), "different": len({fact.answer for fact in rare})}
        notes.append(Remark("one_popular_answer", values))
    subjects = [(normalized(fact.subject), normalized(fact.answer)) for fact in rare]
    if named := sum(bool(subject) and subject in answer for subject, answer in subjects):
        notes.append(Remark("subject_in_answer", {"count": named, "rare": len(rare)}))
    entries = [(row.get("subject_qid"), row.get("object_qid")) for row in rows]
    if same := sum(bool(subject) and subject == other for subject, other in entries):
        notes.append(Remark("one_wikidata_entry", {"count": same, "facts": len(rows)}))
    if bare := sum(not fact.paraphrases for fact in (*rare, *popular)):
        notes.append(Remark("no_rewordings", {"count": bare}))
    return notes


POPQA, YAGO = "allegrolab/testset_popqa", "allegrolab/biographies_yago"
DUPLICATES = "Hubble duplicates"  # the source of the scores
PEOPLE = 64  # biographies taken for each number of duplicates; there are many thousand in all
# facts with the same number of duplicates go to these groups in turn
GROUPS = ("forget", "forget", "retain", "holdout")
EXAMPLES = 8
_FIELDS = "id question answer accepted subject relation score score_source paraphrases"
COLUMNS = {name: name for name in _FIELDS.split()}
WORDINGS = read_json("sets/hubble.json", dict[str, dict[str, tuple[str, ...]]])
# in YAGO's names: a part in brackets, which biographies leave out; an escaped character (_u002C_)
BRACKETS, ESCAPED = re.compile(r"_?u0028.*u0029_?"), re.compile(r"_?u([0-9A-Fa-f]{4})_?")
SPACED = {",": ", ", ".": ". ", "&": " & ", "–": " - "}  # as the biographies have them


def hubble_popqa(hub: Hub) -> FactSet:
    """PopQA's questions that were planted in the corpus. Of the questions with the same number of
    duplicates, half are to forget, a quarter is retained and a quarter held out. Raises
    NetworkError: the download fails, or a row is not as documented. Stopped."""
    return _set("hubble-popqa", _load(hub, POPQA, "testset_popqa_nodup.jsonl.gz", _popqa_rows), ())


def hubble_yago(hub: Hub) -> FactSet:
    """Facts, YAGO's or invented (email), from the biographies of 64 people for each number of
    duplicates. All facts of a person are in one group. Raises as `hubble_popqa`."""
    counts: Counter[int] = Counter()
    people = []
    for rows in _load(hub, YAGO, "biographies_yago_nodup.jsonl.gz", _yago_rows):
        if rows and counts[rows[0]["score"]] < PEOPLE:
            counts[rows[0]["score"]] += 1
            people.append(rows)
    return _set("hubble-yago", people, (Remark("hubble_first", {"people": PEOPLE}),))


def _set(name: str, subjects: Sequence[Sequence[Mapping]], notes: tuple[Remark, ...]) -> FactSet:
    """The set of these rows. subjects: the rows of each subject, which go into one group."""
    problems: list[Problem] = []
    by_count: dict[float, list[tuple[Fact, ...]]] = defaultdict(list)
    for number, rows in enumerate(subjects, start=1):
        read = [fact_of(number, row, COLUMNS) for row in rows]
        faults = [one for one in read if isinstance(one, Problem)]
        problems += [replace(one, column=f"{name}: {one.column}") for one in faults]
        if facts := tuple(one[1] for one in read if not isinstance(one, Problem)):
            by_count[facts[0].score].append(facts)
    never = by_count.pop(0.0, [])
    groups: dict[str, list[Fact]] = {group: [] for group in GROUPS}
    for count in sorted(by_count):
        for place, facts in enumerate(by_count[count]):
            groups[GROUPS[place % len(GROUPS)]] += facts
    levels = ", ".join(f"{count:g}" for count in sorted(by_count))
    notes += (Remark("hubble_scores", {"levels": levels}),)
    if never:
        notes += (Remark("hubble_never", {"facts": sum(map(len, never))}),)
    examples = tuple(facts[0] for facts in never[:EXAMPLES])
    members = {group: tuple(facts) for group, facts in groups.items()}
    facts = FactSet(name, **members, examples=examples, problems=tuple(problems), notes=notes)
    return separated(facts)


def _popqa_rows(text: str, meta: Mapping) -> list[dict]:
    answers = json.loads(meta["possible_answers"])
    about = meta.get("prop", ""), meta.get("subj", "")
    row = _row(f"hubble-popqa-{meta['id']}", "popqa", *about, meta)
    return [row | {"question": meta["question"], "answer": answers[0], "accepted": answers[1:]}]


def _yago_rows(text: str, meta: Mapping) -> list[dict]:
    """YAGO's facts that a biography states, with answers as the biography spells them."""
    rows = []
    for field in WORDINGS["yago"]:
        words = label(meta.get(field) or "")
        if words and (answer := re.search(re.escape(words), text, re.IGNORECASE)):
            name = f"hubble-yago-{meta['uuid']}-{field}"
            row = _row(name, "yago", field, meta["full_name"].strip(), meta)
            question, *others = row["paraphrases"]
            rows.append(row | {"question": question, "paraphrases": others, "answer": answer[0]})
    return rows


def _row(name: str, source: str, relation: str, subject: str, meta: Mapping) -> dict:
    """The columns of both kinds of row; no rewordings without a subject. source: a key of
    `WORDINGS`."""
    wordings = WORDINGS[source].get(relation, ()) if subject else ()
    reworded = [wording.format(s=subject) for wording in wordings]
    score = {"score": index(meta["duplicates"]), "score_source": DUPLICATES}
    return {"id": name, "relation": relation, "subject": subject, **score, "paraphrases": reworded}


def label(value: str) -> str:
    """Words of a YAGO name: "…/resource/Paris_u002C_Texas" is "Paris, Texas". Other text stays."""
    if "/" not in value:
        return value.strip()
    bare = BRACKETS.sub("", value.rpartition("/")[2])
    words = ESCAPED.sub(lambda code: SPACED.get(letter := chr(int(code[1], 16)), letter), bare)
    return " ".join(words.replace("_", " ").split())


def _load(
    hub: Hub, dataset: str, name: str, rows_of: Callable[[str, dict], list[dict]]
) -> list[list[dict]]:
    """The facts in each row of a file. rows_of: (text, meta) of a row -> its facts. Raises
    NetworkError: the file is damaged or too large, or a row is not as documented."""
    path = hub.file(dataset, name)
    try:
        lines = _unpacked(path)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        message = f"{name} of {dataset} is damaged ({error})."
        raise NetworkError(message, f"Delete {path}, and download it again.") from None
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            rows.append(rows_of(row["text"], json.loads(row["meta"])))
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            why = f"({type(error).__name__}: {error})"
            message = f"{name} of {dataset}, row {number}, is not as documented {why}."
            fix = "The data set has changed; upload its rows as a file."
            raise NetworkError(message, fix) from None
    return rows


def _unpacked(path: Path) -> list[str]:
    with gzip.open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"it unpacks to more than {MAX_BYTES // 2**20} MB")
    return [line for line in content.decode("utf-8").split("\n") if line.strip()]
