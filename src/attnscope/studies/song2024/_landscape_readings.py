"""What is read off the end of a run: surfaces of the loss and the spectrum of its Hessian."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Final, Observable, Record
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.probes.landscapes.directions import matching, random_directions, still
from attnscope.probes.landscapes.landscape import landscape
from attnscope.probes.landscapes.roughness import Roughness, roughness
from attnscope.probes.landscapes.sharpness import sharpness
from attnscope.studies.song2024._landscape_loss import FixedLoss
from attnscope.trajectory import select

SOFTMAX, GAUSSIAN, NORMALISED = "softmax", "gaussian", "normalised-gaussian"
PAIR = ("W_Q", "W_K")
TOLERANCE = 1e-4
"""Relative error of a surface; a picture shows a hundredth."""
BLOCKS: dict[str, str | tuple[str, ...]] = {
    "W_Q, W_K": PAIR,
    "W_Q": "W_Q",
    "W_K": "W_K",
    "W_V": "W_V",
    "W_O": "W_O",
    "all": "*",
}
"""Blocks whose curvature is measured; the first is that of the poster's planes."""


def axis(radius: float, grid: int) -> np.ndarray:
    """Return the steps along either direction."""
    return np.linspace(-radius, radius, grid)


def end_record(
    model: KernelClassifier, loss: FixedLoss, *, draws: int, radius: float, grid: int
) -> Record:
    """Return the readings at the end of a run; at the start they are not made, and NaN."""
    start = [p.detach().clone() for p in model.parameters()]
    steps = axis(radius, grid)

    def surfaces(trained: KernelClassifier) -> np.ndarray:
        return np.stack(
            [
                landscape(
                    trained,
                    loss,
                    random_directions(trained, PAIR, seed=draw),
                    steps,
                    steps,
                    tolerance=TOLERANCE,
                ).loss
                for draw in range(draws)
            ]
        )

    def largest(trained: KernelClassifier) -> np.ndarray:
        found = [sharpness(trained, loss, block).eigenvalues[0] for block in BLOCKS.values()]
        return np.array(found)

    def smallest(trained: KernelClassifier) -> np.ndarray:
        return sharpness(trained, loss, PAIR, end="smallest").eigenvalues[0]

    def norms(trained: KernelClassifier) -> np.ndarray:
        sizes = [
            [
                float(trained.get_parameter(name).detach().norm())
                for name in matching(trained, block)
            ]
            for block in BLOCKS.values()
        ]
        return np.array([np.linalg.norm(part) for part in sizes])

    def mass(trained: KernelClassifier) -> np.ndarray:
        with still(trained):
            every = trained.attention_weights(loss.batch.ids, loss.batch.mask)
            return np.array([float(weights.sum(-1).mean()) for weights in every])

    def at_end(
        read: Callable[[KernelClassifier], np.ndarray], shape: tuple[int, ...]
    ) -> Callable[[nn.Module], Tensor]:
        def reader(module: nn.Module) -> Tensor:
            assert isinstance(module, KernelClassifier)
            same = zip(module.parameters(), start, strict=True)
            if all(torch.equal(p, first) for p, first in same):
                return torch.full(shape, torch.nan, dtype=torch.float64)
            return torch.as_tensor(np.asarray(read(module), dtype=float))

        return reader

    count = (len(BLOCKS),)
    observables = (
        Observable(
            "surface",
            at_end(surfaces, (draws, grid, grid)),
            ("draw", "b", "a"),
            "nats",
            "loss at θ* + a d₁ + b d₂, d₁ in W_Q and d₂ in W_K, filter-normalised",
        ),
        Observable(
            "largest",
            at_end(largest, count),
            ("block",),
            "nats",
            "largest eigenvalue of the loss's Hessian in a block of parameters",
        ),
        Observable(
            "smallest",
            at_end(smallest, ()),
            (),
            "nats",
            "smallest eigenvalue of the loss's Hessian in W_Q and W_K",
        ),
        Observable(
            "mass",
            at_end(mass, (len(model.attention),)),
            ("layer",),
            "",
            "sum of a query's weights over all keys, mean over queries; 1 with softmax",
        ),
        Observable("norm", at_end(norms, count), ("block",), "", "Frobenius norm of a block"),
    )
    return Record(observables, Final(), dim="end")


def top(tree: xr.DataTree, case: str, block: str) -> np.ndarray:
    """Return the largest eigenvalue in a block at the end, by seed."""
    return select(tree, "largest", case).isel(end=-1, block=list(BLOCKS).index(block)).to_numpy()


def surfaces_of(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the surfaces at the end, shape ``(seed, draw, b, a)``."""
    return select(tree, "surface", case).isel(end=-1).to_numpy()


def rough(values: np.ndarray, radius: float) -> list[list[Roughness]]:
    """Return the roughness of every surface, by seed and draw."""
    steps = axis(radius, values.shape[-1])
    return [[roughness(steps, steps, surface) for surface in seed] for seed in values]
