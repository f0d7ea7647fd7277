"""ZeroGPU, which lends a GPU for one call: how long each kind of work asks for it, and how the work is called there."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass

from adapop.errors import AdaPopError, RunError
from adapop.facts.fact import SANDBOX
from adapop.model.catalogue import MODELS
from adapop.progress import Progress

# (a function of a module, the seconds it may take) -> what to call in its place, with plain data in and out
Accelerated = Callable[[Callable, int], Callable]
ASK_SECONDS, LONG_SECONDS = 15, 60
LENT_BILLIONS = 0.5  # parameters: an epoch of a larger one may not fit into a slice
log = logging.getLogger(__name__)


def lender() -> Accelerated | None:
    """What makes a function run on a GPU that is lent for so many seconds; None where nobody lends one."""
    if not is_lent():
        return None
    import spaces  # before torch, which the worker imports, and after gradio was told to be silent

    return lambda work, seconds: spaces.GPU(duration=seconds)(work)


@dataclass(frozen=True)
class ErrorReturned:
    """Work that returns its `AdaPopError` instead of raising it: ZeroGPU passes on only the name of an error."""

    work: Callable

    @property
    def __name__(self) -> str:
        return self.work.__name__

    def __call__(self, *args):
        try:
            return self.work(*args)
        except AdaPopError as error:
            return error


def on_accelerator(work: Callable, accelerated: Accelerated | None, seconds: int) -> Callable:
    """The work, called where the accelerator is. In another process it reports no progress and cannot be stopped."""
    if accelerated is None:
        return work
    called = accelerated(ErrorReturned(work), seconds)

    def called_there(*args):
        plain = [arg for arg in args if not isinstance(arg, Progress)]
        for progress in (arg for arg in args if isinstance(arg, Progress)):
            progress.say("Working on the accelerator …")
        try:
            result = called(*plain)
        except AdaPopError:
            raise
        except Exception as error:
            log.error("the accelerator failed", exc_info=error)
            raise in_words(error) from error
        if isinstance(result, AdaPopError):
            raise result
        return result

    return called_there


def is_lent() -> bool:
    """Whether this is a ZeroGPU machine, by its own variable."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def public_models() -> tuple[str, ...]:
    """The models of a public page: the sandbox and, on ZeroGPU, small ones that need no agreement."""
    small = [one.id for one in MODELS.values() if one.billions <= LENT_BILLIONS and not one.gated]
    return (SANDBOX, *(small if is_lent() else ()))


def cost_of_run(epochs: int) -> str:
    """The GPU time that a run asks ZeroGPU for, in words."""
    total = epochs * LONG_SECONDS
    return f"GPU time: asks for up to {LONG_SECONDS} s of a lent GPU for each epoch, {total:,} s for all {epochs}."


def cost_of_asking(seconds: int) -> str:
    """The GPU time that one question or probing asks ZeroGPU for, in words."""
    return f"GPU time: asks for up to {seconds} s of a lent GPU."


# by the title of the error with which ZeroGPU refuses: what happened, and what to do next
REFUSALS = {
    "ZeroGPU quota exceeded": (
        "Today's GPU time is used up.",
        "Log in to Hugging Face for more, or come back tomorrow. What was saved is kept.",
    ),
    "ZeroGPU pending credits exceeded": (
        "Other GPU work of this account is still under way.",
        "Try again when it is done.",
    ),
    "ZeroGPU illegal duration": (
        "One step of this work asks for more GPU time at once than this account may have.",
        "Use fewer facts, or run the app on a machine of your own.",
    ),
    "ZeroGPU queue timeout": ("No GPU was free for a minute.", "Try again in a moment. What was saved is kept."),
    "ZeroGPU client error": ("No GPU could be had.", "Try again in a moment. What was saved is kept."),
    "ZeroGPU worker error": (
        "The GPU was taken away in the middle of the work.",
        "What the last finished epoch saved is kept: try again, with fewer facts if it happens twice.",
    ),
}


def in_words(error: Exception) -> RunError:
    """An accelerator's refusal or death as something to say and to do."""
    refusal = REFUSALS.get(getattr(error, "title", ""))
    if refusal is None:
        refusal = f"The work on the accelerator ended early ({type(error).__name__}).", "What was saved is kept."
    return RunError(*refusal)
