"""ZeroGPU, which lends a GPU for one call: how work requests the GPU and is called on it.

The GPU time is charged to the visitor whose request makes the call, and the permission in a request
soon expires. The sandbox needs no GPU: its work is done in the app's own process.
"""

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass

from adapop.errors import AdaPopError, RunError
from adapop.model.catalogue import MODELS
from adapop.paths import SHIPPED
from adapop.progress import Progress

Seconds = int | Callable[..., int]  # allowed for a call, or a function of the call's arguments
# (a function of a module, its seconds) -> the function to call instead, with plain data in and out
Accelerated = Callable[[Callable, Seconds], Callable]
ASK_SECONDS, LONG_SECONDS = 15, 60
# Parameters of the largest model: a lent slice has 48 GB, of which the weights of 1.75 billion in
# bf16 take 3.5. Memory would allow several times as much, but each lease of at most `LONG_SECONDS`
# loads the weights anew and must then finish an epoch. Never timed on a ZeroGPU machine.
LENT_BILLIONS = 1.75
log = logging.getLogger(__name__)


def lender() -> Accelerated | None:
    """A function that makes others run on a GPU lent for some seconds; None if no GPU is lent."""
    if not is_lent():
        return None
    import spaces  # before torch, which the worker imports, and after gradio's logging is set

    return lambda work, seconds: spaces.GPU(duration=seconds)(work)


@dataclass(frozen=True)
class ErrorReturned:
    """Work that returns its `AdaPopError`: if raised, ZeroGPU would pass on only its name."""

    work: Callable

    @property
    def __name__(self) -> str:
        return self.work.__name__

    def __call__(self, *args):
        try:
            return self.work(*args)
        except AdaPopError as error:
            return error


def on_accelerator(work: Callable, accelerated: Accelerated | None, seconds: Seconds) -> Callable:
    """The work as a call on the accelerator. On a lent one it reports no progress and cannot be
    stopped. Raises AdaPopError: the work's own, or `in_words`."""
    if accelerated is None:
        return work
    accelerated_work = accelerated(ErrorReturned(work), seconds)

    def called_there(*args):
        plain = [arg for arg in args if not isinstance(arg, Progress)]
        for progress in (arg for arg in args if isinstance(arg, Progress)):
            progress.say("Working on the accelerator …")
        try:
            result = accelerated_work(*plain)
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


def may_close() -> str:
    """Whether a page may be closed while its runs wait or work, in words."""
    if is_lent():  # the GPU is lent to the page
        return "Leave the page open: a run that uses the GPU needs it."
    return "You may close the page: the runs go on."


def public_models() -> tuple[str, ...]:
    """The models of a public page: shipped and, on ZeroGPU, small ones of the Hub with a licence
    that asks for no consent."""
    small = [one for one in MODELS.values() if one.billions <= LENT_BILLIONS]
    free = [one.id for one in small if one.licence and not (one.gated or one.origin)]
    return (*SHIPPED, *(free if is_lent() else ()))


def cost_of_asking(seconds: int) -> str:
    """The GPU time that one question or probing asks ZeroGPU for, in words."""
    return f"GPU time: up to {seconds} s of Hugging Face's shared GPU; none for an included model."


# Title of ZeroGPU's error -> what happened, and what to do next.
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
    "ZeroGPU queue timeout": (
        "No GPU was free for a minute.",
        "Try again in a moment. What was saved is kept.",
    ),
    "ZeroGPU client error": (
        "No GPU was available.",
        "Try again in a moment. What was saved is kept.",
    ),
}
USED_UP = "ZeroGPU quota exceeded"
# what `spaces` tells a visitor who has too few seconds left, and the time until they are renewed
LEFT = re.compile(r"\((\d+)s requested vs\. (-?\d+)s left\)\. Try again in ([\w ,:]+)\.")
EXPIRED = (
    "The permission to use a GPU has expired: it comes with an open page.",
    "Leave the page open and press Resume. What was saved is kept.",
)
TAKEN_AWAY = (
    "The GPU was withdrawn in the middle of the work.",
    "What the last finished epoch saved is kept: try again, with fewer facts if it happens twice.",
)


def in_words(error: Exception) -> RunError:
    """Turns an accelerator's refusal or failure into an error with the reason and a fix.

    `spaces` raises a gr.Error with a title. Under "worker error", only the text tells whether the
    process with the GPU is gone or the work in it raised an error.
    """
    title, message = getattr(error, "title", ""), str(getattr(error, "message", error))
    if title == "ZeroGPU client error" and "Expired" in message:
        return RunError(*EXPIRED)
    if title == "ZeroGPU worker error" and "aborted" in message:
        return RunError(*TAKEN_AWAY)
    if title == USED_UP and (match := LEFT.search(message)):
        requested, left, wait = match[1], max(0, int(match[2])), match[3]
        reason = f"This work asks for {requested} s of a GPU, but only {left} s are left today."
        fix = f"Log in to Hugging Face for more, or come back in {wait}. What was saved is kept."
        return RunError(reason, fix)
    if title in REFUSALS:
        return RunError(*REFUSALS[title])
    named = title == "ZeroGPU worker error" and message.isidentifier()
    kind = message if named else type(error).__name__
    fix = "What was saved is kept; the log of the app says more."
    return RunError(f"The work on the accelerator failed ({kind}).", fix)
