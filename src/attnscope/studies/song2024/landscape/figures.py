"""The figures of ``song2024.landscape``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.intervals import mean_interval
from attnscope.report import (
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
    each_seed,
)
from attnscope.studies.song2024.landscape.claims import (
    BLOCKS,
    GAUSSIAN,
    NORMALISED,
    SOFTMAX,
    by_radius,
    split_level,
    surfaces_of,
)
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape.study import Landscape

A, B = "step a along d₁ in W^Q", "step b along d₂ in W^K"
LOSS, RISE = "loss (nats)", "mean rise of the loss (nats)"
SHOWN = (SOFTMAX, GAUSSIAN, NORMALISED)
"""Kernels whose surfaces are drawn; the others are in the tables."""
HELD = (
    (SOFTMAX, None, "itself"),
    (SOFTMAX, "both", "sums free"),
    (GAUSSIAN, None, "itself"),
    (GAUSSIAN, "sums", "shares held"),
    (GAUSSIAN, "shares", "sums held"),
    (NORMALISED, None, "itself"),
    (NORMALISED, "both", "sums free"),
)
"""Case, what moves of its weights if not what the kernel itself moves, and words for it."""
COLORS = {SOFTMAX: 0, GAUSSIAN: 1, NORMALISED: 2}
"""Colours of the kernels that are drawn as in the other figures."""


def figures_of(study: Landscape, run: Readings) -> list[Figure]:
    """Draw surfaces, rises, rays, spectra, the path, and both stages."""
    makers = (surfaces, rises, rays, spectra, paths, stages)
    return [make(study, run) for make in makers]


def surfaces(study: Landscape, run: Readings) -> Figure:
    """Draw the plane of seed 0 and draw 0 for every kernel, at one height."""
    axis, shown = study.axis(study.middle), SHOWN
    found = {case: surfaces_of(run, case)[0, study.middle, 0].to_numpy() for case in shown}
    every = np.stack(list(found.values()))
    zrange, drawn, panels = (float(every.min()), float(every.max())), [], []
    for case, values in found.items():
        title = f"{case}, filter-normalised"
        drawn.append(Surface(title, A, B, LOSS, axis, axis, values, zrange=zrange))
        end = Dots(np.zeros(1), np.zeros(1), label="end of training", color=1)
        panels.append(Panel(f"{case}, own colours", A, B, (*heat(axis, axis, values), end)))
    return Figure(
        "fig3-surfaces",
        "The loss over a plane in W^Q and W^K",
        f"Loss on {study.probe} training sequences at θ* + a d₁ + b d₂ (Song 2024, Fig 3), after "
        f"{study.first:,} steps with softmax and a second stage with either kernel that ends at "
        f"the same loss; seed 0, draw 0, radius {study.radii[study.middle]:g}. d₁ is random in W^Q "
        "of all layers and d₂ in W^K, each head scaled to the norm of its weights "
        "(filter-normalised). All surfaces have the same axes; the contours below have colours of "
        "their own.",
        tuple(panels),
        len(drawn),
        tuple(drawn),
    )


def rays(study: Landscape, run: Readings) -> Figure:
    """Draw the loss along either direction at the largest radius, over draws and seeds."""
    last = len(study.radii) - 1
    axis, middle, panels, runs = study.axis(last), study.grid // 2, [], ("seed", "draw")
    for name, label, other in (("W^Q", A, "b"), ("W^K", B, "a")):
        marks: list[Mark] = []
        for color, case in enumerate(study.cases):
            ray = surfaces_of(run, case).isel({other: middle, "radius": last})
            low, high = ray.min(runs).to_numpy(), ray.max(runs).to_numpy()
            mean = Line(axis, ray.mean(runs).to_numpy(), case, color)
            marks += [Band(axis, low, high, color=color), mean]
        panels.append(Panel(f"along {name}", label, LOSS, tuple(marks)))
    return Figure(
        "rays",
        "The loss along rays in W^Q and in W^K",
        f"Loss along one direction at a time: mean, and range over {study.draws} draws and "
        f"{study.seeds} seeds. Directions are filter-normalised.",
        tuple(panels),
        2,
    )


def rises(study: Landscape, run: Readings) -> Figure:
    """Draw the mean rise over the radius, and at the middle radius with parts of weights held."""
    marks: list[Mark] = []
    radii = np.asarray(study.radii)
    for color, case in enumerate(study.cases):
        levels = by_radius(study, run, case, "rise")
        mean, low, high = (10**part for part in mean_interval(levels, axis=1))
        marks += [Band(radii, low, high, color=color), Line(radii, mean, case, color)]
    held: list[Mark] = []
    ticks: list[tuple[float, str]] = []
    for case, moves, words in HELD:
        at = float(len(ticks))
        values = (
            by_radius(study, run, case, "rise")[study.middle]
            if moves is None
            else split_level(study, run, case, moves)
        )
        mean, low, high = (np.atleast_1d(10**part) for part in mean_interval(values))
        held.append(Dots(np.array([at]), mean, low, high, "", COLORS[case]))
        ticks.append((at, f"{case.replace('normalised-', 'norm. ')}: {words}"))
    return Figure(
        "rises",
        "How much the loss rises around the end, and what makes it rise",
        f"Mean rise of the loss over planes in W^Q and W^K, mean over {study.draws} draws; "
        f"geometric mean and 95 % interval over {study.seeds} seeds. Right: around the same "
        f"models at radius {study.radii[study.middle]:g}, the sums of rows of weights held at "
        "their values in the middle, or set free, or the shares within rows held. All these have "
        "the same loss in the middle.",
        (
            Panel("by radius", "radius (norms of the weights)", RISE, tuple(marks), yscale="log"),
            Panel("what moves", "", RISE, tuple(held), yscale="log", xticks=tuple(ticks)),
        ),
        2,
    )


def spectra(study: Landscape, run: Readings) -> Figure:
    """Draw the top Hessian eigenvalues by block."""
    marks: list[Mark] = []
    for i, case in enumerate(study.cases):
        values = final(run.of(case).largest).to_numpy()
        at, mean = np.arange(len(BLOCKS)) + 0.12 * (i - 2), np.exp(np.log(values).mean(0))
        marks.append(Dots(at, mean, values.min(0), values.max(0), case, i))
    panel = Panel(
        "top Hessian eigenvalue",
        "block",
        "eigenvalue (nats)",
        tuple(marks),
        yscale="log",
        xticks=tuple((float(i), block) for i, block in enumerate(BLOCKS)),
    )
    return Figure(
        "sharpness",
        "How sharp the loss is, block by block",
        "Largest eigenvalue of the Hessian of the loss in a block of parameters of all layers, the "
        f"others held fixed; geometric mean and range over {study.seeds} seeds, by the Lanczos "
        "method on the landscape's sequences.",
        (panel,),
    )


def paths(study: Landscape, run: Readings) -> Figure:
    """Draw the second stage in the plane of its principal components, and what lies outside."""
    steps, panels = run.theory.path_step.to_numpy(), []
    known = [c for c in SHOWN if np.isfinite(plane(run, c, "path_share")).all()]
    for case in known:
        a, b, loss, share = (plane(run, case, f"path_{n}") for n in ("a", "b", "loss", "share"))
        off, away = (np.nanmax(plane(run, case, n)) for n in ("off_plane", "path_distance"))
        ended = int(np.isfinite(loss).sum()) - 1
        field = (plane(run, case, f"path_{n}") for n in ("columns", "rows", "surface"))
        title = (
            f"{case}: {100 * share.sum():.0f} % in the plane, off it up to {off:.2g} of "
            f"{away:.2g}; true loss {loss[0]:.3g} to {loss[ended]:.3g}"
        )
        path = Line(a, b, "path of training", 1), Dots(a[[ended]], b[[ended]], label="end", color=1)
        first, second = (f"component {k + 1} ({100 * share[k]:.0f} %)" for k in (0, 1))
        panels.append(Panel(title, first, second, (*heat(*field), *path)))
    for title, ylabel, names in (
        (
            "path and shadow",
            LOSS,
            {
                "path_loss": ("true loss on the path", 2),
                "path_shadow": ("loss at its shadow in the plane", 3),
            },
        ),
        (
            "off the plane",
            "distance",
            {
                "path_distance": ("distance from the end", 4),
                "off_plane": ("distance from the plane", 5),
            },
        ),
    ):
        for case in known:
            lines = (Line(steps, plane(run, case, n), *words) for n, words in names.items())
            panels.append(Panel(f"{case}: {title}", "step", ylabel, tuple(lines)))
    return Figure(
        "path",
        "The second stage of training in the plane of its principal components",
        f"Loss over the first two principal components of the {len(steps)} snapshots of the second "
        "stage, all parameters, uncentred around the end of the path; seed 0. Titles say how much "
        "of the squared distances the plane holds, how far the path strays from it, and the true "
        "loss at both ends of the path; the lower panels give all of them. The path is drawn where "
        "its shadow falls.",
        tuple(panels),
        max(1, len(known)),
    )


def stages(study: Landscape, run: Readings) -> Figure:
    """Draw loss and gradient norm over both stages, with their targets."""
    panels = []
    for measure, label, target in (
        ("loss", LOSS, study.loss_target),
        ("gradient norm", "norm of the gradient", study.gradient_target),
    ):
        marks: list[Mark] = []
        for color, case in enumerate(study.cases):
            marks += each_seed(run.of(case).probe.sel(measure=measure), case, color)
        marks.append(Rule(float(study.first), "the kernel changes", vertical=True))
        marks.append(Rule(target, "target"))
        panels.append(Panel(measure, "step", label, tuple(marks), yscale="log"))
    return Figure(
        "stages",
        "Two stages of training",
        f"Loss and norm of its gradient on the landscape's sequences over steps, {study.seeds} "
        "seeds. All kernels share the first stage, which is softmax. A run ends when both are "
        "below their targets.",
        tuple(panels),
        2,
    )


def plane(run: Readings, case: str, name: str) -> np.ndarray:
    """Return what is known of the plane of a path of seed 0."""
    return run.theory.get(name).sel(kernel=case).to_numpy()


def heat(columns: np.ndarray, rows: np.ndarray, values: np.ndarray) -> tuple[Mark, ...]:
    """Draw a loss by colours, and lines of equal loss over them."""

    def edges(points: np.ndarray) -> np.ndarray:
        step = points[1] - points[0]
        return np.append(points - step / 2, points[-1] + step / 2)

    lines = Contour(columns, rows, values, label="equal loss (nats)")
    return Heat(edges(columns), edges(rows), values, LOSS), lines
