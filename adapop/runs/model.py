"""A run's model, loaded with the adapter of an epoch and set to be asked as the run asks it."""

from safetensors import SafetensorError

from adapop.errors import RunError
from adapop.model.adapted import AdaptedModel
from adapop.model.loading import adapted_model
from adapop.model.original import cache_for
from adapop.model.out_of_memory import is_out_of_memory
from adapop.probes.ways import apply_prompting
from adapop.runs import checkpoints
from adapop.runs.adopted import load_adopted
from adapop.runs.finetuning import start_from
from adapop.runs.inputs import check_inputs
from adapop.runs.run import Run
from adapop.runs.weights import check_weights


def load_model(run: Run, epoch: int | None = None) -> AdaptedModel:
    """The run's model with the adapter of an epoch, by default that of its result. Raises RunError:
    it has saved no epoch, its files are damaged, or its inputs changed. ModelError."""
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
        model = adapted_model(run.config, run.checkpoint(epoch))
        start_from(run, model)
        prompt_as_settled(run, model)
        return model
    except (SafetensorError, OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
        if is_out_of_memory(error):
            raise
        raise checkpoints.damaged(run.checkpoint(epoch), checkpoints.ADAPTER, error) from error


def prompt_as_settled(run: Run, model: AdaptedModel) -> None:
    if prompting := run.prompting:
        with model.original():  # whose replies are cached
            model.reply_cache = model.reply_cache or cache_for(model)
        apply_prompting(model, prompting)
