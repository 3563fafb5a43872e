"""The figures and tables of ``snell2021.keyword``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report import Band, Cell, Figure, Line, Mark, Panel, Rule, Table, bands
from attnscope.studies.snell2021.keyword.claims import (
    ENOUGH,
    ONE_WAY,
    PLACES,
    UNIFORM,
    WHEN,
    at,
    learned,
    reading,
)
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.snell2021.keyword.study import KeywordStudy


def figures_of(study: KeywordStudy, run: Readings) -> list[Figure]:
    """Draw Fig 7 for every case, its beginning, and the log odds around the keyword."""
    return [drift(study, run), early(study, run), around(study, run)]


def drift(study: KeywordStudy, run: Readings) -> Figure:
    """Draw Fig 7: the four quantities over steps; step 0 has no place on the axis."""
    panels = []
    for case in study.cases:
        own, later = run.of(case), {"step": slice(1, None)}
        gamma, two = (each.isel(later) for each in (reading(own, "γ"), own.theory.gamma_mean))
        marks = _four(gamma)
        if case == ONE_WAY:
            x, y = gamma["step"].to_numpy(), two.mean("seed").to_numpy()
            marks.append(Line(x, y, "mean γ by two plateaus", theory=True))
        when = float(learned(own).mean(skipna=False))
        if not np.isnan(when):
            marks.append(Rule(when, f"{100 * ENOUGH:.0f} % right", vertical=True))
        panels.append(Panel(case, "step", "log odds (nats)", tuple(marks), xscale="log"))
    return Figure(
        "fig7-drift",
        "At first the keyword has the largest log odds, later the last position",
        "Log odds γ of positive sequences over steps of Adam: at the keyword, one position after "
        f"it, on average and at the last position, mean over {study.seeds} seeds with 95 % bands "
        "(Snell 2021, Fig 7, which is under uniform attention; the kind of LSTM is not given). The "
        "vertical line is where the first 75 % of unseen sequences are right, mean over seeds. "
        "Dashed: the mean γ of an LSTM that keeps the keyword from where it stands to the end.",
        tuple(panels),
        columns=2,
    )


def early(study: KeywordStudy, run: Readings) -> Figure:
    """Draw the four quantities up to where runs have learned."""
    panels = []
    for case in UNIFORM:
        gamma, when = reading(run.of(case), "γ"), float(learned(run.of(case)).mean(skipna=False))
        marks = _four(gamma.sel(step=slice(None if np.isnan(when) else when)))
        panels.append(Panel(f"{case} attention", "step", "log odds (nats)", tuple(marks)))
    return Figure(
        "fig7-beginning",
        "The beginning: hypothesis 2",
        "The same four log odds under uniform attention up to where 75 % of unseen sequences are "
        f"right, mean over {study.seeds} seeds with 95 % bands: largest at the keyword, next one "
        "position after it, and about the same at the end and on average.",
        tuple(panels),
        columns=2,
    )


def around(study: KeywordStudy, run: Readings) -> Figure:
    """Draw the log odds around the keyword at three moments."""
    panels = []
    for case in UNIFORM:
        own, marks = run.of(case), list[Mark]()
        for color, (when, label) in enumerate(WHEN.items()):
            values = at(own, own.gamma_around, when)
            offsets = np.arange(values.sizes["offset"]) - values.sizes["offset"] // 2
            mean, low, high = mean_interval((values / abs(values).max("offset")).to_numpy())
            marks += [Band(offsets, low, high, color=color), Line(offsets, mean, label, color)]
        xlabel, ylabel = "position after the keyword", "log odds, largest = 1"
        panels.append(Panel(f"{case} attention", xlabel, ylabel, tuple(marks)))
    return Figure(
        "around-the-keyword",
        "Where the keyword is known",
        "Log odds by distance from the keyword under uniform attention, as a share of the largest, "
        f"mean over {study.seeds} seeds with 95 % bands. At first they fall off on both sides of "
        "the keyword or after it; an LSTM that reads one way then carries them on to the end.",
        tuple(panels),
        columns=2,
    )


def _four(gamma: xr.DataArray) -> list[Mark]:
    return [*bands({label: gamma.sel(place=place) for place, label in PLACES.items()})]


def tables_of(study: KeywordStudy, run: Readings) -> list[Table]:
    """Tabulate the four quantities at three moments, and attention at the end."""
    odds: list[tuple[Cell, ...]] = []
    weights: list[tuple[Cell, ...]] = []
    for case in study.cases:
        own = run.of(case)
        for when, label in WHEN.items():
            found = (
                own.reading["step"],
                *reading(own, "γ").transpose("place", ...),
                own.theory.gamma_mean,
                reading(own, "accuracy"),
            )
            odds.append((case, label, *(_mean(at(own, each, when)) for each in found)))
        alpha = final(reading(own, "α")).sel(place=["keyword", "next", "last"])
        weights.append((case, *map(_mean, (*alpha.transpose("place", "seed"), _overtaken(own)))))
    return [
        Table(
            "log-odds",
            f"Log odds of positive sequences (nats), mean over {study.seeds} seeds",
            ("case", "when", "step", *PLACES.values(), "mean γ by two plateaus", "accuracy"),
            tuple(odds),
        ),
        Table(
            "attention",
            f"Attention of positive sequences at the end, mean over {study.seeds} seeds, and the "
            "step from which the last position has the larger log odds; empty if that is not so "
            "at the end",
            (
                "case",
                "α at the keyword",
                "α one after",
                "α at the last position",
                "γ_L exceeds γ_l* for good from step",
            ),
            tuple(weights),
        ),
    ]


def _overtaken(run: Readings) -> xr.DataArray:
    """Return the first record step after which γ_L stays above γ_l*, NaN if there is none."""
    leads = reading(run, "γ last") > reading(run, "γ keyword")
    for_good = leads[:, ::-1].cumprod("step")[:, ::-1]
    return leads["step"].where(for_good).min("step")


def _mean(values: xr.DataArray) -> Cell:
    value = float(values.mean(skipna=False))
    return None if np.isnan(value) else value
