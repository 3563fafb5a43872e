"""The plane in which a recorded path of the parameters moves most, and the loss over it.

A plane through two principal components shows a projection. How much of the path lies outside, and
what the loss is on the path itself, is part of the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.probes.landscapes.directions import Directions, still
from attnscope.probes.landscapes.landscape import Landscape, PlainLoss, landscape

MARGIN = 0.25
"""The plane reaches so far beyond the path, as a share of the path's extent."""


@dataclass(frozen=True, eq=False)
class PathLandscape:
    """A landscape in the plane of a path's first two principal components.

    Args:
        landscape: over the plane; a and b are distances from the end of the path.
        a: first coordinate of each point of the path.
        b: second coordinate.
        share: of the squared distances to the end of the path, what each component explains.
        off_plane: distance of each point of the path from the plane.
        distance: distance of each point of the path from its end.
        loss: the loss on the path itself, not at its shadow in the plane.
        shadow: the loss at the point of the plane below each point of the path.
        words: all of this in a sentence, for a caption.
    """

    landscape: Landscape
    a: np.ndarray
    b: np.ndarray
    share: np.ndarray
    off_plane: np.ndarray
    distance: np.ndarray
    loss: np.ndarray
    shadow: np.ndarray
    words: str


def path_of(params: xr.Dataset, model: nn.Module) -> np.ndarray:
    """Return the snapshots of one run, the group ``params`` of a trajectory, as flat vectors.

    Args:
        params: one variable for each parameter, snapshots along the first dimension.
        model: says in which order.
    """
    missing = [name for name, _ in model.named_parameters() if name not in params]
    if missing:
        raise AttnscopeError(
            f"The snapshots lack {', '.join(missing)}: expected all parameters of "
            f"{type(model).__name__}, as attnscope.engines.snapshots records them."
        )
    parts = []
    for name, p in model.named_parameters():
        values = params[name].to_numpy()
        if values.shape[1:] != tuple(p.shape):
            raise AttnscopeError(
                f"The snapshots of {name} have shape {values.shape}: expected (snapshots, "
                f"{', '.join(map(str, p.shape))}); select one run first."
            )
        parts.append(values.reshape(len(values), -1))
    return np.concatenate(parts, axis=1)


def path_landscape(
    model: nn.Module,
    loss: PlainLoss,
    path: np.ndarray,
    *,
    points: int = 51,
    tolerance: float = 1e-5,
) -> PathLandscape:
    """Compute the loss over the plane of a path, around its end.

    The components are those of θ_t - θ_end, uncentred, so that the plane goes through the end.

    Args:
        model: comes back bit for bit as it was; where it is now does not matter.
        loss: called as ``loss(model)``.
        path: flat vectors of all parameters in the model's order, shape ``(time, parameters)``.
        points: of the grid, along each side.
        tolerance: see :func:`attnscope.probes.landscape.landscape`.
    """
    path = _checked(model, path)
    away = path - path[-1]
    left, sizes, components = np.linalg.svd(away, full_matrices=False)
    squares = sizes**2
    if not squares[0] > 0:
        raise AttnscopeError("The path does not move: expected points that differ.")
    if squares[1] <= 1e-12 * squares[0]:
        raise AttnscopeError("The path lies on a line: expected one that bends, to span a plane.")
    inside = left[:, :2] * sizes[:2]
    off_plane = np.linalg.norm(away - inside @ components[:2], axis=1)
    share = squares[:2] / squares.sum()
    shadows = path[-1] + inside @ components[:2]
    with still(model):
        true = _losses(model, loss, path)
        shadow = _losses(model, loss, shadows)
        _place(model, path[-1])
        named = dict(model.named_parameters())
        sizes_of = [p.numel() for p in named.values()]
        pieces = torch.as_tensor(components[:2]).split(sizes_of, dim=1)
        parts = {
            name: piece.reshape(2, *p.shape).to(p.detach())
            for (name, p), piece in zip(named.items(), pieces, strict=True)
        }
        labels = tuple(
            f"principal component {i + 1} ({100 * part:.3g} % of the squared distances)"
            for i, part in enumerate(share)
        )
        words = f"first two principal components of a path of {len(path)} points"
        grid = [_around(inside[:, axis], points) for axis in (0, 1)]
        directions = Directions(parts, words, labels)
        surface = landscape(model, loss, directions, grid[0], grid[1], tolerance=tolerance)
    furthest = int(np.argmax(off_plane))
    said = (
        f"{surface.words[:-1]}. The plane holds {100 * share.sum():.3g} % of the squared distances "
        f"to the end; the path is up to {off_plane[furthest]:.3g} off it, at a point "
        f"{np.linalg.norm(away[furthest]):.3g} from the end. Loss on the path {true[0]:.4g} to "
        f"{true[-1]:.4g}, at its shadow in the plane {shadow[0]:.4g} to {shadow[-1]:.4g}."
    )
    distance = np.linalg.norm(away, axis=1)
    return PathLandscape(
        surface, inside[:, 0], inside[:, 1], share, off_plane, distance, true, shadow, said
    )


def _checked(model: nn.Module, path: np.ndarray) -> np.ndarray:
    array = np.asarray(path, dtype=float)
    size = sum(p.numel() for p in model.parameters())
    if array.ndim != 2 or len(array) < 3 or array.shape[1] != size:
        raise AttnscopeError(
            f"The path has shape {array.shape}: expected three points or more of {size:,} numbers, "
            f"the parameters of {type(model).__name__}."
        )
    if not np.isfinite(array).all():
        bad = int(np.flatnonzero(~np.isfinite(array).all(1))[0])
        raise AttnscopeError(f"Point {bad} of the path is not finite: expected numbers.")
    return array


def _losses(model: nn.Module, loss: PlainLoss, path: np.ndarray) -> np.ndarray:
    found = []
    for point in path:
        _place(model, point)
        with torch.inference_mode():
            found.append(float(loss(model)))
    return np.array(found)


def _place(model: nn.Module, vector: np.ndarray) -> None:
    start = 0
    for p in model.parameters():
        piece: Tensor = torch.as_tensor(vector[start : start + p.numel()])
        p.copy_(piece.view(p.shape))
        start += p.numel()


def _around(values: np.ndarray, points: int) -> np.ndarray:
    low, high = float(values.min()), float(values.max())
    room = MARGIN * (high - low)
    return np.linspace(low - room, high + room, points)
