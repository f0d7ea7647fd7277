"""A base that no device holds alone: each process keeps its part of every frozen weight (FSDP, torch's `fully_shard`).

A block is gathered just before it is computed, forwards and backwards, and given up right after. So every pass is made
by all processes at once, equally many by each: `ranks` and `gradient` see to that. The adapter stays whole everywhere.
"""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

from adapop.errors import ModelError
from adapop.model.adapted import AdaptedModel
from adapop.model.memory import is_out_of_memory

ROWS = 32  # answered or measured at once: a pass that all make is never tried again in smaller pieces


def sharded(model: AdaptedModel) -> AdaptedModel:
    """The model, whose base is now split among the processes that torch has joined, on their devices.

    A block at a time goes to the device, then what stands around the blocks, so the base is never whole there.

    Raises:
        ModelError: it has no list of blocks, or even a part of it is too large.
    """
    if model.sharded:
        return model
    if not len(model.blocks):
        raise ModelError("The model has no list of blocks called layers to split it by.", "Run it without --shard.")
    device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    adapter, mesh = set(model.parameters), init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    try:
        for part in (*model.blocks, model.network):
            fully_shard(part, mesh=mesh, reshard_after_forward=True, ignored_params=adapter)
        for parameter in adapter:  # `fully_shard` leaves these where they are
            parameter.data = parameter.data.to(device)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise ModelError("The memory is full with a process's part of the model.", "Launch more processes.") from error
    register_fsdp_forward_method(model.network, "generate")  # peft goes past the outermost module's `forward`
    model.device, model.sharded, model.most_rows = device, True, ROWS
    return model
