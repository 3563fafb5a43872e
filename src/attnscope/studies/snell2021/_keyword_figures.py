"""The figures of ``snell2021.keyword``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Band, Figure, Line, Mark, Panel, Rule
from attnscope.trajectory import select
from attnscope.studies.snell2021._keyword_cases import BOTH_WAYS, CASES, ONE_WAY
from attnscope.studies.snell2021._keyword_claims import WHEN
from attnscope.studies.snell2021._keyword_readings import (
    END,
    HALF,
    LEARNED,
    PLACES,
    TWICE,
    moments,
    pick,
    reading,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.keyword import KeywordDrift


def figures(study: KeywordDrift, tree: xr.DataTree) -> list[Figure]:
    """Return Fig 7 for every case, its beginning, and the log odds around the keyword."""
    return [drift(study, tree), early(study, tree), around(study, tree)]


def drift(study: KeywordDrift, tree: xr.DataTree) -> Figure:
    """Draw Fig 7: the four quantities over steps; step 0 has no place on the axis."""
    steps = tree["observables/time"].to_numpy()[1:]
    panels = []
    for case in CASES:
        marks: list[Mark] = []
        gamma = reading(tree, "gamma", case)[:, 1:]
        for place, label in enumerate(PLACES):
            mean, low, high = mean_interval(gamma[:, :, place])
            marks += [Band(steps, low, high, color=place), Line(steps, mean, label, place)]
        if case == ONE_WAY:
            two = select(tree, "gamma_mean", case, "theory").to_numpy()[:, 1:].mean(axis=0)
            marks.append(Line(steps, two, "mean γ by two plateaus", theory=True))
        learned = _learned(tree, case)
        if not np.isnan(learned):
            marks.append(Rule(learned, f"{100 * LEARNED:.0f} % right", vertical=True))
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


def early(study: KeywordDrift, tree: xr.DataTree) -> Figure:
    """Draw the four quantities up to where runs have learned."""
    steps = tree["observables/time"].to_numpy()
    panels = []
    for case in (ONE_WAY, BOTH_WAYS):
        learned = _learned(tree, case)
        shown = steps <= (steps[-1] if np.isnan(learned) else learned)
        gamma = reading(tree, "gamma", case)[:, shown]
        marks: list[Mark] = []
        for place, label in enumerate(PLACES):
            mean, low, high = mean_interval(gamma[:, :, place])
            at = steps[shown]
            marks += [Band(at, low, high, color=place), Line(at, mean, label, place)]
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


def around(study: KeywordDrift, tree: xr.DataTree) -> Figure:
    """Draw the log odds around the keyword at three moments."""
    panels = []
    for case in (ONE_WAY, BOTH_WAYS):
        marks: list[Mark] = []
        for color, when in enumerate((HALF, TWICE, END)):
            values = pick(tree, select(tree, "gamma_around", case).to_numpy(), case, when)
            reach = values.shape[1] // 2
            offsets = np.arange(-reach, reach + 1)
            top = np.nanmax(np.abs(values), axis=1, keepdims=True)
            mean, low, high = mean_interval(values / top)
            marks += [
                Band(offsets, low, high, color=color),
                Line(offsets, mean, WHEN[when], color),
            ]
        title = f"{case} attention"
        panels.append(
            Panel(title, "position after the keyword", "log odds, largest = 1", tuple(marks))
        )
    return Figure(
        "around-the-keyword",
        "Where the keyword is known",
        "Log odds by distance from the keyword under uniform attention, as a share of the largest, "
        f"mean over {study.seeds} seeds with 95 % bands. At first they fall off on both sides of "
        "the keyword or after it; an LSTM that reads one way then carries them on to the end.",
        tuple(panels),
        columns=2,
    )


def _learned(tree: xr.DataTree, case: str) -> float:
    """Return the mean step at which runs count as having learned, NaN if one never does."""
    steps = tree["observables/time"].to_numpy()
    curves = reading(tree, "accuracy", case) >= LEARNED
    if not curves.any(axis=1).all() or (moments(tree, case, HALF) < 0).any():
        return float("nan")
    return float(steps[curves.argmax(axis=1)].mean())
