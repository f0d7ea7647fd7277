"""The controller of the retain weight alpha (paper, Algorithm 1).

Alpha moves once per epoch, by the drift of the loss on the whole retain set. This is dual ascent on
the least forget loss subject to delta <= tolerance; the multiplier is lambda:

    delta_k = max(0, (R_k - R_ref) / max(R_ref, floor))
    lambda  = min(lam_max, max(0, lambda + dual_step * (delta_k - tolerance)))
    alpha   = alpha0 + lambda

Only upward drift counts. The paper's reference is R_1, the loss after the first epoch, so delta_1 =
0 and a first epoch that does all the damage goes unseen; `reference="start"` takes the loss before
training instead. PDU's `PrimalDual` moves alpha after each step. A controller holds no state: the
last `Drift` row is the state.
"""

import math
from dataclasses import dataclass, fields, replace

from adapop.assets import Count
from adapop.config.run import SETTINGS, RunConfig, check_choice


@dataclass(frozen=True)
class Drift:
    """Retain loss, drift and weight at the end of an epoch: one row of the lambda plot."""

    epoch: Count
    """0 is before training."""
    retain_loss: float
    """R_k in nats per token: of the whole retain set, or the moving average that `retain_signal`
    names."""
    reference: float | None
    """R_ref in nats per token, None until it is known."""
    drift: float
    """delta, relative to the reference, at least 0; 0 until there is a reference."""
    lam: float
    """lambda, in [0, lam_max]; PDU's mu, which has no upper limit."""
    alpha: float
    """The retain weight that the next epoch uses."""
    start_loss: float
    """The retain loss before training, in nats per token."""

    @property
    def drift_from_start(self) -> float:
        """Upward drift against the loss before training, whatever reference the controller used."""
        return relative_drift(self.retain_loss, self.start_loss)


class Controller:
    """Sets the retain weight: before training, after each epoch and, if `by_step`, each step."""

    by_step = False

    def start(self, retain_loss: float) -> Drift:
        """The row of epoch 0, before any training."""
        raise NotImplementedError

    def update(self, last: Drift, retain_loss: float) -> Drift:
        """The row of the next epoch, from the retain loss at its end. By default the weight stays;
        the drift is against the start, for comparison only."""
        drift = relative_drift(retain_loss, last.start_loss)
        return replace(last, epoch=last.epoch + 1, retain_loss=retain_loss, drift=drift)

    def stepped(self, last: Drift, retain_loss: float, rows: int) -> Drift:
        """The last row, updated with the retain loss of a step of so many rows."""
        return last


@dataclass(frozen=True)
class FixedAlpha(Controller):
    """A retain weight that never changes. GD, NPO and WGA run with alpha = 1, GA with 0."""

    alpha0: float = 1.0

    def start(self, retain_loss: float) -> Drift:
        return Drift(0, retain_loss, retain_loss, 0.0, 0.0, self.alpha0, retain_loss)


@dataclass(frozen=True)
class DualAscent(Controller):
    """AdaPop's controller, Algorithm 1, with the paper's values; `floor` is from its code."""

    alpha0: float = 0.5
    dual_step: float = 0.1
    tolerance: float = 0.1
    lam_max: float = 5.0
    floor: float = 1e-8
    reference: str = "epoch_1"
    alpha_max: float | None = None

    def __post_init__(self) -> None:
        check_choice("reference", self.reference, SETTINGS["reference"].choices)

    def start(self, retain_loss: float) -> Drift:
        reference = retain_loss if self.reference == "start" else None
        return Drift(0, retain_loss, reference, 0.0, 0.0, self._alpha(0.0), retain_loss)

    def update(self, last: Drift, retain_loss: float) -> Drift:
        reference = retain_loss if last.reference is None else last.reference
        drift = relative_drift(retain_loss, reference, self.floor)
        lam = min(self.lam_max, max(0.0, last.lam + self.dual_step * (drift - self.tolerance)))
        state = drift, lam, self._alpha(lam), last.start_loss
        return Drift(last.epoch + 1, retain_loss, reference, *state)

    def _alpha(self, lam: float) -> float:
        """alpha0 + lambda, at most alpha_max; lambda itself grows on, as in the released code."""
        alpha = self.alpha0 + lam
        return alpha if self.alpha_max is None else min(alpha, self.alpha_max)


@dataclass(frozen=True)
class PrimalDual(Controller):
    """PDU's controller: dual ascent under retain loss <= retain_bound, in nats per token.

        mu <- max(0, mu + moves * dual_step * (retain loss - retain_bound))

    after each step, once `warmup` epochs are over. A row holds mu as lambda and as alpha; mu starts
    at alpha0 and has no upper limit; an epoch's row has the mu that its last step set.
    Entesari et al., arXiv 2506.05314, with the values of the AdaPop paper's runs.

    dual_rows: rows of a micro-batch in the authors' code, which moves mu once for each: in the
    paper's runs one row, so 32 times in a full step. Here mu moves once, by as much as all those
    moves together at the mean loss of the step's rows; 0 for as much as one."""

    alpha0: float = 1.0
    dual_step: float = 1.0
    retain_bound: float = 0.3
    warmup: int = 3
    dual_rows: int = 0
    by_step = True

    def start(self, retain_loss: float) -> Drift:
        return Drift(0, retain_loss, retain_loss, 0.0, self.alpha0, self.alpha0, retain_loss)

    def stepped(self, last: Drift, retain_loss: float, rows: int) -> Drift:
        """The last row with the mu that the next step uses."""
        if last.epoch < self.warmup:
            return last
        moves = math.ceil(rows / self.dual_rows) if self.dual_rows else 1
        mu = max(0.0, last.alpha + moves * self.dual_step * (retain_loss - self.retain_bound))
        return replace(last, lam=mu, alpha=mu)


def controller_of(config: RunConfig) -> Controller:
    """The controller that a run's settings describe."""
    if config.controller == "fixed":
        return FixedAlpha(config.alpha0)
    if config.controller == "primal":
        constraint = config.dual_step, config.retain_bound, config.warmup
        return PrimalDual(config.alpha0, *constraint, config.dual_rows)
    settings = {item.name: getattr(config, item.name) for item in fields(DualAscent)}
    return DualAscent(**settings)


def relative_drift(retain_loss: float, reference: float, floor: float = 1e-8) -> float:
    """max(0, (R - R_ref) / max(R_ref, floor))."""
    return max(0.0, (retain_loss - reference) / max(reference, floor))
