"""ZeroGPU: what a click asks for stands there before it, our errors keep their words, and few models are offered."""

import pytest

from adapop.errors import ConfigError, ModelError, RunError
from adapop.facts.fact import PEOPLE, SANDBOX
from adapop.model.catalogue import MODELS
from adapop.popularity.beta import POPULAR_ANCHOR, RARE_ANCHOR
from adapop.progress import Progress
from adapop.service.leases import FIRST_SECONDS
from adapop.service.worker import Worker
from adapop.service.zerogpu import ASK_SECONDS, LONG_SECONDS, cost_of_asking, on_accelerator, public_models
from adapop.ui import page
from adapop.ui.run import configuration, launch, settings


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


def too_long(progress=None):
    """Work that fails in words."""
    raise ModelError("The prompt has 2,000 tokens.", "Shorten it.")


def dead(progress=None):
    """Work that fails without words."""
    raise ZeroDivisionError


@pytest.mark.parametrize("accelerated", [None, gpu])
def test_an_error_of_ours_says_the_same_wherever_it_happens(accelerated):
    with pytest.raises(ModelError) as caught:
        on_accelerator(too_long, accelerated, 15)(*([Progress()] if accelerated else []))
    assert (caught.value.message, caught.value.fix) == ("The prompt has 2,000 tokens.", "Shorten it.")


def test_any_other_error_is_put_into_words():
    with pytest.raises(RunError, match=r"failed \(ZeroDivisionError\)"):
        on_accelerator(dead, gpu, 15)(Progress())


def words_of(worker) -> str:
    return str(page.build(worker).get_config_file()["components"])


@pytest.mark.slow
def test_the_page_tells_the_cost_of_each_button_where_a_gpu_is_lent_and_nowhere_else(tmp_path):
    there, elsewhere = words_of(Worker(tmp_path, gpu)), words_of(Worker(tmp_path))
    assert "GPU time" not in elsewhere
    assert there.count(cost_of_asking(ASK_SECONDS)) == 1
    assert there.count(cost_of_asking(LONG_SECONDS)) == 2, "probe all, from inside"


@pytest.mark.parametrize(
    ("accelerated", "model", "told"),
    [
        (gpu, "HuggingFaceTB/SmolLM2-135M-Instruct", f"asks for {FIRST_SECONDS} s of a lent GPU"),
        (gpu, SANDBOX, "GPU time: none"),
        (None, SANDBOX, ""),
    ],
)
def test_the_plan_of_a_run_tells_what_it_will_ask_for(tmp_path, small, accelerated, model, told):
    config = settings.make_config(model=model, epochs=3)
    chosen = [configuration.entry_of(config, field) for field in (*configuration.VISIBLE, *configuration.ADVANCED)]
    updates = launch.look(
        Worker(tmp_path, accelerated), "", launch.UNSEEN, small, "error", (RARE_ANCHOR, POPULAR_ANCHOR), *chosen
    )
    assert told in str(updates) if told else "GPU time" not in str(updates)


def test_strangers_choose_among_few_models_and_only_where_a_gpu_is_lent(monkeypatch):
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    config = settings.make_config()
    chosen = dict(
        zip(
            fields := (*configuration.VISIBLE, *configuration.ADVANCED),
            [configuration.entry_of(config, name) for name in fields],
        )
    )
    small, large = "HuggingFaceTB/SmolLM2-135M-Instruct", "meta-llama/Llama-3.1-8B-Instruct"
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    assert public_models() == (SANDBOX, PEOPLE)
    with pytest.raises(ConfigError, match="does not run that model"):
        configuration.config_of([*(chosen | {"model": small}).values()])
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert configuration.config_of([*(chosen | {"model": small}).values()]).model == small
    for name in (large, "somebody/else", "/etc", "../x"):
        with pytest.raises(ConfigError, match="does not run that model"):
            configuration.config_of([*(chosen | {"model": name}).values()])
    assert all(not MODELS[name].gated and MODELS[name].billions <= 0.5 for name in public_models()[2:])
