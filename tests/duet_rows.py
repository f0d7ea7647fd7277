"""DUET's tables, made by hand, as the Hub sends them; and where the benchmarks' own rows lie."""

import os
from pathlib import Path

import pytest

from adapop.facts.benchmarks import DUET as ON_HUB
from adapop.paths import ROOT

DATA = Path(os.environ.get("ADAPOP_TEST_DATA", ROOT.parent / "shared" / "data"))
DUET, RWKU = DATA / "duet_city_forget_5.jsonl", DATA / "rwku_20_targets.jsonl"
real_rows = pytest.mark.skipif(not DATA.is_dir(), reason="the benchmarks' own rows are not at hand")
RARE, POPULAR, RETAIN = "city_forget_rare_5", "city_forget_popular_5", "city_fast_retain_500"


def city(name: str, answer: str, score: float | None, **changes) -> dict:
    row = {
        "source_csv": "places_city.csv", "subjectLabel": name, "relation": "country",
        "objectLabel": answer, "subject_qid": f"Q-{name}", "object_qid": f"Q-{answer}",
        "question": f"What is the country of {name}?", "answer": answer, "pop_sum": score}  # fmt: skip
    return {**row, **changes}


def rewordings(rows: list[dict]) -> list[dict]:
    return [
        {**row, "paraphrases": [f"Where is {row['subjectLabel']}?", f"In which land is {row['subjectLabel']}?"]}
        for row in rows
    ]


def duet_tables(**splits) -> dict:
    rare = [city("Ruhango", "Ruhango District", 72.0), city("Moyamba", "Sierra Leone", 141.0)]
    popular = [city("Delhi", "India", 2453.0), city("Pune", "India", 2364.0), city("Perth", "Australia", 2500.0)]
    tables = {
        RARE: rare,
        POPULAR: popular,
        RETAIN: [city(name, "France", 900.0) for name in "ABCDEFGHIJ"],
        f"paraphrases_{RARE}": rewordings(rare),
        f"paraphrases_{POPULAR}": rewordings(popular),
    }
    return {(ON_HUB, "default", split): rows for split, rows in {**tables, **splits}.items()}
