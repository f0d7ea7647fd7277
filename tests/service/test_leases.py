import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from adapop import MODELS, Plan, Run, prepare
from adapop.errors import ConfigError, ModelError, RunError
from adapop.facts.fact import PEOPLE, SANDBOX
from adapop.model.chat import encode_prompt
from adapop.paths import ROOT, SANDBOX_FOLDER
from adapop.probes.ask import WHOLE
from adapop.probes.inspection import ORIGINAL, UNLEARNED, Chosen, Question
from adapop.probes.prompts import ProbeRow
from adapop.progress import Progress
from adapop.remark import sentences
from adapop.runs.adopted import adopted_config
from adapop.service import jobs, leases, zerogpu
from adapop.service.leases import FIRST_SECONDS, LOAD_SECONDS, MOST_SECONDS, lease_seconds
from adapop.service.worker import Worker
from adapop.service.zerogpu import EXPIRED, TAKEN_AWAY, lender, on_accelerator, public_models
from adapop.training.events import RunDone, RunStarted, RunStopped, Saved
from adapop.ui.run import configuration, launch
from components import ANCHORS, run_values
from edited import rewritten_lines
from forking import fresh_processes
from interrupting import timeless
from raised import raised
from scripted import Reply
from tiny_runs import ran, tiny_config, trained
from waiting import PATIENCE_SECONDS, wait_until

EXPIRES = Reply("", 401)
TOO_FEW = Reply({"left": 20, "wait": 5400}, 429)
TOLD = "s of a GPU, but only 20 s are left today."


class Scheduler:
    """ZeroGPU's: it notes who asked, for how many seconds. given: what it answers first. kill: of which leases the
    process that gets the GPU is killed."""

    def __init__(self, server, given=(), kill=()) -> None:
        self.given, self.kill, self.leases = list(given), set(kill), []
        server.answer = self._answer

    def _answer(self, request) -> Reply:
        if request.path == "/schedule":
            reply = self.given.pop(0) if self.given else None
            self.leases.append((request.query.get("token"), int(request.query["durationSeconds"])))
            return reply or Reply({"idle": False, "nvidiaIndex": 0, "nvidiaUUID": "GPU-0", "allowToken": "let me"})
        if request.path == "/allow" and len(self.leases) in self.kill:
            os.kill(int(request.query["pid"]), signal.SIGKILL)
        return Reply("")


@pytest.fixture
def lend(server, tmp_path, monkeypatch):
    pytest.importorskip("spaces")
    model = shutil.copytree(SANDBOX_FOLDER, tmp_path / "model")  # a model that is not the sandbox by its name

    def run(scheduler, *again, **changes):
        config = tiny_config(model=changes.pop("model", str(model)), epochs=3, **changes).to_json()
        environment = os.environ | {"SPACES_ZERO_GPU": "true", "SPACES_ZERO_DEVICE_API_URL": server.url}
        done = subprocess.run(
            [sys.executable, Path(__file__).parent / "lending.py", tmp_path / "runs", config, *again],
            capture_output=True, text=True, env=environment, timeout=240, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.mark.slow
def test_a_run_takes_one_lease_that_its_owner_pays_a_question_another_and_the_sandbox_none(lend, server):
    scheduler = Scheduler(server)
    summary = lend(scheduler)
    assert (summary["ended"], summary["epoch"]) == ([["run_done", ""]], 3)
    tokens, seconds = zip(*scheduler.leases)
    assert tokens == ("first", "asks"), "three epochs fit into one lease"
    assert seconds == (FIRST_SECONDS * summary["factor"], 15 * summary["factor"]) and summary["answer"]
    summary = lend(scheduler := Scheduler(server), model="sandbox")
    assert summary["ended"] == [["run_done", ""]] and summary["answer"] and scheduler.leases == []


@pytest.mark.slow
@pytest.mark.parametrize(("given", "kill", "words"), [
    ([None, EXPIRES], (), EXPIRED), ([], (2,), TAKEN_AWAY), ([None, TOO_FEW], (), (TOLD, "come back in 1:30:00")),
], ids=["expired", "killed", "used up"])  # fmt: skip
def test_what_went_wrong_is_told_and_the_run_goes_on_where_it_was(lend, server, given, kill, words):
    """The first lease has room for one epoch; the second is refused, or its GPU is taken away."""
    scheduler = Scheduler(server, given, kill)
    summary = lend(scheduler, "again", "short")
    (failed, message), (done, _) = summary["ended"]
    assert (failed, done) == ("run_failed", "run_done") and message.endswith(words[0])
    tokens, seconds = zip(*scheduler.leases)
    assert summary["epoch"] == 3 and tokens[:3] == ("first", "second", "third"), "in the name of the latest request"
    assert seconds[0] < seconds[1] <= MOST_SECONDS * summary["factor"]
    assert summary["began"][0] == 0 and summary["began"][-1] == 1, "what the first lease did is not done again"


def test_a_lease_is_as_long_as_what_is_left_needs(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(Run, "last_epoch", property(lambda run: len([e for e in run.events() if e.kind == "saved"])))
    run = prepare(tiny_config(epochs=10), tiny, tmp_path)
    assert lease_seconds(run) == FIRST_SECONDS
    about = dict(run=run.id, model="m", method="wga", facts="f", forget=4, retain=4, holdout=0, epochs=10, steps=2)
    say(run, 100.0, RunStarted(**about))
    assert lease_seconds(run) == FIRST_SECONDS, "no epoch was seen yet"
    # as long as they took, as many of the eight as fit, and one has to fit
    for epoch, time, seconds in ((1, 104, LOAD_SECONDS + 55), (2, 144, MOST_SECONDS), (3, 344, LOAD_SECONDS + 250)):
        say(run, float(time), Saved(run=run.id, epoch=epoch))
        assert lease_seconds(run) == seconds


def say(run: Run, time: float, event) -> None:
    line, path = run.append(event), run.folder / "events.jsonl"
    rewritten_lines(path, lambda text: re.sub(rf'"time": ?{line.time!r}', f'"time": {time}', text))


class GradioError(Exception):
    """As `spaces` raises: a gr.Error with a title, and a text that may hold HTML."""

    def __init__(self, message: str, title: str) -> None:
        super().__init__(message)
        self.title = title


def gpu(work, seconds):
    """`spaces.GPU`, except that the work is done in this process. What `spaces` does to errors it does too."""
    hash(work)
    assert work.__name__

    def called(*args):
        assert not any(isinstance(arg, Progress) for arg in args), "cannot be sent to another process"
        try:
            return work(*args)
        except Exception as error:  # noqa: BLE001  whatever it is, `spaces` tells its name
            raise GradioError(type(error).__name__, "ZeroGPU worker error") from None

    return called


@pytest.mark.parametrize("accelerated", [None, gpu])
def test_an_error_of_ours_says_the_same_wherever_it_happens(accelerated):
    def failing(progress=None):
        raise fault

    fault = ModelError("The prompt has 2,000 tokens.", "Shorten it.")
    error = raised(ModelError, "", on_accelerator(failing, accelerated, 15), *([Progress()] if accelerated else []))
    assert (error.message, error.fix) == ("The prompt has 2,000 tokens.", "Shorten it.")
    fault = ZeroDivisionError()
    with pytest.raises(RunError if accelerated else ZeroDivisionError, match=r"failed \(Zero" if accelerated else ""):
        on_accelerator(failing, accelerated, 15)(*([Progress()] if accelerated else []))


@pytest.mark.parametrize(("accelerated", "model", "expected"), [
    (gpu, "HuggingFaceTB/SmolLM2-135M-Instruct", f"{FIRST_SECONDS} s of Hugging Face"),
    (gpu, SANDBOX, "GPU time: none"), (None, SANDBOX, "")])  # fmt: skip
def test_the_plan_of_a_run_tells_what_it_will_ask_for(tmp_path, small, accelerated, model, expected):
    chosen = run_values(model=model, epochs=3)
    updates = launch.look(
        Worker(tmp_path, accelerated), "", launch.UNSEEN, "", [], {}, small, "error", ANCHORS, *chosen
    )
    assert expected in str(updates) if expected else "GPU time" not in str(updates)


def test_strangers_choose_among_few_models_and_only_where_a_gpu_is_lent(monkeypatch):
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    small, large = "HuggingFaceTB/SmolLM2-135M-Instruct", "meta-llama/Llama-3.1-8B-Instruct"
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    assert lender() is None and public_models() == (SANDBOX, PEOPLE)
    raised(ConfigError, "does not run that model", configuration.config_of, run_values(model=small))
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert configuration.config_of(run_values(model=small)).model == small
    for name in (large, "somebody/else", "/etc", "../x"):
        raised(ConfigError, "does not run that model", configuration.config_of, run_values(model=name))
    lent = public_models()[2:]
    assert all(not MODELS[name].gated and MODELS[name].licence and MODELS[name].billions < 2 for name in lent)
    assert {"Qwen/Qwen2.5-1.5B-Instruct", "HuggingFaceTB/SmolLM2-1.7B-Instruct"} <= set(lent) and len(lent) == 5


def finished(worker, run) -> Run:
    wait_until(lambda: worker.ahead_of(run) is None)
    return run


@pytest.fixture
def lent_model(tmp_path, monkeypatch) -> str:
    """A model that needs a GPU, as everything but the sandbox does; of each lease an epoch is all that fits."""
    monkeypatch.setattr(leases, "lease_seconds", lambda run: 0)
    return str(shutil.copytree(SANDBOX_FOLDER, tmp_path / "model"))


def spawned(work, seconds):
    assert callable(seconds) or seconds > 0

    def called(*args):
        with ProcessPoolExecutor(1, mp_context=fresh_processes()) as pool:
            return pool.submit(work, *args).result(PATIENCE_SECONDS)

    return called


def comparable_events(run) -> list:
    """What a run said, but for what differs between any two runs, and how fast this machine is in each precision,
    which every process measures for itself."""

    def without_speed(notes):
        return tuple(note for note in sentences(notes) if not note.startswith("Precision: "))

    events = timeless(run.events())
    return [replace(one, notes=without_speed(one.notes)) if hasattr(one, "notes") else one for one in events]


@pytest.mark.slow
def test_slices_equal_the_uninterrupted_run_bit_for_bit_and_can_be_probed(tiny, tmp_path, lent_model):
    config = tiny_config(epochs=2, model=lent_model)
    whole, sliced = Worker(tmp_path / "whole"), Worker(tmp_path / "sliced", spawned)
    one, other = whole.submit(config, tiny), sliced.submit(config, tiny)
    finished(whole, one)
    finished(sliced, other)
    assert sum(isinstance(event, RunStarted) for event in other.events()) == 3 and comparable_events(
        one
    ) == comparable_events(other)
    for name in ("adapter_model.safetensors", "optimizer.safetensors", "state.json"):
        assert (one.checkpoint(2) / name).read_bytes() == (other.checkpoint(2) / name).read_bytes()
    prompts = ["Who wrote the book Hamlet?"], ["Shakespeare"]
    assert sliced.ask(other, jobs.ask_models, *prompts).result(PATIENCE_SECONDS) == whole.ask(
        one, jobs.ask_models, *prompts
    ).result(PATIENCE_SECONDS)
    plan = Plan(kinds=("direct",), groups=("forget",), per_tier=1, max_new_tokens=config.max_new_tokens)
    rows = sliced.work_on(other, jobs.probe_models, plan)[0].result(PATIENCE_SECONDS)
    assert [type(row) for row in rows] == [ProbeRow] * 3 and other.probes() == rows


@pytest.mark.slow
def test_a_stop_between_slices_is_heard_and_the_run_goes_on_later(tiny, tmp_path, lent_model):
    def stopping(work, seconds):
        def called(folder, *args):
            more = work(folder, *args)
            if more and not stopped:
                stopped.append(folder)
                Run(folder).request_stop()
            return more

        return called

    stopped, worker = [], Worker(tmp_path, stopping)
    run = finished(worker, worker.submit(tiny_config(epochs=2, model=lent_model), tiny))
    assert isinstance(run.events()[-1], RunStopped) and run.last_epoch == 1
    run.clear_stop()
    worker.enqueue(run)
    assert isinstance(finished(worker, run).events()[-1], RunDone)


@pytest.mark.parametrize("title", [*zerogpu.REFUSALS, "ZeroGPU something new"])
def test_what_the_lender_says_becomes_words_of_ours(tiny, tmp_path, lent_model, title):
    def refusing(work, seconds):
        def called(*args):
            raise GradioError('Out of quota. <a href="https://huggingface.co/join">Create an account</a>', title)

        return called

    worker = Worker(tmp_path, refusing)
    run = finished(worker, worker.submit(tiny_config(model=lent_model), tiny))
    last = run.events()[-1]
    assert (last.message, last.fix) == zerogpu.REFUSALS.get(title, (last.message, last.fix))
    assert "<" not in last.message + last.fix
    assert (
        raised(RunError, "", worker.ask(run, jobs.ask_models, ["Who?"], [""]).result, PATIENCE_SECONDS).message
        == last.message
    )


def test_too_few_seconds_are_told_with_the_time_until_there_are_more():
    """In the sentence that `spaces` writes, which a test above gets from itself; without numbers nothing is made up."""
    said = "You have exceeded your free ZeroGPU quota (60s requested vs. {}s left). Try again in {}. <a>More</a>"
    for left, wait, told in (("20", "3:04:05", "20 s"), ("-3", "1 day, 0:00:07", "0 s")):
        error = zerogpu.in_words(GradioError(said.format(left, wait), zerogpu.USED_UP))
        assert error.message == f"This work asks for 60 s of a GPU, but only {told} are left today."
        assert f"come back in {wait}." in error.fix
    error = zerogpu.in_words(GradioError("You have exceeded your ZeroGPU runs limit. ", zerogpu.USED_UP))
    assert (error.message, error.fix) == zerogpu.REFUSALS[zerogpu.USED_UP]


def test_no_gpu_waits_for_a_download(tiny, tmp_path, lent_model, monkeypatch):
    """Whatever a GPU is lent for: the model is on the disk before."""
    done = []
    monkeypatch.setattr(jobs, "fetch_model", lambda folder: done.append(("fetched", folder)))

    def lent(work, seconds):
        return lambda folder, *args: done.append((work.__name__, folder))

    worker = Worker(tmp_path, lent)
    run = finished(worker, worker.submit(tiny_config(model=lent_model), tiny))
    worker.ask(run, jobs.ask_models, [], []).result(PATIENCE_SECONDS)
    worker.work_on(run, jobs.probe_models, Plan())[0].result(PATIENCE_SECONDS)
    worker.work_on(run, jobs.recover_facts, "lens")[0].result(PATIENCE_SECONDS)
    names = ("epochs_that_fit", "ask_models", "probe_models", "recover_facts")
    assert done == [(name, run.folder) for lease in names for name in ("fetched", lease)]


def test_a_lent_gpu_serves_a_pair_of_which_one_model_does_not_ship_and_columns_of_another_run(
    tiny, tmp_path, lent_model, monkeypatch
):
    """The original alone was looked at: the others were downloaded, and asked, without or on the GPU's time."""
    fetched, lent = [], []
    monkeypatch.setattr("adapop.model.loading.fetch", lambda config: fetched.append(config.model))

    def lending(work, seconds):
        return lambda folder, *args: lent.append(work.__name__)

    worker, question = Worker(tmp_path / "runs", lending), Question("Who?")
    pair = prepare(adopted_config(SANDBOX, lent_model, PEOPLE), tiny, worker.root)
    own = prepare(tiny_config(), tiny, worker.root)
    columns = [Chosen("Original", ORIGINAL, own.folder), Chosen("a pair", UNLEARNED, pair.folder)]
    asked = jobs.inspect_columns, question
    one = worker.ask(pair, *asked, columns[1:], beside=columns[1:])
    assert one.result(PATIENCE_SECONDS) is None
    assert fetched == [SANDBOX, lent_model, PEOPLE]
    assert worker.ask(own, *asked, columns, beside=columns).result(PATIENCE_SECONDS) is None
    assert fetched[3:] == [SANDBOX, SANDBOX, lent_model, PEOPLE] and lent == ["inspect_columns"] * 2


def test_a_reply_that_is_read_is_not_cut_short_as_the_measured_ones_are(tiny, tmp_path, monkeypatch):
    run, budgets = trained(tiny, tmp_path), []
    monkeypatch.setattr("adapop.probes.ask.ask", lambda *asked: budgets.append(asked[-2]) or [])
    long = " ".join(["Hamlet"] * 950)
    for prompt in ("Who?", long, f"{long} {long}"):
        jobs.ask_models(run.folder, [prompt], [""])
    model = jobs._loaded(run.checkpoint(run.last_epoch))
    room = model.context - len(encode_prompt(model.tokenizer, long, model.system))
    assert budgets == [WHOLE, room, run.config.max_new_tokens] and WHOLE > room > run.config.max_new_tokens


@pytest.mark.slow
def test_never_two_models_at_once(tiny, tmp_path, monkeypatch):
    """Whatever follows what: a probed model, a run, a slice of one, the original. Two of 8 B would not fit on 24 GB."""
    from adapop import AdaptedModel
    from adapop.model import loading

    def alive() -> int:
        return sum(type(thing) is AdaptedModel for thing in gc.get_objects())

    def counted(*args, **options):
        alive_at_load.append(alive() - before)
        return loads(*args, **options)

    model = shutil.copytree(SANDBOX_FOLDER, tmp_path / "model")  # of those that ship, of 8 MB, several are kept
    config = tiny_config(model=str(model))
    one, other = (ran(config, tiny, tmp_path / name) for name in ("one", "other"))
    gc.collect()
    alive_at_load, before, loads = [], alive(), loading._base
    monkeypatch.setattr(loading, "_base", counted)
    pair = ["Who wrote the book Hamlet?"], ["Shakespeare"]
    plan = Plan(kinds=("direct",), groups=("forget",), per_tier=1, max_new_tokens=3)
    jobs.ask_models(one.folder, *pair)
    assert jobs.ask_models(one.folder, *pair) and alive_at_load == [0]  # the last one is kept
    jobs.probe_models(other.folder, plan)
    jobs.whole_run(prepare(config, tiny, tmp_path).folder)
    jobs.ask_models(one.folder, *pair)
    jobs.epochs_that_fit(prepare(config, tiny, tmp_path).folder, 0.0)
    jobs.ask_models(other.folder, *pair)
    jobs.recall_of_original(config, tiny)
    jobs.ask_models(one.folder, *pair)
    assert alive_at_load == [0] * 8 and alive() - before == 1
    jobs._drop()
    assert alive() == before


@pytest.mark.slow
def test_what_a_probe_costs_is_said_while_the_engine_is_imported():
    """Two imports at once, in two threads, failed in two of seven tries."""
    script = """
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from adapop import load_facts
from adapop.service.jobs import engine
from adapop.ui.probe.recovery import _about
run = SimpleNamespace(facts=load_facts("pair"))
with ThreadPoolExecutor() as threads:
    both = threads.submit(engine), threads.submit(_about, run, "relearn")
assert all(one.result() for one in both)
"""
    for _ in range(2):
        subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
