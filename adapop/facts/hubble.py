"""Facts that Hubble's perturbed models have read a known number of times, and its standard models
never.

Wei et al. 2025, arXiv 2510.19811. A fact's score is its number of `duplicates` in the pretraining
corpus. A file has a row for each text, with `text` and `meta`, a JSON object, as
github.com/allegro-lab/hubble reads it (hubble-lm-eval-tasks/popqa_hubble and yago_hubble_gen).
Questions are PopQA's own, and ours for biographies; rewordings are ours."""

import gzip
import json
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path

from adapop.assets import read_json
from adapop.errors import NetworkError
from adapop.facts.fact import Fact, FactSet, Problem, separated
from adapop.facts.rows import fact_of
from adapop.online.hub import Hub
from adapop.remark import Remark

POPQA, YAGO = "allegrolab/testset_popqa", "allegrolab/biographies_yago"
DUPLICATES = "Hubble duplicates"  # the source of the scores
NAMES = ("hubble-popqa", "hubble-yago")
MAX_BYTES = 256 * 1024 * 1024  # of a file, unpacked
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
