"""Why a model cannot be loaded, and what to do, from the errors of the Hub and transformers."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import constants, errors
from safetensors import SafetensorError

from adapop.config.run import RunConfig
from adapop.errors import ModelError
from adapop.model.checks import lfs_pointers
from adapop.model.out_of_memory import is_out_of_memory
from adapop.online.client import connection_hint

FAILURES = (
    OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError, ImportError,
    ArithmeticError, AssertionError, MemoryError, SafetensorError, errors.StrictDataclassError,
)  # fmt: skip


@contextmanager
def named_failures(config: RunConfig) -> Iterator[None]:
    """A context that turns any failure into a ModelError with its cause and what to do."""
    try:
        yield
    except FAILURES as error:
        raise failure(error, config) from error


def failure(error: Exception, config: RunConfig) -> ModelError:
    why, fix = _reason(error, config)
    return ModelError(f"The model {config.model!r} cannot be loaded: {why}.", fix)


def _reason(error: Exception, config: RunConfig) -> tuple[str, str]:
    page, causes = f"https://huggingface.co/{config.model}", list(_causes(error))
    # the text of these errors is no sentence, so their class is named too
    own = isinstance(error, LookupError | TypeError | AttributeError)
    message = f"{type(error).__name__}: {error}" if own or not str(error) else str(error)

    def any_is(kind: type) -> bool:
        return any(isinstance(cause, kind) for cause in causes)

    if any_is(errors.GatedRepoError):
        fix = f"Accept its licence at {page}, then set HF_TOKEN to a token of that account."
        return "it is gated, and you have no access with this token, or no token", fix
    if any_is(errors.RevisionNotFoundError):
        return f"it has no revision {config.revision!r}", f"See {page}/tree/main."
    if any_is(errors.RepositoryNotFoundError):
        fix = "Check the name; for a private model set HF_TOKEN."
        return "the Hub has no such model, or it is private", fix
    if any(isinstance(cause, OSError) and cause.errno == errno.ENOSPC for cause in causes):
        return "the disk is full", "Make room, or set HF_HOME to a folder on another disk."
    if any(map(is_out_of_memory, causes)):
        return "the memory is full", "Load it in 4 bits (--four-bit), or use a smaller model."
    if any_is(errors.LocalEntryNotFoundError) or "We couldn't connect to" in message:
        off, hint = "HF_HUB_OFFLINE is set", ""
        if not constants.HF_HUB_OFFLINE:
            off = f"{constants.ENDPOINT} does not answer"
            hint = f" {connection_hint(constants.ENDPOINT)}"
        fix = f"Connect and try again, or name a folder that holds the model.{hint}"
        return f"no folder has this name, it was never downloaded here, and {off}", fix
    if "trust_remote_code" in message:
        why = "it comes with code of its own, which is never run here"
        return why, "Use a model that needs none."
    if "Repo id must" in message:
        return "no folder has this name, and no model of the Hub can have it", "Check the path."
    if pointers := lfs_pointers(Path(config.model)):
        fix = "Run `git lfs pull` in the folder, or download the model with `hf download`."
        return f"{pointers[0]} only stands for a file that Git LFS has not fetched", fix
    absent = "no file named" in message or "does not appear to have" in message
    if "safetensors" in message and absent:
        if Path(config.model).is_dir() and not any(Path(config.model).glob("*.bin")):
            fix = "Copy or download the whole model, with its *.safetensors files."
            return "its folder holds no weights", fix
        why = "it has no safetensors weights, and pickled ones are never read"
        return why, "Use another revision of it, or convert it to safetensors."
    why = next(iter(message.strip().splitlines()), "no reason is given").rstrip(".:")
    if "ignore_mismatched_sizes" in message:
        why = "its weights have other sizes than its config.json describes"
    return why, "Check the name, and that the folder or repository is complete."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and the chain of its causes: transformers wraps the Hub's errors."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
