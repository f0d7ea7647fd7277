"""Two models in the memory of one: two whole models as a pair, and two adapters on one base.

Everything that asks a run's model switches its adapter off for the original. Of a model that was
unlearned elsewhere there is often no adapter, only other weights: then the networks are exchanged.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors import safe_open

from adapop.config.run import RunConfig
from adapop.errors import ModelError
from adapop.model import adapter_folder
from adapop.model.adapted import AdaptedModel, cache_for
from adapop.model.loading import adapted_model, load_tokenizer
from adapop.model.out_of_memory import free_bytes, release
from adapop.paths import split_revision
from adapop.remark import Remark

ORIGINAL, UNLEARNED = "original", "unlearned"
SPARE = 1.3  # times the second model's weights must be free: passes need room, too
NOTHING = "Nothing changed: the unlearned model has the weights of the original."
CHECK_NAMES = "Check which of the two is the unlearned one, and that it was saved after unlearning."


class BesideModel(AdaptedModel):
    """A further adapter on the base of a model in memory. Its adapter is on inside `active()`, that
    of the other model outside."""

    def __init__(self, first: AdaptedModel, config: RunConfig, folder: Path) -> None:
        """config: with which tokenizer it is asked. folder: of the adapter. Raises LookupError: the
        file holds other weights than the adapter takes from it."""
        network = first.network
        self._adapter = f"beside-{len(network.peft_config)}"
        place = str(first.device)  # as `adapter.with_adapter` has it
        network.load_adapter(str(folder), self._adapter, torch_device=place)
        with safe_open(folder / adapter_folder.WEIGHTS, "pt") as saved:
            names = {*saved.keys()}
        options = {"adapter_name": self._adapter, "save_embedding_layers": False}
        if names != {*get_peft_model_state_dict(network, **options)}:
            network.delete_adapter(self._adapter)
            raise LookupError("weights without a place")
        super().__init__(network, load_tokenizer(config), config.system or "")

    @contextmanager
    def active(self) -> Iterator[None]:
        """A context in which this model's own adapter is on."""
        before = self.network.active_adapter
        self.network.set_adapter(self._adapter)
        try:
            yield
        finally:
            self.network.set_adapter(before)


class PairedModel(AdaptedModel):
    """The unlearned model, and inside `original()` the original.

    Both are in memory if they fit; else they take turns, each loaded anew when it is asked. Both
    are asked with the original's tokenizer and template, unless their vocabularies differ: then
    each has its own, and only texts are compared (`compares`)."""

    def __init__(self, models: Mapping[str, AdaptedModel], load: Callable[[str], AdaptedModel]):
        """models: those in memory, the original first. load: loads one of both by its name."""
        first = models[ORIGINAL]
        super().__init__(first.network, first.tokenizer, first.system)
        self._load, self._together = load, UNLEARNED in models
        self._networks: dict[str, PeftModel] = {name: one.network for name, one in models.items()}
        other = models.get(UNLEARNED) or self._turn(UNLEARNED)
        self._tokenizers = {ORIGINAL: (first.tokenizer, first.own_template)}
        self.compares = _alike(first, other)
        if other.tokenizer.get_vocab() != first.tokenizer.get_vocab():
            self._tokenizers[UNLEARNED] = (other.tokenizer, other.own_template)
        self.notes = tuple(dict.fromkeys((*first.notes, *other.notes)))
        self.notes += () if self.compares else (Remark("compared_by_text"),)
        self.notes += () if self._together else (Remark("models_take_turns"),)
        if self._together and _same_weights(first, other):
            raise ModelError(NOTHING, CHECK_NAMES)
        self._use(ORIGINAL)
        self.reply_cache = cache_for(self)
        self._use(UNLEARNED)

    @contextmanager
    def original(self) -> Iterator[None]:
        """A context in which this is the original model."""
        before, self.adapter_off = self.adapter_off, True
        self._use(ORIGINAL)
        try:
            with self.network.disable_adapter():  # fresh, so it changes nothing and takes time
                yield
        finally:
            self.adapter_off = before
            if not before:
                self._use(UNLEARNED)

    @cached_property
    def packs(self) -> bool:
        """Whether both models can share the beginnings of rows; not tried where they take turns."""
        before = self.network
        try:
            return self._together and all(map(self._packs, self._networks.values()))
        finally:
            self.network = before

    def _packs(self, network: PeftModel) -> bool:
        self.network = network
        return AdaptedModel.packs.func(self)

    def ask(self, way: str, *args, **named) -> None:
        """See `Prompted.ask`; with two tokenizers, both are set."""
        super().ask(way, *args, **named)
        for tokenizer, template in self._tokenizers.values():
            if tokenizer is not self.tokenizer:
                own = self.tokenizer, self.own_template
                self.tokenizer, self.own_template = tokenizer, template
                try:
                    super().ask(way, *args, **named)
                finally:
                    self.tokenizer, self.own_template = own

    def _use(self, name: str) -> None:
        if name not in self._networks:
            self._turn(name)
        self.network = self._networks[name]
        tokenizers = getattr(self, "_tokenizers", {})
        if len(tokenizers) > 1:
            self.tokenizer, self.own_template = tokenizers[name]
            self.__dict__.pop("_line_ends", None)  # of the other vocabulary

    def _turn(self, name: str) -> AdaptedModel:
        """Loads a model in place of the other."""
        self._networks.clear()
        del self.network
        release()
        loaded = self._load(name)
        self.network = self._networks[name] = loaded.network
        return loaded


def paired_model(original: RunConfig, unlearned: RunConfig) -> PairedModel:
    """Both models, each with a fresh adapter (for probes that train one). Raises ModelError: as
    `adapted_model`; or nothing changed from the one to the other."""
    configs = {ORIGINAL: original, UNLEARNED: unlearned}
    models = {ORIGINAL: adapted_model(original)}
    network = models[ORIGINAL].network
    needed = sum(weight.nbytes for weight in network.parameters())
    if free_bytes(models[ORIGINAL].device) > SPARE * needed:
        models[UNLEARNED] = adapted_model(unlearned)
    return PairedModel(models, lambda name: adapted_model(configs[name]))


def original_of(config: RunConfig) -> RunConfig:
    """The settings with which an adopted run's original is loaded. Of other runs their own."""
    if not config.unlearned:
        return config
    return replace(config, method="ga", unlearned="", oracle="")  # nothing is trained with it


def at(config: RunConfig, place: str) -> RunConfig:
    """The settings with which the model at a place is loaded. place: see `RunConfig.unlearned`."""
    model, revision = split_revision(place)
    return replace(original_of(config), model=model, revision=revision, oracle="")


def check_changed(model: AdaptedModel) -> None:
    """Raises ModelError: the model's adapter adds nothing to the original."""
    added = [weight for name, weight in model.network.named_parameters() if _adds(name)]
    if added and not any(weight.any() for weight in added):
        raise ModelError(NOTHING.replace("the weights of", "exactly the weights of"), CHECK_NAMES)


def _adds(name: str) -> bool:
    return "lora_B" in name or "lora_embedding_B" in name or "modules_to_save" in name


def _alike(one: AdaptedModel, other: AdaptedModel) -> bool:
    """Whether numbers of both can be compared token by token and state by state."""
    shapes = [model.base.config.get_text_config() for model in (one, other)]
    sizes = {(shape.hidden_size, shape.num_hidden_layers) for shape in shapes}
    return len(sizes) == 1 and one.tokenizer.get_vocab() == other.tokenizer.get_vocab()


@torch.no_grad()
def _same_weights(one: AdaptedModel, other: AdaptedModel) -> bool:
    """Whether both have equal weights under equal names, adapters left out."""
    parts = [
        {name: value for name, value in model.base.state_dict().items() if "lora_" not in name}
        for model in (one, other)
    ]
    own, others = parts
    return own.keys() == others.keys() and all(
        own[name].shape == others[name].shape and torch.equal(own[name], others[name])
        for name in own
    )
