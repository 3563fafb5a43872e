"""The tables of ``song2024.landscape``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.studies.song2024._landscape_readings import BLOCKS, rough, surfaces_of, top
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape import Landscape


def tables(study: Landscape, tree: xr.DataTree) -> list[Table]:
    """Return the end of every run, its curvature, its roughness, and the path."""
    return [ends(study, tree), roughnesses(study, tree), path(study, tree)]


def ends(study: Landscape, tree: xr.DataTree) -> Table:
    """Tabulate loss, accuracy and top eigenvalues at the end of every run."""
    rows: list[tuple[Cell, ...]] = []
    for case in study.cases():
        probe = select(tree, "probe", case).isel(step=-1).to_numpy()
        smallest = select(tree, "smallest", case).isel(end=-1).to_numpy()
        norms = select(tree, "norm", case).isel(end=-1, block=0).to_numpy()
        mass = select(tree, "mass", case).isel(end=-1).to_numpy()
        largest = np.stack([top(tree, case, block) for block in BLOCKS], axis=1)
        for seed in range(study.seeds):
            scaled = float(largest[seed, 0] * norms[seed] ** 2)
            rows.append(
                (
                    case,
                    seed,
                    *map(float, probe[seed]),
                    *map(float, largest[seed]),
                    float(smallest[seed]),
                    scaled,
                    *map(float, mass[seed]),
                )
            )
    columns = (
        "kernel",
        "seed",
        "loss (nats)",
        "accuracy",
        *(f"largest eigenvalue, {block}" for block in BLOCKS),
        "smallest eigenvalue, W_Q, W_K",
        "largest × ‖(W_Q, W_K)‖²",
        *(
            f"weights of a query in all, layer {i + 1}"
            for i in range(tree["observables/mass"].sizes["layer"])
        ),
    )
    title = "The end of every run: loss, accuracy and Hessian on the landscape's sequences"
    return Table("ends", title, columns, tuple(rows))


def roughnesses(study: Landscape, tree: xr.DataTree) -> Table:
    """Tabulate the roughness of every surface."""
    rows: list[tuple[Cell, ...]] = []
    for case in study.cases():
        values = surfaces_of(tree, case)
        for seed, found in enumerate(rough(values, study.radius)):
            for draw, one in enumerate(found):
                height = float(np.ptp(values[seed, draw]))
                cells = (one.nonconvex, one.variation, one.minima, one.sharpest)
                rows.append((case, seed, draw, height, *cells))
    columns = (
        "kernel",
        "seed",
        "draw",
        "highest minus lowest loss (nats)",
        "share that bends down",
        "variation of the Laplacian over its mean size",
        "local minima",
        "largest curvature (nats)",
    )
    return Table("roughness", "Surfaces over planes in W_Q and W_K", columns, tuple(rows))


def path(study: Landscape, tree: xr.DataTree) -> Table:
    """Tabulate the path of the second stage of seed 0."""
    theory = tree["theory"].to_dataset()
    rows: list[tuple[Cell, ...]] = []
    names = ("path_distance", "off_plane", "path_loss", "path_shadow")
    for i, case in enumerate(study.cases()):
        one = theory.isel(kernel=i)
        share = 100 * float(one["path_share"].sum())
        for j, step in enumerate(theory["path_step"].to_numpy()):
            rows.append((case, int(step), *(float(one[name][j]) for name in names), share))
    columns = (
        "kernel",
        "step",
        "distance from the end",
        "distance from the plane",
        "true loss (nats)",
        "loss in the plane (nats)",
        "share of the plane (%)",
    )
    title = "The path of the second stage and the plane of its principal components, seed 0"
    return Table("path", title, columns, tuple(rows))
