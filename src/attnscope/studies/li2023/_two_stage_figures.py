"""The figures of ``li2023.two_stage``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Band, Figure, Line, Mark, Panel, Rule
from attnscope.studies.li2023._two_stage_readings import onset, predicted
from attnscope.studies.li2023._two_stage_settings import (
    ADAM,
    ADAM_QUIET,
    ADAM_SLOW,
    FAST,
    FAST_QUIET,
    MATRICES,
    SETTINGS,
    SLOW,
    TWO_STAGES,
    UNIFORM,
    UNIFORM_FAST,
    VALUE,
)
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.li2023.two_stage import TwoStage

EARLY = 0.3
"""Share of the steps in which the onsets lie."""
CEILING = 30.0
"""Where drawn predictions end: the linear system is long past its range."""


def figures(study: TwoStage, tree: xr.DataTree) -> list[Figure]:
    """Return Fig 4 for the settings, the predicted onset, and Adam beside SGD."""
    return [stages(study, tree), prediction(study, tree), optimizers(study, tree)]


def stages(study: TwoStage, tree: xr.DataTree) -> Figure:
    """Draw the norms of the three matrices; geometric means, as for any logarithmic axis."""
    steps = tree["observables/time"].to_numpy()
    panels = []
    for case in (TWO_STAGES, FAST, SLOW, ADAM, ADAM_QUIET, ADAM_SLOW):
        marks: list[Mark] = []
        for matrix in (VALUE, *range(VALUE)):
            norms = np.log(select(tree, "norm", case).isel(matrix=matrix).to_numpy())
            mean, low, high = (np.exp(part) for part in mean_interval(norms))
            name = f"‖W^{MATRICES[matrix]}‖"
            marks += [Band(steps, low, high, color=matrix), Line(steps, mean, name, matrix)]
        setting = SETTINGS[case]
        ahead, found = predicted(tree, case).mean(), onset(tree, case).mean()
        if setting.source and ahead <= steps[-1]:
            marks.append(Rule(float(ahead), "predicted onset", vertical=True))
        elif not setting.source and found <= steps[-1]:
            marks.append(Rule(float(found), "measured onset", vertical=True))
        name = "Adam" if setting.optimizer == "adam" else "SGD"
        title = f"{name}, rate {setting.lr:g}, noise {setting.noise:g}"
        panels.append(Panel(title, "step", "Frobenius norm", tuple(marks), yscale="log"))
    return Figure(
        "fig4-norms",
        "Two stages, and where there are none",
        "Norms of W^K, W^Q and W^V over steps on fresh documents, geometric mean over "
        f"{study.seeds} seeds with 95 % bands (Li 2023, Fig 4, which gives neither learning rate "
        "nor noise). SGD at rates 5 and 20 learns W^V first and attention after the predicted "
        "onset; W^K and W^Q lie on one another. At rate 1 these steps end before the onset, and at "
        "rate 0.03, not drawn, nothing moves. Adam starts all three at once.",
        tuple(panels),
    )


def prediction(study: TwoStage, tree: xr.DataTree) -> Figure:
    """Draw measured and predicted attention scores of the SGD runs."""
    steps = tree["observables/time"].to_numpy()
    marks: list[Mark] = []
    cases = (TWO_STAGES, FAST, FAST_QUIET, SLOW)
    for i, case in enumerate(cases):
        norms = select(tree, "score_norm", case).to_numpy()
        label = f"rate {SETTINGS[case].lr:g}, noise {SETTINGS[case].noise:g}"
        for seed, run in enumerate(norms):
            marks.append(Line(steps, run, "" if seed else label, i, thin=seed > 0))
    for i, case in enumerate(cases):
        ahead = select(tree, "score_norm_ahead", case, "theory").isel(run=0).to_numpy()
        shown = np.where(ahead < CEILING, ahead, np.nan)
        label = "" if i else "predicted without training attention"
        marks.append(Line(steps, shown, label, theory=True))
    marks.append(Rule(1.0, "onset"))
    gradient: list[Mark] = []
    for i, case in enumerate((UNIFORM, UNIFORM_FAST)):
        sigma = select(tree, "sigma", case).to_numpy()
        times = SETTINGS[case].lr * tree["observables/time_probe"].to_numpy()
        for rank, name in ((0, "largest"), (1, "second")):
            label = f"rate {SETTINGS[case].lr:g}, {name}"
            gradient.append(Line(times, sigma[0, :, rank], label, i, thin=rank > 0))
    return Figure(
        "predicted-onset",
        "A run without attention predicts when SGD starts it",
        "Left: largest singular value of the attention scores over steps of SGD on fresh "
        f"documents, {study.seeds} seeds, and (ε² d_a/2) exp(2∫σ dt) for seed 0, dashed, which "
        "follows the fastest direction alone and so begins below the noise of all. Right: the two "
        "largest singular values of G in the runs with frozen uniform attention, seed 0, against "
        "learning rate × step.",
        (
            Panel("attention scores", "step", "‖W^Kᵀ W^Q‖₂", tuple(marks), yscale="log"),
            Panel(
                "singular values of G",
                "time (learning rate × steps)",
                "singular value (1/time)",
                tuple(gradient),
                yscale="log",
            ),
        ),
        columns=2,
    )


def optimizers(study: TwoStage, tree: xr.DataTree) -> Figure:
    """Draw how the noise moves the onset with SGD and not with Adam."""
    steps = tree["observables/time"].to_numpy()
    early = steps <= EARLY * steps[-1]
    panels = []
    pairs = (("SGD", (FAST, FAST_QUIET)), ("Adam", (ADAM, ADAM_QUIET)))
    for first, (title, cases) in zip((0, 2), pairs, strict=True):
        marks: list[Mark] = []
        for color, case in enumerate(cases, first):
            norms = np.log(select(tree, "score_norm", case).to_numpy()[:, early])
            mean, low, high = (np.exp(part) for part in mean_interval(norms))
            label = f"{title}, noise {SETTINGS[case].noise:g}"
            marks += [
                Band(steps[early], low, high, color=color),
                Line(steps[early], mean, label, color),
            ]
        marks.append(Rule(1.0, "onset"))
        name = f"{title}, learning rate {SETTINGS[cases[0]].lr:g}"
        panels.append(Panel(name, "step", "‖W^Kᵀ W^Q‖₂", tuple(marks), yscale="log"))
    return Figure(
        "noise",
        "A smaller start delays attention with SGD, not with Adam",
        "Largest singular value of the attention scores over the first steps, geometric mean over "
        f"{study.seeds} seeds with 95 % bands. Adam divides the tiny gradients of W^K and W^Q by "
        "their own size: it soon moves them at the pace of the learning rate, whatever the noise.",
        tuple(panels),
        columns=2,
    )
