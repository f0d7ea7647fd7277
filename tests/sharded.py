"""What `test_sharding` runs in each of two processes that share a base, and in one: as `ranked`, on a tiny Llama.

OUT/held-RANK.json: bytes of the base that a process holds, and of the whole.
"""

import json
import os
import sys
from pathlib import Path

import torch
from torch.distributed.tensor import DTensor

import families
from adapop.training import trainer
from adapop.training.processes import joined
from ranked import Scenarios, runs_out

MODEL = {"precision": "float32", "max_new_tokens": 3}
# jointly; a row a pass, where the last step's smaller share is nothing but the row that does not count; hidden states
METHODS = {
    "adapop": {},
    "npo-sam": {"micro_batch": 1, "epochs": 1},
    "rmu": {"arguments": {"layer": 0}, "lora_layers": (0,), "epochs": 1},
}


def frozen_bytes(model):
    """Of the base, as far as it is here."""
    frozen = [weight for weight in model.network.parameters() if not weight.requires_grad]
    here = [weight.to_local() if isinstance(weight, DTensor) else weight for weight in frozen]
    return sum(weight.numel() * weight.element_size() for weight in here)


def main(out: Path) -> None:
    """Every scenario; alone, those that others are compared with."""
    torch.set_num_threads(1)
    with joined(shard="WORLD_SIZE" in os.environ) as ranks:
        scenarios = Scenarios(ranks, out)
        model = {**MODEL, "model": str(ranks.led(lambda: families.saved("llama", out / "llama")))}
        for method, changes in METHODS.items():
            run, made = scenarios.started(method, method, **model, **changes)
            whole = frozen_bytes(made)
            scenarios.finish(method, run, made)
            (out / f"held-{ranks.rank}.json").write_text(json.dumps([frozen_bytes(made), whole]), encoding="utf-8")
        if ranks.count > 1:
            fits, trainer.rows_that_fit = trainer.rows_that_fit, lambda *_: 3 - 2 * ranks.rank
            scenarios.finish("uneven", *scenarios.started("uneven", "adapop", **model))
            trainer.rows_that_fit = fits
            scenarios.stopped(**model)
            run, made = scenarios.started("short", "adapop", **model)
            scenarios.finish("short", run, runs_out(made, rows=0) if ranks.rank == 1 else made)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
