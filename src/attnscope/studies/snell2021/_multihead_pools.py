"""Good and bad initial heads, by rejection sampling with single heads (section 5.2).

A candidate is the start of one head, W and b, and its projection P and p where heads have one of
their own; all share the rest of the model. It is trained alone on
several streams of data. It is good if all runs exceed 95 % accuracy, bad if all end below 60 %, and
is discarded otherwise: the thresholds of the released code.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from attnscope.trajectory import select

CANDIDATE, ALL_BAD, ONE_GOOD, RANDOM = "one head", "all bad", "one good", "random"
SCENARIOS = (ALL_BAD, ONE_GOOD, RANDOM)
GOOD, BAD = 0.95, 0.6
"""Accuracy that a good head exceeds at some time, and that a bad one ends below."""
_CANDIDATES, _RANDOM, _CHOICE = 0xC0C1, 0xC0C2, 0xC0C3


@dataclass(frozen=True)
class Head:
    """Where a head starts: W and P of shape (H, H), b and p of shape (H,)."""

    W: Tensor
    b: Tensor
    P: Tensor
    p: Tensor


@dataclass(frozen=True)
class Pools:
    """Candidates by number.

    Args:
        good: those that learn alone, on all data.
        bad: those that fail alone, on all data.
        status: a sentence about how many there are, and what stands in for those missing.
        found: how many good and bad ones there are by the thresholds.
    """

    good: tuple[int, ...]
    bad: tuple[int, ...]
    status: str
    found: tuple[int, int]


def candidate_head(number: int, width: int) -> Head:
    """Draw the start of a candidate."""
    return _draw(np.random.default_rng([number, _CANDIDATES]), width)


def random_heads(seed: int, count: int, width: int) -> list[Head]:
    """Draw independent starts that no candidate has."""
    rng = np.random.default_rng([seed, _RANDOM])
    return [_draw(rng, width) for _ in range(count)]


def _draw(rng: np.random.Generator, width: int) -> Head:
    """Draw all numbers as the model does: uniform up to 1/√H."""
    bound = width**-0.5
    sizes = ((width, width), (width,)) * 2
    drawn = (rng.uniform(-bound, bound, size=size) for size in sizes)
    return Head(*(torch.from_numpy(values).float() for values in drawn))


def trials(tree: xr.DataTree, streams: int) -> np.ndarray:
    """Return the accuracy of single heads, shape ``(candidate, stream, step)``."""
    accuracy = select(tree, "accuracy", CANDIDATE).to_numpy()
    return accuracy.reshape(-1, streams, accuracy.shape[1])


def judged(accuracy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which candidates are good and which are bad.

    Args:
        accuracy: shape ``(candidate, stream, step)``.
    """
    good = (accuracy.max(axis=2) > GOOD).all(axis=1)
    bad = (accuracy[:, :, -1] < BAD).all(axis=1)
    return np.asarray(good), np.asarray(bad)


def pools(accuracy: np.ndarray) -> Pools:
    """Sort candidates into pools; where one is empty, the nearest candidate stands in.

    Args:
        accuracy: of the single heads, shape ``(candidate, stream, step)``.
    """
    good, bad = (np.flatnonzero(which) for which in judged(accuracy))
    found = (len(good), len(bad))
    status = f"{found[0]} good and {found[1]} bad heads among {len(accuracy)} candidates"
    if not good.size:
        good = np.array([int(accuracy.max(axis=2).mean(axis=1).argmax())])
        status += "; the best candidate stands in for a good one"
    if not bad.size:
        last = accuracy[:, :, -1].mean(axis=1)
        others = [n for n in np.argsort(last, kind="stable") if n not in good]
        bad = np.array(others[: max(1, len(others) // 2)] or [int(last.argmin())])
        status += "; the worse half of the others stands in for bad ones"
    return Pools(tuple(good.tolist()), tuple(bad.tolist()), status, found)


def chosen(known: Pools, case: str, seed: int, heads: int) -> list[int]:
    """Choose the candidates of a run; in ``ONE_GOOD`` the good one comes first.

    No candidate is chosen twice before all of its pool are: heads with the same start have the same
    gradients, and stay the same head for ever.
    """
    rng = np.random.default_rng([seed, _CHOICE])
    first = [int(rng.choice(known.good))] if case == ONE_GOOD else []
    rest = heads - len(first)
    rounds = -(-rest // len(known.bad))
    bad = np.concatenate([rng.permutation(known.bad) for _ in range(rounds)])[:rest]
    return first + [int(number) for number in bad]
