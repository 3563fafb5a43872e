"""When attention starts on given windows: G(t) of a run without attention, and the linear system.

Near S = W^Kᵀ W^Q = 0 keys and queries obey dW^K/dt = -W^Q Gᵀ, dW^Q/dt = -W^K G with
G(t) = ∂L/∂S at uniform attention (:mod:`attnscope.theory.li2023.onset`). So W^V is let flow with
attention frozen at uniform, G is read on the way, and the onset is where ‖S‖₂, averaged over random
starts with the whole of G (:func:`attnscope.theory.li2023.expected_norms`), reaches 1. Masks and
W^V are drawn several times over: none of them is that of the training that will come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from attnscope.engines import Flow, Linear, Memory, Record
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective
from attnscope.prediction.asked import Tell, silent
from attnscope.prediction.onset_windows import Windows
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import UniformGradient, near_zero

FLOW = Flow(rtol=1e-5, atol=1e-8)
VALUE_NOISE = 1e-2
"""Standard deviation of the entries of W^V at the start."""
NOISES = (2e-2, 1e-2, 1e-3, 1e-4)
"""ε that onsets are given for, the loudest first; 0.02 is the start of GPT-2 and BERT."""
RATE = 20.0
"""Learning rate of gradient descent that onsets are given for beside the flow."""
INTERVALS = 100
"""Steps of time between two readings of G, of which there is one more."""
COARSEST = 10
"""Intervals that may be joined to one, so that a learning rate has whole steps in it."""
FIRST, LAST = 4_000.0, 32_000.0
"""The first horizon that is tried, and the last; each is twice the one before."""
DRAWS, STARTS = 3, 10
"""Draws of masks and W^V, and starts of W^K and W^Q for each of them."""
AHEAD = 10.0
"""‖S‖₂ that the quietest start must reach within the horizon, so that other draws reach 1."""
BAND = 3.0
"""Half of the interval, in standard deviations of log t over draws and starts. Three draws know the
spread over masks roughly: with two, 13 of 16 trainings on parts of WikiText-2 were inside."""


@dataclass(frozen=True)
class Said:
    """An onset that is predicted.

    Args:
        time: learning rate × step; NaN where there is none before ``until``, or from the start on.
        low: lower end of the interval of one more training.
        high: its upper end.
        until: how far it was looked.
        awake: attention is not near uniform at the start, so there is no onset to wait for.
    """

    time: float
    low: float
    high: float
    until: float
    awake: bool = False


@dataclass(frozen=True, eq=False)
class Growth:
    """The linear system on some windows, for each draw of masks and W^V.

    Args:
        times: learning rate × step, shape ``(time,)``.
        gradients: G, shape ``(draw, time, key, query)``.
        seed: draws the starts.
    """

    times: np.ndarray
    gradients: np.ndarray
    seed: int

    @property
    def d_a(self) -> int:
        """Rows of W^K and W^Q, as many as words."""
        return int(self.gradients.shape[-1])

    @cached_property
    def _known(self) -> dict[float | None, list[li2023.LinearAttention]]:
        return {}

    def _linear(self, rate: float | None) -> list[li2023.LinearAttention]:
        """Return Φ(t) of each draw, times the quietest start's ε √d_a."""
        if rate not in self._known:
            stride = _stride(self.times, rate)
            size = self.d_a
            start = min(NOISES) * math.sqrt(size) * np.eye(2 * size)
            self._known[rate] = [
                li2023.propagate(
                    start[:, :size], start[:, size:], self.times[::stride], each[::stride], rate
                )
                for each in self.gradients
            ]
        return self._known[rate]

    def expected(self, noise: float, rate: float | None = None) -> list[np.ndarray]:
        """Return ‖E S‖₂ over starts of this noise, for each draw; shape ``(time,)`` or shorter."""
        louder = (noise / min(NOISES)) ** 2
        return [each.norms * louder for each in self._linear(rate)]

    @cached_property
    def _quietest(self) -> list[np.ndarray]:
        found, dice = [], np.random.default_rng([self.seed, 0x57A7])
        for each in self._linear(None):
            for _ in range(STARTS):
                rows = dice.standard_normal((self.d_a, 2 * self.d_a)) / math.sqrt(self.d_a)
                scores = (rows @ each.keys).transpose(0, 2, 1) @ (rows @ each.queries)
                found.append(np.linalg.norm(scores, 2, axis=(1, 2)))
        return found

    def starts(self, noise: float) -> list[np.ndarray]:
        """Return ‖S‖₂ from single starts by flow, :data:`STARTS` of each draw.

        Every row of (W^K, W^Q) goes to Φ(t) times that row, so all starts share one Φ, and all
        noises the starts.
        """
        return [norms * (noise / min(NOISES)) ** 2 for norms in self._quietest]

    def onset(self, noise: float, rate: float | None = None) -> Said:
        """Say when attention starts from a noise, by flow or by descent at a rate.

        The time is the geometric mean, over draws, of when ‖E S‖₂ reaches 1. The interval is
        :data:`BAND` standard deviations of log t either way, over all starts of all draws by flow.
        """
        until = float(self.times[-1])
        # Norms of actual starts, at time 0: those of the average are zero there.
        if np.mean([norms[0] for norms in self.starts(noise)]) >= 1:
            return Said(math.nan, math.nan, math.nan, until, awake=True)
        mean = np.array([self._crossed(norms, rate) for norms in self.expected(noise, rate)])
        if np.isnan(mean).any():
            return Said(math.nan, math.nan, math.nan, until)
        each = np.array([self._crossed(norms, None) for norms in self.starts(noise)])
        time = float(np.exp(np.log(mean).mean()))
        known = np.log(each[~np.isnan(each)])
        # Few starts that stay asleep or are awake already say no spread; then there is no interval.
        factor = math.exp(BAND * float(known.std(ddof=1))) if len(known) > 1 else math.inf
        return Said(time, time / factor, time * factor, until)

    def _crossed(self, norms: np.ndarray, rate: float | None) -> float:
        times = self.times[:: _stride(self.times, rate)][: len(norms)]
        return li2023.measured_onset(times, norms).time


def growth(windows: Windows, *, seed: int = 0, draws: int = DRAWS, tell: Tell = silent) -> Growth:
    """Let W^V flow without attention, and read G, until the quietest start is awake or for long.

    Args:
        windows: what is trained on.
        seed: of masks, W^V and starts.
        draws: how often masks and W^V are drawn.
        tell: hears how far it is.
    """
    if draws < 1:
        raise AttnscopeError(f"draws = {draws}: expected 1 or more.")
    until = FIRST
    while True:
        tell(f"letting values flow to t = {until:,.0f}", 0, draws)
        times = np.linspace(0.0, until, INTERVALS + 1)
        gradients = [_gradients(windows, seed, 0, until)]
        found = Growth(times, np.stack(gradients), seed)
        if found.expected(min(NOISES))[0][-1] >= AHEAD:
            break
        if until >= LAST:
            if found.expected(max(NOISES))[0].max() < 1:
                return found
            break
        until *= 2
    for draw in range(1, draws):
        tell(f"letting values flow to t = {until:,.0f}", draw, draws)
        gradients.append(_gradients(windows, seed, draw, until))
    return Growth(times, np.stack(gradients), seed)


def _gradients(windows: Windows, seed: int, draw: int, until: float) -> np.ndarray:
    """Return G over a run with uniform attention, shape ``(time, key, query)``."""
    # Not a seed that a training is likely to have: what is predicted knows nothing of it.
    own = 7_919 * (seed + 1) + draw
    documents = windows.masked(own)
    model = near_zero(windows.vocabulary, "uniform", 1.0, VALUE_NOISE, own, torch.float64)
    read = [
        each
        for each in UniformGradient(documents, torch.float64).observables()
        if each.name == "gradient"
    ]
    kept = Memory()
    FLOW.run(
        model,
        TopicObjective(documents),
        time=until,
        record=[Record(tuple(read), Linear(INTERVALS + 1))],
        sink=kept,
    )
    return np.asarray(kept.arrays[0]["gradient"])


def _stride(times: np.ndarray, rate: float | None) -> int:
    """Return how many times apart there is a whole number of steps between two of them."""
    if rate is None:
        return 1
    apart = float(times[1] - times[0])
    for stride in range(1, COARSEST + 1):
        steps = stride * apart / rate
        if round(steps) >= 1 and math.isclose(steps, round(steps), rel_tol=1e-9):
            return stride
    raise AttnscopeError(
        f"rate = {rate:g} with G known at times {apart:g} apart: expected a learning rate of which "
        f"{apart:g}, or up to {COARSEST} times as much, is a multiple."
    )
