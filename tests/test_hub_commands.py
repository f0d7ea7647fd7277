"""What the Hub reads of us: the Space's head, the cards' heads, the commands that send, and the scripts for jobs."""

import json
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import replace

import huggingface_hub
import pytest
from huggingface_hub import ModelCard, RepoCard, SpaceHardware
from huggingface_hub.cli.hf import app
from packaging.requirements import Requirement
from packaging.version import Version

from adapop import MODELS
from adapop.paths import ROOT
from adapop.report.card import DATASETS, model_card
from adapop.report.published import PAPER_PAGE, PAPER_TITLE
from adapop.report.record import read_record
from adapop.runs.run import runs_root

DOCS = ROOT / "assets" / "docs"
JOB = ROOT / "assets" / "jobs" / "unlearn.py"
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *DOCS.glob("*.md"), JOB))


def test_the_space_s_head_is_read_by_the_hub_s_parser_and_names_what_there_is():
    card = RepoCard.load(ROOT / "README.md", repo_type="space", ignore_metadata_errors=False)
    head = card.data.to_dict()
    assert head["suggested_hardware"] in [one.value for one in SpaceHardware]
    assert set(head["models"]) <= {one.id for one in MODELS.values()} and len(head["short_description"]) <= 60
    assert set(head["datasets"]) <= set(DATASETS.values()) and "unlearning" in head["tags"]
    assert head["sdk"] == "gradio" and (ROOT / head["app_file"]).is_file() and head["license"] == "apache-2.0"
    assert PAPER_PAGE in card.content, "a card that links a paper is listed on the paper's page"
    cited = card.content.partition("## How to cite")[2]
    assert PAPER_PAGE.rpartition("/")[2] in cited and PAPER_TITLE.replace("LLM", "{LLM}") in cited


def test_the_line_for_the_space_s_thumbnail_names_a_picture_that_is_uploaded_with_it():
    (line,) = re.findall(r"^thumbnail: .+$", (DOCS / "space.md").read_text(encoding="utf-8"), re.MULTILINE)
    (space,) = {
        words.partition("create ")[2].split()[0] for words in TEXT.splitlines() if "--space-sdk gradio" in words
    }
    address, _, picture = line.removeprefix("thumbnail: ").partition("/resolve/main/")
    assert address == f"https://huggingface.co/spaces/{space}"
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n", 2)[1]
    card = RepoCard(f"---\n{head}{line}\n---\n", ignore_metadata_errors=False)
    assert card.data.to_dict()["thumbnail"].endswith(picture), "the head with this line is still read"


def parsed(words):
    """The parameters that the hf of this machine reads from a command line. Raises UsageError: an unknown one."""
    command = app
    while hasattr(command, "commands"):
        name, *words = words
        command = command.get_command(None, name)
        command = command.materialize() if hasattr(command, "materialize") else command  # loaded when it is used
    return command.make_context(name, words).params


def test_every_command_of_hf_is_one_that_the_installed_hub_takes():
    lines = [line for line in re.findall(r"^hf [^`]+?$(?:\n    .*$)*", TEXT, re.MULTILINE) if "hf auth" not in line]
    assert len(lines) >= 6
    read = [(line, parsed(shlex.split(line)[1:])) for line in lines]
    spaces = {params["sdk"]: params for line, params in read if "repos create" in line}
    assert spaces["gradio"]["hardware"] == "zero-a10g" and spaces["static"]["repo_id"] == "YOU/adapop-report"
    jobs = [params for line, params in read if "jobs uv run" in line]
    assert len(jobs) == 2 and "--check-only" in jobs[0]["script_args"] + jobs[1]["script_args"]
    for params in jobs:
        assert params["script"].endswith("jobs/unlearn.py") and not params.get("dry_run")
        assert {"--push", "--facts", "--model"} <= set(params["script_args"]) and params["flavor"] == "a100-large"


@pytest.mark.skipif(not hasattr(huggingface_hub, "get_zero_gpu_quota"), reason="a newer huggingface_hub has it")
def test_the_quota_that_the_docs_name_is_one_that_hf_tells():
    (quota,) = re.findall("`hf (spaces zero-gpu quota)`", TEXT)
    assert parsed(quota.split()) == {"token": None}


@pytest.mark.slow
def test_hf_prints_the_job_of_the_docs_without_starting_it():
    (line,) = re.findall(r"^hf (jobs uv run .+)$", (DOCS / "space.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = shlex.split(line)
    if "dry_run" not in parsed(words):
        pytest.skip("a newer huggingface_hub has it")
    command = [sys.executable, "-m", "huggingface_hub.cli.hf", *words[:3], "--dry-run", *words[3:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for told in ("a100-large", "assets/jobs/unlearn.py", "--push YOU/NAME --check-only", "Job not submitted"):
        assert told in done.stdout


@pytest.mark.parametrize(("model", "licence", "base"), [
    ("Qwen/Qwen2.5-0.5B-Instruct", "apache-2.0", "Qwen/Qwen2.5-0.5B-Instruct"),
    ("meta-llama/Llama-3.1-8B-Instruct", "llama3.1", "meta-llama/Llama-3.1-8B-Instruct"),
    ("gemma3-270m", "gemma", "google/gemma-3-270m"), ("my-folder", None, None), ("sandbox", "apache-2.0", None),
    ("some/model", None, "some/model"),
])  # fmt: skip
def test_a_card_s_head_says_what_is_known_and_nothing_else(finished, model, licence, base):
    record = read_record(finished)
    record = replace(record, config=replace(record.config, model=model), facts=replace(record.facts, name="duet"))
    for merged in (False, True):
        card = ModelCard(model_card(record, "out", merged))
        assert card.data.license == licence and card.data.base_model == base
        assert card.data.pipeline_tag == "text-generation" and card.data.datasets == [DATASETS["duet"]]
        relation = ("finetune" if merged else "adapter") if base else None
        assert card.data.get("base_model_relation") == relation and card.data.language == "en"
        assert PAPER_PAGE in card.content
    own = replace(record, facts=replace(record.facts, name="my own: 'facts'"))
    data = ModelCard(model_card(own, "out", False)).data
    assert data.datasets is None and data.language is None


def test_zerogpu_s_torch_is_one_of_ours():
    (torch,) = [
        Requirement(line)
        for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        if line.startswith("torch")
    ]
    least, most = re.search(r"ZeroGPU has torch ([\d.]+) to\n?\s*([\d.]+)", TEXT).groups()
    assert Version(least) in torch.specifier and Version(most) in torch.specifier


@pytest.fixture
def job(monkeypatch, capsys):
    """What the script returns and prints."""

    def run(*options):
        monkeypatch.setattr(sys, "argv", [str(JOB), *map(str, options)])
        status, printed = runpy.run_path(str(JOB))["main"](), capsys.readouterr()
        return status, printed.out, printed.err

    return run


def test_the_job_s_check_reads_facts_and_settings_and_leaves_nothing(job, tmp_path):
    model = ("--model", "Qwen/Qwen2.5-1.5B-Instruct")
    status, out, err = job("--facts", "cities", *model, "--push", "me/x", "--set", "epochs=3", "--check-only")
    assert status == 0 and "Forget set: " in out and not err and not runs_root().exists()
    for options, message in (
        (("--facts", tmp_path, *model, "--push", "me/x"), "no file called"),
        (("--facts", "cities", *model, "--push", "a/b/c"), "a/b/c"),
        (("--facts", "cities", *model, "--push", "me/x", "--set", "epochs=-1"), "epochs is -1"),
    ):
        status, out, err = job(*options, "--check-only")
        assert status == 2 and message in err


def test_the_job_s_head_and_skypilot_s_file_fit_the_script():
    head = re.search(r"# /// script\n(.*?)# ///", JOB.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert "requires-python" in head and json.loads(re.search(r"dependencies = (\[.*\])", head)[1])
    text = (ROOT / "assets" / "jobs" / "sky.yaml").read_text(encoding="utf-8")
    task = RepoCard(f"---\n{text}---\n").data.to_dict()
    known = {"name", "resources", "envs", "secrets", "workdir", "setup", "run", "file_mounts", "num_nodes"}
    assert task.keys() <= known and len(text.splitlines()) <= 20
    assert set(re.findall(r"\$([A-Z]+)", task["run"])) <= task["envs"].keys()
    options = set(re.findall(r"--[a-z-]+", task["run"]))
    assert options <= set(re.findall(r'"(--[a-z-]+)"', JOB.read_text(encoding="utf-8")))
