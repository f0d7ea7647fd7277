import csv
import io
import itertools
import json
import os
import re
import shlex
import zipfile
from dataclasses import asdict, fields, replace
from html import unescape
from pathlib import Path

import pytest
from markupsafe import escape

from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.facts.catalog import load_facts
from adapop.model.loading import adapted_model
from adapop.paths import SANDBOX_FOLDER
from adapop.popularity.beta import BetaMap
from adapop.probes.prompting import Prompting, remarks_of
from adapop.probes.prompts import DIRECT, NotApplicable, ProbeRow, named
from adapop.probes.verdict import RULES
from adapop.remark import Remark, sentences
from adapop.report import settings, story, write_archive, write_report
from adapop.report.contestants import OTHER_FACTS
from adapop.report.page import rendered
from adapop.report.published import PAPER_PAGE
from adapop.report.record import read_record
from adapop.report.story import examples
from adapop.report.table import percent, tenths
from adapop.report.tables import METRICS
from adapop.runs.adopted import adopted_config
from adapop.runs.execute import load_model
from adapop.runs.run import create_run, find_run
from adapop.training.events import EpochDone, Measured, RunDone, RunFailed, RunStopped
from hostile_runs import FORMULA, HOSTILE, hostile_run
from raised import raised
from tiny_runs import RELEARNT, copied

HONEST = "A low score shows that these prompts failed, not that the knowledge is gone."


@pytest.fixture(scope="module")
def run(finished):
    return finished


def rows_of(page: str) -> dict[str, list[list[str]]]:
    """The cells of every table row in the page, by the row's name; several tables may use one name."""
    rows: dict[str, list[list[str]]] = {}
    for row in re.findall(r"<tr>(.*?)</tr>", page, re.S):
        name, *cells = [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)]
        rows.setdefault(name, []).append(cells)
    return rows


def text_of(page: str) -> str:
    page = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    return write_report([run], tmp_path_factory.mktemp("report") / "report.html").read_text(encoding="utf-8")


def test_every_recall_and_leak_is_the_run_s_own_and_the_paper_is_linked(run, page):
    assert f'href="{PAPER_PAGE}"' in page
    rows = rows_of(page)
    before, after = run.measured(before=True), run.measured()
    names = {"forget": "forget set", "retain": "retain set", "holdout": "held-out facts", "utility": "utility"}
    forms = {"direct": "as trained", "reworded": "in other words"}
    columns = ("rare", "middle", "popular", "all")
    for old, new in zip(before.rows, after.rows):
        facts, *cells = rows[f"{names[new['group']]}, {forms[new['form']]}"][0]
        assert cells[columns.index(new["tier"])] == f"{percent(old['recall'])} → {percent(new['recall'])}"
        assert new["tier"] != "all" or facts == str(new["facts"])
        if new["form"] == "direct":
            facts, *numbers, words = rows[f"{names[new['group']]}, {new['tier']}"][0]
            assert (facts, words) == (str(new["facts"]), f"{new['words']:.1f}")
            for metric, number in zip([metric for metric in METRICS[1:] if metric.field != "cosine"], numbers):
                if new[metric.field] is None:  # a truth ratio is of facts to forget alone
                    assert number == "" and new["group"] != "forget"
                else:
                    assert float(number.replace(",", "")) == pytest.approx(new[metric.field], abs=0.5)
    matrix = read_record(run).matrix
    kinds = {cell.kind for cell in matrix.cells}
    for kind, (place, tier) in itertools.product(kinds, enumerate(columns)):
        cell, text = matrix.cell("forget", tier, kind), rows[named(kind)][0][place]
        assert f"{percent(cell.original.recall.mean)} → {percent(cell.unlearned.recall.mean)}" in text
        assert f"{cell.facts} fact" in text and ("not measurable" in text) == (not cell.measurable)
    assert len(kinds) > 5


def test_probes_are_of_the_kept_epoch_though_more_were_trained(run):
    record = read_record(run)
    epoch = record.of_kind(EpochDone)[-1]
    kept = replace(record, events=(*record.events, replace(epoch, epoch=3)))
    assert kept.trained == 3 and "The facts to forget after epoch 1, one row" in rendered([kept])


def test_verdicts_and_examples_are_the_run_s(run, page):
    record, rows = read_record(run), rows_of(page)
    counts = record.verdict_counts()
    assert sum(counts["rare"].values()) == 1
    for place, tier in enumerate(counts):
        assert all(rows[name][0][place] == str(count) for name, count in counts[tier].items())
    assert all(rule.sentence in text_of(page) for rule in RULES)
    leak_examples = examples(record)
    assert {one.fact.tier for one in leak_examples} == {"rare", "popular"}
    shares = [one.leaks / one.answerable for one in leak_examples]
    assert shares == sorted(shares, reverse=True)
    by_prompt = {(row.fact_id, row.prompt): row for row in record.rows}
    for one in leak_examples:
        assert one.prompts[0].kind == DIRECT
        assert one.hidden + len(one.prompts) == sum(row.fact_id == one.fact.id for row in record.rows)
        for row in one.prompts:
            assert by_prompt[one.fact.id, row.prompt] == row
            assert f'<p class="prompt">{escape(row.prompt)}</p>' in page
            for side in ("original", "unlearned"):
                reply = getattr(row, side)
                assert f"{side}: <b>{escape(reply.text or '(nothing)')}</b> ({percent(reply.recall)}" in page


def test_story_and_recovery_have_their_numbers(run, page, tiny):
    text = text_of(page)
    before, after = run.measured(before=True).recall("forget"), run.measured().recall("forget")
    reasons = {result.reason for result in run.probes() if isinstance(result, NotApplicable)}
    for phrase in (
        HONEST, f"forget {len(tiny.forget)} facts", run.facts.sha256, *run.versions.values(), *reasons,
        f"it answered {percent(before)} of the facts to forget before and {percent(after)} after (rare",
        "trained for 10 steps on 2 forgotten facts", "It is a lower bound",
        "25% → 50% after relearning, 38% in the control (12 facts): no sign that anything was hidden.",
        "Facts it brought back: 1.", "--recovery quantise,sampling,lens,patch"):  # fmt: skip
        assert phrase in text, phrase
    assert reasons and rows_of(page)["all, direct"][0] == ["12", "25%", "50%", "38%", "+12 points", ""]


def test_text_and_pictures_have_one_font(page):
    (family,) = {*re.findall(r'"family":"([^"]+)"', page)}
    assert re.search(r"body {[^}]*?font: \S+ ([^;]+);", page)[1].replace('"', "") == family


def test_the_head_names_model_set_dates_and_hash_and_nothing_empty_has_a_section(run, tiny, tmp_path):
    about = dict(story.about(read_record(run)))
    assert (about["Model"], about["SHA-256 of the facts"]) == ("sandbox", run.facts.sha256)
    assert (
        about["Forget set"].startswith(f"{tiny.name}: {len(tiny.forget)} facts (") and "held out" in about["Forget set"]
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d( to .*)? UTC", about["Date"])
    assert "SHA-256 of the facts" not in dict(story.about(replace(read_record(run), redacted=True)))
    bare = create_run(run.config, run.facts, run.betas, tmp_path)
    text = text_of(write_report([bare], tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Not probed" not in text and "Nothing was tried" not in text and "From inside" not in text
    assert "What was not tried" in text and "probe RUN --kinds all" in text


def test_run_that_never_came_to_its_end(run, tmp_path):
    begun = [event for event in run.events() if not isinstance(event, RunDone) and not getattr(event, "full", False)]
    failed = RunFailed(run="r", message="The loss is not finite.", fix="Lower it.")
    for events, sentence in (
        ([], "It has not begun."), ([*begun, failed], "It failed: The loss is not finite."),
        ([*begun, RunStopped(run="r", epoch=1)], "It was stopped; epoch 1 is the last that was finished."),
        (begun, "It has not finished; epoch 1 is the last that was finished.")):  # fmt: skip
        unfinished = create_run(replace(run.config, epochs=5), run.facts, run.betas, tmp_path)
        for event in events:
            unfinished.append(event)
        text = text_of(write_report([unfinished], tmp_path / "r.html").read_text(encoding="utf-8"))
        assert sentence in text and "There is no final measurement" in text and "Before and after" not in text
        assert ("After epoch 1, it answered " in text) == ("AdaPop, 1 epoch," in text) == bool(events)


@pytest.mark.slow
def test_two_runs_are_compared_or_it_is_said_why_not(run, other, tmp_path):
    page = write_report([run, other], tmp_path / "r.html").read_text(encoding="utf-8")
    rows, text = rows_of(page), text_of(page)
    assert run.id not in page and other.id not in page
    assert rows["method"][0] == ["adapop", "wga"] and rows["alpha0"][0] == ["0.5", "1"]
    shares = [cell.split("\n")[0] for cell in rows["still answered, asked as trained: all"][0]]
    assert shares == [tenths(one.measured().recall("forget")) for one in (run, other)]
    attacked = rows["still answered, under the worst attack: all"][0]
    assert attacked[1] == "", "the second was not probed"
    assert Remark("no_control").text() in text
    assert page.count("plotly.js v") == 1, "the library is there once"
    links = re.findall(r'<li><a href="#(\w+)">', page)
    assert links == ["compared", "run1", "run2", "words"] and all(page.count(f'id="{place}"') == 1 for place in links)
    fewer = replace(run.facts, forget=run.facts.forget[:2])
    shuffled = create_run(make_config("adapop", "shuffled", epochs=1), fewer, None, tmp_path)
    text = text_of(write_report([run, shuffled], tmp_path / "r.html").read_text(encoding="utf-8"))
    assert OTHER_FACTS in text and "the run did not finish: 2" in text
    raised(RunError, "no run to report", write_report, [], tmp_path / "r.html")
    for write in (lambda out: write_report([run], out), lambda out: write_archive(run, out)):
        raised(RunError, "cannot be written", write, tmp_path / "nowhere" / "r.html")


@pytest.mark.slow
def test_command_makes_the_run_again_where_its_archive_was_unpacked(run, tmp_path, monkeypatch, cli):
    zipfile.ZipFile(write_archive(run, tmp_path / "run.zip")).extractall(tmp_path / "kept")
    monkeypatch.chdir(tmp_path / "kept")
    command = Path("command.txt").read_text(encoding="utf-8")
    assert command.strip() == settings.COMMAND and settings.COMMAND in text_of(Path("report.html").read_text("utf-8"))
    again = find_run(cli(*shlex.split(command)[3:], "--json").rows[0]["run"])
    assert again.config == run.config and again.betas == run.betas
    assert (again.facts.forget, again.facts.retain, again.facts.holdout) == (
        run.facts.forget, run.facts.retain, run.facts.holdout)  # fmt: skip


def test_every_setting_and_what_the_command_hangs_on_is_said(run, tmp_path):
    changed = create_run(replace(run.config, beta=BetaMap(2.0, 0.5), clip=9.0), run.facts, None, tmp_path)
    rows = rows_of(write_report([changed], tmp_path / "r.html").read_text(encoding="utf-8"))
    assert set(rows) >= {item.name for item in fields(changed.config)}
    assert rows["clip"][0] == ["9"] and rows["beta"][0] == ["a 2, b 0.5, low 0.05, high 2"]
    repeats = settings.repeats
    own = repeats(make_config(model=str(SANDBOX_FOLDER)))
    assert "--model says where" in own and str(SANDBOX_FOLDER) not in own
    assert "names no revision" in repeats(make_config(model="some/model"))
    assert "names no revision" not in repeats(make_config(model="some/model", revision="abc"))
    assert "package.own:Class can be imported" in repeats(replace(make_config(), method="package.own:Class"))
    prompting = Prompting("text-examples", (), False, 24, 9, ("a", "b"), True, 1, {}, ())
    rows = settings.all_settings(make_config(model="smollm2"), prompting).rows
    assert [value for name, value in rows if name == "asking, as chosen"] == sentences(remarks_of(prompting))
    adopted = dict(settings.all_settings(adopted_config("sandbox", "people")).rows)
    assert adopted["unlearned"] == "people" and not {"learning_rate", "epochs", "lora_rank", "beta"} & {*adopted}


@pytest.fixture(scope="module")
def archive(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    with zipfile.ZipFile(write_archive(run, folder / "run.zip")) as packed:
        assert packed.testzip() is None
        packed.extractall(folder)
    return folder


def table(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def test_archive_holds_everything_and_no_id(archive, run):
    """Archives are passed on. Unpacked: in the zip itself the id would be compressed, and never found."""
    members = [path for path in archive.rglob("*") if path.is_file() and path.name != "run.zip"]
    assert {str(path.relative_to(archive)) for path in members} == {
        "README.txt", "report.html", "facts.csv", "facts.jsonl", "frames.jsonl", "measured.csv", "epochs.csv",
        "adapter/README.md", "adapter/measured.json",
        "probes.csv", "config.json", "command.txt", "requirements.txt", "adapter/adapter_config.json",
        "adapter/adapter_model.safetensors"}  # fmt: skip
    assert [path.name for path in members if run.id.encode() in path.read_bytes()] == []
    assert make_config().from_json((archive / "config.json").read_text(encoding="utf-8")) == run.config
    assert f"torch=={run.versions['torch']}" in (archive / "requirements.txt").read_text().splitlines()
    assert load_facts(str(archive / "facts.jsonl")).forget == run.facts.forget
    assert load_facts(str(archive / "facts.csv")).forget[0].question == run.facts.forget[0].question
    unlearned, original = adapted_model(run.config, archive / "adapter"), load_model(run)
    questions = [fact.question for fact in run.facts.forget[:4]]
    assert unlearned.generate(questions, 3) == original.generate(questions, 3)
    about = json.loads((archive / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert about["base_model_name_or_path"] == "sandbox", "not where the model lies on this machine"


def test_tables_of_the_archive_are_the_run_s_own(archive, run):
    facts, verdicts = table(archive / "facts.csv"), read_record(run).verdicts
    assert [row["id"] for row in facts if row["group"] == "forget"] == [fact.id for fact in run.facts.forget]
    for row, fact in zip(facts, run.facts.forget):
        assert (row["question"], row["answer"], row["tier"]) == (fact.question, fact.answer, fact.tier)
        assert (float(row["score"]), float(row["beta"])) == (fact.score, run.betas[fact.id])
        assert row["verdict"] == verdicts.get(fact.id, "")
    rows = [row for event in run.events() if isinstance(event, Measured) for row in event.rows]
    assert [float(row["recall"]) for row in table(archive / "measured.csv")] == [row["recall"] for row in rows]
    losses = [float(row["retain_loss"]) for row in table(archive / "epochs.csv")]
    assert losses == [event.retain_loss for event in run.epochs()]
    probes, results = table(archive / "probes.csv"), run.probes()
    probe_rows, not_applicable = (
        [one for one in results if isinstance(one, kind)] for kind in (ProbeRow, NotApplicable)
    )
    assert len(probes) == len(results)
    for row, result in zip(probes, probe_rows):
        assert (row["fact_id"], row["prompt"], row["kind"]) == (result.fact_id, result.prompt, result.kind)
        assert float(row["unlearned_recall"]) == result.unlearned.recall
        assert row["original_text"] == result.original.text
    assert {row["reason"] for row in probes[len(probe_rows) :]} == {result.reason for result in not_applicable}


def test_formulas_are_defused_and_an_unfinished_run_is_archived(tmp_path):
    run = hostile_run(tmp_path)
    with zipfile.ZipFile(write_archive(run, tmp_path / "run.zip")) as packed:
        assert not any(name.startswith(("adapter", "epochs")) for name in packed.namelist()), (
            "what is empty is left out"
        )
        packed.extractall(tmp_path / "unpacked")
    facts, probes = (table(tmp_path / "unpacked" / f"{name}.csv") for name in ("facts", "probes"))
    assert facts[0]["question"] == HOSTILE
    assert facts[0]["answer"] == probes[0]["gold"] == f"'{FORMULA}"


def test_failed_archive_leaves_the_old_one(run, tmp_path, monkeypatch):
    out = tmp_path / "run.zip"
    out.write_bytes(b"old")
    monkeypatch.setattr(zipfile.ZipFile, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    raised(RunError, "No space left", write_archive, run, out)
    assert out.read_bytes() == b"old" and list(tmp_path.iterdir()) == [out], "half a zip would only take up space"


def test_a_run_whose_files_are_dated_before_1980_is_packed(run, tmp_path):
    run = copied(run, tmp_path)
    for path in run.folder.rglob("*"):
        os.utime(path, (0, 0))
    with zipfile.ZipFile(write_archive(run, tmp_path / "run.zip")) as packed:
        assert packed.testzip() is None and "facts.jsonl" in packed.namelist()
    assert write_report([run], tmp_path / "run.html").exists()


@pytest.mark.slow
def test_recovery_is_kept_by_name_for_the_last_epoch_and_what_is_missing_of_it_is_named(tmp_path, finished):
    run = hostile_run(tmp_path)
    run.save_recovery("relearn", RELEARNT)
    run.save_recovery("lens", {"rows": [asdict(BetaMap())]})
    assert run.recovery() == {"relearn": RELEARNT, "lens": {"rows": [asdict(BetaMap())]}}
    (run.folder / "epoch-1").mkdir()
    assert run.recovery() == {}, "the run went on"
    run = copied(finished, tmp_path)
    for name in ("lens", "none"):
        for result in ({}, {"rows": [1]}, {"rows": [{"tier": "all"}]}, {"rows": [], "seconds": "long"}):
            run.save_recovery(name, result)
            raised(RunError, f"recovery-{name}.json is damaged", write_report, [run], tmp_path / "report.html")
        (run.folder / f"recovery-{name}.json").unlink()


def test_half_a_character_in_a_title_is_a_sign_in_the_report(run, tmp_path):
    file = write_report([run], tmp_path / "report.html", "Cities \udc80 forgotten")
    assert "Cities \ufffd forgotten" in file.read_text(encoding="utf-8")
    with zipfile.ZipFile(write_archive(run, tmp_path / "half.zip", measure=False, by="Nell \ud83d")) as archive:
        assert archive.read("README.txt").decode().startswith("Run by Nell \ufffd.\n")
