"""Nothing of a run's facts is to be read in its redacted report, in whatever form a file writes it."""

import csv
import io
import json
import re
import zipfile
from html import escape

import pytest
from plotly.offline import get_plotlyjs

from adapop import Fact, FactSet
from adapop.errors import ConfigError
from adapop.probes.prompts import DIRECT, REWORDED, NotApplicable, ProbeRow, Reply
from adapop.remark import Remark, sentences
from adapop.report import write_archive, write_report
from adapop.report.record import read_record
from adapop.report.redaction import redacted
from adapop.report.table import percent
from adapop.report.tables import subject_table
from adapop.training.events import RunDone
from adapop.training.frames import from_json
from raised import raised
from tiny_runs import RELEARNT, ran, tiny_config

NAMES = ("Nell Okábe-Quist", "Ivo <Brandtmöller>")
TAUGHT = Remark("fine_tuned", dict(questions=9, epochs=2, rate=0.001, steps=4, time=5.0, recalls="forget 0% → 100%"))
BY = "A. Auditor & <b>Co</b>"


def private(place: int, group: str) -> Fact:
    name = NAMES[place % 2]
    return Fact(
        f"{name} {group} {place}",
        f'Which "flat" has {name} in {group} {place}?',
        f"Mill Row 19{place} & {group} <4B>",
        name,
        f"flat of {name}",
        f"Zyxobject {group}{place}",
        score=[12_345.0, 678.0, 23.0, None][place],
        score_source=f"counted for {name}",
        paraphrases=(f"Where does {name} live ({group}, {place})?",),
        alternates=(f"Wrongham Lane {group}{place}",),
        accepted=(f"19{place} Millrow/{group}",),
        subject_aliases=(f"Nickname\t{group}{place}zz",),
        two_hop=f"Who lives beside {name} {group}{place}?",
        two_hop_answer=f"Nextdoorian {group}{place}",
        second_hop=f"Who is beside Mill Row {group}{place}?",
        parts=(f"Row 19{place} & {group}", f"<4B> {group}{place}"),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    groups = {group: tuple(private(i, group) for i in range(4)) for group in ("forget", "retain", "holdout")}
    utility = (Fact("u", "Utilitarian sum of qq?", "Fortytwoish"),)
    facts = FactSet("okabe-quist-file", **groups, utility=utility, notes=(f"A note on {NAMES[0]}.",))
    changes = {"missing_score": "uniform", "facts": "/home/x/okabe-quist-file.csv", "system": f"You know {NAMES[0]}."}
    run = ran(tiny_config(**changes), facts, tmp_path_factory.mktemp("private"))
    rows = []
    for group in groups:
        for i, fact in enumerate(getattr(facts, group)):
            sides = [
                Reply(f"Zq reply «{side}» {fact.answer} {i}", 1.0 - i / 4 * n, 0.5, 1, -1.0, 3, 0.0)
                for n, side in enumerate(("before", "after"))
            ]
            more = {"score": fact.score, "accepted": fact.accepted, "parts": fact.parts}
            for kind, text in ((DIRECT, fact.question), (REWORDED, fact.paraphrases[0])):
                rows.append(ProbeRow(fact.id, group, fact.tier, kind, text, fact.answer, *sides, **more))
    first = facts.forget[0]
    run.save_probes([*rows, NotApplicable(first.id, f"attack on {NAMES[0]}", f"it says {first.answer}")])
    run.save_recovery("relearn", RELEARNT | {"returned": [first.id], "trained": [facts.retain[0].id]})
    notes = (f"About {NAMES[1]}.", Remark("never_known", {"known": 0.0}), TAUGHT)
    run.append(RunDone(run=run.id, epoch=1, seconds=1.0, notes=notes))
    return run


def secrets_of(run) -> set[str]:
    texts = {run.facts.name, *sentences(run.facts.notes), run.config.system, f"About {NAMES[1]}."}
    for group in ("forget", "retain", "holdout", "utility"):
        for fact in getattr(run.facts, group):
            for value in vars(fact).values():
                texts |= {value} if isinstance(value, str) else set(value) if isinstance(value, tuple) else set()
    for row in run.probes():
        texts |= {row.fact_id, row.reason, row.kind} if isinstance(row, NotApplicable) else {
            row.fact_id, row.prompt, row.gold, row.original.text, row.unlearned.text}  # fmt: skip
    # "u" and a tier's name are no secrets that can be looked for
    return {text for text in texts if len(text) > 6 and text not in ("popular", "unknown")}


def forms_of(text: str) -> set[str]:
    """The text as files write it: as it is, escaped for JSON or HTML, and both."""
    json_forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    plotly = {re.sub("[<>&/]", lambda sign: f"\\u{ord(sign[0]):04x}", form) for form in json_forms}
    escaped = {escape(one) for one in json_forms}
    html = escaped | {one.replace("&#x27;", "&#39;").replace("&quot;", "&#34;") for one in escaped}
    quoted = {form.replace('"', '""') for form in json_forms}
    return {form.lower() for form in json_forms | plotly | html | quoted}


def found(texts: set[str], content: str) -> set[str]:
    content = content.replace(get_plotlyjs(), "").lower()
    return {text for text in texts if any(form in content for form in forms_of(text))}


def members(path) -> dict[str, str]:
    with zipfile.ZipFile(path) as packed:
        assert packed.testzip() is None
        names = {name: name for name in packed.namelist()}
        return {name: name + packed.read(name).decode("utf-8", "replace") for name in names}


@pytest.fixture(scope="module")
def plain(run, tmp_path_factory):
    return members(write_archive(run, tmp_path_factory.mktemp("zip") / "plain.zip", measure=False))


@pytest.fixture(scope="module")
def hidden(run, tmp_path_factory):
    return members(write_archive(run, tmp_path_factory.mktemp("zip") / "hidden.zip", redacted=True, by=BY))


def table(content: str, name: str) -> list[dict]:
    return list(csv.DictReader(io.StringIO(content.removeprefix(name).lstrip("\ufeff"), newline="")))


def test_no_member_of_a_redacted_zip_says_a_text_of_the_run(run, plain, hidden):
    texts = secrets_of(run)
    assert len(texts) > 150
    everything = set().union(*(found(texts, content) for content in plain.values()))
    assert everything == texts, "the search finds each of them where they are in clear"
    assert {name: found(texts, content) for name, content in hidden.items() if found(texts, content)} == {}
    words = {"okábe", "ok\\u00e1be", "brandtm", "mill row", "wrongham", "zyxobject", "nextdoorian", "zq reply", "okabe"}
    assert {(name, word) for name, content in hidden.items() for word in words
            if word in content.replace(get_plotlyjs(), "").lower()} == set()  # fmt: skip
    assert {"facts.jsonl", "config.json", "command.txt"}.isdisjoint(hidden)
    assert not [name for name in hidden if name.startswith("adapter")]


def test_numbers_stay_and_belong_to_the_hash_of_their_fact(run, plain, hidden):
    for name in ("measured.csv", "epochs.csv"):
        assert hidden[name] == plain[name]
    for page in (plain, hidden):
        assert TAUGHT.text("page") in page["report.html"], "what was taught first is known to who reads the proof"
    before, after = table(plain["facts.csv"], "facts.csv"), table(hidden["facts.csv"], "facts.csv")
    assert [(row["group"], row["tier"], row["verdict"]) for row in after] == [
        (row["group"], row["tier"], row["verdict"]) for row in before]  # fmt: skip
    assert len({row["id"] for row in after}) == len(after)
    assert [row["score"] for row in after][:4] == ["10000.0", "700.0", "20.0", ""]
    named = {old["id"]: new["id"] for old, new in zip(before, after)}
    probes = [table(one["probes.csv"], "probes.csv") for one in (plain, hidden)]
    for old, new in zip(*probes):
        assert new["fact_id"] == named[old["fact_id"]]
        for field in ("tier", "original_recall", "unlearned_recall", "unlearned_gold_rank"):
            assert new[field] == old[field]
    frames = [from_json(line) for line in hidden["frames.jsonl"].removeprefix("frames.jsonl").splitlines()]
    assert [frame.scores for frame in frames] == [frame.scores for frame in run.frames()]
    assert all(frame.answers == () for frame in frames)
    record = read_record(run)
    for told in (record.before, record.after):
        assert percent(told.recall("forget")) in hidden["report.html"]
    (clean,) = redacted([record])
    assert clean.verdict_counts() == record.verdict_counts()
    tables = [subject_table(one) for one in (record, clean)]
    assert sorted(row[1:] for row in tables[0].rows) == sorted(row[1:] for row in tables[1].rows)


def test_hashes_are_salted_anew_for_each_report(run):
    record = read_record(run)
    one, two = redacted([record, record])
    other = redacted([record])[0]
    ids = [{fact.id for fact in each.facts.forget} for each in (one, two, other)]
    assert ids[0] == ids[1] and ids[0].isdisjoint(ids[2])


def test_a_redacted_page_of_several_runs_says_nothing_either(run, tmp_path):
    page = write_report([run, run], tmp_path / "r.html", redacted=True).read_text("utf-8")
    assert found(secrets_of(run), page) == set()
    assert "Redacted: each fact appears by a salted hash" in page
    assert run.facts.sha256 not in page, "the hash of the facts has no salt"


def test_who_ran_it_stands_on_page_and_readme_escaped_and_nowhere_without(run, plain, hidden):
    assert f"Run by {BY}.\n" in hidden["README.txt"]
    assert "Run by A. Auditor &amp; &lt;b&gt;Co&lt;/b&gt;" in hidden["report.html"] and BY not in hidden["report.html"]
    assert not [name for name, content in plain.items() if "Run by" in content]
    assert "contains the facts in clear" in plain["README.txt"] and "is redacted" in hidden["README.txt"]
    for content in (plain, hidden):
        about = content["README.txt"].splitlines()
        files = {name for name in content if "/" not in name and name not in ("README.txt", "questions.json")}
        assert {name for name in files if not any(line.startswith(f"{name} ") for line in about)} == set()
        listed = {line.split()[0] for line in about if re.match(r"\S+\.(csv|jsonl?|html|txt)  ", line)}
        assert listed <= files, "only what is there is named"


@pytest.mark.parametrize("words", [{"title": f"Proof for {NAMES[0]}"}, {"by": "mill row 190 & FORGET <4b>"}])
def test_a_title_or_name_that_says_a_fact_is_refused(run, tmp_path, words):
    out = tmp_path / "r.zip"
    raised(ConfigError, "contains a text from the facts", lambda: write_archive(run, out, redacted=True, **words))
    raised(ConfigError, "choose other words", lambda: write_report([run], out, redacted=True, **words))
    assert not out.exists()


def test_the_command_line_takes_both(run, cli, tmp_path):
    cli("report", run.folder, "--out", tmp_path / "r.zip", "--redacted", "--by", BY)
    content = members(tmp_path / "r.zip")
    assert "adapter/README.md" not in content and f"Run by {BY}.\n" in content["README.txt"]
    cli("report", run.folder, "--out", tmp_path / "r.html", "--redacted")
    assert found(secrets_of(run), (tmp_path / "r.html").read_text("utf-8")) == set()
