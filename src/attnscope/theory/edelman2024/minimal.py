r"""When the minimal model leaves the unigram rule, from that rule alone.

At :math:`W = c \, 11^\top` the gradient by v is zero, whatever v is: layer 2 has to begin. W has a
diagonal push there, and as soon as it has a diagonal, v is pushed towards distance 1
(:func:`lag_push`). Let :math:`z^u` be the logits of the best unigram rule and q their softmax. For
logits :math:`z = z^u + \delta` near them the loss is, to second order,

.. math::

    L(z) \approx L(z^u) + \langle q - p, \delta \rangle + \tfrac12 \operatorname{Var}_q(\delta),

with p the true law of the next state. :func:`predict_transition` follows the flow of this
expansion: it knows the loss by its residual and curvature at the unigram rule, and no further.
:func:`linear_course` goes one step further and makes the parameters' motion linear too, so that it
is solved by a matrix exponential; without the feedback of layer 1's softmax it is 15 to 40 % late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy.linalg import expm
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from attnscope.engines import Flow, Logarithmic, Memory, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.minimal_induction import ExpectedLoss, MinimalInduction
from attnscope.tasks.markov_chains import Chains

LOOKS_BACK = 0.3
"""Attention of layer 1 to the previous state, mean over positions, that is the transition."""
POINTS = 400
LARGEST = 60.0
"""Parameters beyond it say that the linear course has left the region where it means anything."""


def unigram_point(chains: Chains) -> float:
    """Return c of the best unigram rule, logits = c × counts, on these sequences."""
    states = chains.matrices.shape[-1]
    counts = F.one_hot(chains.tokens, states).double().cumsum(dim=1)
    laws = chains.next_laws()

    def loss(c: float) -> float:
        return float(-(laws * (c * counts).log_softmax(dim=-1)).sum(dim=-1).mean())

    return float(minimize_scalar(loss, bounds=(0.0, 4.0), method="bounded").x)


def lag_push(model: MinimalInduction, chains: Chains) -> np.ndarray:
    """Return -∂L/∂v, how each distance of layer 1 is pushed; shape ``(lag,)``."""
    slope = torch.autograd.grad(ExpectedLoss(chains)(model), model.slow_v)[0]
    return np.asarray(-slope.numpy() / model.speed)


class UnigramExpansion:
    """The loss to second order in the logits about the best unigram rule.

    Args:
        chains: the sequences.
    """

    def __init__(self, chains: Chains) -> None:
        states = chains.matrices.shape[-1]
        self.tokens = chains.tokens
        self.at = unigram_point(chains)
        counts = F.one_hot(chains.tokens, states).double().cumsum(dim=1)
        self.logits = self.at * counts
        self.q = self.logits.softmax(dim=-1)
        self.residual = self.q - chains.next_laws()
        # A constant keeps it above 0, so that no engine takes it for a loss that ran away.
        self.value = -(chains.next_laws() * self.logits.log_softmax(dim=-1)).sum(dim=-1).mean()

    def __call__(self, model: nn.Module) -> Tensor:
        """Return the mean over sequences and positions."""
        apart = model(self.tokens) - self.logits
        mean = (self.q * apart).sum(dim=-1, keepdim=True)
        variance = (self.q * (apart - mean) ** 2).sum(dim=-1)
        return self.value + ((self.residual * apart).sum(dim=-1) + variance / 2).mean()


@dataclass(frozen=True)
class Transition:
    """When layer 1 looks back.

    Args:
        time: at which attention to the previous state passes :data:`LOOKS_BACK`; NaN if never.
        linear: the same by the linear course.
    """

    time: float
    linear: float


def predict_transition(
    chains: Chains, rate: float, unigram: float = 0.01, horizon: float = 3.0
) -> Transition:
    """Predict when the minimal model begins to look back.

    Args:
        chains: the sequences.
        rate: how much faster v moves than W.
        unigram: c of the start.
        horizon: the expansion is followed until so many times the linear prediction.

    Raises:
        AttnscopeError: the linear course never looks back, so that nothing can be predicted.
    """
    linear = _linear_time(chains, rate, unigram)
    if not np.isfinite(linear):
        raise AttnscopeError(
            f"rate = {rate:g}: the unigram point of these sequences has no push towards the "
            "previous state, so no transition is predicted; expected chains whose next state "
            "depends on the last one."
        )
    states, length = chains.matrices.shape[-1], chains.tokens.shape[1]
    model = MinimalInduction(states, length, unigram=unigram, rate=rate)
    memory, until = Memory(), horizon * linear
    looks = Observable("looks_back", looks_back)
    record = [Record((looks,), Logarithmic(POINTS, 1e-3 * until))]
    flow = Flow(rtol=1e-4, atol=1e-8, max_steps=20_000)
    flow.run(model, UnigramExpansion(chains), time=until, record=record, sink=memory)
    found = _first_above(memory.times[0], memory.arrays[0]["looks_back"], LOOKS_BACK)
    return Transition(found, linear)


def linear_course(
    chains: Chains, rate: float, unigram: float = 0.01
) -> Callable[[float], tuple[np.ndarray, np.ndarray]]:
    r"""Return W and v as functions of time, by the flow linearised at the unigram point.

    With θ = (W, v) and the point θ* = (c 11ᵀ, 0): :math:`\dot\theta = -D (g + H (\theta -
    \theta^*))`, D the rates, g and H gradient and Hessian at the point.
    """
    states, length = chains.matrices.shape[-1], chains.tokens.shape[1]
    model, loss = MinimalInduction(states, length, rate=1.0), ExpectedLoss(chains)
    size = states**2

    def value(theta: Tensor) -> Tensor:
        own = {"W": theta[:size].view(states, states), "slow_v": theta[size:]}
        logits = torch.func.functional_call(model, own, (chains.tokens,))
        return -(loss.laws * logits.log_softmax(dim=-1)).sum(dim=-1).mean()

    point = torch.zeros(size + length, dtype=torch.float64)
    point[:size] = unigram_point(chains)
    slope = torch.autograd.functional.jacobian(value, point).numpy()
    curvature = torch.autograd.functional.hessian(value, point).numpy()
    rates = np.concatenate([np.ones(size), np.full(length, rate)])
    # An entry that is always 1 carries the constant part of the motion.
    field = np.zeros((size + length + 1,) * 2)
    field[:-1, :-1] = -rates[:, None] * curvature
    field[:-1, -1] = -rates * slope
    start = np.append(np.zeros(size + length), 1.0)
    start[:size] = unigram - point[0].item()

    def at(time: float) -> tuple[np.ndarray, np.ndarray]:
        theta = (expm(time * field) @ start)[:-1] + point.numpy()
        return theta[:size].reshape(states, states), theta[size:]

    return at


def looks_back(model: nn.Module) -> Tensor:
    """Return the attention of layer 1 to the previous state, mean over positions."""
    assert isinstance(model, MinimalInduction)
    return model.first_layer().diagonal(-1).mean()


def _linear_time(chains: Chains, rate: float, unigram: float) -> float:
    """Find where the linear course looks back: double the time until it does, then bisect."""
    course = linear_course(chains, rate, unigram)
    length = chains.tokens.shape[1]
    model = MinimalInduction(chains.matrices.shape[-1], length, rate=1.0)

    def looks(time: float) -> float:
        v = course(time)[1]
        if not np.abs(v).max() < LARGEST:
            v = np.nan_to_num(v / np.abs(v).max() * LARGEST)
        return float(model.first_layer(torch.from_numpy(v)).diagonal(-1).mean())

    high = 1e-3
    while looks(high) < LOOKS_BACK:
        high *= 2
        if high > 1e9:
            return float("nan")
    low = high / 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if looks(middle) < LOOKS_BACK else (low, middle)
    return high


def _first_above(times: np.ndarray, values: np.ndarray, level: float) -> float:
    above = np.flatnonzero(values > level)
    if not above.size:
        return float("nan")
    i = int(above[0])
    if i == 0:
        return float(times[0])
    part = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(times[i - 1] + part * (times[i] - times[i - 1]))
