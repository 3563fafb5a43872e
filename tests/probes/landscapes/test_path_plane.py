from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.probes.landscapes.path_plane import path_landscape, path_of


class Four(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.full((2,), 9.0, dtype=torch.float64))
        self.v = nn.Parameter(torch.full((1, 2), 9.0, dtype=torch.float64))


def loss(model: Four) -> Tensor:
    return 1 + model.u.square().sum() + 2 * model.v.square().sum()


def path() -> np.ndarray:
    """Away from (0.1, 0, 0, 0) mostly along the axes 0 and 2, a little along axis 3."""
    t = np.linspace(1, 0, 9)
    return np.stack([0.1 + 4 * t, 0 * t, 2 * t**2 - 2 * t, 0.1 * np.sin(3 * np.pi * t)], axis=1)


def test_the_plane_its_share_and_what_lies_outside() -> None:
    points, model = path(), Four()
    got = path_landscape(model, loss, points, points=31)
    away = points - points[-1]
    _, sizes, components = np.linalg.svd(away)
    np.testing.assert_allclose(got.share, (sizes**2 / (sizes**2).sum())[:2])
    assert 0.99 < got.share.sum() < 1
    normal = components[2:]
    np.testing.assert_allclose(got.off_plane, np.linalg.norm(away @ normal.T, axis=1), atol=1e-12)
    assert got.off_plane.max() > 0.01
    np.testing.assert_allclose(got.distance, np.linalg.norm(away, axis=1))
    squares = points**2 @ np.array([1.0, 1, 2, 2])
    np.testing.assert_allclose(got.loss, 1 + squares)
    shadows = points[-1] + away @ components[:2].T @ components[:2]
    np.testing.assert_allclose(got.shadow, 1 + shadows**2 @ np.array([1.0, 1, 2, 2]))
    # The surface is the loss around the end of the path, not around where the model was.
    assert got.landscape.center == pytest.approx(1.01)
    assert got.landscape.a[0] < got.a.min() < got.a.max() < got.landscape.a[-1]
    grid = got.landscape
    i, j = 3, 17
    place = points[-1] + grid.a[j] * components[0] + grid.b[i] * components[1]
    flipped = points[-1] - grid.a[j] * components[0] - grid.b[i] * components[1]
    possible = [1 + p**2 @ np.array([1.0, 1, 2, 2]) for p in (place, flipped)]
    assert np.isclose(grid.loss[i, j], possible, rtol=1e-9).any()
    assert "% of the squared distances" in got.words
    assert "off it" in got.words
    assert (model.u == 9).all()


def test_snapshots_of_a_trajectory_become_a_path() -> None:
    u, v = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(3, 1, 2)
    params = xr.Dataset({"v": (("snapshot", "v0", "v1"), v), "u": (("snapshot", "u0"), u)})
    np.testing.assert_array_equal(
        path_of(params, Four()), np.concatenate([u, v.reshape(3, 2)], axis=1)
    )
    with pytest.raises(AttnscopeError, match="lack v"):
        path_of(params[["u"]], Four())
    with pytest.raises(AttnscopeError, match="select one run"):
        path_of(params.expand_dims("run"), Four())


def test_what_is_no_path_gets_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match=r"shape \(2, 4\): expected three points"):
        path_landscape(Four(), loss, np.zeros((2, 4)))
    with pytest.raises(AttnscopeError, match=r"shape \(5, 3\)"):
        path_landscape(Four(), loss, np.zeros((5, 3)))
    with pytest.raises(AttnscopeError, match="does not move"):
        path_landscape(Four(), loss, np.ones((5, 4)))
    with pytest.raises(AttnscopeError, match="lies on a line"):
        path_landscape(Four(), loss, np.arange(5.0)[:, None] * np.ones(4))
    bad = path()
    bad[4, 1] = np.nan
    with pytest.raises(AttnscopeError, match="Point 4 of the path is not finite"):
        path_landscape(Four(), loss, bad)
