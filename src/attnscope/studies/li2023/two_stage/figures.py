"""The figures and the tables of ``li2023.two_stage``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.report import Figure, Line, Mark, Panel, Rule, Table, band, each_seed
from attnscope.report.page import Cell
from attnscope.studies.li2023.onset.readings import onset
from attnscope.studies.li2023.two_stage.settings import (
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
    reaches,
)
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.li2023.two_stage.study import TwoStage

EARLY = 0.3
"""Share of the steps in which the onsets lie."""
CEILING = 30.0
"""Where drawn predictions end: the linear system is long past its range."""
ORDER = ("V", "K", "Q")
"""W^V is shown first, as it learns first."""


def figures(study: TwoStage, run: Readings) -> list[Figure]:
    """Draw Fig 4 for the settings, the predicted onset, and Adam beside SGD."""
    return [stages(study, run), prediction(study, run), optimizers(study, run)]


def stages(study: TwoStage, run: Readings) -> Figure:
    """Draw the norms of the three matrices; geometric means, as for any logarithmic axis."""
    panels = []
    for case in (TWO_STAGES, FAST, SLOW, ADAM, ADAM_QUIET, ADAM_SLOW):
        own, setting = run.of(case), SETTINGS[case]
        marks: list[Mark] = []
        for name in ORDER:
            norm = own.norm.sel(matrix=name)
            marks += band(norm, f"‖W^{name}‖", MATRICES.index(name), log=True)
        ahead = bool(setting.source)
        at = mean(own.theory.onset_ahead if ahead else onset(own.score_norm))
        if at is not None and at <= study.end:
            label = f"{'predicted' if ahead else 'measured'} onset"
            marks.append(Rule(at, label, vertical=True))
        title = f"{case.split()[0]}, rate {setting.rate:g}, noise {setting.noise:g}"
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


def prediction(study: TwoStage, run: Readings) -> Figure:
    """Draw measured and predicted attention scores of the SGD runs."""
    marks: list[Mark] = []
    dashed: list[Mark] = []
    for i, case in enumerate((TWO_STAGES, FAST, FAST_QUIET, SLOW)):
        label = f"rate {SETTINGS[case].rate:g}, noise {SETTINGS[case].noise:g}"
        marks += each_seed(run.of(case).score_norm, label, i)
        ahead = run.of(case).theory.score_norm_ahead.sel(seed=0)
        shown = ahead.where(ahead < CEILING).to_numpy()
        label = "" if i else "predicted without training attention"
        dashed.append(Line(ahead["time"].to_numpy(), shown, label, theory=True))
    gradient = []
    for i, case in enumerate((UNIFORM, UNIFORM_FAST)):
        rate, sigma = SETTINGS[case].rate, run.of(case).sigma.sel(seed=0)
        times = rate * sigma["probe"].to_numpy()
        for rank, thin in (("largest", False), ("second", True)):
            values, label = sigma.sel(rank=rank).to_numpy(), f"rate {rate:g}, {rank}"
            gradient.append(Line(times, values, label, i, thin=thin))
    return Figure(
        "predicted-onset",
        "A run without attention predicts when SGD starts it",
        "Left: largest singular value of the attention scores over steps of SGD on fresh "
        f"documents, {study.seeds} seeds, and (ε² d_a/2) exp(2∫σ dt) for seed 0, dashed, which "
        "follows the fastest direction alone and so begins below the noise of all. Right: the two "
        "largest singular values of G in the runs with frozen uniform attention, seed 0, against "
        "learning rate × step.",
        (
            Panel(
                "attention scores",
                "step",
                "‖W^Kᵀ W^Q‖₂",
                (*marks, *dashed, Rule(1.0, "onset")),
                yscale="log",
            ),
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


def optimizers(study: TwoStage, run: Readings) -> Figure:
    """Draw how the noise moves the onset with SGD and not with Adam."""
    panels = []
    for first, cases in ((0, (FAST, FAST_QUIET)), (2, (ADAM, ADAM_QUIET))):
        marks: list[Mark] = []
        title = cases[0].split()[0]
        for color, case in enumerate(cases, first):
            early = run.of(case).score_norm.sel(step=slice(EARLY * study.end))
            label = f"{title}, noise {SETTINGS[case].noise:g}"
            marks += band(early, label, color, log=True)
        marks.append(Rule(1.0, "onset"))
        name = f"{title}, learning rate {SETTINGS[cases[0]].rate:g}"
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


def tables(study: TwoStage, run: Readings) -> list[Table]:
    """Tabulate when each matrix starts, and the onset with its prediction."""
    starts: list[tuple[Cell, ...]] = []
    onsets: list[tuple[Cell, ...]] = []
    for case, setting in SETTINGS.items():
        own = run.of(case)
        steps = {share: reaches(own, share / 100) for share in (10, 50)}
        cells = [mean(steps[share].sel(matrix=name)) for name in ORDER for share in steps]
        noise = None if setting.uniform else setting.noise
        starts.append((case, setting.rate, noise, *cells, mean(final(own.loss))))
        if not setting.uniform:
            found, ahead = onset(own.score_norm), own.theory.onset_ahead
            error = 100 * abs(ahead / found - 1).max("seed", skipna=False)
            onsets.append((case, mean(found), mean(ahead), mean(error)))
    heads = [f"W^{name} reaches {share} % (step)" for name in ORDER for share in (10, 50)]
    return [
        Table(
            "starts",
            "Steps where the change of a matrix reaches 10 % and 50 % of its maximum, mean over "
            f"{study.seeds} seeds",
            ("case", "learning rate", "noise", *heads, "loss at the end (nats)"),
            tuple(starts),
        ),
        Table(
            "onsets",
            f"Step where ‖W^Kᵀ W^Q‖₂ reaches 1, mean over {study.seeds} seeds; empty where it does "
            "not, and where the theory does not apply",
            (
                "case",
                "measured onset (step)",
                "predicted onset (step)",
                "largest error of any seed (%)",
            ),
            tuple(onsets),
        ),
    ]


def mean(reading: object) -> float | None:
    """Return the mean over seeds, and nothing where a seed has none."""
    value = float(np.mean(np.asarray(reading)))
    return None if np.isnan(value) else value
