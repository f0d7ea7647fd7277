"""ZeroGPU: what a click asks for stands there before it, our errors keep their words, and few models are offered."""

import pytest

from adapop.errors import ConfigError, ModelError, RunError
from adapop.facts.fact import PEOPLE, SANDBOX
from adapop.model.catalogue import MODELS
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.progress import Progress
from adapop.service.leases import FIRST_SECONDS
from adapop.service.worker import Worker
from adapop.service.zerogpu import lender, on_accelerator, public_models
from adapop.ui.run import configuration, launch
from components import run_values


class GradioError(Exception):
    """As `spaces` raises for any error of the work: a gr.Error with a title and the error's class name."""

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
        raise raised

    raised = ModelError("The prompt has 2,000 tokens.", "Shorten it.")
    with pytest.raises(ModelError) as caught:
        on_accelerator(failing, accelerated, 15)(*([Progress()] if accelerated else []))
    assert (caught.value.message, caught.value.fix) == ("The prompt has 2,000 tokens.", "Shorten it.")
    raised = ZeroDivisionError()
    with pytest.raises(RunError if accelerated else ZeroDivisionError, match=r"failed \(Zero" if accelerated else ""):
        on_accelerator(failing, accelerated, 15)(*([Progress()] if accelerated else []))


@pytest.mark.parametrize(
    ("accelerated", "model", "told"),
    [
        (gpu, "HuggingFaceTB/SmolLM2-135M-Instruct", f"asks for {FIRST_SECONDS} s of a lent GPU"),
        (gpu, SANDBOX, "GPU time: none"),
        (None, SANDBOX, ""),
    ],
)
def test_the_plan_of_a_run_tells_what_it_will_ask_for(tmp_path, small, accelerated, model, told):
    anchors, chosen = (RARE_ANCHOR, POPULAR_ANCHOR), run_values(model=model, epochs=3)
    updates = launch.look(Worker(tmp_path, accelerated), "", launch.UNSEEN, small, "error", anchors, *chosen)
    assert told in str(updates) if told else "GPU time" not in str(updates)


def test_strangers_choose_among_few_models_and_only_where_a_gpu_is_lent(monkeypatch):
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    small, large = "HuggingFaceTB/SmolLM2-135M-Instruct", "meta-llama/Llama-3.1-8B-Instruct"
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    assert lender() is None and public_models() == (SANDBOX, PEOPLE)
    with pytest.raises(ConfigError, match="does not run that model"):
        configuration.config_of(run_values(model=small))
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert configuration.config_of(run_values(model=small)).model == small
    for name in (large, "somebody/else", "/etc", "../x"):
        with pytest.raises(ConfigError, match="does not run that model"):
            configuration.config_of(run_values(model=name))
    assert all(not MODELS[name].gated and MODELS[name].billions <= 0.5 for name in public_models()[2:])
