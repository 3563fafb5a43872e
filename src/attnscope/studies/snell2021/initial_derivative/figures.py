"""The figures and tables of ``snell2021.initial_derivative``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule, Table
from attnscope.studies.snell2021._snell import extent, ranged
from attnscope.studies.snell2021.initial_derivative.claims import (
    MIXTURE,
    PERMUTATIONS,
    apart,
    distances,
    slopes,
    theta,
    width_case,
)
from attnscope.tasks.sequence_pairs import SPECIALS
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.snell2021.initial_derivative.study import InitialDerivative


def figures_of(study: InitialDerivative, run: Readings) -> list[Figure]:
    """Draw derivatives against counts, errors over widths, and β^px over time."""
    return [derivative(study, run), widths(study, run), training(study, run)]


def derivative(study: InitialDerivative, run: Readings) -> Figure:
    """Draw measured derivatives against the formula, for logits and for probabilities."""
    narrow, wide = (width_case(study.widths[at]) for at in (0, -1))

    def measured(name: str, case: str, color: int) -> Dots:
        own = run.of(case)
        found = (own.theory.logits_limit, initial(own.get(name)))
        x, y = (each.sel(seed=0).to_numpy().ravel() for each in found)
        return Dots(x, y, label=case, color=color)

    logits = [measured("logits_velocity", case, i) for i, case in enumerate((narrow, wide))]
    ends = np.array([logits[1].x.min(), logits[1].x.max()])
    probabilities = (
        measured("theta_velocity", wide, 1),
        Line(ends, ends / study.vocabulary, "corrected: 1/|O| of it", theory=True),
        Line(ends, ends, "eq 15 as printed", color=3),
    )
    xlabel, eq54 = "2(C - mean C) (1/time)", Line(ends, ends, "eq 54", theory=True)
    return Figure(
        "derivative",
        "Derivatives at the start of training",
        "The proxy's derivative by time at initialisation, by automatic differentiation, against "
        f"2(C - mean C) for every input and output word, seed 0, |O| = {study.vocabulary}. Left: "
        "of the logits. Right: of the probabilities, for which eq 15 prints the same formula; they "
        "move |O| times more slowly.",
        (
            Panel("logits", xlabel, "d(W e)/dτ (1/time)", (*logits, eq54)),
            Panel("probabilities", xlabel, "dθ/dτ (1/time)", probabilities),
        ),
        columns=2,
    )


def widths(study: InitialDerivative, run: Readings) -> Figure:
    """Draw the distance to the limit and the slopes over widths."""
    x, share = np.array(study.widths, dtype=float), 1 / study.vocabulary
    cases = [width_case(width) for width in study.widths]
    found, ahead = (each.sel(case=cases) for each in distances(run))
    errors: list[Mark] = [
        Dots(x, found.sel(seed=seed).to_numpy(), label="" if seed else "measured, each seed")
        for seed in range(study.seeds)
    ]
    errors.append(Line(x, extent(ahead)[0], "expected, ∝ 1/√d", theory=True))
    lines: list[Mark] = []
    kinds = {
        "logits, eq 54": ("logits_velocity", 1.0),
        "θ, eq 15 corrected": ("theta_velocity", share),
        "θ, eq 15 as printed": ("theta_velocity", 1.0),
    }
    for i, (label, formula) in enumerate(kinds.items()):
        mean, low, high = extent(slopes(run, *formula).sel(case=cases))
        # Side by side, or the first two hide each other.
        lines.append(Dots(x * 1.15 ** (i - 1), mean, low, high, label, i))
    lines += [Rule(1.0, "the formula"), Rule(share, "1/|O|")]
    left = ("distance to the limit", "width d", "relative distance", tuple(errors))
    return Figure(
        "widths",
        "How wide is infinitely wide",
        "Left: distance of the logits' derivative from its limit, over the size of the limit, for "
        f"{study.seeds} seeds, with the root mean square that theory gives (dashed). Right: slope "
        "of the measured derivative against each formula, mean over seeds with their range.",
        (
            Panel(*left, xscale="log", yscale="log"),
            Panel("slope against the formula", "width d", "slope", tuple(lines), xscale="log"),
        ),
        columns=2,
    )


def training(study: InitialDerivative, run: Readings) -> Figure:
    """Draw θ of the right word over time with its predictions, and three tasks."""
    narrow, wide = (width_case(study.widths[at]) for at in (0, -1))
    words = xr.DataArray(range(SPECIALS, SPECIALS + study.types), dims="word")

    def right(values: xr.DataArray) -> xr.DataArray:
        return values.isel(input=words, output=words).mean("word")

    limit, early = (right(run.of(wide).theory.get(f"theta_{kind}")) for kind in ("limit", "early"))
    times = limit["time"].to_numpy()
    known = (
        *ranged(right(theta(run.of(narrow))), narrow, 0),
        *ranged(right(theta(run.of(wide))), wide, 1),
        Line(times, extent(limit)[0], "flow at infinite width", theory=True, color=5),
        Line(times, extent(early)[0], "first order: eq 15, corrected", color=5),
    )
    tasks: list[Mark] = []
    for i, (case, label) in enumerate(_tasks(study).items(), 2):
        tasks += ranged(run.of(case).variation, label, i)
    ylabel = "distance from uniform"
    return Figure(
        "training",
        "What the proxy learns, and what it cannot",
        "Left: probability that a word gives to itself, mean over words and "
        f"{study.seeds} seeds with their range, along gradient flow; dashed: the flow at infinite "
        "width, which knows the pairs alone. Right: distance of β^px from uniform over positions "
        f"at d = {study.common:,}. Where counts are the same at all positions, nothing grows.",
        (
            Panel("θ of the right word", "time τ", "θ", known),
            Panel("β^px over positions", "time τ", ylabel, tuple(tasks), yscale="log"),
        ),
        columns=2,
    )


def _tasks(study: InitialDerivative) -> dict[str, str]:
    return {
        width_case(study.common): f"{study.length} of {study.types} words",
        PERMUTATIONS: "permutations",
        MIXTURE: "mixture of permutations",
    }


def tables_of(study: InitialDerivative, run: Readings) -> list[Table]:
    """Tabulate slopes and errors by width, and what counts say before training."""
    share, (found, ahead) = 1 / study.vocabulary, distances(run)
    by_width = {
        "slope of logits (eq 54)": slopes(run, "logits_velocity").mean("seed"),
        "slope of θ (eq 15 as printed)": slopes(run, "theta_velocity").mean("seed"),
        "slope of θ (eq 15 corrected)": slopes(run, "theta_velocity", share).mean("seed"),
        "distance to the limit (%)": 100 * found.mean("seed"),
        "expected distance (%)": 100 * ahead.mean("seed"),
        "largest error of θ, flow from the actual start": apart(run, "exact").max("seed"),
        "largest error of θ, flow at infinite width": apart(run, "limit").max("seed"),
        "largest error of θ, first order": apart(run, "early").max("seed"),
    }
    at_end = {
        "β^px from uniform, end of run": final(run.variation).mean("seed"),
        "β^px at gold over its sum, end of run": final(run.gold_mass).mean("seed"),
        "gold has the largest β^px, end of run": final(run.gold_largest).mean("seed"),
    }
    widths = [
        (width, *(float(each.sel(case=width_case(width))) for each in by_width.values()))
        for width in study.widths
    ]
    tasks = []
    for case, label in _tasks(study).items():
        known = [study.knowledge(case, seed) for seed in range(study.seeds)]
        said = [(k.table_variation, k.mean_variation, k.mean_gold_mass) for k in known]
        end = (float(each.sel(case=case)) for each in at_end.values())
        tasks.append((label, known[0].learnable, *np.mean(said, axis=0).tolist(), *end))
    seeds, before = study.seeds, ("rows of Trans apart", "α^IBM from uniform", "α^IBM at gold")
    flow = f"Derivative at time 0 and θ along the flow, {seeds} seeds: means and largest"
    counts = (
        f"What counts say before training and what the proxy learned at d = {study.common:,}, mean "
        f"over {seeds} seeds"
    )
    columns = ("task", "verdict from counts (seed 0)", *before, *at_end)
    return [
        Table("widths", flow, ("width d", *by_width), tuple(widths)),
        Table("knowledge", counts, columns, tuple(tasks)),
    ]
