"""The figures and tables of ``song2024.landscape``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.report import (
    Band,
    Cell,
    Contour,
    Dots,
    Figure,
    Heat,
    Line,
    Mark,
    Panel,
    Rule,
    Surface,
    Table,
    each_seed,
)
from attnscope.studies.song2024._song import tabulate
from attnscope.studies.song2024.landscape.claims import BLOCKS, rough, surfaces_of
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape.study import Landscape

A, B = "step a along d₁ in W^Q", "step b along d₂ in W^K"
LOSS = "loss (nats)"


def figures_of(study: Landscape, run: Readings) -> list[Figure]:
    """Draw surfaces, rays, spectra, the path, and both stages."""
    makers = (surfaces, rays, spectra, paths, stages)
    return [make(study, run) for make in makers]


def surfaces(study: Landscape, run: Readings) -> Figure:
    """Draw the plane of seed 0 and draw 0 for every kernel, at one height."""
    axis = study.axis
    found = {case: surfaces_of(run, case)[0, 0].to_numpy() for case in study.cases}
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
        f"{study.first:,} steps with softmax and {study.second:,} with either kernel; seed 0, draw "
        "0. d₁ is random in W^Q of all layers and d₂ in W^K, each head scaled to the norm of its "
        "weights (filter-normalised). All surfaces have the same axes; the contours below have "
        "colours of their own.",
        tuple(panels),
        len(drawn),
        tuple(drawn),
    )


def rays(study: Landscape, run: Readings) -> Figure:
    """Draw the loss along either direction, mean and range over draws and seeds."""
    axis, middle, panels, runs = study.axis, study.grid // 2, [], ("seed", "draw")
    for name, label, other in (("W^Q", A, "b"), ("W^K", B, "a")):
        marks: list[Mark] = []
        for color, case in enumerate(study.cases):
            ray = surfaces_of(run, case).isel({other: middle})
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


def spectra(study: Landscape, run: Readings) -> Figure:
    """Draw the top Hessian eigenvalues by block."""
    marks: list[Mark] = []
    for i, case in enumerate(study.cases):
        values = final(run.of(case).largest).to_numpy()
        at, mean = np.arange(len(BLOCKS)) + 0.2 * (i - 1), np.exp(np.log(values).mean(0))
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
    for case in study.cases:
        a, b, loss, share = (plane(run, case, f"path_{n}") for n in ("a", "b", "loss", "share"))
        off, away = plane(run, case, "off_plane").max(), plane(run, case, "path_distance").max()
        field = (plane(run, case, f"path_{n}") for n in ("columns", "rows", "surface"))
        title = (
            f"{case}: {100 * share.sum():.0f} % in the plane, off it up to {off:.2g} of "
            f"{away:.2g}; true loss {loss[0]:.3g} to {loss[-1]:.3g}"
        )
        path = Line(a, b, "path of training", 1), Dots(a[-1:], b[-1:], label="end", color=1)
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
        for case in study.cases:
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
        len(study.cases),
    )


def stages(study: Landscape, run: Readings) -> Figure:
    """Draw the loss over both stages."""
    marks: list[Mark] = []
    for color, case in enumerate(study.cases):
        loss = run.of(case).probe.sel(measure="loss")
        marks += each_seed(loss, f"{case} in the second stage", color)
    marks.append(Rule(float(study.first), "the kernel changes", vertical=True))
    return Figure(
        "stages",
        "Two stages of training",
        f"Loss on the landscape's sequences over steps, {study.seeds} seeds. All kernels share "
        "the first stage, which is softmax.",
        (Panel("both stages", "step", LOSS, tuple(marks)),),
    )


def tables_of(study: Landscape, run: Readings) -> list[Table]:
    """Tabulate the end of every run, its curvature, its roughness, and the path of seed 0."""
    ends: list[dict[str, Cell]] = []
    roughnesses: list[dict[str, Cell]] = []
    path: list[dict[str, Cell]] = []
    for case in study.cases:
        own, surface = run.of(case), surfaces_of(run, case)
        heights = surface.max(("a", "b")) - surface.min(("a", "b"))
        last = [final(own.get(n)) for n in ("probe", "largest", "smallest", "norm", "mass")]
        for seed, found in enumerate(rough(study, run, case)):
            probe, largest, smallest, norm, mass = (each[seed].to_numpy().tolist() for each in last)
            ends.append(
                {
                    "kernel": case,
                    "seed": seed,
                    "loss (nats)": probe[0],
                    "accuracy": probe[1],
                    **{f"largest eigenvalue, {b}": v for b, v in zip(BLOCKS, largest, strict=True)},
                    "smallest eigenvalue, W_Q, W_K": smallest,
                    "largest × ‖(W_Q, W_K)‖²": largest[0] * norm[0] ** 2,
                    **{f"weights of a query in all, layer {i + 1}": v for i, v in enumerate(mass)},
                }
            )
            for draw, one in enumerate(found):
                roughnesses.append(
                    {
                        "kernel": case,
                        "seed": seed,
                        "draw": draw,
                        "highest minus lowest loss (nats)": float(heights[seed, draw]),
                        "share that bends down": one.nonconvex,
                        "variation of the Laplacian over its mean size": one.variation,
                        "local minima": one.minima,
                        "largest curvature (nats)": one.sharpest,
                    }
                )
        for i, step in enumerate(run.theory.path_step.to_numpy()):
            path.append(
                {
                    "kernel": case,
                    "step": int(step),
                    "distance from the end": float(plane(run, case, "path_distance")[i]),
                    "distance from the plane": float(plane(run, case, "off_plane")[i]),
                    "true loss (nats)": float(plane(run, case, "path_loss")[i]),
                    "loss in the plane (nats)": float(plane(run, case, "path_shadow")[i]),
                    "share of the plane (%)": 100 * float(plane(run, case, "path_share").sum()),
                }
            )
    return [
        tabulate(
            "ends",
            "The end of every run: loss, accuracy and Hessian on the landscape's sequences",
            ends,
        ),
        tabulate("roughness", "Surfaces over planes in W_Q and W_K", roughnesses),
        tabulate(
            "path",
            "The path of the second stage and the plane of its principal components, seed 0",
            path,
        ),
    ]


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
