import traceback
from dataclasses import replace
from unittest import mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from adapop.config.methods import METHODS
from adapop.config.presets import make_config
from adapop.errors import RunError
from adapop.model import packing
from adapop.model.out_of_memory import in_pieces, is_out_of_memory
from adapop.model.tokens import encode_facts
from adapop.objectives import make_objective
from adapop.objectives.alternates import by_relation
from adapop.popularity.beta import BetaMap
from adapop.remark import Remark
from adapop.training.forget_set import ForgetSet
from adapop.training.gradient import StepGradient
from raised import raised
from stirred import stirred

pytestmark = pytest.mark.usefixtures("padded")  # so that passes can be counted by their rows
BATCH = 12


@pytest.fixture(scope="module")
def ragged(small):
    """12 forget and 12 retain facts; questions and answers of many lengths, the former with a wrong answer each."""

    def longer(facts):
        return tuple(
            replace(
                fact, question=f"{'Tell me, please: ' * (i % 4)}{fact.question}",
                answer=" ".join([fact.answer, "one", "two"][: 1 + i % 3]),
            )
            for i, fact in enumerate(facts[:BATCH]))  # fmt: skip

    return replace(small, forget=tuple(by_relation(longer(small.forget), (), 0)), retain=longer(small.retain))


def step_gradient(model, facts, method, micro_batch, **changes):
    """What `Trainer` makes of a configuration, and the step's rows."""
    config = make_config(method, micro_batch=micro_batch, batch=BATCH, **changes)
    objective = make_objective(method, config.arguments)
    betas = [(config.beta or BetaMap())(fact.score) for fact in facts.forget] if METHODS[method].scored else None
    forget = ForgetSet(config, objective, model, facts.forget, betas)
    retain = encode_facts(model.tokenizer, facts.retain, config.system) if objective.retains else []
    model.network.train()
    return StepGradient(config, objective, model, forget, micro_batch or 2 * BATCH), forget.rows, retain


def gradient_of(fresh, facts, method, micro_batch, order=None, prepare=None, **changes):
    """The gradient in float64, and what was seen. order: of the step's rows."""
    model = fresh(method)
    model.network.double()
    stirred(model)  # with every B at zero, no A would have a gradient
    gradient, forget, retain = step_gradient(model, facts, method, micro_batch, **changes)
    if order is not None:
        forget, retain = [forget[i] for i in order], [retain[i] for i in order] if retain else []
    if prepare is not None:
        prepare(model)
    step = gradient.add(forget, retain, 1, 0.7)
    return torch.cat([weight.grad.flatten() for weight in model.parameters]), step, gradient


def same(one, other):
    torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10 * other.abs().max().item())


@pytest.mark.parametrize("normalise", ["token", "example"])
def test_a_skipped_token_is_not_counted_in_the_mean(fresh, ragged, normalise):
    """CE-U leaves out an answer's first token, and divides by the number of the others; an answer of one keeps it."""
    _, step, gradient = gradient_of(fresh, ragged, "ceu", 0, normalise=normalise)
    batch = gradient.forget.batch(step.rows, 1)
    result = gradient.objective.forget_loss(gradient.model, batch)
    by_row = [
        (result.loss[batch.tokens.row == i].sum(), max(1, len(row.answer) - 1)) for i, row in enumerate(step.rows)
    ]
    assert any(len(row.answer) > 1 for row in step.rows)
    means = [loss / count for loss, count in by_row]
    expected = sum(means) / len(means)
    if normalise == "token":
        expected = sum(loss for loss, _ in by_row) / sum(count for _, count in by_row)
    same(sum(step.loss), expected.detach())


def nll_by_fact(step):
    return dict(zip([row.fact for row in step.rows], torch.cat(step.nll).split([len(row.answer) for row in step.rows])))


def watched(model, rows):
    noted = lambda module, inputs, named: rows.append(len(named["input_ids"]))  # noqa: E731
    model.network.register_forward_pre_hook(noted, with_kwargs=True)


@pytest.mark.quick("adapop")
@pytest.mark.parametrize("method", METHODS)
def test_one_gradient_for_every_pass_size(fresh, ragged, method):
    few = replace(ragged, forget=ragged.forget[:6], retain=ragged.retain[:6])
    alone, step, _ = gradient_of(fresh, few, method, 1)
    expected, retained = nll_by_fact(step), sum(nll.sum().item() for nll in step.retain)
    for micro_batch, order in ((4, None), (0, range(5, -1, -1))):
        other, other_step, _ = gradient_of(fresh, few, method, micro_batch, order)
        same(other, alone)
        assert sum(other_step.loss).item() == pytest.approx(sum(step.loss).item(), rel=1e-9)
        assert sum(nll.sum().item() for nll in other_step.retain) == pytest.approx(retained)
        for fact, values in nll_by_fact(other_step).items():
            same(values, expected[fact])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "changes"),
    [("adapop", {"normalise": "example"}), ("simnpo", {"normalise": "example-both"}), ("rmu", {"retain_loss": "kl"})],
    ids=str,
)
def test_other_means_and_losses_too(fresh, ragged, method, changes):
    alone, joint = (gradient_of(fresh, ragged, method, size, **changes)[0] for size in (1, 0))
    same(joint, alone)


@pytest.mark.quick("adapop-1")
@pytest.mark.parametrize(("method", "passes"), [("adapop", 1), ("undial", 2), ("npo-sam", 3)])
def test_forget_and_retain_rows_share_a_pass_where_they_may(fresh, ragged, method, passes):
    """UNDIAL also asks the original; NPO-SAM takes its two forget gradients at other weights, so nothing is shared."""
    rows = []
    gradient_of(fresh, ragged, method, 0, prepare=lambda model: watched(model, rows))
    assert len(rows) == passes and max(rows) == (BATCH if method == "npo-sam" else 2 * BATCH)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["adapop", "ceu", "npo-sam", "undial", "rmu", "altpo"])  # one of each kind of loss
def test_packed_rows_give_a_method_its_gradient(fresh, ragged, method, monkeypatch):
    """A system prompt is what rows share. float32 norms inside the model are why this is not as exact as the others."""
    lines, system = [], "You state facts. " * 20
    padded, step, _ = gradient_of(fresh, ragged, method, 0, system=system)
    monkeypatch.setattr(packing, "SAVED", 1 / 3)
    packed, packed_step, _ = gradient_of(
        fresh, ragged, method, 5, prepare=lambda model: watched(model, lines), system=system
    )
    assert lines and max(lines) <= 3 and (packed - padded).norm() < 1e-6 * padded.norm()
    assert sum(packed_step.loss).item() == pytest.approx(sum(step.loss).item(), rel=1e-6)
    expected = nll_by_fact(step)
    for fact, values in nll_by_fact(packed_step).items():
        torch.testing.assert_close(values, expected[fact], atol=1e-6, rtol=1e-6)


def test_a_packed_step_does_not_wait_for_the_device_at_all(fresh, ragged, monkeypatch):
    monkeypatch.setattr(packing, "SAVED", 0.1)
    model = fresh()
    gradient, forget, retain = step_gradient(model, ragged, "adapop", 0)
    assert model.batch([*forget, *retain]).tree is not None and model.packs
    with HostReads() as host:
        gradient.add(forget, retain, 1, 0.7)
    assert host.ours == [] and host.masks == 0


def test_similar_lengths_share_a_pass(fresh, ragged):
    gradient, forget, _ = step_gradient(fresh(), ragged, "gd", 4)

    def computed(pieces):
        return sum(len(rows) * max(len(row.prompt) + len(row.answer) for row in rows) for rows in pieces)

    sorted_, plain = computed(gradient._pieces(forget)), computed(forget[i : i + 4] for i in range(0, BATCH, 4))
    assert sum(len(row.prompt) + len(row.answer) for row in forget) <= sorted_ < plain


def runs_out(limit, where, kept_limit=None):
    """Makes a pass over more than `limit` rows fail as a full GPU does; kept_limit: once blocks are recomputed."""

    def prepare(model):
        def check(rows):
            if rows > (limit if kept_limit is None or not model.recomputes else kept_limit):
                raise torch.OutOfMemoryError("CUDA out of memory (simulated).")

        def forward(module, inputs, named, output):
            rows = len(named["input_ids"])
            if where == "forward":
                torch.rand(1)  # as dropout would
                check(rows)
            elif output.logits.requires_grad:
                output.logits.register_hook(lambda _: check(rows))

        model.network.register_forward_hook(forward, with_kwargs=True)

    return prepare


@pytest.mark.quick("npo-sam-forward")
@pytest.mark.parametrize(("method", "where"), [("npo-sam", "forward"), ("npo-sam", "backward"), ("altpo", "backward")])
def test_out_of_memory_halves_the_pass_and_keeps_the_gradient(fresh, ragged, method, where):
    whole, _, _ = gradient_of(fresh, ragged, method, 1)
    made_do, _, gradient = gradient_of(fresh, ragged, method, 0, prepare=runs_out(4, where))
    same(made_do, whole)
    assert gradient.rows == 3
    passes = (12, 6) if method == "npo-sam" else (24, 12, 6)  # forget and retain rows share a pass, or do not
    assert gradient.notes == [Remark("fewer_rows", {"rows": rows, "fewer": rows // 2}) for rows in passes]


def test_a_step_tried_again_draws_the_same_random_numbers(fresh, ragged):
    after = []
    for limit, size in ((99, 3), (4, 6)):
        gradient, forget, retain = step_gradient(fresh(), ragged, "adapop", size)
        runs_out(limit, "forward")(gradient.model)
        torch.manual_seed(3)
        gradient.add(forget, retain, 1, 0.7)
        after.append(torch.rand(1))
    assert after[0] == after[1]  # eight passes of three rows drew once each; the one that failed does not count


@pytest.mark.slow
def test_recomputing_is_the_last_resort_and_gives_the_same_gradient(fresh, ragged):
    whole, _, _ = gradient_of(fresh, ragged, "adapop", 1)
    made_do, _, gradient = gradient_of(fresh, ragged, "adapop", 0, prepare=runs_out(0, "backward", kept_limit=6))
    same(made_do, whole)
    assert gradient.rows == 6 and gradient.model.recomputes and Remark("activations_recomputed") in gradient.notes
    for name, weight in gradient.model.network.named_parameters():
        assert "lora_B" not in name or weight.grad.any(), name


@pytest.mark.slow
@pytest.mark.parametrize("method", ["undial", "rmu", "pdu"])
def test_recomputed_blocks_give_every_method_its_gradient(fresh, ragged, method):
    expected, _, _ = gradient_of(fresh, ragged, method, 0)
    recomputed, _, _ = gradient_of(fresh, ragged, method, 0, prepare=lambda model: model.recompute())
    same(recomputed, expected)


@pytest.mark.slow
def test_not_even_one_row_fits(fresh, ragged):
    with pytest.raises(RunError, match="Memory ran out on one row, with activations recomputed"):
        gradient_of(fresh, ragged, "adapop", 0, prepare=runs_out(0, "forward"))


def test_errors_that_are_no_full_memory_and_work_that_goes_on_in_smaller_pieces(fresh, ragged):
    def breaks(model):
        model.network.register_forward_hook(mock.Mock(side_effect=RuntimeError("CUDA error: device-side assert")))

    raised(RuntimeError, "device-side assert", gradient_of, fresh, ragged, "adapop", 0, prepare=breaks)
    error = raised(RuntimeError, "", torch.empty, 2**60, dtype=torch.uint8)
    assert is_out_of_memory(error) and not is_out_of_memory(RuntimeError("shapes differ"))
    tried = []

    def work(rows):
        tried.append(len(rows))
        if len(rows) > 3:
            raise torch.OutOfMemoryError("full")
        return sum(rows)

    assert sum(in_pieces(range(20), 16, work)) == sum(range(20)) and tried == [16, 8, 4, *[2] * 10]
    with pytest.raises(RunError, match="one row of 5"):
        list(in_pieces([9] * 5, 4, lambda rows: (_ for _ in ()).throw(torch.OutOfMemoryError("full"))))


class HostReads(TorchDispatchMode):
    """Counts what would make the host wait for an accelerator: single values read, sizes that depend on data."""

    WAIT = ("_local_scalar_dense", "nonzero", "masked_select", "bincount", "unique")

    def __init__(self):
        super().__init__()
        self.ours, self.masks = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(name in str(func) for name in self.WAIT):
            if any(frame.filename.endswith("masking_utils.py") for frame in traceback.extract_stack()):
                self.masks += 1
            else:
                self.ours.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.quick("adapop")
@pytest.mark.parametrize("method", ["adapop", "npo-sam", "undial", "rmu", "altpo", "tpo"])
def test_a_step_s_gradient_does_not_wait_for_the_device(fresh, ragged, method):
    """But for transformers, which looks at the mask of each pass with padded rows."""
    model = fresh(method)
    gradient, forget, retain = step_gradient(model, ragged, method, 0)
    passes = []
    model.network.register_forward_pre_hook(lambda *_: passes.append(1))
    with HostReads() as host:
        gradient.add(forget, retain, 1, 0.7)
        torch.nn.utils.clip_grad_norm_(model.parameters, 1.0)
    assert host.ours == [] and 0 < host.masks <= 2 * len(passes)
