"""A run in slices, each in a freshly started process that knows nothing: what ZeroGPU does to a program."""

import gc
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

import pytest

from adapop.errors import RunError
from adapop.model.chat import encode_prompt
from adapop.paths import SANDBOX_FOLDER
from adapop.probes.ask import WHOLE
from adapop.probes.plan import Plan
from adapop.probes.prompts import ProbeRow
from adapop.remark import sentences
from adapop.runs.run import Run
from adapop.service import jobs, leases, zerogpu
from adapop.service.worker import Worker
from adapop.training.events import Measuring, RunDone, RunStarted, RunStopped
from forking import fresh_processes
from tiny_runs import tiny_config, trained
from waiting import PATIENCE_SECONDS, wait_until


def finished(worker, run) -> Run:
    wait_until(lambda: worker.ahead_of(run) is None)
    return run


@pytest.fixture
def lent_model(tmp_path, monkeypatch) -> str:
    """A model that needs a GPU, as everything but the sandbox does; of each lease an epoch is all that fits."""
    monkeypatch.setattr(leases, "lease_seconds", lambda run: 0)
    return str(shutil.copytree(SANDBOX_FOLDER, tmp_path / "model"))


def spawned(work, seconds):
    """Lends the "accelerator": every call in a process of its own, with what can be pickled."""
    assert callable(seconds) or seconds > 0

    def called(*args):
        with ProcessPoolExecutor(1, mp_context=fresh_processes()) as pool:
            return pool.submit(work, *args).result(PATIENCE_SECONDS)

    return called


def said(run) -> list:
    """What a run said, but for its name, the clock, that it was begun again, how far a slow measurement was, and how
    fast this machine is in each precision, which every process measures for itself."""
    events = [event for event in run.events() if not isinstance(event, RunStarted | Measuring)]
    hidden = {"run", "time", "seconds"}
    rows = [(event.kind, {key: value for key, value in asdict(event).items() if key not in hidden}) for event in events]
    for event, (_, values) in zip(events, rows):
        if "notes" in values:
            values["notes"] = [note for note in sentences(event.notes) if not note.startswith("Precision: ")]
    return rows


@pytest.mark.slow
def test_slices_equal_the_uninterrupted_run_bit_for_bit_and_can_be_probed(tiny, tmp_path, lent_model):
    config = tiny_config(epochs=2, model=lent_model)
    whole, sliced = Worker(tmp_path / "whole"), Worker(tmp_path / "sliced", spawned)
    one, other = whole.submit(config, tiny), sliced.submit(config, tiny)
    finished(whole, one)
    finished(sliced, other)
    assert sum(isinstance(event, RunStarted) for event in other.events()) == 3
    assert said(one) == said(other)
    for name in ("adapter_model.safetensors", "optimizer.safetensors", "state.json"):
        assert (one.checkpoint(2) / name).read_bytes() == (other.checkpoint(2) / name).read_bytes()

    prompts = ["Who wrote the book Hamlet?"], ["Shakespeare"]
    assert sliced.ask(other, *prompts).result(PATIENCE_SECONDS) == whole.ask(one, *prompts).result(PATIENCE_SECONDS)
    plan = Plan(kinds=("direct",), groups=("forget",), per_tier=1, max_new_tokens=config.max_new_tokens)
    rows = sliced.probe(other, plan)[0].result(PATIENCE_SECONDS)
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

    stopped = []
    worker = Worker(tmp_path, stopping)
    run = finished(worker, worker.submit(tiny_config(epochs=2, model=lent_model), tiny))
    assert isinstance(run.events()[-1], RunStopped) and run.last_epoch == 1
    run.clear_stop()
    worker.enqueue(run)
    assert isinstance(finished(worker, run).events()[-1], RunDone)


class Refused(Exception):
    """As ZeroGPU's client raises it: a gr.Error with a title and a text that may hold HTML."""

    def __init__(self, title: str) -> None:
        super().__init__('You have exceeded your quota. <a href="https://huggingface.co/join">Create an account</a>')
        self.title = title


@pytest.mark.parametrize("title", [*zerogpu.REFUSALS, "ZeroGPU something new"])
def test_what_the_lender_says_becomes_words_of_ours(tiny, tmp_path, lent_model, title):
    def refusing(work, seconds):
        def called(*args):
            raise Refused(title)

        return called

    worker = Worker(tmp_path, refusing)
    run = finished(worker, worker.submit(tiny_config(model=lent_model), tiny))
    last = run.events()[-1]
    assert (last.message, last.fix) == zerogpu.REFUSALS.get(title, (last.message, last.fix))
    assert "<" not in last.message + last.fix
    with pytest.raises(RunError) as caught:
        worker.ask(run, ["Who?"], [""]).result(PATIENCE_SECONDS)
    assert caught.value.message == last.message


def test_no_gpu_waits_for_a_download(tiny, tmp_path, lent_model, monkeypatch):
    """Whatever a GPU is lent for: the model is on the disk before."""
    done = []
    monkeypatch.setattr(jobs, "fetch_model", lambda folder: done.append(("fetched", folder)))

    def lent(work, seconds):
        return lambda folder, *args: done.append((work.__name__, folder))

    worker = Worker(tmp_path, lent)
    run = finished(worker, worker.submit(tiny_config(model=lent_model), tiny))
    worker.ask(run, [], []).result(PATIENCE_SECONDS)
    worker.probe(run, Plan())[0].result(PATIENCE_SECONDS)
    worker.recover(run, "lens")[0].result(PATIENCE_SECONDS)
    names = ("epochs_that_fit", "ask_models", "probe_models", "recover_facts")
    assert done == [(name, run.folder) for lease in names for name in ("fetched", lease)]


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
    from adapop.model import loading
    from adapop.model.adapted import AdaptedModel
    from adapop.runs.execute import prepare

    def alive() -> int:
        return sum(type(thing) is AdaptedModel for thing in gc.get_objects())

    def counted(*args, **options):
        found.append(alive() - before)
        return loads(*args, **options)

    one, other = (trained(tiny, tmp_path / name) for name in ("one", "other"))
    gc.collect()
    found, before, loads = [], alive(), loading._base
    monkeypatch.setattr(loading, "_base", counted)
    asked = ["Who wrote the book Hamlet?"], ["Shakespeare"]
    plan = Plan(kinds=("direct",), groups=("forget",), per_tier=1, max_new_tokens=3)
    jobs.ask_models(one.folder, *asked)
    assert jobs.ask_models(one.folder, *asked) and found == [0]  # the last one is kept
    jobs.probe_models(other.folder, plan)
    jobs.whole_run(prepare(tiny_config(), tiny, tmp_path).folder)
    jobs.ask_models(one.folder, *asked)
    jobs.epochs_that_fit(prepare(tiny_config(), tiny, tmp_path).folder, 0.0)
    jobs.ask_models(other.folder, *asked)
    jobs.recall_of_original(tiny_config(), tiny)
    jobs.ask_models(one.folder, *asked)
    assert found == [0] * 8 and alive() - before == 1
    jobs._drop()
    assert alive() == before
