"""What is read at the end of a run: surfaces at several radii, curvature, sums of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines import Final, Observable, Record
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernel_classifier_probe import FixedLoss
from attnscope.models.kernels.row_sums import MOVES, moving
from attnscope.probes.landscapes.directions import matching, random_directions, still
from attnscope.probes.landscapes.landscape import landscape
from attnscope.probes.landscapes.sharpness import sharpness
from attnscope.studies.song2024._training import classifier
from attnscope.studies.song2024.landscape.claims import (
    BLOCKS,
    GAUSSIAN,
    NORMALISED,
    PAIR,
    SOFTMAX,
)

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape.study import Landscape

TOLERANCE = 1e-4
"""Relative error of a surface."""
SPLIT = {SOFTMAX: ("both",), NORMALISED: ("both",), GAUSSIAN: ("sums", "shares")}
"""Parts of the weights that move alone, or set free, where that is not the model itself."""
UNITLESS = ("mass", "norm", "gradient_norm", "reached", "held_out")


def end_record(
    study: Landscape,
    case: str,
    model: KernelClassifier,
    loss: FixedLoss,
    measured: Callable[[nn.Module], Tensor],
    held_out: Callable[[nn.Module], Tensor],
) -> Record:
    """Return the readings at the end of a run; at the start they are not made, and NaN."""
    start = [p.detach().clone() for p in model.parameters()]

    def surface(trained: KernelClassifier, radius: int, draw: int) -> np.ndarray:
        axis, directions = study.axis(radius), random_directions(trained, PAIR, seed=draw)
        return landscape(trained, loss, directions, axis, axis, tolerance=TOLERANCE).loss

    def surfaces(trained: KernelClassifier) -> list[list[np.ndarray]]:
        radii = range(len(study.radii))
        return [[surface(trained, i, draw) for draw in range(study.draws)] for i in radii]

    def split(trained: KernelClassifier) -> list[list[np.ndarray]]:
        nothing = np.full((study.grid, study.grid), np.nan)
        found = []
        for moves in MOVES:
            if moves not in SPLIT.get(case, ()):
                found.append([nothing] * study.draws)
                continue
            with moving(trained, loss.batch.ids, loss.batch.mask, moves):
                draws = range(study.draws)
                found.append([surface(trained, study.middle, draw) for draw in draws])
        return found

    def largest(trained: KernelClassifier) -> list[float]:
        return [sharpness(trained, loss, block).eigenvalues[0] for block in BLOCKS.values()]

    def smallest(trained: KernelClassifier) -> float:
        return float(sharpness(trained, loss, PAIR, end="smallest").eigenvalues[0])

    def mass(trained: KernelClassifier) -> list[float]:
        with still(trained):
            every = trained.attention_weights(loss.batch.ids, loss.batch.mask)
            return [float(weights.sum(-1).mean()) for weights in every]

    def norms(trained: KernelClassifier) -> list[float]:
        def norm(name: str) -> float:
            return float(trained.get_parameter(name).detach().norm())

        blocks = (matching(trained, block) for block in BLOCKS.values())
        return [float(np.linalg.norm([norm(name) for name in block])) for block in blocks]

    def loss_and_norm(trained: KernelClassifier) -> tuple[float, float]:
        value, norm = measured(trained).tolist()
        return value, norm

    def reached(trained: KernelClassifier) -> float:
        pairs = zip(loss_and_norm(trained), study.targets.values(), strict=True)
        return float(all(value <= target for value, target in pairs))

    def at_end(
        name: str, read: Callable[[KernelClassifier], object], meaning: str, **sizes: int
    ) -> Observable:
        def reader(module: nn.Module) -> Tensor:
            if all(map(torch.equal, module.parameters(), start)):
                return torch.full(tuple(sizes.values()), torch.nan, dtype=torch.float64)
            return torch.as_tensor(np.asarray(read(classifier(module)), dtype=float))

        return Observable(name, reader, tuple(sizes), "" if name in UNITLESS else "nats", meaning)

    plane = "loss at θ* + a d₁ + b d₂, d₁ in W_Q and d₂ in W_K, filter-normalised"
    part = "the same at the middle radius where only a part of the weights moves with W_Q and W_K"
    top = "largest eigenvalue of the loss's Hessian in a block of parameters"
    low = "smallest eigenvalue of the loss's Hessian in W_Q and W_K"
    sums = "sum of a query's weights over all keys, mean over queries; 1 with softmax"
    blocks, layers = len(BLOCKS), len(model.attention)
    square = {"draw": study.draws, "b": study.grid, "a": study.grid}
    ends = (
        at_end("surface", surfaces, plane, radius=len(study.radii), **square),
        at_end("split", split, part, moves=len(MOVES), **square),
        at_end("largest", largest, top, block=blocks),
        at_end("smallest", smallest, low),
        at_end("mass", mass, sums, layer=layers),
        at_end("norm", norms, "Frobenius norm of a block", block=blocks),
        at_end("end_loss", lambda m: loss_and_norm(m)[0], "loss on the landscape's sequences"),
        at_end("gradient_norm", lambda m: loss_and_norm(m)[1], "norm of the loss's gradient"),
        at_end("reached", reached, "1 if loss and gradient norm are at their targets, else 0"),
        at_end("held_out", held_out, "accuracy on sequences that were never learned from"),
    )
    return Record(ends, Final(), dim="end")
