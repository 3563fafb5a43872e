"""Weights and gradients of attention: how large, of what rank, how fast, who gets a gradient."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from attnscope.watching.matrices import MATRICES, Part, Projections, find_projections, missing
from attnscope.watching.moment import Moment, Need, Reading
from attnscope.watching.readings.offer import Offer, WatchedModel

ORDER = "of W^Q, W^K, W^V and W^O, in this order"
RANK_WIDTH = 1024
"""Up to this width the stable rank is recorded without being asked for; its cost is cubic."""
NO_GRADIENTS = (
    "attnscope: the parameters have no gradients when scope.step is called, so readings of "
    "gradients are NaN. Call scope.step before they are cleared, or give the optimizer: "
    "watch(..., optimizer=optimizer)."
)


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    layers = find_projections(watched.model, watched.points)
    known = any(layer.parts for layer in layers)
    lacks = "" if known else "matrices W^Q, W^K, W^V, and none was recognised in the model"
    groups = blocks(watched.model)
    gradients = _Gradients()
    # Points that are no modules do not have to be as many as the layers that hold matrices.
    aligned = not watched.points or len(layers) == len(watched.points)
    layer = "layer" if aligned else "weight_layer"
    axes = (layer, "matrix")
    narrow = known and _width(watched.model, layers) <= RANK_WIDTH

    def gradient_norms(moment: Moment) -> Tensor | None:
        found = gradients.of(moment)
        return None if found is None else _table(layers, lambda part: _size(part.of(found)))

    def ratio(moment: Moment) -> Tensor | None:
        norms = gradient_norms(moment)
        if norms is None:
            return None
        return torch.sqrt((norms[:, 0] ** 2 + norms[:, 1] ** 2) / 2) / norms[:, 2]

    def by_block(moment: Moment) -> Tensor | None:
        found = gradients.of(moment)
        if found is None:
            return None
        sizes = {name: float(norm(gradient)) for name, gradient in found.items()}
        return torch.tensor(
            [math.hypot(*(sizes.get(name, 0.0) for name in names)) for names in groups.values()],
            dtype=torch.float64,
        )

    of_gradients: frozenset[Need] = frozenset({"gradients"})
    return [
        Offer(
            Reading("weight_norm", _norms(layers), axes, meaning=f"Frobenius norms {ORDER}"),
            True,
            lacks,
        ),
        Offer(
            Reading(
                "stable_rank",
                _ranks(layers),
                axes,
                meaning=f"squared Frobenius norm over squared spectral norm {ORDER}",
            ),
            narrow,
            lacks,
        ),
        Offer(
            Reading(
                "update_ratio",
                _updates(layers),
                axes,
                frozenset({"before"}),
                meaning=f"norm of the step over the norm of the weights before it, {ORDER}",
            ),
            True,
            lacks,
        ),
        Offer(
            Reading(
                "gradient_norm",
                gradient_norms,
                axes,
                of_gradients,
                meaning=f"gradient norms {ORDER}, as the optimizer sees them",
            ),
            True,
            lacks,
        ),
        Offer(
            Reading(
                "query_key_gradient_ratio",
                ratio,
                (layer,),
                of_gradients,
                meaning="root mean square of the gradient norms of W^Q and W^K, over that of W^V",
            ),
            True,
            lacks,
        ),
        Offer(
            Reading(
                "block_gradient_norm",
                by_block,
                ("block",),
                of_gradients,
                meaning=f"gradient norms of the blocks {', '.join(groups)}",
            ),
            True,
            "" if groups else "parameters, and the model has none",
        ),
    ]


def blocks(model: nn.Module) -> dict[str, list[str]]:
    """Return the names of parameters by block.

    A block is the path of a parameter up to its first number, as in ``layers.3``, or else the
    module that holds it.
    """
    groups: dict[str, list[str]] = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            plain = name.replace("_orig_mod.", "").removeprefix("module.")
            numbered = re.match(r"(.*?\.)?\d+(?=\.)", plain)
            block = numbered.group() if numbered else plain.rpartition(".")[0] or plain
            groups.setdefault(block, []).append(name)
    return groups


def unrecognised(watched: WatchedModel) -> str:
    """Say which matrices were not recognised; empty if all were."""
    return missing(find_projections(watched.model, watched.points))


def norm(tensor: Tensor) -> Tensor:
    """Return the norm of all entries; half precision is widened first, for it overflows soon."""
    wide = torch.promote_types(tensor.dtype, torch.float32)
    return torch.linalg.vector_norm(tensor.detach(), dtype=wide)


class _Gradients:
    """Gradients of a step, or a word that there are none."""

    def __init__(self) -> None:
        self.warned = False

    def of(self, moment: Moment) -> Mapping[str, Tensor] | None:
        if moment.step == 0:
            return None
        if not moment.gradients:
            if not self.warned:
                warnings.warn(NO_GRADIENTS, stacklevel=2)
            self.warned = True
            return None
        return moment.gradients


def _parameters(moment: Moment) -> dict[str, Tensor]:
    return dict(moment.model.named_parameters())


def _norms(layers: Sequence[Projections]) -> Callable[[Moment], Tensor]:
    def read(moment: Moment) -> Tensor:
        now = _parameters(moment)
        return _table(layers, lambda part: _size(part.of(now)))

    return read


def _ranks(layers: Sequence[Projections]) -> Callable[[Moment], Tensor]:
    def read(moment: Moment) -> Tensor:
        now = _parameters(moment)

        def rank(part: Part) -> Tensor | None:
            matrix = part.of(now)
            return None if matrix is None else _stable_rank(matrix.detach())

        return _table(layers, rank)

    return read


def _stable_rank(matrix: Tensor) -> Tensor:
    """Return what :func:`attnscope.probes.matrix_shape.stable_rank` does, on PyTorch's threads.

    NumPy has threads of its own, which fight with those of the training.
    """
    wide = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
    gram = wide.T @ wide if wide.shape[0] > wide.shape[1] else wide @ wide.T
    total = gram.trace()
    if not torch.isfinite(total) or total == 0:
        return torch.full_like(total, math.nan)
    return total / torch.linalg.eigvalsh(gram)[-1]


def _updates(layers: Sequence[Projections]) -> Callable[[Moment], Tensor | None]:
    def read(moment: Moment) -> Tensor | None:
        if not moment.before:
            return None
        now = _parameters(moment)

        def change(part: Part) -> Tensor | None:
            after, before = part.of(now), part.of(moment.before)
            if after is None or before is None:
                return None
            return norm(after.detach() - before) / norm(before)

        return _table(layers, change)

    return read


def _size(matrix: Tensor | None) -> Tensor | None:
    return None if matrix is None else norm(matrix)


def _table(layers: Sequence[Projections], of: Callable[[Part], Tensor | None]) -> Tensor:
    """Return a number for every layer and matrix, NaN where there is none."""
    lost = torch.tensor(math.nan, dtype=torch.float64)
    rows = []
    for layer in layers:
        found = [of(layer.parts[kind]) if kind in layer.parts else None for kind in MATRICES]
        rows.append(
            torch.stack([lost if value is None else value.cpu().double() for value in found])
        )
    return torch.stack(rows)


def _width(model: nn.Module, layers: Sequence[Projections]) -> int:
    now = dict(model.named_parameters())
    found = [part.of(now) for layer in layers for part in layer.parts.values()]
    return max((min(matrix.shape) for matrix in found if matrix is not None), default=0)
