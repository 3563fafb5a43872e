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
APART = 20
"""Without being asked for it is at every twentieth reading: it costs eigenvalues."""
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

    def norms(moment: Moment) -> Tensor:
        return _norms(layers, moment.parameters)

    def ranks(moment: Moment) -> Tensor:
        return _table(layers, _stable_rank, moment.parameters)

    def updates(moment: Moment) -> Tensor | None:
        if not moment.before:
            return None
        now, before = moment.parameters, moment.before
        changes = {name: now[name].detach() - before[name] for name in before}
        return _norms(layers, changes) / _norms(layers, before)

    def gradient_norms(moment: Moment) -> Tensor | None:
        found = gradients.of(moment)
        return None if found is None else _norms(layers, found)

    def ratio(moment: Moment) -> Tensor | None:
        sizes = gradient_norms(moment)
        if sizes is None:
            return None
        return torch.sqrt((sizes[:, 0] ** 2 + sizes[:, 1] ** 2) / 2) / sizes[:, 2]

    def by_block(moment: Moment) -> Tensor | None:
        found = gradients.of(moment)
        if found is None:
            return None
        sizes = dict(zip(found, _sizes(list(found.values())).tolist(), strict=True))
        return torch.tensor(
            [math.hypot(*(sizes.get(name, 0.0) for name in names)) for names in groups.values()],
            dtype=torch.float64,
        )

    of_gradients: frozenset[Need] = frozenset({"gradients"})
    of_matrices = [
        Reading("weight_norm", norms, axes, meaning=f"Frobenius norms {ORDER}"),
        Reading(
            "stable_rank",
            ranks,
            axes,
            meaning=f"squared Frobenius norm over squared spectral norm {ORDER}",
        ),
        Reading(
            "update_ratio",
            updates,
            axes,
            frozenset({"before"}),
            meaning=f"norm of the step over the norm of the weights before it, {ORDER}",
            of=frozenset(part.name for each in layers for part in each.parts.values()),
        ),
        Reading(
            "gradient_norm",
            gradient_norms,
            axes,
            of_gradients,
            meaning=f"gradient norms {ORDER}, as the optimizer sees them",
        ),
        Reading(
            "query_key_gradient_ratio",
            ratio,
            (layer,),
            of_gradients,
            meaning="root mean square of the gradient norms of W^Q and W^K, over that of W^V",
        ),
    ]
    of_blocks = Reading(
        "block_gradient_norm",
        by_block,
        ("block",),
        of_gradients,
        meaning=f"gradient norms of the blocks {', '.join(groups)}",
    )
    return [
        *(
            Offer(each, narrow, lacks, APART)
            if each.name == "stable_rank"
            else Offer(each, True, lacks)
            for each in of_matrices
        ),
        Offer(of_blocks, True, "" if groups else "parameters, and the model has none"),
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


def _stable_rank(matrix: Tensor) -> Tensor:
    """Return what :func:`attnscope.probes.matrix_shape.stable_rank` does, on PyTorch's threads.

    NumPy has threads of its own, which fight with those of the training.
    """
    wide = matrix.detach().to(torch.promote_types(matrix.dtype, torch.float32))
    gram = wide.T @ wide if wide.shape[0] > wide.shape[1] else wide @ wide.T
    total = gram.trace()
    if not torch.isfinite(total) or total == 0:
        return torch.full_like(total, math.nan)
    return total / torch.linalg.eigvalsh(gram)[-1]


def _sizes(tensors: Sequence[Tensor]) -> Tensor:
    """Return the norms of tensors, as :func:`norm` does, with one call for all of a kind."""
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for index, tensor in enumerate(tensors):
        kinds.setdefault((tensor.device, tensor.dtype), []).append(index)
    sizes = torch.full((len(tensors),), math.nan, dtype=torch.float64)
    for (_, dtype), places in kinds.items():
        wide = torch.promote_types(dtype, torch.float32)
        parts = [tensors[index].detach() for index in places]
        sizes[places] = torch.stack(torch._foreach_norm(parts, 2, dtype=wide)).cpu().double()
    return sizes


def _norms(layers: Sequence[Projections], tensors: Mapping[str, Tensor]) -> Tensor:
    """Return the norm of every layer's matrices, NaN where a matrix is not there."""
    found = [
        None if part is None else part.of(tensors)
        for layer in layers
        for part in (layer.parts.get(kind) for kind in MATRICES)
    ]
    there = [index for index, matrix in enumerate(found) if matrix is not None]
    table = torch.full((len(found),), math.nan, dtype=torch.float64)
    table[there] = _sizes([matrix for matrix in found if matrix is not None])
    return table.unflatten(0, (len(layers), len(MATRICES)))


def _table(
    layers: Sequence[Projections], of: Callable[..., Tensor], *tensors: Mapping[str, Tensor]
) -> Tensor:
    """Return a number for every layer and matrix, NaN where a matrix is not there."""

    def entry(part: Part | None) -> Tensor:
        found = [None] if part is None else [part.of(each) for each in tensors]
        if any(matrix is None for matrix in found):
            return torch.tensor(math.nan, dtype=torch.float64)
        return of(*found).cpu().double()

    rows = [[entry(layer.parts.get(kind)) for kind in MATRICES] for layer in layers]
    return torch.stack([torch.stack(row) for row in rows])


def _width(model: nn.Module, layers: Sequence[Projections]) -> int:
    now = dict(model.named_parameters())
    found = [part.of(now) for layer in layers for part in layer.parts.values()]
    return max((min(matrix.shape) for matrix in found if matrix is not None), default=0)
