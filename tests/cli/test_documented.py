"""The commands of four pages of the docs. Those that can be run here are run as they are written, by a user who has
what they name; of each other one stands here why not."""

import csv
import re
import shlex
import shutil
import subprocess

import pytest

from adapop import export, find_run, load_facts, make_config, unlearn
from adapop.paths import ROOT
from families import saved
from taught import own_facts, taught

STARTS = (
    "accelerate adopt check cp curl export git hf mkdir pip python python3 resume run sandbox score sky tokens torchrun"
)
START = rf"(?:[A-Z_]+=\S+ )?(?:{STARTS.replace(' ', '|')}) "
SUITS = "--yes --lr 2e-2 --batch 4 --epochs 1 --max-new-tokens 8".split()  # a tiny model
FEW = "--epochs 1 --measure off".split()
# a command -> what is added to it, so that it fits this machine, and its exit status
RUN_HERE = {
    "python -m adapop check facts.csv --model ./my-model": ([], 1),  # the usual rate is too low for it
    "python -m adapop check facts.csv --model ./my-model --known-only --out known.jsonl": ([], 1),
    "python -m adapop check mine.csv --model ./model-Q4_K_M.gguf": ([], 1),  # random: it knows nothing
    "python -m adapop adopt --original ./my-model --unlearned ./unlearned --facts facts.csv": ([], 0),
    "python -m adapop adopt --unlearned ./adapter --facts facts.csv --oracle ./never-learned-it": ([], 0),
    "python -m adapop run --facts people": (FEW, 0),
    "python -m adapop run --method my_methods:Thresholded --lr 2e-3": ([*FEW, "--facts", "pair"], 0),
    "export RUN --merged --out a": ([], 0),
    "run --model a --facts b.csv": (SUITS, 0),
    "python -m adapop report RUN --json": ([], 0),
    "python -m adapop report RUN --out site.html && mkdir site && mv site.html site/index.html": ([], 0),
    "mkdir space && git archive HEAD | tar -x -C space": ([], 0),
    "cp assets/space/requirements.lock space/requirements.txt": ([], 0),
}
HUB = "needs the Hub"
# how other commands begin -> why they are not run here, or which test runs them
ELSEWHERE = {
    "hf ": f"{HUB}: test_hub_commands reads its options and does the dry run",
    "pip install": "downloads packages: test_install installs this one",
    "sky launch": "rents a machine: test_hub_commands reads the file",
    "RAY_ADDRESS=HEAD": "needs a cluster: test_bench_results has a local one",
    "accelerate launch": "test_processes",
    "torchrun": "test_processes",
    "python tests/reliability/": "minutes, by hand",
    "python -m adapop mcp": "test_agents",
    "ADAPOP_MCP=1 python app.py": "test_agents",
    "python -m adapop probe RUN --capability": f"{HUB}: test_capability brings the rows",
    "python -m adapop run ...": "says nothing of its own",
    "python -m adapop run --facts duet": HUB,
    "python -m adapop score rwku": HUB,
    "python -m adapop run --facts mine.csv --model smollm2": "minutes, and 93 MB: test_gguf, test_browser_model",
    "python -m pytest -m slow tests/model/test_loading.py -k four_bits": "needs bitsandbytes, which breaks other tests",
    "python -m adapop bench speed": "minutes: test_speed does less",
    "python -m adapop sandbox": "seven minutes and more: test_sandbox, test_examples",
    "python -m adapop run --facts mine.csv --model Qwen": HUB,
    "python -m adapop export RUN --merged --out mine-model --push": f"{HUB}: test_export pushes to a stand-in",
    "python -m adapop run --config": "test_public_api",
    "python -m adapop report RUN --out run.zip": "test_report",
    "python -m adapop score mine.csv": "asks Wikidata: test_cli_scores brings its replies",
    **dict.fromkeys(
        (
            "python -m adapop check private.csv",
            "python -m adapop run --facts private.csv",
            "python -m adapop probe RUN",
            "python -m adapop report RUN --redacted",
            "python -m adapop export RUN --merged --out clean",
        ),
        "test_private_facts does it with eight people's facts",
    ),
    "adopt --": f"{HUB}: test_adopted has tiny models in the same folders",
}


def documented():
    """Every command of the pages, as it is written: lines of blocks, and within sentences."""
    found = []
    for page in ("space", "api", "models", "facts"):
        text = (ROOT / "assets" / "docs" / f"{page}.md").read_text(encoding="utf-8")
        for block in re.findall(r"```(?:bash|text)\n(.*?)\n```", text, re.DOTALL):
            found += re.findall(rf"^{START}.+$", block, re.MULTILINE)
        found += re.findall(rf"`({START}[^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return found


def test_every_command_is_run_here_or_it_is_said_why_not():
    commands = documented()
    assert len(commands) > 40 and set(RUN_HERE) <= set(commands)
    left = [command for command in commands if command not in RUN_HERE]
    unnamed = [command for command in left if not command.startswith(tuple(ELSEWHERE))]
    assert unnamed == [], "run it here, or say why not"
    assert [start for start in ELSEWHERE if not any(command.startswith(start) for command in left)] == []


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with models, facts, a method and a finished run, and its id."""
    pytest.importorskip("gguf")
    from ggufs import write_gguf

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.chdir(folder)
        patch.setenv("ADAPOP_RUNS", str(folder / "runs"))
        patch.setenv("ADAPOP_CACHE", str(folder / "cache"))
        facts = own_facts()
        groups = {group: getattr(facts, group) for group in ("forget", "retain", "holdout")}
        rows = [(group, fact.question, fact.answer, fact.score) for group, of in groups.items() for fact in of]
        for name in ("facts.csv", "mine.csv", "b.csv"):
            with open(name, "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([("group", "question", "answer", "score"), *rows])
        taught("llama", folder / "my-model", [fact for of in groups.values() for fact in of])
        saved("llama", folder / "never-learned-it")
        write_gguf(folder / "model-Q4_K_M.gguf")
        page = (ROOT / "assets/docs/api.md").read_text(encoding="utf-8")
        (block,) = (one for one in re.findall(r"```python\n(.*?)\n```", page, re.DOTALL) if "class Thresholded" in one)
        (folder / "my_methods.py").write_text(block.partition("\n\nrun = ")[0], encoding="utf-8")
        settings = {"learning_rate": 2e-2, "batch": 4, "epochs": 2, "max_new_tokens": 8}
        config = make_config("npo", model="./my-model", facts="facts.csv", **settings)
        run = unlearn(config, load_facts("facts.csv", "./my-model"))
        export(run, folder / "adapter", measure=False)
        export(run, folder / "unlearned", merged=True, measure=False)
        (folder / "assets").symlink_to(ROOT / "assets")
    return folder, run.id


@pytest.fixture
def does(home, cli, monkeypatch):
    """Does a command in that folder; returns what it printed."""
    folder, run = home
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("ADAPOP_RUNS", str(folder / "runs"))
    monkeypatch.setenv("ADAPOP_CACHE", str(folder / "cache"))

    def done(command):
        added, status = RUN_HERE[command]
        said = []
        for part in command.replace("RUN", run).split(" && "):
            words = shlex.split(part.removeprefix("python -m adapop "))
            if part.startswith(("python -m adapop ", "export ", "run ")):
                said.append(cli(*words, *added, status=status).out)
            else:
                git = {"GIT_DIR": str(ROOT / ".git"), "PATH": "/usr/local/bin:/usr/bin:/bin"}
                subprocess.run(part, shell=True, check=True, env=git)
        return "\n".join(said)

    return done


@pytest.mark.slow
def test_a_user_looks_unlearns_adopts_and_reports_by_the_docs(does, home):
    folder, run = home
    checks = [command for command in RUN_HERE if "adapop check" in command]
    for command in checks:
        assert "Forget set: 6 facts" in does(command) or "gguf" in command
    assert (folder / "known.jsonl").read_text(encoding="utf-8").count('"forget"') == 6
    for command in RUN_HERE:
        if "adapop adopt" in command:
            assert "in other words" in does(command) or "as trained" in does(command)
    assert '"adapop-run/1"' in does("python -m adapop report RUN --json")
    does("python -m adapop report RUN --out site.html && mkdir site && mv site.html site/index.html")
    assert (folder / "site" / "index.html").stat().st_size > 100_000
    does("export RUN --merged --out a")
    assert (folder / "a" / "model.safetensors").is_file()
    for command in [one for one in RUN_HERE if re.match("run |python -m adapop run", one)]:
        assert "done in" in does(command), command
    assert find_run(run).state == "done"


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="the tracked files are unknown")
def test_the_tracked_files_make_up_a_space_with_the_locked_packages(does, home):
    folder, _ = home
    does("mkdir space && git archive HEAD | tar -x -C space")
    names = {path.name for path in (folder / "space").iterdir()}
    assert {"app.py", "README.md", "requirements.txt", "adapop", "assets"} <= names
    does("cp assets/space/requirements.lock space/requirements.txt")
    assert "--hash=sha256:" in (folder / "space" / "requirements.txt").read_text(encoding="utf-8")
