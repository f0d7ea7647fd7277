import ast
import base64
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from adapop.assets import as_kind
from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.errors import ConfigError, NetworkError, RunError, Stopped
from adapop.paths import ROOT, SANDBOX_FOLDER
from adapop.probes.prompting import HOW, Prompting
from adapop.progress import Progress
from adapop.report import write_archive, write_report
from adapop.report.card import gguf, loading, model_card
from adapop.report.export import export
from adapop.report.record import read_record
from adapop.report.table import percent
from adapop.runs import lock
from adapop.runs.delivered import Delivered, kept
from adapop.runs.examples import example
from adapop.runs.execute import load_model, prepare
from adapop.runs.weights import Weights, weights_of
from edited import changed_json
from families import TOKENIZERS
from forking import forked
from raised import raised
from replying import replies
from scripted import Reply
from tiny_runs import copied, ran, tiny_config, trained

HUB_ID = "me/forgetful"
NAMES = "README.md", "adapter_config.json", "adapter_model.safetensors", "measured.json"


def unmeasured(run, root, name=""):
    """A copy of a run whose files were not measured yet."""
    copy = copied(run, root, name)
    for path in copy.folder.glob("delivered-*"):
        path.unlink()
    return copy


def code_of(folder) -> str:
    return re.search(r"```python\n(.*?)\n```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL).group(1)


def test_the_adapter_loads_with_three_lines_of_peft(finished, tmp_path, monkeypatch):
    done = export(finished, tmp_path / "home")
    files = [*done.folder.iterdir()]
    assert done.folder == tmp_path / "home"
    assert {path.name for path in files} == {*NAMES}
    assert not any(finished.id.encode() in path.read_bytes() for path in files), "who has the id owns the run"
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert '--base "$(python -c ' in card and "&#" not in card, "as a shell reads it"
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code_of(done.folder), names)
    questions = [fact.question for fact in (*finished.facts.forget, *finished.facts.retain)]
    model = load_model(finished)
    assert replies(names["model"], model, questions) == model.generate(questions, 4)
    assert json.loads((done.folder / "adapter_config.json").read_text())["base_model_name_or_path"] == "sandbox"


@pytest.mark.parametrize(("model", "base"), [
    ("Qwen/Qwen2.5-0.5B", ["--base-model-id", "Qwen/Qwen2.5-0.5B"]), ("mine", ["--base", "PATH_OF_THE_MODEL"]),
    ("/my models/one", ["--base", "/my models/one"]), ("sandbox", ["--base", str(SANDBOX_FOLDER)])])  # fmt: skip
def test_the_command_for_llama_cpp_names_the_base_as_its_converter_wants_it(model, base):
    """Its `--base` is a folder; a Hub id has an option of its own."""
    command = gguf(make_config(model=model), "/a folder/adapter", merged=False)
    words = subprocess.run(["bash", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, cwd=ROOT).stdout
    begin = ["python", "convert_lora_to_gguf.py", "/a folder/adapter"]
    assert words.splitlines() == [*begin, *base, "--outfile", "adapter.gguf"]


def test_merged_weights_are_compared_with_the_adapter_beside_them(finished, tmp_path, monkeypatch, cli):
    output = cli("export", finished.folder, "--merged", "--out", tmp_path / "whole").out
    assert "merged in float32 and written in bfloat16" in output
    assert re.search(r"0 of 4 as trained and 0 of 4 in other words came back", output)
    assert f"convert_hf_to_gguf.py {tmp_path / 'whole'} --outfile whole.gguf" in output
    files = [path for path in (tmp_path / "whole").rglob("*") if path.is_file()]
    assert not any(finished.id.encode() in path.read_bytes() or finished.id in path.name for path in files)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code_of(tmp_path / "whole"), names)
    assert "peft" not in code_of(tmp_path / "whole")
    model = load_model(finished)
    questions = [fact.question for fact in finished.facts.forget]
    merged = replies(names["model"], model, questions)
    assert merged == model.generate(questions, 4)
    with model.original():
        assert merged != model.generate(questions, 4), "the run forgot nothing: this test shows nothing"


def test_a_merged_model_is_set_up_as_the_original_was(bare, tmp_path):
    from transformers import AutoConfig, AutoTokenizer, GenerationConfig, GPT2Config, GPT2LMHeadModel

    tokenizer, original = TOKENIZERS["qwen3"](), tmp_path / "gpt"
    tokenizer.init_kwargs["padding_side"] = tokenizer.padding_side = "right"
    ends = dict(bos_token_id=None, eos_token_id=tokenizer.eos_token_id)
    drops = dict(embd_pdrop=0.05, attn_pdrop=0.2, summary_first_dropout=0.25)
    shape = dict(n_embd=32, n_layer=2, n_head=4, n_positions=512)
    network = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **shape, **drops, **ends))
    sampled = dict(temperature=0.6, top_k=20, top_p=0.95, repetition_penalty=1.05)
    network.generation_config = GenerationConfig(do_sample=True, **sampled, **ends)
    network.save_pretrained(original)
    tokenizer.save_pretrained(original)
    changed_json(original / "config.json", without=("resid_pdrop",))  # as old files are: then it is 0.1
    run = trained(bare, tmp_path, model=str(original), lora_targets=("c_attn",), max_new_tokens=2)
    whole = export(run, tmp_path / "whole", merged=True).folder
    for kind in (GenerationConfig, AutoConfig):
        own, its = (kind.from_pretrained(folder).to_dict() for folder in (original, whole))
        assert {name for name in own | its if own.get(name) != its.get(name)} <= {"dtype", "_name_or_path"}
    assert (its["embd_pdrop"], its["attn_pdrop"], its["resid_pdrop"]) == (0.05, 0.2, 0.1)
    settings = json.loads((whole / "generation_config.json").read_text())
    assert (settings["do_sample"], settings["temperature"], settings["top_k"]) == (True, 0.6, 20)
    tokenizer = json.loads((whole / "tokenizer_config.json").read_text())
    assert tokenizer["padding_side"] == AutoTokenizer.from_pretrained(whole).padding_side == "right"
    assert [name for name in tokenizer if "local" in name] == []
    for name in ("tokenizer.json", "chat_template.jinja"):
        assert (whole / name).read_bytes() == (original / name).read_bytes()
    card = (whole / "README.md").read_text(encoding="utf-8")
    assert "asked without thinking" in card and "enable_thinking is False" in card


def test_the_card_of_a_4_bit_run_loads_the_base_in_4_bits_and_its_merged_model_whole(finished):
    record = read_record(finished)
    record = replace(record, config=replace(record.config, model="me/base", four_bit=True, precision="bfloat16"))
    calls = [node for node in ast.walk(ast.parse(loading(record, "home"))) if isinstance(node, ast.Call)]
    names = {
        getattr(call.func, "id", ""): {one.arg: getattr(one.value, "value", None) for one in call.keywords}
        for call in calls
        if call.keywords
    }
    assert names["BitsAndBytesConfig"] == dict(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype="bfloat16"
    )
    assert "BitsAndBytes" not in loading(record, "home", merged=True, dtype="bfloat16")
    assert "BitsAndBytes" not in loading(read_record(finished), "home")


def test_a_model_that_also_sees_keeps_its_processors(bare, tmp_path):
    from adapop.model.adapter_folder import PROCESSORS

    place = Path(shutil.copytree(SANDBOX_FOLDER, tmp_path / "sees"))
    for name in PROCESSORS:
        (place / name).write_text(json.dumps({"stands in for": name}))
    run = trained(bare, tmp_path, model=str(place), max_new_tokens=4, measure="off")
    whole = export(run, tmp_path / "whole", merged=True, measure=False).folder
    assert all((whole / name).read_bytes() == (place / name).read_bytes() for name in PROCESSORS)


def test_the_card_says_how_the_model_was_asked_and_not_what_it_forgot(finished):
    record, facts = read_record(finished), finished.facts
    prompting = Prompting("text-examples", (), False, 24, 9, (), True, 1, {}, ())
    card = model_card(replace(record, prompting=prompting), "home", merged=True)
    assert f"{HOW['text-examples']}, without a system prompt." in card
    stopped = replace(record, config=replace(record.config, method="ga", epochs=5), probes=(), recovery={})
    card = model_card(stopped, "home", merged=False)
    assert "ascent, 1 epoch, " in card and "to survive, though not trained on" in card and "nobody tried" in card
    assert "nobody tried" not in model_card(replace(stopped, recovery={"lens": {}}), "home", merged=False)
    card = model_card(record, "home", merged=False)
    assert "trained on so that they survive" in card
    assert f"{len(facts.forget)} facts of the set" in card and facts.sha256 in card
    assert "Before and after" in card and "knowledge is gone" in card
    assert weights_of(finished).sha256 in card
    assert not any(fact.question in card for fact in facts.forget)


@pytest.mark.slow
def test_weights_that_were_not_merged_are_noticed(finished, tmp_path, monkeypatch):
    from peft import PeftModel

    run = unmeasured(finished, tmp_path)
    monkeypatch.setattr(PeftModel, "merge_and_unload", lambda self, **_: self.unload(), raising=False)
    done = export(run, tmp_path / "whole", merged=True)
    assert done.differing > 0 and [one.dtype for one in done.delivered.trials] == ["bfloat16", "float32"]
    back = f"{done.delivered.trial.came_back['direct']} of {done.asked} as trained"
    assert back in (done.folder / "README.md").read_text(encoding="utf-8")
    assert done.delivered.measured.recall("forget") > run.measured().recall("forget")


@pytest.mark.slow
def test_a_type_that_undoes_forgetting_is_not_taken(finished, tmp_path, monkeypatch):
    """In a type in which facts come back nothing is written, unless it is asked for: then the number is said."""
    from adapop.runs import delivered

    run, compared = unmeasured(finished, tmp_path), delivered._compared

    def with_one_back(run, model, dtype, *others):
        trial = compared(run, model, dtype, *others)
        return replace(trial, came_back={"direct": 1, "reworded": 0}) if dtype == "bfloat16" else trial

    monkeypatch.setattr(delivered, "_compared", with_one_back)
    done = export(run, tmp_path / "whole", merged=True)
    assert [one.dtype for one in done.delivered.trials] == ["bfloat16", "float32"]
    assert {value.dtype for value in load_file(done.folder / "model.safetensors").values()} == {torch.float32}
    card = (done.folder / "README.md").read_text(encoding="utf-8")
    assert "1 of 4 as trained and 0 of 4 in other words came back: too many" in card and "written in float32" in card
    assert "dtype='float32'" in code_of(done.folder)
    done = export(run, tmp_path / "narrow", merged=True, dtype="bfloat16")
    assert {value.dtype for value in load_file(done.folder / "model.safetensors").values()} == {torch.bfloat16}
    assert "1 of 4 as trained" in done.remarks[-1]


def test_weights_are_merged_in_float32_and_rounded_once(finished, tmp_path):
    """Rounding the base first, or the sum of rounded parts, gives other weights."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    done = export(finished, tmp_path / "whole", merged=True, dtype="bfloat16", measure=False)
    base = AutoModelForCausalLM.from_pretrained(SANDBOX_FOLDER, dtype=torch.float32)
    checkpoint = finished.checkpoint(finished.chosen_epoch)
    whole = PeftModel.from_pretrained(base, checkpoint).merge_and_unload().state_dict()
    written = load_file(done.folder / "model.safetensors")
    assert written and all(torch.equal(whole[name].bfloat16(), value) for name, value in written.items())
    assert done.delivered is None and "export RUN --merged --out" in (done.folder / "README.md").read_text()
    assert not (done.folder / "measured.json").exists()
    for problem, options in (
        ("trained, in float32", {"dtype": "float32"}),
        ("'int8'", {"merged": True, "dtype": "int8"}),
    ):
        raised(ConfigError, problem, export, finished, tmp_path / "no", **options)


def test_the_numbers_are_those_of_the_very_files_and_are_kept_by_their_hash(finished, tmp_path, cli):
    run = unmeasured(finished, tmp_path)
    for words in (["--adapter"], ["--merged"]):
        out = tmp_path / words[0][2:]
        said = cli("export", run.folder, *words, "--out", out, "--json").rows[0]
        measured = as_kind(json.loads((out / "measured.json").read_text()), Delivered)
        summed = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.glob("*.safetensors")}
        assert measured.sha256 == summed == said["delivered"]["sha256"] and kept(run, summed) == measured
        assert all(one in (out / "README.md").read_text() for one in summed.values())
        for group, form in itertools.product(("forget", "retain", "holdout"), ("direct", "reworded")):
            own = run.measured().recall(group, form)
            assert measured.measured.recall(group, form) == pytest.approx(own, abs=1 / len(run.facts.forget))
        place = next(run.folder.glob(f"delivered-{next(iter(summed.values()))}.json"))
        changed = place.read_bytes()
        place.write_bytes(changed.replace(b'"epoch": 1', b'"epoch": 2'))
        assert kept(run, summed) is None, "what is kept is not trusted unread"
        place.write_bytes(changed)
    assert measured.rows[0]["kl"] is None, "merged weights have no original beside them"
    before = {path.name for path in run.folder.iterdir()}
    with zipfile.ZipFile(write_archive(run, tmp_path / "run.zip", measure=False)) as archive:
        assert json.loads(archive.read("adapter/measured.json"))["kind"] == "adapter"
        assert (
            hashlib.sha256(archive.read("adapter/adapter_model.safetensors")).hexdigest()
            in archive.read("adapter/README.md").decode()
        )
    assert {path.name for path in run.folder.iterdir()} == before
    new = unmeasured(finished, tmp_path, "new")
    with zipfile.ZipFile(write_archive(new, tmp_path / "new.zip", measure=False)) as archive:
        assert b"was not measured from its files" in archive.read("adapter/README.md")


@pytest.mark.slow
def test_a_report_has_the_hash_of_each_delivered_file_beside_the_numbers_measured_on_it(finished, tmp_path):
    run = unmeasured(finished, tmp_path)
    page = write_report([run], tmp_path / "before.html").read_text(encoding="utf-8")
    assert "The exported files" not in page
    done = export(run, tmp_path / "merged", merged=True)
    with zipfile.ZipFile(write_archive(run, tmp_path / "run.zip")) as archive:
        page = archive.read("report.html").decode()
        adapter = archive.read("adapter/adapter_model.safetensors")
    rows = re.findall(r'<th scope="row">(adapter|merged model in bfloat16)</th>(.*)</tr>', page)
    assert [name for name, _ in rows] == ["adapter", "merged model in bfloat16"]
    sums = hashlib.sha256(adapter).hexdigest(), *done.delivered.sha256.values()
    assert all(one in cells for one, (_, cells) in zip(sums, rows, strict=True))
    assert rows[1][1].startswith(f"<td>{percent(done.delivered.measured.recall('forget', 'direct'))}</td>")
    with zipfile.ZipFile(write_archive(run, tmp_path / "redacted.zip", redacted=True)) as archive:
        assert all(one in archive.read("report.html").decode() for one in sums), "a hash tells no fact"
    for path in run.folder.glob("delivered-*"):
        path.write_bytes(path.read_bytes().replace(b'"epoch": 1', b'"epoch": 2'))
    assert not read_record(run).delivered, "what is kept is not trusted unread"


def test_of_reports_of_one_run_that_are_asked_for_at_once_one_measures(finished, tmp_path):
    run, measured = unmeasured(finished, tmp_path), []

    def report(line: str) -> None:
        if line.startswith("Loading the adapter"):
            measured.append(line)

    with ThreadPoolExecutor(3) as visitors:
        places = [tmp_path / f"{number}.zip" for number in range(3)]
        made = list(visitors.map(lambda place: write_archive(run, place, progress=Progress(report)), places))
    assert len(measured) == 1 and all(place.is_file() for place in made)


def test_measuring_can_be_stopped_and_leaves_nothing(finished, tmp_path):
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if line.startswith("Measuring the files"):
            progress.stop()

    progress = Progress(report)
    raised(Stopped, "Stopped", export, unmeasured(finished, tmp_path), tmp_path / "out", progress=progress)
    assert "of" in lines[-1] and not [path for path in tmp_path.iterdir() if path.name.startswith("out")]


def test_nothing_is_overwritten_and_nothing_half_written_stays(finished, tmp_path, monkeypatch):
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    for place in (full, full / "mine.txt"):
        raised(RunError, "not an empty folder", export, finished, place)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert export(finished, Path()).folder == tmp_path / "empty"
    assert Path("README.md").exists(), "the folder in which the shell stands is still there"
    monkeypatch.setattr("adapop.report.export.model_card", lambda *_: 1 / 0)
    raised(ZeroDivisionError, "", export, finished, tmp_path / "half")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full"]


def killed_before_its_card(run, out):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adapop.report.export.model_card", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        export(run, out, measure=False)


def test_what_a_killed_export_left_is_deleted_by_the_next_one_to_the_same_folder(finished, tmp_path):
    out = tmp_path / "out[1]"
    process = forked(killed_before_its_card, finished, out)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("out[1].part-") and [*left.rglob("*.safetensors")]
    others = [tmp_path / name for name in ("out[1].part-mine", "out[1].part-busy", "out1.part-other")]
    for folder in others:
        folder.mkdir()
    (others[2] / "lock").touch()
    with lock.held(others[1]):
        export(finished, out, measure=False)
    assert sorted(tmp_path.iterdir()) == sorted([out, *others])
    assert not [*out.rglob("lock")]


def test_a_run_without_an_epoch_has_nothing_to_export(tmp_path, tiny):
    raised(RunError, "no checkpoint", export, prepare(make_config(), tiny, tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def hub(request):
    """What https://huggingface.co/docs/hub/api answers to who makes a repository and commits to it."""
    if request.path == "/api/repos/create":
        return {"url": f"https://huggingface.co/{HUB_ID}"}
    if request.path == "/api/validate-yaml":
        return {"errors": [], "warnings": []}
    if request.path == f"/api/models/{HUB_ID}/preupload/main":
        paths = [file["path"] for file in request.body["files"]]
        return {"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]}
    if request.path == f"/api/models/{HUB_ID}/commit/main":
        return {"commitOid": "0" * 40, "commitUrl": f"https://huggingface.co/{HUB_ID}/commit/{'0' * 40}"}
    return {"id": HUB_ID, "sha": "0" * 40, "siblings": []}


def test_it_is_sent_to_the_hub_whole_and_private(finished, tmp_path, server):
    server.answer = hub
    done = export(finished, tmp_path / "home", push=HUB_ID, endpoint=server.url)
    assert done.address == f"{server.url}/{HUB_ID}"
    made = next(request for request in server.asked if request.path == "/api/repos/create")
    assert made.body["visibility"] == "private" and f"{made.body['organization']}/{made.body['name']}" == HUB_ID
    (commit,) = (request.body for request in server.asked if request.path.endswith("/commit/main"))
    sent = {row["value"]["path"]: base64.b64decode(row["value"]["content"]) for row in commit if row["key"] == "file"}
    assert f"'{HUB_ID}')" in code_of(done.folder)
    assert sent == {path.name: path.read_bytes() for path in done.folder.iterdir()}


def test_a_token_that_may_not_write_is_known_before_anything_is_made(finished, tmp_path, server):
    server.answer = lambda asked: Reply({"error": "no"}, 401)
    raised(NetworkError, "HF_TOKEN", export, finished, tmp_path / "home", push=HUB_ID, endpoint=server.url)
    raised(ConfigError, "YOU/NAME", export, finished, tmp_path / "home", push="not a name")
    with pytest.raises(NetworkError, match="cannot be reached"):
        export(finished, tmp_path / "home", push=HUB_ID, endpoint="http://127.0.0.1:1")
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_a_report_says_whose_it_is_and_no_place_on_this_machine(tmp_path, tiny):
    place = tmp_path / "secret place" / "own-model"
    shutil.copytree(SANDBOX_FOLDER, place)
    config = tiny_config(model=str(place), facts=str(tmp_path / "secret place" / "mine.csv"), max_new_tokens=4)
    run = ran(config, tiny)
    page = write_report([run], tmp_path / "report.html", "Mine & <b>yours</b>").read_text(encoding="utf-8")
    assert "secret place" not in page and str(tmp_path) not in page
    assert "<h1>Mine &amp; &lt;b&gt;yours&lt;/b&gt;</h1>" in page
    assert "own-model" in page and run.versions["adapop"] in page and "from peft import PeftModel" in page
    weights = weights_of(run)
    summed = subprocess.run(["sha256sum", place / "model.safetensors"], capture_output=True, text=True, check=True)
    assert weights.sha256 == summed.stdout.split()[0] and weights.sha256 in page
    record = read_record(run)
    assert record.place == str(place), "which tells it from another of this name"
    assert "revision" not in loading(record, "adapter")
    commit = "c" * 40  # a folder in the Hub's cache is called so
    cached = replace(record, config=replace(config, model=commit), weights=Weights(commit, ""))
    assert f"# replace {commit} by the path" in loading(cached, "adapter")
    card = (export(run, tmp_path / "home").folder / "README.md").read_text(encoding="utf-8")
    about = (tmp_path / "home" / "adapter_config.json").read_text(encoding="utf-8")
    assert "secret place" not in card + about and "base_model:" not in card
    with zipfile.ZipFile(write_archive(run, tmp_path / "run.zip")) as archive:
        texts = {name: archive.read(name).decode(errors="replace") for name in archive.namelist()}
    assert [name for name, text in texts.items() if "secret place" in text] == []
    kept = RunConfig.from_json(texts["config.json"])
    assert (kept.model, kept.facts, kept.lora_rank) == ("own-model", "mine.csv", run.config.lora_rank)
    assert "--model says where" in page and "path of the original model" in page


def test_a_model_in_several_files_is_known_by_the_sums_of_all(tmp_path):
    from adapop.runs import weights

    (tmp_path / "a.safetensors").write_bytes(b"one")
    (tmp_path / "b.safetensors").write_bytes(b"two")
    summed = subprocess.check_output("sha256sum *.safetensors | sha256sum", shell=True, cwd=tmp_path, text=True)
    assert weights.weights_at(str(tmp_path), None).sha256 == summed.split()[0]
    commit = tmp_path / ("c" * 40)
    commit.mkdir()
    (commit / "model.safetensors").symlink_to(tmp_path / ("d" * 64))
    (tmp_path / ("d" * 64)).write_bytes(b"as the Hub's cache calls a file: by its hash")
    found = weights.weights_at(str(commit), None)
    assert (found.commit, found.sha256) == ("c" * 40, "d" * 64)
    assert weights.weights_at("nobody/has-this", None) is None


def test_a_report_is_a_page_or_an_archive_and_nothing_else(finished, tmp_path, cli):
    for name in ("report.pdf", "report"):
        assert "is not a .html or .zip file" in cli("report", finished.folder, "--out", tmp_path / name, status=2).err
        assert not (tmp_path / name).exists()
    cli("report", finished.folder, "--out", tmp_path / "r.HTML", "--title", "Mine")
    assert "<h1>Mine</h1>" in (tmp_path / "r.HTML").read_text(encoding="utf-8")
    cli("report", finished.folder, "--out", tmp_path / "r.zip", "--title", "Mine")
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        assert (
            b"<h1>Mine</h1>" in archive.read("report.html")
            and "adapter/adapter_model.safetensors" in archive.namelist()
        )
    two = (finished.folder, example("adapop").folder, finished.folder)
    assert "An archive holds" in cli("report", *two, "--out", tmp_path / "r.zip", status=2).err
    cli("report", *two, "--out", tmp_path / "two.html")
    assert "2 runs compared" in (tmp_path / "two.html").read_text(encoding="utf-8")
