"""The figures of ``li2023.onset``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.figure import Dots, Figure, Line, Mark, Panel, Rule
from attnscope.studies.li2023._onset_readings import UNIFORM, case_name, measured, predicted
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.li2023.onset import Onset

CEILING = 30.0
"""Where drawn predictions end: the linear system is long past its range."""


def figures(study: Onset, tree: xr.DataTree) -> list[Figure]:
    """Return norms over time, predicted against measured onset, and what drives it."""
    return [over_time(study, tree), diagonal(study, tree), driver(study, tree)]


def over_time(study: Onset, tree: xr.DataTree) -> Figure:
    """Draw the norm for all noises, by flow and at the largest learning rate."""
    panels = []
    for rate, title in ((None, "gradient flow"), (max(study.rates), "")):
        marks: list[Mark] = []
        for i, noise in enumerate(study.noises):
            case = case_name(rate, noise)
            norms = select(tree, "score_norm", case).isel(run=0)
            times = norms["time"].to_numpy()
            marks.append(Line(times, norms.to_numpy(), f"noise {noise:g}", i))
        for i, noise in enumerate(study.noises):
            ahead = select(tree, "score_norm_ahead", case_name(rate, noise), "theory").isel(run=0)
            values = ahead.to_numpy()
            shown = np.where(values < CEILING, values, np.nan)
            label = "" if i else "predicted without training attention"
            marks.append(Line(times, shown, label, theory=True))
        marks.append(Rule(1.0, "onset"))
        name = title or f"gradient descent, learning rate {rate:g}"
        panels.append(
            Panel(name, "time (learning rate × steps)", "‖W^Kᵀ W^Q‖₂", tuple(marks), yscale="log")
        )
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


def diagonal(study: Onset, tree: xr.DataTree) -> Figure:
    """Draw predicted against measured onset, and the error of both predictions."""
    engines: tuple[float | None, ...] = (None, *study.rates)
    kinds = (("ahead", "linear system from the actual start"), ("closed", "closed form"))
    panels = []
    for kind, title in kinds:
        dots: list[Mark] = []
        ends: list[float] = []
        for i, rate in enumerate(engines):
            cases = [case_name(rate, noise) for noise in study.noises]
            x = np.concatenate([measured(tree, case) for case in cases])
            y = np.concatenate([predicted(tree, case, kind) for case in cases])
            ends += [*x[np.isfinite(x)], *y[np.isfinite(y)]]
            dots.append(Dots(x, y, label="flow" if rate is None else f"rate {rate:g}", color=i))
        line = np.array([min(ends, default=0.0), max(ends, default=study.time)])
        dots.append(Line(line, line, "predicted = measured", theory=True))
        panels.append(Panel(title, "measured onset (time)", "predicted onset (time)", tuple(dots)))
    for kind, title in kinds:
        dots = []
        for i, rate in enumerate(engines):
            cases = [case_name(rate, noise) for noise in study.noises]
            # Beside each other, or the learning rates hide one another.
            aside = 1.25 ** (i - (len(engines) - 1) / 2)
            x = np.repeat(np.array(study.noises) * aside, study.seeds)
            y = np.concatenate(
                [100 * (predicted(tree, case, kind) / measured(tree, case) - 1) for case in cases]
            )
            dots.append(Dots(x, y, label="flow" if rate is None else f"rate {rate:g}", color=i))
        dots += [Rule(0.0), Rule(3.0, "±3 %"), Rule(-3.0, "±3 %")]
        panels.append(
            Panel(f"{title}, error", "initial noise", "error (%)", tuple(dots), xscale="log")
        )
    return Figure(
        "predicted-measured",
        "Predicted and measured onset",
        f"When ‖W^Kᵀ W^Q‖₂ reaches 1, for {len(study.noises)} noises, {study.seeds} seeds, "
        "gradient flow and gradient descent at several learning rates. Predictions come from the "
        "run with frozen uniform attention of each seed. The linear system starts at the actual "
        "W^K and W^Q; the closed form knows only the size of the noise. Below, the errors; "
        "learning rates stand side by side at each noise.",
        tuple(panels),
        columns=2,
    )


def driver(study: Onset, tree: xr.DataTree) -> Figure:
    """Draw the two largest singular values of G, and how the leading pair turns."""
    times = tree["observables/time_probe"].to_numpy()
    sigma = select(tree, "sigma", UNIFORM).to_numpy()
    left, right = (select(tree, name, UNIFORM).to_numpy() for name in ("left", "right"))
    values: list[Mark] = []
    turns: list[Mark] = []
    for rank, label in ((0, "largest"), (1, "second")):
        for seed in range(study.seeds):
            name = label if seed == 0 else ""
            values.append(Line(times, sigma[seed, :, rank], name, rank, thin=seed > 0))
    for i, (side, label) in enumerate(((left, "keys, u"), (right, "queries, w"))):
        for seed in range(study.seeds):
            cosine = np.abs((side[seed, 1:] * side[seed, :-1]).sum(axis=-1))
            # Rounding leaves less than this; a logarithmic axis has no zero.
            turn = np.maximum(1 - cosine, 1e-12)
            name = label if seed == 0 else ""
            turns.append(Line(times[1:], turn, name, i + 2, thin=seed > 0))
    apart = times[1] - times[0]
    return Figure(
        "driver",
        "What drives the onset, read off a run without attention",
        "Left: the two largest singular values of G(t) = ∂L/∂(W^Kᵀ W^Q) while W^V learns under "
        "frozen uniform attention; one direction is all that grows. Right: how far its pair of "
        f"singular vectors turns in {apart:g} units of time. Thick: seed 0; thin: the other seeds.",
        (
            Panel(
                "singular values of G",
                "time (learning rate × steps)",
                "singular value (1/time)",
                tuple(values),
                yscale="log",
            ),
            Panel(
                "rotation of the leading pair",
                "time (learning rate × steps)",
                "1 - |cos| between records",
                tuple(turns),
                yscale="log",
            ),
        ),
        columns=2,
    )
