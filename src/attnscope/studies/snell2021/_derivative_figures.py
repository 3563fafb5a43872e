"""The figures of ``snell2021.initial_derivative``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.figure import Band, Dots, Figure, Line, Mark, Panel, Rule
from attnscope.trajectory import select
from attnscope.studies.snell2021._derivative_readings import (
    MIXTURE,
    PERMUTATIONS,
    error,
    limit,
    predicted_theta,
    slopes,
    start,
    theta,
    width_case,
)
from attnscope.tasks.sequence_pairs import SPECIALS

if TYPE_CHECKING:
    from attnscope.studies.snell2021.initial_derivative import InitialDerivative


def figures(study: InitialDerivative, tree: xr.DataTree) -> list[Figure]:
    """Return the derivative, its limit, and β^px over time."""
    return [derivative(study, tree), widths(study, tree), training(study, tree)]


def derivative(study: InitialDerivative, tree: xr.DataTree) -> Figure:
    """Draw measured derivatives against the formula, for logits and for probabilities."""
    narrow, wide = (width_case(width) for width in (study.widths[0], study.widths[-1]))
    logits: list[Mark] = []
    for i, case in enumerate((narrow, wide)):
        x, y = limit(tree, case)[0].ravel(), start(tree, "logits_velocity", case)[0].ravel()
        logits.append(Dots(x, y, label=case, color=i))
    ends = np.array([x.min(), x.max()])
    logits.append(Line(ends, ends, "eq 54", theory=True))
    theta_rate = start(tree, "theta_velocity", wide)[0].ravel()
    probabilities: tuple[Mark, ...] = (
        Dots(x, theta_rate, label=wide, color=1),
        Line(ends, ends / study.vocabulary, "corrected: 1/|O| of it", theory=True),
        Line(ends, ends, "eq 15 as printed", color=3),
    )
    xlabel = "2(C - mean C) (1/time)"
    return Figure(
        "derivative",
        "Derivatives at the start of training",
        "The proxy's derivative by time at initialisation, by automatic differentiation, against "
        f"2(C - mean C) for every input and output word, seed 0, |O| = {study.vocabulary}. Left: "
        "of the logits. Right: of the probabilities, for which eq 15 prints the same formula; they "
        "move |O| times more slowly.",
        (
            Panel("logits", xlabel, "d(W e)/dτ (1/time)", tuple(logits)),
            Panel("probabilities", xlabel, "dθ/dτ (1/time)", probabilities),
        ),
        columns=2,
    )


def widths(study: InitialDerivative, tree: xr.DataTree) -> Figure:
    """Draw the distance to the limit and the slopes over widths."""
    x = np.array(study.widths, dtype=float)
    cases = [width_case(width) for width in study.widths]
    size = np.stack([np.sqrt((limit(tree, case) ** 2).sum(axis=(1, 2))) for case in cases])
    found = np.stack([error(tree, case) for case in cases]) / size
    ahead = np.stack([select(tree, "expected_error", case, "theory").to_numpy() for case in cases])
    errors: list[Mark] = [
        Dots(x, found[:, seed], label="" if seed else "measured, each seed")
        for seed in range(study.seeds)
    ]
    errors.append(Line(x, (ahead / size).mean(axis=1), "expected, ∝ 1/√d", theory=True))
    kinds = (
        ("logits_velocity", 1.0, "logits, eq 54"),
        ("theta_velocity", 1 / study.vocabulary, "θ, eq 15 corrected"),
        ("theta_velocity", 1.0, "θ, eq 15 as printed"),
    )
    lines: list[Mark] = []
    for i, (name, factor, label) in enumerate(kinds):
        values = np.stack([slopes(tree, name, case, factor, False) for case in cases])
        mean = values.mean(axis=1)
        # Side by side, or the first two hide each other.
        lines.append(
            Dots(x * 1.15 ** (i - 1), mean, values.min(axis=1), values.max(axis=1), label, i)
        )
    lines += [Rule(1.0, "the formula"), Rule(1 / study.vocabulary, "1/|O|")]
    return Figure(
        "widths",
        "How wide is infinitely wide",
        "Left: distance of the logits' derivative from its limit, over the size of the limit, for "
        f"{study.seeds} seeds, with the root mean square that theory gives (dashed). Right: slope "
        "of the measured derivative against each formula, mean over seeds with their range.",
        (
            Panel(
                "distance to the limit",
                "width d",
                "relative distance",
                tuple(errors),
                xscale="log",
                yscale="log",
            ),
            Panel("slope against the formula", "width d", "slope", tuple(lines), xscale="log"),
        ),
        columns=2,
    )


def training(study: InitialDerivative, tree: xr.DataTree) -> Figure:
    """Draw θ of the right word over time with its predictions, and three tasks."""
    times = tree["observables/time"].to_numpy()
    wide = width_case(study.widths[-1])
    words = slice(SPECIALS, SPECIALS + study.types)

    def gold(values: np.ndarray) -> np.ndarray:
        return values[:, :, words, words].diagonal(axis1=2, axis2=3).mean(axis=2)

    known: list[Mark] = []
    for i, width in enumerate((study.widths[0], study.widths[-1])):
        known += _curve(times, gold(theta(tree, width_case(width))), width_case(width), i)
    for kind, label in (
        ("limit", "flow at infinite width"),
        ("early", "first order: eq 15, corrected"),
    ):
        ahead = gold(predicted_theta(tree, wide, kind)).mean(axis=0)
        known.append(Line(times, ahead, label, theory=kind == "limit", color=5))
    tasks: list[Mark] = []
    names = (
        (width_case(study.common), f"{study.length} of {study.types} words"),
        (PERMUTATIONS, "permutations"),
        (MIXTURE, "mixture of permutations"),
    )
    for i, (case, label) in enumerate(names):
        tasks += _curve(times, select(tree, "variation", case).to_numpy(), label, i + 2)
    return Figure(
        "training",
        "What the proxy learns, and what it cannot",
        "Left: probability that a word gives to itself, mean over words and "
        f"{study.seeds} seeds with their range, along gradient flow; dashed: the flow at infinite "
        "width, which knows the pairs alone. Right: distance of β^px from uniform over positions "
        f"at d = {study.common:,}. Where counts are the same at all positions, nothing grows.",
        (
            Panel("θ of the right word", "time τ", "θ", tuple(known)),
            Panel(
                "β^px over positions",
                "time τ",
                "distance from uniform",
                tuple(tasks),
                yscale="log",
            ),
        ),
        columns=2,
    )


def _curve(times: np.ndarray, values: np.ndarray, label: str, color: int) -> list[Mark]:
    band = Band(times, values.min(axis=0), values.max(axis=0), color=color)
    return [band, Line(times, values.mean(axis=0), label, color)]
