r"""How the rank of what attention learned grows: the change of its two products since the start.

Stable rank :math:`\|\Delta\|_F^2 / \|\Delta\|_2^2` of :math:`\Delta (W_K^\top W_Q)` and of
:math:`\Delta (W_O W_V)`, head by head (Boix-Adsera et al. 2023, section 4).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from attnscope.watching.matrices import Projections, find_projections
from attnscope.watching.moment import Moment, Reading
from attnscope.watching.readings.offer import Offer, WatchedModel

PRODUCTS = ("KQ", "VO")


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the reading of this family."""
    layers = find_projections(watched.model, watched.points)
    whole = [layer for layer in layers if len(layer.parts) == 4]
    lacks = "" if whole else "all of W^Q, W^K, W^V and W^O, and they were not recognised"
    aligned = not watched.points or len(layers) == len(watched.points)
    heads = [point.heads for point in watched.points] if aligned else []
    reading = Reading(
        "rank_growth",
        _Growth(watched.model, layers, heads or [0] * len(layers)),
        ("layer" if aligned else "weight_layer", "head", "product"),
        meaning="stable rank of the change of W_KᵀW_Q and of W_O W_V since the first reading, for "
        "each head; of the whole layer if the number of heads is not known",
        coords={"product": PRODUCTS},
    )
    return [Offer(reading, False, lacks)]


class _Growth:
    """Keeps the matrices of the first reading."""

    def __init__(self, model: nn.Module, layers: list[Projections], heads: list[int]) -> None:
        self.layers, self.heads = layers, [max(1, count) for count in heads]
        # Conv1D keeps its matrices the other way round.
        modules = dict(model.named_modules())
        self.turned = {
            part.name
            for layer in layers
            for part in layer.parts.values()
            if type(modules.get(part.name.rpartition(".")[0])).__name__ == "Conv1D"
        }
        self.first: list[list[tuple[Tensor, Tensor]]] | None = None

    def __call__(self, moment: Moment) -> Tensor:
        now = [self._factors(i, moment) for i in range(len(self.layers))]
        if self.first is None:
            self.first = now
        table = torch.full((len(now), max(self.heads), 2), math.nan, dtype=torch.float64)
        for i, (new, old) in enumerate(zip(now, self.first, strict=True)):
            for j, ((a, b), (c, d)) in enumerate(zip(new, old, strict=True)):
                table[i, j // 2, j % 2] = stable_rank_of_change(a, b, c, d)
        return table

    def _factors(self, index: int, moment: Moment) -> list[tuple[Tensor, Tensor]]:
        """Return both factors of KQ and VO, head after head, each ``(rank, width)``."""
        parts, heads = self.layers[index].parts, self.heads[index]
        found = {}
        for kind, part in parts.items():
            matrix = part.of(moment.parameters)
            if matrix is None:
                return []
            matrix = matrix.detach().to("cpu", torch.float64, copy=True)
            # Rows are heads, in W^O as well.
            found[kind] = matrix.T if (part.name in self.turned) != (kind == "O") else matrix
        if len(found) < 4 or any(len(found[kind]) % heads for kind in "QO"):
            return []
        size, groups = len(found["Q"]) // heads, {}
        for kind in "KV":
            # With grouped heads several queries share a key.
            count = max(1, len(found[kind]) * heads // len(found["Q" if kind == "K" else "O"]))
            groups[kind] = (
                found[kind].unflatten(0, (count, -1)).repeat_interleave(heads // count, dim=0)
            )
        queries = found["Q"].unflatten(0, (heads, size))
        outputs = found["O"].unflatten(0, (heads, -1))
        return [
            pair
            for h in range(heads)
            for pair in ((groups["K"][h], queries[h]), (groups["V"][h], outputs[h]))
        ]


def stable_rank_of_change(left: Tensor, right: Tensor, left0: Tensor, right0: Tensor) -> Tensor:
    """Return the stable rank of leftᵀ right - left0ᵀ right0, without making that matrix.

    Factors are ``(rank, width)``; triangles of two QR decompositions have its singular values.
    """
    one = torch.cat([left, -left0])
    other = torch.cat([right, right0])
    if not (torch.isfinite(one).all() and torch.isfinite(other).all()):
        return torch.tensor(math.nan, dtype=torch.float64)
    triangles = [torch.linalg.qr(side.T, mode="r").R for side in (one, other)]
    values = torch.linalg.svdvals(triangles[0] @ triangles[1].T)
    scale = torch.linalg.matrix_norm(triangles[0]) * torch.linalg.matrix_norm(triangles[1])
    if values[0] <= 1e-14 * scale:  # nothing has changed
        return torch.tensor(math.nan, dtype=torch.float64)
    return (values**2).sum() / values[0] ** 2
