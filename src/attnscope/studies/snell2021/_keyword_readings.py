"""What is read while the keyword is learned, and when it is looked at.

γ_l = Wᵀ h_l + b are the log odds of a positive answer if the classifier looked at position l alone
(eq 22). l* is the position of the keyword; readings are means over positive sequences in which it
is not the last one.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Observable
from attnscope.models.sequence_classifier import SequenceClassifier
from attnscope.trajectory import select
from attnscope.tasks.keyword import LabelledSequences

KEYWORD, NEXT, MEAN, LAST = range(4)
READINGS: dict[str, int | slice] = {
    "loss": 0,
    "accuracy": 1,
    "negative": 2,
    "gamma": slice(3, 7),
    "alpha": slice(7, 11),
}
"""Where each quantity stands among the readings, which come from one look at the model."""
PLACES = ("γ at the keyword", "γ one after", "mean γ", "γ at the end")
HYPOTHESIS_2 = (KEYWORD, NEXT, MEAN, LAST)
"""γ_l* ≫ γ_l*+1 ≫ γ̄ ≈ γ_L, eq 24."""
OBSERVATION_3 = (LAST, NEXT, MEAN, KEYWORD)
"""γ_L ≫ γ_l*+1 ≫ γ̄ ≈ γ_l*, eq 25."""
REACH = 10
"""Positions before and after the keyword of which log odds are kept."""
LEARNED = 0.75
"""Accuracy at which a run counts as having learned."""
HALF, TWICE, END = "half", "twice", "end"
"""Half the steps to that accuracy, twice as many, and the end of the run."""


def observables(sequences: LabelledSequences) -> tuple[Observable, ...]:
    """Return the readings on given sequences."""
    positive = torch.nonzero(sequences.position >= 0)[:, 0]
    place = sequences.position[positive]
    length = sequences.source.shape[1]
    reach = min(REACH, length - 2)
    offsets = torch.arange(-reach, reach + 1)
    row = torch.arange(len(place))

    def four(values: Tensor) -> Tensor:
        """Return the mean over sequences of the values at l*, l* + 1, on average and at L."""
        known = values[positive].double()
        parts = (known[row, place], known[row, place + 1], known.mean(dim=1), known[:, -1])
        return torch.stack([part.mean() for part in parts])

    def read(model: nn.Module) -> Tensor:
        assert isinstance(model, SequenceClassifier)
        look = model.look(sequences.source)
        loss = F.binary_cross_entropy_with_logits(look.logits, sequences.label.to(look.logits))
        right = (look.logits > 0) == (sequences.label > 0)
        negative = look.log_odds[sequences.position < 0]
        single = [part.double().mean() for part in (loss, right, negative)]
        return torch.cat([torch.stack(single), four(look.log_odds), four(look.weights)])

    def around(model: nn.Module) -> Tensor:
        assert isinstance(model, SequenceClassifier)
        known = model.log_odds(sequences.source)[positive].double()
        at = place[:, None] + offsets
        inside = (at >= 0) & (at < length)
        values = known.gather(1, at.clamp(0, length - 1)) * inside
        return values.sum(dim=0) / inside.sum(dim=0)

    return (
        Observable(
            "reading",
            read,
            ("reading",),
            "",
            "loss (nats), accuracy, mean γ of negative sequences; γ and then α of positive ones at "
            "the keyword l*, at l* + 1, on average, and at the last position",
        ),
        Observable(
            "gamma_around",
            around,
            ("offset",),
            "nats",
            f"γ from {reach} positions before the keyword to {reach} after it",
        ),
    )


def reading(tree: xr.DataTree, name: str, case: str) -> np.ndarray:
    """Return what was read of all runs of a case, shape ``(seed, step, ...)``."""
    return np.asarray(select(tree, "reading", case).to_numpy()[..., READINGS[name]])


def share_from(position: np.ndarray, length: int) -> float:
    """Return r, the mean share of positions from the keyword on, over positive sequences."""
    found = position[position >= 0]
    return float(np.mean((length - found) / length))


def moments(tree: xr.DataTree, case: str, when: str) -> np.ndarray:
    """Return the record point of each seed that a claim looks at; -1 if it was not reached.

    Args:
        tree: the trajectory.
        case: whose runs.
        when: ``HALF``, ``TWICE`` or ``END``.
    """
    steps = tree["observables/time"].to_numpy()
    found = []
    for curve in reading(tree, "accuracy", case):
        there = np.flatnonzero(curve >= LEARNED)
        if when == END:
            found.append(len(steps) - 1)
        elif not there.size or (when == TWICE and 2 * steps[there[0]] > steps[-1]):
            found.append(-1)
        else:
            goal = steps[there[0]] * (0.5 if when == HALF else 2.0)
            found.append(int(np.argmin(np.abs(steps - goal))))
    return np.array(found)


def at(tree: xr.DataTree, name: str, case: str, when: str) -> np.ndarray:
    """Return a reading of each seed at a moment; NaN if it was not reached."""
    return pick(tree, reading(tree, name, case), case, when)


def pick(tree: xr.DataTree, values: np.ndarray, case: str, when: str) -> np.ndarray:
    """Return values of shape ``(seed, step, ...)`` at a moment; NaN if it was not reached."""
    points = moments(tree, case, when)
    known = values[np.arange(len(points)), points]
    missing = (points < 0).reshape(-1, *[1] * (known.ndim - 1))
    return np.asarray(np.where(missing, np.nan, known))


def apart(tree: xr.DataTree, case: str, when: str, order: tuple[int, ...]) -> np.ndarray:
    """Return the smaller of the two gaps that the paper writes as ≫, by seed.

    The last two of an order are written as ≈, so the second lies above the larger of them.
    """
    gamma = at(tree, "gamma", case, when)
    first, second = order[0], order[1]
    rest = gamma[:, list(order[2:])].max(axis=1)
    spread = gamma.max(axis=1) - gamma.min(axis=1)
    steps = np.minimum(gamma[:, first] - gamma[:, second], gamma[:, second] - rest)
    return np.asarray(steps / spread)


def alike(tree: xr.DataTree, case: str, when: str, order: tuple[int, ...]) -> np.ndarray:
    """Return how far apart the two are that the paper writes as ≈, by seed."""
    gamma = at(tree, "gamma", case, when)
    spread = gamma.max(axis=1) - gamma.min(axis=1)
    return np.asarray(np.abs(gamma[:, order[2]] - gamma[:, order[3]]) / spread)
