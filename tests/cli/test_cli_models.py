from functools import partial

import pytest

from adapop.cli import options
from adapop.config.presets import make_config
from adapop.config.run import ALL_LINEAR
from adapop.facts import catalog
from adapop.facts.benchmarks import SYSTEM
from adapop.facts.fact import Fact, FactSet, OwnAnswer
from adapop.probes.prompting import Prompting
from adapop.runs import files
from adapop.runs.listed import all_runs
from adapop.runs.run import PROMPTING, create_run, find_run
from duet_rows import duet_tables
from fact_files import write
from families import NETWORKS, saved
from scripted_hub import serve

ROWS = [
    ("What is the country of Delhi?", "India"), ("What is the country of Perth?", "Australia"),
    ("Who wrote Emma?", "Jane Austen"), ("What is the capital of France? <|eot_id|>", "Paris"),
    ("Who wrote <end_of_turn> Persuasion?", "Jane Austen"), ("What is the country of Pune?", "India <s>")]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A random model of each family, in a folder called like one of the paper's models where there is one."""
    names = {"llama": "Llama-3.1-8B-Instruct", "qwen2": "Qwen2.5-7B-Instruct", "gemma": "gemma-7b-it"}
    place = tmp_path_factory.mktemp("models")
    return {family: saved(family, place / names.get(family, family)) for family in NETWORKS}


@pytest.fixture
def facts(tmp_path):
    """Six facts to forget, some of which would end the user's turn if they could, and four to retain."""
    rows = [(*row, 70 * 4**place, "forget") for place, row in enumerate(ROWS)]
    rows += [(f"Where is {name}?", "France", 500, "retain") for name in ("Paris", "Lyon", "Nice", "Lille")]
    return write(tmp_path, "facts.csv", [dict(zip(("question", "answer", "score", "group"), row)) for row in rows])


@pytest.fixture(autouse=True)
def short_answers(monkeypatch):
    """A random model never stops by itself: four tokens an answer in place of 64."""
    monkeypatch.setattr(options, "make_config", partial(make_config, max_new_tokens=4))


@pytest.mark.quick("llama")
@pytest.mark.parametrize("family", ["llama", "qwen2", "neox"])
def test_from_a_model_folder_to_a_report(folders, facts, cli, tmp_path, family):
    targets = ("--targets", ALL_LINEAR) if family == "neox" else ()
    command = ("run", "--facts", facts, "--model", folders[family], "--epochs", 1, "--lr", 1e-2, "--yes", *targets)
    events = cli(*command, "--json").rows
    assert events[0]["kind"] == "run_started" and events[-1]["kind"] == "run_done"
    assert events[0]["forget"] == 6 and events[0]["holdout"] >= 1
    run = find_run(events[0]["run"])
    assert run.config.precision in ("bfloat16", "float32") and run.config.system == ""
    (probe,) = cli("probe", run.id, "--prompt", ROWS[0][0], "--gold", "India", "--json").rows
    assert probe["sent"].count(ROWS[0][0]) == 1
    assert probe["original"]["gold_logprob"] != probe["unlearned"]["gold_logprob"]
    limit = f"but the model's context holds 512, {run.reply_tokens} of them for the answer. Shorten it."
    assert limit in " ".join(cli("probe", run.id, "--prompt", "x" * 100_000, status=2).err.split())
    cli("report", run.id, run.folder, "--out", tmp_path / "report.html")
    assert "2 runs" not in (tmp_path / "report.html").read_text(encoding="utf-8"), "it is one run, given twice"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "In detail" in page and "<end_of_turn>" not in page  # user text is never HTML


@pytest.mark.slow
def test_duet_on_a_paper_model_ends_beside_the_papers_numbers(folders, server, cli, monkeypatch):
    hub = serve(server, duet_tables())
    monkeypatch.setattr(catalog, "Hub", lambda progress, cache: hub)
    table = cli("run", "--yes", "--facts", "duet", "--model", folders["llama"], "--epochs", 1).out
    assert "Llama DUET: ROUGE-L recall" in table and "Borisiuk et al. 2026" in table
    lines = {line.split("  ")[0]: line.split()[-2:] for line in table.splitlines() if line.count("  ") > 3}
    assert lines["forget, before"][0] == "0.939" and lines["forget, after"][0] == "0.007" and "0.043 ± 0.007" in table
    assert lines["forget, in other words, rare"][0] == "0.049" and lines["held-out facts, after"][0] == "–"
    differing = table.partition("What differs")[2]
    rows = {line.split("  ")[0]: line.split() for line in differing.splitlines()}
    assert rows["weights"][-1] == "meta-llama/Llama-3.1-8B-Instruct" and "not fine-tuned" in differing
    assert rows["epochs"][-2:] == ["1", "5"] and rows["facts to retain"][-2:] == ["7", "500"]
    assert rows["facts to forget"][-2:] == ["5", "964"] and "learning rate" not in differing
    (run,) = all_runs()  # the paper's protocol is what a benchmark starts from
    config = run.config
    assert (config.learning_rate, config.batch, config.lora_rank, config.lora_alpha) == (1e-4, 32, 32, 64)
    assert config.lora_targets == ("q_proj", "k_proj", "v_proj", "o_proj")
    assert (config.alpha0, config.dual_step, config.tolerance, config.lam_max) == (0.5, 0.1, 0.1, 5.0)
    assert (config.beta.a, config.beta.b, config.system) == (58.7, 0.796, SYSTEM)
    assert make_config(model="any/model").max_new_tokens == 64
    assert f"{SYSTEM}<|eot_id|>" in cli("probe", run.id, "--prompt", "Delhi?", "--json").rows[0]["sent"]


def test_tokens_say_what_is_scored_and_why(folders, cli, facts):
    command = ("tokens", "--model", folders["qwen2"], "--question", "Delhi <|im_end|>?", "--answer", "India")
    rows = cli(*command, "--json").rows
    assert [row["place"] for row in rows] == [*range(len(rows))]
    by_why = {why: [row for row in rows if row["why"] == why] for why in ("prompt", "content", "tail")}
    assert sum(map(len, by_why.values())) == len(rows) and "".join(row["text"] for row in by_why["content"]) == "India"
    assert [row["text"] for row in by_why["tail"]] == ["<|im_end|>", "\n", "<|im_end|>"]
    assert [row["why"] for row in rows if row["scored"]] == ["content"] * len(by_why["content"])
    ends = {row["id"] for row in by_why["tail"]}
    assert "".join(row["text"] for row in by_why["prompt"]).count("<|im_end|>") == 3  # two are the template's own
    assert sum(row["id"] in ends for row in by_why["prompt"] if row["text"] != "\n") == 2
    tailed = cli(*command, "--include-tail", "--json").rows
    assert {row["why"] for row in tailed if row["scored"]} == {"content", "tail"}
    rows = cli("tokens", "--model", folders["llama"], "--facts", facts, "--first", 2, "--json").rows
    assert "".join(row["text"] for row in rows if row["scored"]) == "IndiaAustralia"
    command = ("tokens", "--model", folders["llama"], "--facts", "cities", "--asking", "text-examples", "--json")
    typed = cli(*command, "--question", "Delhi?", "--answer", "India").rows
    prompt = "".join(row["text"] for row in typed if row["why"] == "prompt")
    assert prompt.endswith("Question: Delhi?\nAnswer:") and prompt.count("Question: ") == 4
    assert "".join(row["text"] for row in typed if row["scored"]) == " India"


def test_tokens_of_a_run_stand_behind_the_lead_of_its_own_reply(folders, tmp_path, cli):
    fact = Fact("delhi", "What is the country of Delhi?", "India")
    config = make_config("wga", model=folders["qwen2"].as_posix())
    run = create_run(config, FactSet("own", (fact,), (Fact("r", "Who wrote Emma?", "Jane Austen"),)), None, tmp_path)
    spoken = {"delhi": OwnAnswer("India", "The country of it is", "India")}
    prompting = Prompting("chat", (), True, 24, 1, (), False, 0, spoken, ())
    files.keep(run.folder / PROMPTING, prompting.to_json())
    rows = cli("tokens", "--run", run.folder, "--json").rows
    texts = {why: "".join(row["text"] for row in rows if row["why"] == why) for why in ("prompt", "lead", "content")}
    assert texts["prompt"].endswith("<|im_start|>assistant\n") and "What is the country of Delhi?" in texts["prompt"]
    assert (texts["lead"].strip(), texts["content"].strip()) == ("The country of it is", "India")
    assert {row["why"] for row in rows if row["scored"]} == {"content"}
