"""Good and bad initial heads, by rejection sampling with single heads (section 5.2).

A candidate is the start of one head, W and b, and its projection P and p where heads have one of
their own; all share the rest of the model. It is trained alone on several streams of data. It is
good if all runs exceed 95 % accuracy, bad if all end below 60 %, and is discarded otherwise: the
thresholds of the released code. Accuracy of the trials has the dimensions ``candidate``,
``stream`` and ``step``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from attnscope.trajectory import Readings, final

CANDIDATE, ALL_BAD, ONE_GOOD, RANDOM = "one head", "all bad", "one good", "random"
SCENARIOS = (ALL_BAD, ONE_GOOD, RANDOM)
GOOD, BAD = 0.95, 0.6
"""Accuracy that a good head exceeds at some time, and that a bad one ends below."""
Head = tuple[Tensor, ...]
"""Where a head starts: W, b, P and p, matrices of shape (H, H) and vectors of shape (H,)."""
_CANDIDATES, _RANDOM, _CHOICE = 0xC0C1, 0xC0C2, 0xC0C3


@dataclass(frozen=True)
class Pools:
    """Numbers of candidates that learn, and that fail, alone on all data; and a sentence on it."""

    good: tuple[int, ...]
    bad: tuple[int, ...]
    status: str


def random_heads(seed: int, count: int, width: int, purpose: int = _RANDOM) -> list[Head]:
    """Draw independent starts as the model does, uniform up to 1/√H; no candidate has them."""
    rng, bound = np.random.default_rng([seed, purpose]), width**-0.5
    sizes = ((width, width), (width,)) * 2
    drawn = ([rng.uniform(-bound, bound, size) for size in sizes] for _ in range(count))
    return [tuple(torch.from_numpy(values).float() for values in head) for head in drawn]


def candidate_head(number: int, width: int) -> Head:
    """Draw the start of a candidate."""
    return random_heads(number, 1, width, _CANDIDATES)[0]


def best(run: Readings, case: str) -> xr.DataArray:
    """Return the largest accuracy of each run of a case."""
    return run.of(case).accuracy.max("step")


def end(run: Readings, case: str) -> xr.DataArray:
    """Return the accuracy of each run of a case at the end."""
    return final(run.of(case).accuracy)


def judged(accuracy: xr.DataArray) -> dict[str, xr.DataArray]:
    """Return which candidates are good, bad and discarded, by the accuracy of their trials."""
    good = (accuracy.max("step", skipna=False) > GOOD).all("stream")
    bad = (final(accuracy) < BAD).all("stream")
    return {"good": good, "bad": bad, "discarded": ~good & ~bad}


def pools(accuracy: xr.DataArray) -> Pools:
    """Sort candidates into pools; where one is empty, the nearest candidate stands in."""
    good, bad, _ = (np.flatnonzero(which).tolist() for which in judged(accuracy).values())
    count = accuracy.sizes["candidate"]
    status = f"{len(good)} good and {len(bad)} bad heads among {count} candidates"
    if not good:
        good = [int(accuracy.max("step").mean("stream").to_numpy().argmax())]
        status += "; the best candidate stands in for a good one"
    if not bad:
        order = final(accuracy).mean("stream").to_numpy().argsort(kind="stable").tolist()
        others = [number for number in order if number not in good]
        bad = others[: max(1, len(others) // 2)] or order[:1]
        status += "; the worse half of the others stands in for bad ones"
    return Pools(tuple(good), tuple(bad), status)


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
