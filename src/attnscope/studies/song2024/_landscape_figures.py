"""The figures of ``song2024.landscape``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.figure import (
    Band,
    Contour,
    Dots,
    Figure,
    Heat,
    Line,
    Mark,
    Panel,
    Rule,
    Surface,
)
from attnscope.studies.song2024._landscape_readings import (
    BLOCKS,
    GAUSSIAN,
    NORMALISED,
    SOFTMAX,
    axis,
    surfaces_of,
    top,
)
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape import Landscape

COLORS = {SOFTMAX: 0, GAUSSIAN: 1, NORMALISED: 2}
A, B = "step a along d₁ in W^Q", "step b along d₂ in W^K"
LOSS = "loss (nats)"


def figures(study: Landscape, tree: xr.DataTree) -> list[Figure]:
    """Return the poster's surfaces, and what they are made of."""
    return [
        surfaces(study, tree),
        rays(study, tree),
        spectra(study, tree),
        paths(study, tree),
        curves(study, tree),
    ]


def surfaces(study: Landscape, tree: xr.DataTree) -> Figure:
    """Draw the plane of seed 0 and draw 0 for both kernels, at one height."""
    steps = axis(study.radius, study.grid)
    found = {case: surfaces_of(tree, case)[0, 0] for case in study.cases()}
    low = min(float(values.min()) for values in found.values())
    high = max(float(values.max()) for values in found.values())
    drawn, panels = [], []
    for case, values in found.items():
        title = f"{case}, filter-normalised"
        drawn.append(Surface(title, A, B, LOSS, steps, steps, values, zrange=(low, high)))
        marks = (
            Heat(_edges(steps), _edges(steps), values, LOSS),
            Contour(steps, steps, values, label="equal loss (nats)"),
            Dots(np.zeros(1), np.zeros(1), label="end of training", color=1),
        )
        panels.append(Panel(f"{case}, own colours", A, B, marks))
    return Figure(
        "fig3-surfaces",
        "The loss over a plane in W^Q and W^K",
        f"Loss on {study.probe} training sequences at θ* + a d₁ + b d₂ (Song 2024, Fig 3), after "
        f"{study.first:,} steps with softmax and {study.epochs - study.first:,} with either "
        "kernel; seed 0, draw 0. d₁ is random in W^Q of all layers and d₂ in W^K, each head scaled "
        "to the norm of its weights (filter-normalised). All surfaces have the same axes; the "
        "contours below have colours of their own.",
        tuple(panels),
        len(drawn),
        tuple(drawn),
    )


def rays(study: Landscape, tree: xr.DataTree) -> Figure:
    """Draw the loss along either direction, mean and range over draws and seeds."""
    steps, middle = axis(study.radius, study.grid), study.grid // 2
    panels = []
    for name, label, along in (("W^Q", A, -1), ("W^K", B, -2)):
        marks: list[Mark] = []
        for case in study.cases():
            every = surfaces_of(tree, case)
            rays = np.take(every, middle, axis=-2 if along == -1 else -1)
            lines = rays.reshape(-1, study.grid)
            color = COLORS[case]
            marks += [
                Band(steps, lines.min(0), lines.max(0), color=color),
                Line(steps, lines.mean(0), case, color),
            ]
        panels.append(Panel(f"along {name}", label, LOSS, tuple(marks)))
    return Figure(
        "rays",
        "The loss along rays in W^Q and in W^K",
        f"Loss along one direction at a time: mean, and range over {study.draws} draws and "
        f"{study.seeds} seeds. Directions are filter-normalised.",
        tuple(panels),
        2,
    )


def spectra(study: Landscape, tree: xr.DataTree) -> Figure:
    """Draw the top Hessian eigenvalues by block."""
    marks: list[Mark] = []
    for i, case in enumerate(study.cases()):
        values = np.stack([top(tree, case, block) for block in BLOCKS])
        at = np.arange(len(BLOCKS)) + 0.2 * (i - 1)
        marks.append(
            Dots(at, np.exp(np.log(values).mean(1)), values.min(1), values.max(1), case, i)
        )
    ticks = tuple((float(i), block) for i, block in enumerate(BLOCKS))
    return Figure(
        "sharpness",
        "How sharp the loss is, block by block",
        "Largest eigenvalue of the Hessian of the loss in a block of parameters of all layers, the "
        f"others held fixed; geometric mean and range over {study.seeds} seeds, by the Lanczos "
        "method on the landscape's sequences.",
        (
            Panel(
                "top Hessian eigenvalue",
                "block",
                "eigenvalue (nats)",
                tuple(marks),
                yscale="log",
                xticks=ticks,
            ),
        ),
    )


def paths(study: Landscape, tree: xr.DataTree) -> Figure:
    """Draw the second stage in the plane of its principal components, and what lies outside."""
    theory = tree["theory"].to_dataset()
    panels = []
    for i, case in enumerate(study.cases()):
        one = theory.isel(kernel=i)
        columns, rows = one["path_columns"].to_numpy(), one["path_rows"].to_numpy()
        values = one["path_surface"].to_numpy()
        share = 100 * one["path_share"].to_numpy()
        off, away = one["off_plane"].to_numpy(), one["path_distance"].to_numpy()
        title = (
            f"{case}: {share.sum():.0f} % in the plane, off it up to {off.max():.2g} of "
            f"{away.max():.2g}; true loss {float(one['path_loss'][0]):.3g} to "
            f"{float(one['path_loss'][-1]):.3g}"
        )
        marks: tuple[Mark, ...] = (
            Heat(_edges(columns), _edges(rows), values, LOSS),
            Contour(columns, rows, values, label="equal loss (nats)"),
            Line(one["path_a"].to_numpy(), one["path_b"].to_numpy(), "path of training", 1),
            Dots(
                one["path_a"].to_numpy()[-1:], one["path_b"].to_numpy()[-1:], label="end", color=1
            ),
        )
        first, second = (f"component {k + 1} ({share[k]:.0f} %)" for k in (0, 1))
        panels.append(Panel(title, first, second, marks))
    steps = theory["path_step"].to_numpy()
    for i, case in enumerate(study.cases()):
        one = theory.isel(kernel=i)
        lines = (
            Line(steps, one["path_loss"].to_numpy(), "true loss on the path", 2),
            Line(steps, one["path_shadow"].to_numpy(), "loss at its shadow in the plane", 3),
        )
        panels.append(Panel(f"{case}: path and shadow", "step", LOSS, lines))
    for i, case in enumerate(study.cases()):
        one = theory.isel(kernel=i)
        lines = (
            Line(steps, one["path_distance"].to_numpy(), "distance from the end", 4),
            Line(steps, one["off_plane"].to_numpy(), "distance from the plane", 5),
        )
        panels.append(Panel(f"{case}: off the plane", "step", "distance", lines))
    return Figure(
        "path",
        "The second stage of training in the plane of its principal components",
        f"Loss over the first two principal components of the {len(steps)} snapshots of the second "
        "stage, all parameters, uncentred around the end of the path; seed 0. Titles say how much "
        "of the squared distances the plane holds, how far the path strays from it, and the true "
        "loss at both ends of the path; the lower panels give all of them. The path is drawn where "
        "its shadow falls.",
        tuple(panels),
        len(study.cases()),
    )


def curves(study: Landscape, tree: xr.DataTree) -> Figure:
    """Draw the loss over both stages."""
    steps = tree["observables/time"].to_numpy()
    marks: list[Mark] = []
    for case in study.cases():
        for seed, run in enumerate(select(tree, "probe", case).isel(measure=0).to_numpy()):
            label = "" if seed else f"{case} in the second stage"
            marks.append(Line(steps, run, label, COLORS[case], thin=seed > 0))
    marks.append(Rule(float(study.first), "the kernel changes", vertical=True))
    return Figure(
        "stages",
        "Two stages of training",
        f"Loss on the landscape's sequences over steps, {study.seeds} seeds. All kernels share "
        "the first stage, which is softmax.",
        (Panel("both stages", "step", LOSS, tuple(marks)),),
    )


def _edges(points: np.ndarray) -> np.ndarray:
    step = points[1] - points[0]
    return np.append(points - step / 2, points[-1] + step / 2)
