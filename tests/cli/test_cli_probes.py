"""The commands on what a run left behind, in process."""

import json
import re
import zipfile

import pytest

from adapop.cli import main
from tiny_runs import copied


@pytest.fixture
def run(finished, tmp_path):
    return copied(finished, tmp_path)


def test_probes_and_recovery_are_printed_and_kept(run, capsys):
    arguments = ["probe", str(run.folder), "--kinds", "direct,multiple choice", "--per-tier", "2"]
    assert main([*arguments, "--recovery", "lens"]) == 0
    said = capsys.readouterr().out
    tables = {table.split("\n")[0]: table for table in said.strip().split("\n\n")}
    for group in ("to forget", "retained", "held out"):
        table = tables[f"Where it leaks, facts {group}"]
        assert re.search(r"^ +rare +middle +popular +all$", table, re.MULTILINE)
        assert re.search(r"^direct +100 % → \d", table, re.MULTILINE)
        assert re.search(r"^multiple choice +", table, re.MULTILINE)
    assert re.search(r"^Retained +2 ", tables["Verdicts, facts retained"], re.MULTILINE)
    assert re.search(r"^4, all +\d+ +\d", tables["Looking through the layers"], re.MULTILINE)
    assert {row.kind for row in run.probes()} == {"direct", "multiple choice"}
    assert set(run.recovery()) == {"relearn", "lens"}
    assert main(["probe", str(run.folder), "--kinds", "direct,reverse query", "--per-tier", "1", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = {(row["row"], row.get("kind")) for row in rows}
    assert {("probe", "direct"), ("not_applicable", "reverse query")} <= kinds
    probe = next(row for row in rows if row["row"] == "probe")
    assert probe["original"]["recall"] == 1.0


def test_what_does_not_exist_is_named(run, capsys):
    mistakes = {
        "--kinds hypnosis": "'hypnosis' is none of the kinds",
        "--recovery prayer": "no recovery probe 'prayer'",
    }
    for arguments, said in (mistakes | {"--kinds direct --per-tier 0": "per_tier is 0"}).items():
        assert main(["probe", str(run.folder), *arguments.split()]) == 2
        assert said in capsys.readouterr().err


def test_reports_are_written(run, tmp_path, capsys):
    page, archive = tmp_path / "report.html", tmp_path / "run.zip"
    assert main(["report", str(run.folder), str(run.folder), "--out", str(page)]) == 0
    written = page.read_text(encoding="utf-8")
    assert "2 runs compared" in written
    assert run.id not in written, "who has the report would have the run"
    assert main(["report", str(run.folder), "--out", str(archive)]) == 0
    with zipfile.ZipFile(archive) as file:
        assert {"report.html", "facts.csv", "config.json", "adapter/adapter_model.safetensors"} <= set(file.namelist())
    assert main(["report", str(run.folder), "nothing", "--out", str(page)]) == 2
    assert "no run 'nothing'" in capsys.readouterr().err
