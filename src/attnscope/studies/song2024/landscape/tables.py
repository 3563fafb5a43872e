"""The tables of ``song2024.landscape``: ends, quotients, roughness, and the path of seed 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.intervals import mean_interval
from attnscope.report import Cell, Table
from attnscope.studies.song2024._song import tabulate
from attnscope.studies.song2024.landscape.claims import (
    BLOCKS,
    GAUSSIAN,
    NORMALISED,
    PAIR,
    SOFTMAX,
    STRETCHED,
    TWIN,
    WIDE,
    by_radius,
    reached,
    rough,
    sharp,
    split_level,
    surfaces_of,
)
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.song2024.landscape.study import Landscape

PAIRS = (
    (GAUSSIAN, SOFTMAX),
    (NORMALISED, SOFTMAX),
    (NORMALISED, GAUSSIAN),
    (WIDE, GAUSSIAN),
    (STRETCHED, GAUSSIAN),
    (TWIN, SOFTMAX),
)
"""What is compared with what."""


def tables_of(study: Landscape, run: Readings) -> list[Table]:
    """Tabulate the end of every run, quotients of kernels, roughness, and the path of seed 0."""
    return [ends(study, run), ratios(study, run), roughnesses(study, run), path(study, run)]


def ends(study: Landscape, run: Readings) -> Table:
    """Tabulate where every run stands: targets, accuracy, curvature, sums of rows."""
    rows: list[dict[str, Cell]] = []
    names = ("end_loss", "gradient_norm", "held_out", "largest", "smallest", "norm", "mass")
    for case in study.cases:
        own = run.of(case)
        last, steps = [final(own.get(n)) for n in names], own.stats.get("steps")
        done = reached(run, case)
        for seed in range(len(done)):
            loss, slope, unseen, largest, smallest, norm, mass = (
                each[seed].to_numpy().tolist() for each in last
            )
            rows.append(
                {
                    "kernel": case,
                    "seed": seed,
                    "targets": "reached" if done[seed] else "never reached",
                    "step": int(steps[seed]),
                    "loss (nats)": loss,
                    "gradient norm": slope,
                    "held-out accuracy": unseen,
                    "largest eigenvalue, W_Q, W_K": largest[0],
                    **{
                        f"largest eigenvalue, {b}": v
                        for b, v in zip(list(BLOCKS)[1:], largest[1:], strict=True)
                    },
                    "smallest eigenvalue, W_Q, W_K": smallest,
                    "largest × ‖(W_Q, W_K)‖²": largest[0] * norm[0] ** 2,
                    **{f"weights of a query in all, layer {i + 1}": v for i, v in enumerate(mass)},
                }
            )
    title = (
        f"The end of every run; targets are a loss of {study.loss_target:g} and a gradient norm of "
        f"{study.gradient_target:g} on the landscape's sequences"
    )
    return tabulate("ends", title, rows)


def ratios(study: Landscape, run: Readings) -> Table:
    """Tabulate quotients of kernels: geometric mean over seeds and its 95 % interval."""
    rows: list[dict[str, Cell]] = []

    def add(what: str, measure: str, logs: np.ndarray) -> None:
        mean, low, high = (float(10**part) for part in mean_interval(logs))
        rows.append({"what": what, "of": measure, "quotient": mean, "from": low, "to": high})

    for ours, theirs in PAIRS:
        words = f"{ours} over {theirs}"
        for measure, name in (("rise", "mean rise"), ("laplacian", "RMS Laplacian")):
            both = [by_radius(study, run, case, measure) for case in (ours, theirs)]
            for radius, logs in zip(study.radii, both[0] - both[1], strict=True):
                add(words, f"{name}, radius {radius:g}", logs)
        for block in (", ".join(PAIR), "all"):
            logs = sharp(run, ours, block) - sharp(run, theirs, block)
            add(words, f"top eigenvalue, {block}", logs)
    middle = f"mean rise, radius {study.radii[study.middle]:g}"
    for case, moves, words in (
        (GAUSSIAN, "shares", "gaussian, sums held, over itself"),
        (GAUSSIAN, "sums", "gaussian, shares held, over itself"),
        (SOFTMAX, "both", "softmax, sums free, over itself"),
        (NORMALISED, "both", "normalised-gaussian, sums free, over itself"),
    ):
        own = by_radius(study, run, case, "rise")[study.middle]
        add(words, middle, split_level(study, run, case, moves) - own)
    return tabulate(
        "ratios",
        "Kernels compared at equal loss: geometric mean over seeds, 95 % interval",
        rows,
    )


def roughnesses(study: Landscape, run: Readings) -> Table:
    """Tabulate every surface."""
    rows: list[dict[str, Cell]] = []
    for case in study.cases:
        surfaces = surfaces_of(run, case).to_numpy()
        for number, radius in enumerate(study.radii):
            for seed, found in enumerate(rough(study, surfaces[:, number], number)):
                for draw, one in enumerate(found):
                    heights = surfaces[seed, number, draw]
                    rows.append(
                        {
                            "kernel": case,
                            "radius": radius,
                            "seed": seed,
                            "draw": draw,
                            "mean rise (nats)": one.rise,
                            "RMS Laplacian (nats)": one.laplacian,
                            "highest minus lowest loss (nats)": float(np.ptp(heights)),
                            "share that bends down": one.nonconvex,
                            "variation of the Laplacian over its mean size": one.variation,
                            "local minima": one.minima,
                            "largest curvature (nats)": one.sharpest,
                        }
                    )
    return tabulate("roughness", "Surfaces over planes in W_Q and W_K", rows)


def path(study: Landscape, run: Readings) -> Table:
    """Tabulate the path of the second stage of seed 0 and the plane of its components."""
    rows: list[dict[str, Cell]] = []
    for case in study.cases:
        names = ("path_distance", "off_plane", "path_loss", "path_shadow", "path_share")
        known = [run.theory.get(name).sel(kernel=case).to_numpy() for name in names]
        for i, step in enumerate(run.theory.path_step.to_numpy()):
            if np.isfinite(known[0][i]):
                rows.append(
                    {
                        "kernel": case,
                        "step": int(step),
                        "distance from the end": float(known[0][i]),
                        "distance from the plane": float(known[1][i]),
                        "true loss (nats)": float(known[2][i]),
                        "loss in the plane (nats)": float(known[3][i]),
                        "share of the plane (%)": 100 * float(known[4].sum()),
                    }
                )
    title = "The path of the second stage and the plane of its principal components, seed 0"
    if not rows:
        return Table("path", title, ("kernel", "step"), ())
    return tabulate("path", title, rows)
