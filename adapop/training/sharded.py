"""The frozen weights of a model divided among processes, where one device cannot hold them: torch's
FSDP2 as their storage.

Each process keeps one part of every block (Zhao et al. 2023, arXiv 2304.11277) and has one block
whole at a time. The adapter, the embeddings and the output layer stay whole in each: the first is
what is trained, and a pass needs the others at its beginning and its end.

Gathering a block takes all processes, and ours make different passes: uneven shares, passes halved
where memory runs out, replies of different lengths. So no process gathers by itself. All say which
block they want, gather each of these in the same order and drop those that they did not want; who
has no work left takes part until nobody wants a block. Passes of the same shape want the same
blocks, so that nothing is gathered in vain.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

from adapop.config.run import RunConfig
from adapop.errors import ConfigError, ModelError, RunError
from adapop.model.adapter import blocks_of

NOTHING = -1  # in place of a block's number
# transformers would read weights in the first process alone, for Accelerate to send them
READ_BY_ONE = "FSDP_CPU_RAM_EFFICIENT_LOADING"
# variables of an FSDP2 configuration that is not ours -> what it says, and what is done here
REFUSED = {
    ("FSDP_OFFLOAD_PARAMS", "true"): ("offload_params: true", "weights stay on the devices"),
    ("FSDP_RESHARD_AFTER_FORWARD", "false"): (
        "reshard_after_forward: false",
        "a block's weights are dropped after their use",
    ),
    ("FSDP_ACTIVATION_CHECKPOINTING", "true"): (
        "activation_checkpointing: true",
        "blocks are recomputed where memory runs out, and only there",
    ),
    ("FSDP_AUTO_WRAP_POLICY", "size_based_wrap"): (
        "auto_wrap_policy: SIZE_BASED_WRAP",
        "the decoder's blocks are divided, whatever their size",
    ),
    ("FSDP_AUTO_WRAP_POLICY", "no_wrap"): (
        "auto_wrap_policy: NO_WRAP",
        "the decoder's blocks are divided one by one",
    ),
}


def asked_for(environment: Mapping[str, str]) -> bool:
    """Whether the launcher asks to divide the weights, by the variables that Accelerate sets.
    Raises ConfigError: in a way that is not ours."""
    if environment.get("ACCELERATE_USE_FSDP", "").lower() != "true":
        return False
    if (version := environment.get("FSDP_VERSION", "1")) != "2":
        reason = f"FSDP version {version} was requested, but only version 2 is supported."
        raise ConfigError(reason, "Set fsdp_version: 2 (--fsdp_version 2).")
    for (name, value), (setting, done) in REFUSED.items():
        if environment.get(name, "").lower() == value:
            reason = f"The launcher's configuration says fsdp_{setting}, but here {done}."
            raise ConfigError(reason, "Leave that out.")
    return True


def check_divisible(config: RunConfig) -> None:
    """Raises ConfigError: the run needs weights that are whole."""
    whole = {
        "four_bit": config.four_bit,
        'start "sft", which merges an adapter into the weights': config.start == "sft",
        "a model that was unlearned elsewhere": bool(config.unlearned),
    }
    for named, in_use in whole.items():
        if in_use:
            reason = f"The launcher divides the weights (FSDP), which is not possible with {named}."
            raise ConfigError(reason, "Launch without FSDP.")


class Shards:
    """The blocks of the models whose weights are divided among all processes, seen from one."""

    def __init__(self) -> None:
        """All processes make this call together."""
        kinds = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
        # torch keeps a mesh and the threads of its group until Python ends, and aborts a process in
        # which one of them drops a tensor then (pytorch/pytorch#179291). The last message of all is
        # not of this group, so that none of its threads is at work by then
        group = torch.distributed.new_group()
        self._meshes = {kind: DeviceMesh.from_group(group, kind) for kind in kinds}
        self._votes = [
            torch.zeros(1, dtype=torch.int64) for _ in range(torch.distributed.get_world_size())
        ]
        # each block inside a module that is never run, because FSDP would gather when that runs
        self._blocks: list[Any] = []
        self._here, self._largest = NOTHING, 0
        self._device = torch.device("cpu")

    def place(self, base: PreTrainedModel, device: torch.device) -> None:
        """Keeps this process's part of each block's weights on a device, and everything else whole.
        base: on the CPU, without an adapter; it is frozen. Raises ModelError: its blocks cannot be
        divided. ConfigError: the launcher names blocks of another kind."""
        blocks = blocks_of(base)
        _check_blocks(base, blocks)
        base.requires_grad_(False)
        self._device = device
        for block in blocks:
            whole = sum(weight.nbytes for weight in block.parameters())
            self._largest = max(self._largest, whole)
            single = {weight for weight in block.parameters() if not weight.dim()}  # no part of it
            holder = nn.Sequential(block)
            fully_shard(holder, mesh=self._meshes[device.type], ignored_params=single)
            self._follow(block, len(self._blocks))
            self._blocks.append(holder)
        for tensor in chain(base.parameters(), base.buffers()):
            if not isinstance(tensor, DTensor):
                tensor.data = tensor.data.to(device)

    def attend(self) -> None:
        """Takes part in gathering until no process wants a block any more. Raises RunError: another
        process does not answer."""
        self._drop()
        while self._round(NOTHING):
            pass

    def fetch(self, number: int) -> None:
        """Has a block whole in this process, and no other. Raises RunError: another process does
        not answer. OutOfMemoryError: before the others count on this process."""
        if number == self._here and not _divided(self._blocks[number]):
            return
        self._drop()
        if self._device.type == "cuda":  # this block, then one for another process and its copy
            spare = [
                torch.empty(self._largest, dtype=torch.uint8, device=self._device) for _ in range(3)
            ]
            del spare
        self._round(number)

    def _round(self, block_number: int) -> bool:
        """Gathers the blocks that the processes want; this one keeps its own, `block_number`,
        which may be `NOTHING`. Returns whether any wants one."""
        own = torch.tensor([block_number])
        sync(partial(torch.distributed.all_gather, self._votes, own))
        numbers = sorted({int(vote) for vote in self._votes} - {NOTHING})
        for number in numbers:
            block = self._blocks[number]
            sync(block.unshard)
            if number == block_number:
                self._here = number
            else:
                block.reshard()
        return bool(numbers)

    def _drop(self) -> None:
        if self._here != NOTHING:
            self._blocks[self._here].reshard()
            self._here = NOTHING

    def _follow(self, block: nn.Module, number: int) -> None:
        """Fetches a block whenever its forward or backward begins."""

        def fetch(*_: Any) -> None:
            self.fetch(number)

        def before_backward(_: Any, inputs: Any, output: Tensor | tuple) -> None:
            for tensor in output if isinstance(output, tuple) else (output,):
                if isinstance(tensor, Tensor) and tensor.requires_grad:
                    tensor.register_hook(fetch)

        block.register_forward_pre_hook(fetch)
        block.register_forward_hook(before_backward)


def sync(message: Callable[[], Any]) -> None:
    """Sends and receives. Raises RunError: another process does not answer. OutOfMemoryError."""
    try:
        message()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        # the rest of the error is advice for programmers
        reason = str(error).partition("\n")[0].partition(". ")[0]
        reason = f"Another process of this run no longer answers ({reason})."
        raise RunError(reason, "See what it printed last; then resume the run.") from error


def _divided(block: nn.Module) -> bool:
    """Whether only a part of the block is here; saving a model's weights drops those gathered."""
    return any(isinstance(weight, DTensor) for weight in block.parameters())


def _check_blocks(base: PreTrainedModel, blocks: Any) -> None:
    """Raises as `Shards.place`."""
    kind = type(base).__name__
    if not blocks:
        message = f"{kind} keeps its blocks in no list, so its weights cannot be divided (FSDP)."
        raise ModelError(message, "Launch without FSDP.")
    used = Counter(id(weight) for block in blocks for weight in block.parameters())
    if max(used.values()) > 1:
        message = f"Blocks of {kind} share weights, so they cannot be divided (FSDP)."
        raise ModelError(message, "Launch without FSDP.")
    named = os.environ.get("FSDP_TRANSFORMER_CLS_TO_WRAP", "")
    kinds = sorted({type(block).__name__ for block in blocks})
    if named and not set(kinds) <= {name.strip() for name in named.split(",")}:
        reason = f"The launcher is to divide {named}; the model's blocks are {', '.join(kinds)}."
        raise ConfigError(reason, "Leave out fsdp_transformer_layer_cls_to_wrap.")
