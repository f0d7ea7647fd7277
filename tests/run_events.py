"""Events of a run of two epochs, made by hand."""

from adapop.training.events import EpochDone, RunStarted, StepDone

START = RunStarted(
    run="r", time=1.0, model="sandbox", method="adapop", facts="f", forget=8, retain=8, holdout=8, epochs=2, steps=4
)


def step(epoch: int, number: int, time: float = 2.0) -> StepDone:
    return StepDone(
        run="r", time=time, epoch=epoch, step=number, forget_loss=-1.0, nll_forget=1.0,
        nll_by_tier={"rare": 1.0}, nll_retain=0.2, gradient_norm=1.0, learning_rate=1e-3)  # fmt: skip


def epoch(number: int, drift: float = 0.5, lam: float = 0.04) -> EpochDone:
    return EpochDone(
        run="r", epoch=number, retain_loss=0.3, reference=0.2, drift=drift, lam=lam, alpha=0.5 + lam, start_loss=0.2
    )


STEPS = [step(1, n) for n in (1, 2, 3, 4)] + [step(2, n) for n in (1, 2, 3, 4)]
