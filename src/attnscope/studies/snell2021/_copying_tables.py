"""The tables of ``snell2021.copying``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes.shares import share_interval
from attnscope.report.page import Cell, Table
from attnscope.trajectory import select
from attnscope.studies.snell2021._copying_cases import CASES, LEARNERS
from attnscope.studies.snell2021._copying_readings import (
    LEARNED,
    OFFSETS,
    READINGS,
    at_step,
    reaches,
)
from attnscope.studies.snell2021._copying_study import CopyingStudy

if TYPE_CHECKING:
    from attnscope.studies.snell2021.copying import CopyPermutations


def tables(study: CopyPermutations, tree: xr.DataTree) -> list[Table]:
    """Return who has learned when, what C says before, all readings, and every seed."""
    return [
        learned(study, tree, LEARNERS),
        told(study, CASES),
        readings(study, tree, CASES, study.verdict),
        seeds(tree, LEARNERS, study.verdict),
    ]


def learned(study: CopyingStudy, tree: xr.DataTree, cases: tuple[str, ...]) -> Table:
    """Tabulate the share of seeds that have learned, at multiples of half the verdict's step."""
    rows: list[tuple[Cell, ...]] = []
    recorded = tree["observables/time"].to_numpy()
    halves = np.arange(1, 2 * recorded[-1] // study.verdict + 1) * study.verdict / 2
    steps = np.unique(
        [recorded[np.argmin(np.abs(recorded - step))] for step in (*halves, recorded[-1])]
    )
    for case in cases:
        for step in steps:
            accuracy = at_step(tree, "accuracy", case, int(step))
            share = share_interval(int((accuracy > LEARNED).sum()), len(accuracy))
            spread = (float(accuracy.mean()), float(accuracy.min()), float(accuracy.max()))
            rows.append((case, int(step), share.share, share.low, share.high, *spread))
    return Table(
        "learned",
        f"Share of {study.seeds} seeds with accuracy above {LEARNED:g}, with its 95 % interval by "
        "Clopper and Pearson, and accuracy",
        (
            "case",
            "step",
            "share that has learned",
            "lower end",
            "upper end",
            "mean accuracy",
            "least",
            "largest",
        ),
        tuple(rows),
    )


def told(study: CopyingStudy, cases: tuple[str, ...]) -> Table:
    """Tabulate what the count table says before training."""
    rows: list[tuple[Cell, ...]] = []
    for case in cases:
        known = study.known(case)
        row = (case, known.mean_gold_mass, known.gold_chance, study.told(case))
        rows.append((*row, known.table_variation, known.learnable))
    columns = (
        "case",
        "α^IBM at the gold position",
        "uniform attention",
        "at the gold position over the mean at words",
        "variation of the table",
        "knowledge of words",
    )
    return Table("counts", "What the exact count table says before training", columns, tuple(rows))


def readings(study: CopyingStudy, tree: xr.DataTree, cases: tuple[str, ...], step: int) -> Table:
    """Tabulate all readings at one step."""
    rows: list[tuple[Cell, ...]] = [
        (case, *(float(at_step(tree, name, case, step).mean()) for name in READINGS))
        for case in cases
    ]
    title = f"Readings at step {step}, mean over {study.seeds} seeds"
    return Table("readings", title, ("case", *READINGS.values()), tuple(rows))


def seeds(tree: xr.DataTree, cases: tuple[str, ...], step: int) -> Table:
    """Tabulate every run: when it learns, and where its attention is."""
    rows: list[tuple[Cell, ...]] = []
    end = float(tree["observables/time"].to_numpy()[-1])
    recorded = tree["observables/time"].to_numpy()
    index = int(np.argmin(np.abs(recorded - step)))
    for case in cases:
        first = {
            name: reaches(tree, name, case, level)
            for name, level in (("knowledge", 0.5), ("attention", 0.5), ("accuracy", LEARNED))
        }
        shares = select(tree, "offset", case).isel(step=index).to_numpy()
        for seed, share in enumerate(shares):
            found = (float(steps[seed]) for steps in first.values())
            where = (at_step(tree, name, case, step)[seed] for name in ("accuracy", "attention"))
            rows.append(
                (
                    case,
                    seed,
                    *(None if value == end else value for value in found),
                    *(float(value) for value in where),
                    OFFSETS[int(share.argmax())],
                    float(share.max()),
                )
            )
    columns = (
        "case",
        "seed",
        "half of the words known (step)",
        "half attended (step)",
        f"accuracy above {LEARNED:g} (step)",
        f"accuracy at step {step}",
        "attention at the gold position",
        "commonest distance from it",
        "share at that distance",
    )
    title = f"Every run; empty where a level is not reached. Attention is that at step {step}"
    return Table("seeds", title, columns, tuple(rows))
