"""The figures and tables of ``li2023.onset``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule, Table, each_seed
from attnscope.report.page import Cell
from attnscope.studies.li2023.onset.readings import (
    UNIFORM,
    case_name,
    engine_name,
    error,
    onset,
    too_coarse,
)
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.li2023.onset.study import OnsetStudy

CEILING = 30.0
"""Where drawn predictions end: the linear system is long past its range."""
PREDICTED = "predicted without training attention"
TIME = "time (learning rate × steps)"


def figures(study: OnsetStudy, run: Readings) -> list[Figure]:
    """Draw norms over time, predicted against measured onset, and G."""
    return [over_time(study, run), diagonal(study, run), driver(run)]


def over_time(study: OnsetStudy, run: Readings) -> Figure:
    """Draw the norm for all noises, by flow and at the largest learning rate."""
    panels = []
    measured, ahead = (each.isel(seed=0) for each in (run.score_norm, run.theory.score_norm_ahead))
    ahead, times = ahead.where(ahead < CEILING), measured["time"].to_numpy()
    fastest = max(study.rates)
    names = {None: "gradient flow", fastest: f"gradient descent, learning rate {fastest:g}"}
    for rate, name in names.items():
        cases = {case_name(rate, noise): f"noise {noise:g}" for noise in study.noises}
        marks: list[Mark] = [
            Line(times, measured.sel(case=case).to_numpy(), label, i)
            for i, (case, label) in enumerate(cases.items())
        ]
        marks += [
            Line(times, ahead.sel(case=case).to_numpy(), "" if i else PREDICTED, theory=True)
            for i, case in enumerate(cases)
        ]
        marks.append(Rule(1.0, "onset"))
        panels.append(Panel(name, TIME, "‖W^Kᵀ W^Q‖₂", tuple(marks), yscale="log"))
    return Figure(
        "norms-over-time",
        "Attention grows as a run without attention says",
        "Largest singular value of the attention scores over training time, for seed 0 and "
        f"initial noises from {max(study.noises):g} to {min(study.noises):g}. Dashed: the linear "
        "system around W^K = W^Q = 0, driven by a run in which attention is frozen at uniform. "
        "Once scores are of order one, the linear system ends.",
        tuple(panels),
        columns=2,
    )


def diagonal(study: OnsetStudy, run: Readings) -> Figure:
    """Draw predicted against measured onset, and the error of both predictions."""
    found, engines = onset(run.score_norm), (None, *study.rates)
    panels, errors = [], []
    for kind, title in (
        ("ahead", "linear system from the actual start"),
        ("expected", "closed form, whole of G"),
        ("closed", "closed form, leading order"),
    ):
        dots: list[Mark] = []
        gaps: list[Mark] = []
        ends: list[float] = []
        for i, rate in enumerate(engines):
            cases = [case_name(rate, noise) for noise in study.noises]
            x, y = (
                each.sel(case=cases).to_numpy().ravel()
                for each in (found, run.theory.get(f"onset_{kind}"))
            )
            ends += [*x[np.isfinite(x)], *y[np.isfinite(y)]]
            dots.append(Dots(x, y, label=engine_name(rate), color=i))
            # Beside each other, or the learning rates hide one another.
            aside = 1.25 ** (i - (len(engines) - 1) / 2)
            noises = np.repeat(np.array(study.noises) * aside, study.seeds)
            gaps.append(Dots(noises, 100 * (y / x - 1), label=engine_name(rate), color=i))
        line = np.array([min(ends, default=0.0), max(ends, default=study.end)])
        dots.append(Line(line, line, "predicted = measured", theory=True))
        panels.append(Panel(title, "measured onset (time)", "predicted onset (time)", tuple(dots)))
        rules = (Rule(0.0), Rule(3.0, "±3 %"), Rule(-3.0, "±3 %"))
        marks = (*gaps, *rules)
        errors.append(Panel(f"{title}, error", "initial noise", "error (%)", marks, xscale="log"))
    return Figure(
        "predicted-measured",
        "Predicted and measured onset",
        f"When ‖W^Kᵀ W^Q‖₂ reaches 1, for {len(study.noises)} noises, {study.seeds} seeds, "
        "gradient flow and gradient descent at several learning rates. Predictions come from the "
        "run with frozen uniform attention of each seed. The linear system starts at the actual "
        "W^K and W^Q; the closed forms know only the size of the noise. Below, the errors; "
        "learning rates stand side by side at each noise.",
        (*panels, *errors),
        columns=3,
    )


def driver(run: Readings) -> Figure:
    """Draw the two largest singular values of G, and how the leading pair turns."""
    uniform = run.of(UNIFORM)
    sigma = uniform.sigma
    values = [
        mark
        for i, rank in enumerate(("largest", "second"))
        for mark in each_seed(sigma.sel(rank=rank), rank, i, x="time")
    ]
    turns = [
        mark
        for i, (side, label) in enumerate(
            ((uniform.left, "keys, u"), (uniform.right, "queries, w"))
        )
        for mark in each_seed(_turn(side), label, i + 2, x="time")
    ]
    apart = float(sigma["time_probe"][1] - sigma["time_probe"][0])
    return Figure(
        "driver",
        "What drives the onset, read off a run without attention",
        "Left: the two largest singular values of G(t) = ∂L/∂(W^Kᵀ W^Q) while W^V learns under "
        "frozen uniform attention; one direction is all that grows. Right: how far its pair of "
        f"singular vectors turns in {apart:g} units of time. Thick: seed 0; thin: the other seeds.",
        (
            Panel(
                "singular values of G", TIME, "singular value (1/time)", tuple(values), yscale="log"
            ),
            Panel(
                "rotation of the leading pair",
                TIME,
                "1 - |cos| between records",
                tuple(turns),
                yscale="log",
            ),
        ),
        columns=2,
    )


def _turn(side: xr.DataArray) -> xr.DataArray:
    """Return 1 - |cos| between one record and the next."""
    later = side.isel(probe=slice(1, None))
    cosine = abs(xr.dot(later, side.shift(probe=1), dim=side.dims[-1:]))
    # Rounding leaves less than this; a logarithmic axis has no zero.
    return (1 - cosine).clip(1e-12)


def tables(study: OnsetStudy, run: Readings) -> list[Table]:
    """Tabulate predicted and measured onset: means over seeds, and every seed by flow."""
    times = {
        "measured onset (time)": onset(run.score_norm),
        "closed form, leading order (time)": run.theory.onset_closed,
        "closed form, whole of G (time)": run.theory.onset_expected,
        "linear system (time)": run.theory.onset_ahead,
    }
    errors = {
        "largest error, leading order (%)": 100 * error(run, "closed"),
        "largest error, whole of G (%)": 100 * error(run, "expected"),
        "largest error, linear system (%)": 100 * error(run, "ahead"),
    }
    rows: list[tuple[Cell, ...]] = []
    each: list[tuple[Cell, ...]] = []
    for case, (rate, noise) in study.settings().items():
        own = [values.sel(case=case).to_numpy() for values in times.values()]
        worst = [values.sel(case=case).to_numpy().max() for values in errors.values()]
        cells = [_known(number) for number in (*(values.mean() for values in own), *worst)]
        rows.append((engine_name(rate, ""), noise, *cells))
        if rate is None and noise in study.noises:
            seeds = enumerate(zip(*own, strict=True))
            each += [(noise, seed, *map(_known, found)) for seed, found in seeds]
    title = f"Onset of attention, mean over {study.seeds} seeds; errors are the largest of any seed"
    if too_coarse(run.score_norm):
        apart = study.end / (study.points - 1)
        title += (
            f". WARNING: record points are {apart:g} apart, too far to say when some runs had "
            "their onset, and these have none here; expected more of them (--points)"
        )
    return [
        Table("onset", title, ("learning rate", "noise", *times, *errors), tuple(rows)),
        Table("seeds", "Onset by flow, seed by seed", ("noise", "seed", *times), tuple(each)),
    ]


def _known(value: float) -> Cell:
    return None if math.isnan(value) else float(value)
