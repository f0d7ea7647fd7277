"""Every number of a run as JSON, under the names that the docs list, equal to the run's own."""

import json
import re
from dataclasses import fields

from adapop.paths import ROOT
from adapop.probes.distance import Distance
from adapop.report.numbers import Numbers
from tiny_runs import copied


def test_the_numbers_are_the_runs_own_under_the_documented_names(finished, cli):
    run = copied(finished)
    (numbers,) = cli("report", run.id, "--json").rows
    text = (ROOT / "assets" / "docs" / "api.md").read_text(encoding="utf-8")
    section = text.partition("### Every number as JSON\n")[2].partition("\n### ")[0]
    documented = [
        name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    assert documented == list(numbers) == [item.name for item in fields(Numbers)]
    assert numbers["schema"] == re.search(r"`(adapop-run/\d)`", section)[1]

    assert (numbers["run"], numbers["state"], numbers["config"]["method"]) == (run.id, "done", "adapop")
    assert numbers["facts"]["sha256"] == run.facts.sha256 and numbers["facts"]["forget"] == len(run.facts.forget)
    for name in ("steps", "epochs", "measured"):
        rows = json.loads(run.rows(name).to_json(orient="records", double_precision=15))
        assert len(rows) == len(numbers[name]) and rows[-1].keys() == numbers[name][-1].keys()
    assert [row["forget_loss"] for row in numbers["steps"]] == list(run.rows("steps")["forget_loss"])
    popular = {"epoch": 1, "full": True, "group": "forget", "form": "reworded", "tier": "popular"}
    (row,) = [row for row in numbers["measured"] if popular.items() <= row.items()]
    assert row["recall"] == run.measured().recall("forget", "reworded", "popular")
    assert numbers["gap"]["mean"] == run.measured().gap.mean
    assert {row["fact"]: row["beta"] for row in numbers["by_fact"]} == run.betas
    assert [row["after_reworded"] for row in numbers["by_fact"]] == list(run.measured().by_fact)
    assert numbers["leaks"] and all(0 <= row["unlearned"]["recall"]["mean"] <= 1 for row in numbers["leaks"])
    named = {
        name: set(re.findall(r"`(\w+)`", names))
        for name, names in re.findall(r"^\| `(\w+)` \|(.*)\|", section, re.MULTILINE)
    }
    for name in ("steps", "epochs", "measured", "by_fact", "leaks"):
        assert named[name] == numbers[name][0].keys(), name
    assert named["gap"] == numbers["gap"].keys()
    assert named["distance"] == {item.name for item in fields(Distance)}


def test_no_text_of_a_fact_is_in_the_numbers_and_no_id_if_they_are_redacted(finished, cli):
    run = copied(finished)
    plain, redacted = (cli("report", run.id, "--json", *more).out for more in ((), ("--redacted",)))
    for fact in (*run.facts.forget, *run.facts.retain, *run.facts.holdout):
        assert fact.question not in plain + redacted and fact.id not in redacted
    assert run.id not in redacted and json.loads(redacted)["gap"] == json.loads(plain)["gap"]
