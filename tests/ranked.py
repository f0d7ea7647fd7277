"""What `test_processes` runs in each of several processes, and in one: `ranked.py OUT`, started by Accelerate or alone.

OUT/NAME holds a scenario's runs, OUT/NAME-RANK.json how it ended in a process, OUT/NAME-RANK.safetensors its adapter.
"""

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from unittest import mock

import torch
from safetensors.torch import save_file
from torch.distributed.tensor import DTensor

from adapop import adapted_model, execute, make_config, prepare
from adapop.facts.world import sandbox_facts
from adapop.model import packing
from adapop.probes import measure
from adapop.training.events import StepDone
from adapop.training.processes import joined, shared

# 9 facts, 4 a step: the first two steps are shared 2 to 2, the last 1 to 0
SETTINGS = {"epochs": 2, "batch": 4, "last_step": "short", "max_new_tokens": 8}
BRIEFLY = {"epochs": 1, "measure": "off"}  # what is measured, and how, does not depend on the method
METHODS = {"adapop": {}, "npo-sam": BRIEFLY, "pdu": {**BRIEFLY, "warmup": 0}, "rmu": BRIEFLY}


def few_facts():
    """Facts of every exposure, some with longer answers, each with one rewording."""
    facts = sandbox_facts()

    def some(rows, count):
        chosen = sorted(rows, key=lambda fact: fact.score)[:: len(rows) // count][:count]
        return tuple(
            replace(fact, answer=fact.answer + " indeed" * (i % 3), paraphrases=fact.paraphrases[:1])
            for i, fact in enumerate(chosen))  # fmt: skip

    return replace(
        facts, forget=some(facts.forget, 9), retain=some(facts.retain, 5), holdout=facts.holdout[:2],
        utility=facts.utility[:2])  # fmt: skip


def in_double(config, ranks, seed=0):
    """The model in float64; beside the first process with another adapter, which the run must put right."""
    place = ranks.shards.place if ranks.shards else None
    model = adapted_model(replace(config, seed=config.seed + seed + ranks.rank), place=place)
    model.network.double()
    model.most_rows = 4  # so that there are measurements to share
    return model


def runs_out(model, rows):
    """A model on whose device more than so many rows find no memory."""

    def forward(module, inputs, named, output):
        if torch.is_grad_enabled() and len(named["input_ids"]) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory (simulated).")

    model.network.register_forward_hook(forward, with_kwargs=True)
    return model


class Scenarios:
    """Runs by name, in this process's part."""

    def __init__(self, ranks, out):
        self.ranks, self.out = ranks, out

    def started(self, name, method, **changes):
        """A prepared run and its model."""
        config = make_config(method, **{**SETTINGS, **changes})
        run = self.ranks.led(lambda: prepare(config, few_facts(), self.out / name))
        return run, in_double(run.config, self.ranks)

    def finish(self, name, run, model):
        """Runs to the end and writes how it ended here."""
        last = list(execute(run, model, ranks=self.ranks))[-1]
        said = {"last": type(last).__name__, "message": getattr(last, "message", "")}
        (self.out / f"{name}-{self.ranks.rank}.json").write_text(json.dumps(said), encoding="utf-8")
        state = {key: value.contiguous() for key, value in model.adapter_state().items()}
        save_file(state, self.out / f"{name}-{self.ranks.rank}.safetensors")

    def stopped(self, **changes):
        """Stopped in its second epoch, then gone on with by models that know nothing of it."""
        run, model = self.started("stopped", "adapop", **changes)
        steps = 0
        for event in execute(run, model, ranks=self.ranks):
            steps += isinstance(event, StepDone)
            if self.ranks.first and steps == 4:
                run.request_stop()
        said = {"last": type(event).__name__, "steps": steps}
        (self.out / f"halfway-{self.ranks.rank}.json").write_text(json.dumps(said), encoding="utf-8")
        self.ranks.led(run.clear_stop)
        self.finish("stopped", run, in_double(run.config, self.ranks, seed=5))

    def short_of_memory(self, name, method, rows):
        """Only the second process is."""
        run, model = self.started(name, method, **METHODS[method])
        self.finish(name, run, runs_out(model, rows) if self.ranks.rank == 1 else model)

    def measured(self):
        """What is measured of a model in float32 that has changed, and how many rows were read for it here."""
        place = self.ranks.shards.place if self.ranks.shards else None
        model, reply_counts, read = adapted_model(make_config(), place=place), [], []
        generator = torch.Generator().manual_seed(0)
        for parameter in model.parameters:
            parameter.data += 0.02 * torch.randn(parameter.shape, generator=generator)
        model.most_rows, model.on_replies, facts = 4 + 3 * self.ranks.rank, reply_counts.append, few_facts()
        assert model.packs

        def count(module, inputs, named):
            read.append(len(named["input_ids"]))

        model.network.register_forward_pre_hook(count, with_kwargs=True)
        with shared(self.ranks, model):
            rows = [asdict(row) for row in (*measure.full(model, facts, 5).rows, *measure.quick(model, facts, 5).rows)]
        assert model.most_rows == 4 + 3 * self.ranks.rank
        content = {"found": rows, "told": sum(reply_counts), "read": sum(read)}
        (self.out / f"measured-{self.ranks.rank}.json").write_text(json.dumps(content), encoding="utf-8")

    def recomputed(self):
        """Blocks are computed again in the backward pass."""
        run, model = self.started("recomputed", "pdu", **METHODS["pdu"])
        model.recompute()
        self.finish("recomputed", run, model)

    def divided(self):
        """How many bytes of the blocks' weights are here, of how many, and how many blocks are whole at most."""
        model, most = adapted_model(make_config(), place=self.ranks.shards.place), []
        frozen = [[weight for weight in block.parameters() if not weight.requires_grad] for block in model.blocks]
        here = sum(weight.to_local().nbytes for block in frozen for weight in block)

        def count(*_):
            most.append(sum(not isinstance(next(block.parameters()), DTensor) for block in model.blocks))

        for block in model.blocks:
            block.register_forward_hook(count)
            block.register_full_backward_pre_hook(count)
        model.generate(["Where was Ada born?"] * (1 + self.ranks.rank), 3 + self.ranks.rank)
        model.score(model.batch(model.rows(few_facts().forget))).nll.sum().backward()
        content = {"here": here, "whole": sum(weight.nbytes for block in frozen for weight in block), "most": max(most)}
        self.ranks.together(lambda: None)
        (self.out / f"divided-{self.ranks.rank}.json").write_text(json.dumps(content), encoding="utf-8")

    def abandoned(self):
        """The second process is gone after the first step, as if it had been killed."""
        run, model = self.started("abandoned", "adapop")
        for event in execute(run, model, ranks=self.ranks):
            if self.ranks.rank == 1 and isinstance(event, StepDone):
                os._exit(9)


def main(out: Path) -> None:
    """Every scenario; alone, those that others are compared with."""
    torch.set_num_threads(1)
    # processes deal out rows otherwise, and what is packed otherwise is rounded otherwise in float32 norms
    with joined() as ranks, mock.patch.object(packing, "SAVED", 1.0):
        scenarios = Scenarios(ranks, out)
        for method, changes in METHODS.items():
            scenarios.finish(method, *scenarios.started(method, method, **changes))
        scenarios.measured()
        if ranks.count > 1:
            scenarios.stopped()
            scenarios.short_of_memory("halved", "npo-sam", rows=1)
            scenarios.short_of_memory("failed", "adapop", rows=0)
            scenarios.recomputed()
            if ranks.shards:
                scenarios.divided()
            scenarios.abandoned()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
