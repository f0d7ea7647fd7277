"""A run's model, loaded with the adapter of an epoch and set to be asked as the run asks it."""

from safetensors import SafetensorError

from adapop.errors import RunError
from adapop.model.adapted import AdaptedModel, cache_for
from adapop.model.adapter_folder import WEIGHTS
from adapop.model.loading import Place, adapted_model
from adapop.model.out_of_memory import is_out_of_memory
from adapop.model.paired import BesideModel, original_of
from adapop.probes.ways import apply_prompting
from adapop.runs import checkpoints
from adapop.runs.adopted import check_kept, is_whole, load_adopted
from adapop.runs.finetuning import start_from
from adapop.runs.inputs import check_inputs
from adapop.runs.run import Run
from adapop.runs.weights import check_weights

BASE = ("model", "revision", "precision", "device", "four_bit", "start")  # settings of the base


def load_model(run: Run, epoch: int | None = None, place: Place | None = None) -> AdaptedModel:
    """The run's model with the adapter of an epoch, by default that of its result. place: as for
    `adapted_model`. Raises RunError: it has saved no epoch, its files are damaged, or its inputs
    changed. ModelError."""
    epoch = run.chosen_epoch if epoch is None else epoch
    if epoch is None or not run.checkpoint(epoch).exists():
        named = "" if epoch is None else f" of epoch {epoch}"
        raise RunError(f"Run {run.id} has no checkpoint{named}.", "Let it run on.")
    if run.config.unlearned:
        model = load_adopted(run)
        prompt_as_settled(run, model)
        return model
    check_inputs(run)
    check_weights(run)
    checkpoints.adapter(run, epoch)  # raises where peft would silently load less than was saved
    try:
        model = adapted_model(run.config, run.checkpoint(epoch), place=place)
        start_from(run, model)
        prompt_as_settled(run, model)
        return model
    except (SafetensorError, OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
        if is_out_of_memory(error):
            raise
        raise checkpoints.damaged(run.checkpoint(epoch), WEIGHTS, error) from error


def load_beside(first: AdaptedModel, other: Run, run: Run, epoch: int) -> AdaptedModel | None:
    """The run's model with a second adapter on the base of another run's model, so that the base is
    in memory once; None where it needs a base of its own, or peft cannot add it.

    first: the model of `other`. Raises RunError: as `load_model`."""
    whole = any(one.config.unlearned and is_whole(one) for one in (other, run))
    bases = [tuple(getattr(one.config, name) for name in BASE) for one in (other, run)]
    if whole or bases[0] != bases[1] or run.config.start != "as-given":
        return None
    check_inputs(run)
    check_weights(run)
    if run.config.unlearned:
        check_kept(run.checkpoint(epoch))
    else:
        checkpoints.adapter(run, epoch)
    try:
        model = BesideModel(first, original_of(run.config), run.checkpoint(epoch))
    except (SafetensorError, OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
        if is_out_of_memory(error):
            raise
        return None  # to be loaded by itself, which says what is wrong
    prompt_as_settled(run, model)
    return model


def prompt_as_settled(run: Run, model: AdaptedModel) -> None:
    if prompting := run.prompting:
        with model.original():  # whose replies are cached
            model.reply_cache = model.reply_cache or cache_for(model)
        apply_prompting(model, prompting)
