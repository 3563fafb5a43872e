"""Which token attention chooses, and the support vector machine its weights point to (Figs 1-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from attnscope.bounds import Count, Positive
from attnscope.claims import Claim, above
from attnscope.models.token_selector import FactoredSelector, TokenSelector
from attnscope.probes import mean_interval
from attnscope.report import Dots, Figure, Line, Panel, Table, band
from attnscope.report.page import Cell
from attnscope.studies.tarzanagh2023._choices import HARD, ChoiceStudy, correlation, judged
from attnscope.tasks.token_choice import Choices, TokenChoice, one_input
from attnscope.theory import tarzanagh2023
from attnscope.trajectory import Readings, carried, final

WHOLE, PRODUCT = "W", "K Qᵀ"
PICTURES = {
    "one input, γ = 1, 0.9, 0.9": (1.0, 0.9, 0.9),
    "one input, γ = 1, 0.9, 0": (1.0, 0.9, 0.0),
}
"""One input in the plane: only the best token lasts, or two of them do."""
STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
"""p begins at (0, y)."""
TURNS = -0.75
"""In the second picture starts above this come to the first token, starts below to the second."""


@dataclass(frozen=True)
class SelectionStudy(ChoiceStudy):
    """Flows to time 1e10: one input in the plane, W and K Qᵀ on many, and widths."""

    seeds: Count = 100
    widths: tuple[Count, ...] = (2, 4, 6, 8, 10)
    """d of the cases that ask how often the best tokens are chosen."""
    several: Count = 5
    """Inputs of those, and tokens of an input."""
    start: Positive = 0.3
    """Standard deviation of the entries of K and Q at the start."""

    quick: ClassVar = {"seeds": 24, "widths": (2, 4, 10), "per_decade": 2}

    @property
    def cases(self) -> tuple[str, ...]:
        """W and K Qᵀ, both pictures, and the widths."""
        return (WHOLE, PRODUCT, *PICTURES, *(f"d = {width}" for width in self.widths))

    def choices(self, case: str, seed: int) -> Choices:
        """Return the data of a run; W and K Qᵀ share theirs."""
        if case in PICTURES:
            return one_input(PICTURES[case])
        if case in (WHOLE, PRODUCT):
            return self.task.sample(seed)
        return TokenChoice(self.several, self.several, int(case.removeprefix("d = "))).sample(seed)

    def model(self, case: str, seed: int) -> TokenSelector:
        """Return the model of a run: pictures begin at (0, y), K and Q at random."""
        data = self.choices(case, seed)
        if case in PICTURES:
            start = np.array([0.0, STARTS[seed % len(STARTS)]])
            return TokenSelector(data.features, data.scores, start)
        if case == PRODUCT:
            source, width = np.random.default_rng(seed + 1_000_003), self.task.width
            keys, queries = self.start * source.normal(size=(2, width, width))
            return FactoredSelector(data.features, data.scores, keys, queries)
        return super().model(case, seed)

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Judge every choice, and follow θ to the machines of the last one.

        ``frobenius`` is the correlation of θ with the Att-SVM over time, ``nuclear`` that with the
        one of least nuclear norm, ``swapped`` that with one token swapped.
        """
        names = ("saturated", "locally", "globally", "token", "reachable", "gap")
        found = self.table_of(run, *names)
        along = {
            name: xr.full_like(run.loss, np.nan) for name in ("frobenius", "nuclear", "swapped")
        }
        for case in self.cases:
            for seed in run.loss["seed"].to_numpy():
                data = self.choices(case, int(seed))
                one = judged(data, self.weights(run, case, int(seed)))
                best = tarzanagh2023.optimal_tokens(data.scores)
                top = carried(run.of(case).get("attention").sel(seed=seed)).to_numpy()[-1]
                hard = float(np.nanmin(np.nanmax(top[: len(data.scores)], axis=1)) > HARD)
                ordered = np.sort(data.features @ self.weights(run, case, int(seed)), axis=1)
                values = {
                    "saturated": hard,
                    "locally": float(one.locally),
                    "globally": float(one.globally),
                    "token": float(one.chosen[0]),
                    "reachable": float(tarzanagh2023.attention_svm(data.features, best).feasible),
                    "gap": float((ordered[:, -1] - ordered[:, -2]).min()),
                }
                for name, value in values.items():
                    found[name].loc[case, seed] = value
                path = run.of(case).weight.sel(seed=seed).to_numpy()
                path = path[:, : data.features.shape[-1]]
                machines = {"frobenius": one.svm.direction, "swapped": one.swapped()}
                if (
                    case in (WHOLE, PRODUCT)
                    and data.tokens is not None
                    and data.queries is not None
                ):
                    low = tarzanagh2023.nuclear_svm(data.tokens, data.queries, one.chosen)
                    machines["nuclear"] = low.ravel()
                for name, direction in machines.items():
                    along[name].loc[case, seed] = correlation(path, direction)
        return {**found, **along}

    def claims(self) -> list[Claim]:
        """Return what the papers say of these runs."""
        low, high = (f"d = {f(self.widths)}" for f in (min, max))

        def lead(run: Readings, case: str) -> np.ndarray:
            own = run.of(case).theory
            return np.asarray(final(own.nuclear) - final(own.frobenius))

        def rise(run: Readings, given: tuple[str, str]) -> np.ndarray:
            one, other = (run.of(case).theory.globally for case in given)
            return np.asarray(other - one)

        def picture(run: Readings, rules: tuple[float, float]) -> np.ndarray:
            right = []
            for case, turn in zip(PICTURES, rules, strict=True):
                token = run.of(case).theory.token.to_numpy()
                starts = np.resize(STARTS, len(token))
                right.append(token == np.where(starts > turn, 0, 1))
            return np.asarray(np.mean(right, axis=0))

        return [
            Claim(
                "direction",
                "W points to the support vector machine of the tokens it chose.",
                lambda run, name: final(run.of(WHOLE).theory.get(name)),
                "frobenius",
                above(0.98),
                ("swapped", "one chosen token replaced by the next best"),
                "2308.16898, local convergence",
                "1 as t → ∞",
                f"correlation at time {self.end:g}",
                each=False,
            ),
            Claim(
                "nuclear",
                "K Qᵀ points to the machine of least nuclear norm rather than to that of W.",
                lead,
                PRODUCT,
                above(0.0),
                (WHOLE, "W, trained as it is"),
                "2308.16898, section 3",
                "nuclear norm",
                "correlation with the one less that with the other",
                each=False,
            ),
            Claim(
                "local",
                "The tokens that W chose are locally optimal.",
                lambda run, what: (
                    run.of(WHOLE).theory.locally if what == "chosen" else self.random(run, WHOLE)
                ),
                "chosen",
                above(0.85),
                ("random", "tokens chosen at random"),
                "2308.16898, local convergence",
                "always",
                "share of runs",
                each=False,
            ),
            Claim(
                "global-by-width",
                "The wider the tokens, the more runs choose the best token of every input.",
                rise,
                (low, high),
                above(0.0),
                ((high, low), "the widths in reverse"),
                "2308.16898, Fig 4",
                "rises with d",
                f"share of such runs at {high} less that at {low}, on pairs of runs",
                each=False,
            ),
            Claim(
                "one-input",
                "In the plane the start decides between two locally optimal tokens, and only then.",
                picture,
                (-np.inf, TURNS),
                above(0.999),
                ((TURNS, -np.inf), "the rules of the two pictures exchanged"),
                "2306.13596, Fig 1",
                "every start",
                "share of pictures whose token is the predicted one",
                each=False,
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the pictures in the plane, correlations over time, and shares by width."""
        return [self.plane(run), self.directions(run), self.shares(run)]

    def plane(self, run: Readings) -> Figure:
        """Draw the paths of p."""
        panels = []
        for case, scores in PICTURES.items():
            paths = run.of(case).weight.to_numpy()[: len(STARTS), :, :2]
            reach = np.nanmax(np.abs(paths))
            marks = [
                Line(path[:, 0], path[:, 1], f"p begins at (0, {y:g})", i)
                for i, (path, y) in enumerate(zip(paths, STARTS, strict=False))
            ]
            for token in (0, 1):
                machine = tarzanagh2023.attention_svm(one_input(scores).features, np.array([token]))
                ray = np.outer([0, reach / machine.growth], machine.direction)
                marks.append(
                    Line(ray[:, 0], ray[:, 1], "Att-SVM of token 1, of token 2", theory=True)
                )
            panels.append(Panel(case, "p₁", "p₂", tuple(marks)))
        return Figure(
            "plane",
            "Where p goes depends on the scores, and between two good tokens on the start",
            "Paths of p for one input with keys (-0.1, 1), (1, 0) and (0, 0), to time "
            f"{self.end:g}. Left: only token 1 is locally optimal. Right: the third token is bad "
            "enough for token 2 to be locally optimal too (2306.13596, Fig 1).",
            tuple(panels),
            columns=2,
        )

    def directions(self, run: Readings) -> Figure:
        """Draw 1 - correlation over time, for W and for K Qᵀ."""
        labels = {
            "frobenius": "Att-SVM",
            "nuclear": "Att-SVM, nuclear norm",
            "swapped": "Att-SVM, one token swapped",
        }
        panels = []
        for case in (WHOLE, PRODUCT):
            marks = []
            for colour, (name, label) in enumerate(labels.items()):
                reading = (1 - run.of(case).theory.get(name)).isel(step=slice(1, None))
                marks += band(reading, label, colour, x="time", log=True)
            panels.append(Panel(case, "time", "1 - correlation", tuple(marks), "log", "log"))
        return Figure(
            "direction",
            "W turns to one support vector machine, K Qᵀ to another",
            f"1 - correlation of the weights with three machines of the tokens chosen in the end; "
            f"mean over {self.seeds} seeds with 95 % bands.",
            tuple(panels),
            columns=2,
        )

    def shares(self, run: Readings) -> Figure:
        """Draw how many runs saturate, and choose well, by width."""
        at, marks = np.array(self.widths, dtype=float), []
        names = {
            "saturated": "saturated",
            "locally": "locally optimal",
            "globally": "globally optimal",
        }
        for colour, (name, label) in enumerate(names.items()):
            values = np.stack([run.of(f"d = {w}").theory.get(name).to_numpy() for w in self.widths])
            mean, low, high = mean_interval(100 * values, axis=1)
            ends = (np.maximum(low, 0), np.minimum(high, 100)) if self.seeds > 1 else (None, None)
            marks.append(Dots(at + 0.12 * (colour - 1), mean, ends[0], ends[1], label, colour))
        title = f"{self.several} inputs of {self.several} tokens"
        return Figure(
            "widths",
            "Wider tokens, better choices",
            f"Share of {self.seeds} runs from zero to time {self.end:g} whose attention is hard, "
            "whose choice is locally optimal, and whose choice is the best token of every input; "
            "95 % intervals.",
            (Panel(title, "d", "share of runs (%)", tuple(marks)),),
        )

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the cases."""
        rows: list[tuple[Cell, ...]] = []
        for case in self.cases:
            own = run.of(case).theory
            names = ("saturated", "globally", "locally", "reachable")
            shares = (float(100 * own.get(name).mean()) for name in names)
            ends = (
                float(final(carried(own.get(n))).mean())
                for n in ("frobenius", "nuclear", "swapped")
            )
            counts = run.of(case).stats.evaluations.to_numpy()
            rows.append((case, *shares, *ends, float(own.gap.min()), float(np.median(counts))))
        heads = ("saturated (%)", "global (%)", "local (%)", "best tokens separable (%)")
        more = ("corr Att-SVM", "nuclear", "swapped", "least gap of logits", "gradients")
        return [
            Table("choices", "Choices at the end of time", ("case", *heads, *more), tuple(rows))
        ]

    def printed(self, run: Readings) -> Sequence[Table]:
        """Print how many runs saturated; a gap of logits near 0 is a tie between tokens."""
        (table,) = self.tables(run)
        chosen = (0, 1, 2, 3, 4, 8)
        rows = tuple(tuple(row[i] for i in chosen) for row in table.rows)
        return [Table(table.name, table.title, tuple(table.columns[i] for i in chosen), rows)]
