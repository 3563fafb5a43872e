"""What is left on other tokens falls as C/t with C from the SVM's dual, to time 1e30 (beyond)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from attnscope.bounds import Count, Natural, Positive
from attnscope.claims import Claim, above, below
from attnscope.engines import Flow
from attnscope.models.token_selector import selector_loss
from attnscope.report import Figure, Line, Panel, Rule, Table
from attnscope.report.page import Cell
from attnscope.studies.tarzanagh2023._choices import ChoiceStudy, correlation, judged
from attnscope.theory import tarzanagh2023
from attnscope.trajectory import Readings

LOSSES: tuple[tarzanagh2023.Loss, ...] = ("logistic", "linear")
NEAR = 0.1
"""s t within a tenth of C."""
SHARES = {
    "share": "the SVM's dual",
    "share_equal": "all duals equal",
    "share_plain": "no factor of the loss",
}


@dataclass(frozen=True)
class TailStudy(ChoiceStudy):
    """Flows to time 1e30, by two losses: constants of the tail, the direction, late switches."""

    seeds: Count = 60
    training: Flow = Flow(until=1e30, rtol=1e-4, atol=1e-4)
    flagged_at: Positive = 1e6
    """When a choice is looked at to say whether it will last."""
    descents: Natural = 3
    """Seeds for which gradient descent at rate 1 is run besides, to time 1e4."""

    quick: ClassVar = {"per_decade": 2}
    cases = LOSSES

    def loss_of(self, case: str) -> tarzanagh2023.Loss:
        """Return the loss that the case is named after."""
        return next(loss for loss in LOSSES if loss == case)

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Judge every run: its SVM, the constants of its tail, and whether its choice lasts.

        ``ratio`` is s t/C over time, at the last choice, for support tokens. ``flag`` says that the
        choice at ``flagged_at`` is not locally optimal, ``switched`` that it changed after that.
        """
        names = [
            "correlation",
            "correlation_early",
            "correlation_swapped",
            "growth",
            "median_ratio",
        ]
        names += [
            "locally",
            "locally_early",
            "globally",
            "flag",
            "switched",
            "softness",
            "descent_gap",
        ]
        found = self.table_of(run, *names, *SHARES)
        ratio = xr.full_like(run.attention, np.nan)
        for case in LOSSES:
            for seed in run.loss["seed"].to_numpy():
                one = self.judge_run(run, case, int(seed), ratio)
                for name, value in one.items():
                    found[name].loc[case, seed] = value
        for seed in range(min(self.descents, self.seeds) if self.end >= 1e4 else 0):
            gap = self.descent_gap(run, seed)
            found["descent_gap"].loc["logistic", seed] = gap
        return {**found, "ratio": ratio.assign_attrs(meaning="s t/C of support tokens")}

    def judge_run(
        self, run: Readings, case: str, seed: int, into: xr.DataArray
    ) -> dict[str, float]:
        """Return what is said of one run; write s t/C over time into an array."""
        data, end = self.choices(case, seed), self.weights(run, case, seed)
        last, early = judged(data, end), self.weights(run, case, seed, self.flagged_at)
        first, soon = judged(data, early), self.weights(run, case, seed, 1e10)
        own = data.scores[np.arange(len(data.scores)), last.chosen]
        slope = tarzanagh2023.slope_of(self.loss_of(case), own)
        seen = run.of(case).get("attention").sel(seed=seed)
        time = seen["time"].to_numpy()[:, None, None]
        left = seen.to_numpy() * time
        ending = left[np.isfinite(left).all(axis=(1, 2))][-1]
        constants = tarzanagh2023.tail_constants(last.svm, data.scores, last.chosen, slope)
        into.loc[case, seed] = left / constants
        support = np.isfinite(constants)
        equal = (
            constants / last.svm.dual * last.svm.dual[support].mean()
            if support.any()
            else constants
        )
        ends = {"share": constants, "share_equal": equal, "share_plain": constants * slope[:, None]}
        ratios = {name: (ending / value)[support] for name, value in ends.items()}
        before = run.of(case).weight.sel(seed=seed).isel(step=-1 - self.per_decade).to_numpy()
        grown = np.linalg.norm(end) - np.linalg.norm(before)
        pace = grown / np.log(10.0) / last.svm.growth
        return {
            "correlation": float(correlation(end, last.svm.direction)),
            "correlation_early": float(correlation(soon, judged(data, soon).svm.direction)),
            "correlation_swapped": float(correlation(end, last.swapped())),
            "growth": float(pace),
            "median_ratio": float(np.median(ratios["share"])) if support.any() else np.nan,
            "locally": float(last.locally),
            "locally_early": float(judged(data, soon).locally),
            "globally": float(last.globally),
            "flag": float(not first.locally),
            "switched": float((first.chosen != last.chosen).any()),
            "softness": float(1 - softmax_top(data.features @ early).min()),
            **{name: float((np.abs(r - 1) < NEAR).mean()) for name, r in ratios.items()},
        }

    def descent_gap(self, run: Readings, seed: int) -> float:
        """Return how far gradient descent, 10,000 steps at rate 1, is from the flow at time 1e4."""
        model = self.model("logistic", seed)
        for _ in range(10_000):
            (slope,) = torch.autograd.grad(selector_loss(model), [model.theta])
            with torch.no_grad():
                model.theta.sub_(slope)
        flow = self.weights(run, "logistic", seed, 1e4)
        return float(np.linalg.norm(model.theta.detach().numpy() - flow) / np.linalg.norm(flow))

    def claims(self) -> list[Claim]:
        """Return what the derivation and the papers say of the end of time."""

        def theory(run: Readings, name: str) -> np.ndarray:
            return np.asarray(run.theory.get(name))

        def lasting(run: Readings, by: str) -> np.ndarray:
            found = []
            for case in LOSSES:
                own = run.of(case).theory
                flag, switched = own.flag.to_numpy() > 0, own.switched.to_numpy()
                if by == "softness":
                    order = np.argsort(-own.softness.to_numpy(), kind="stable")
                    flag = np.isin(np.arange(len(flag)), order[: flag.sum()])
                found.append(switched[flag])
            return np.concatenate(found)

        swap = ("correlation_swapped", "one chosen token replaced by the next best")
        shares = ("share of support tokens with s t within 10 % of C", "beyond the papers")
        return [
            Claim(
                "direction-1e30",
                "{case} loss: θ points to the support vector machine of the tokens it chose.",
                theory,
                "correlation",
                above(0.995),
                swap,
                "2308.16898, theorem on local convergence",
                "1 as t → ∞",
                "correlation at the end of time",
                each=False,
                per=LOSSES,
            ),
            Claim(
                "direction-1e10",
                "{case} loss: it does so, less closely, at time 1e10.",
                theory,
                "correlation_early",
                above(0.98),
                swap,
                "2308.16898, theorem on local convergence",
                "1 - O(1/log² t)",
                "correlation",
                each=False,
                per=LOSSES,
            ),
            Claim(
                "constants",
                "{case} loss: what is left on a support token is C/t, C from the dual of the SVM.",
                theory,
                "share",
                above(0.8),
                ("share_equal", SHARES["share_equal"]),
                shares[1],
                "not stated",
                shares[0],
                each=False,
                per=LOSSES,
            ),
            Claim(
                "loss-factor",
                "C has the slope of the loss at the chosen score in its denominator.",
                lambda run, name: run.of("logistic").theory.get(name),
                "share",
                above(0.8),
                ("share_plain", SHARES["share_plain"]),
                shares[1],
                "not stated",
                shares[0],
                each=False,
            ),
            Claim(
                "local",
                "In the end the choice is locally optimal.",
                lambda run, name: (
                    run.of("logistic").theory.locally
                    if name == "chosen"
                    else self.random(run, "logistic")
                ),
                "chosen",
                above(0.85),
                ("random", "tokens chosen at random"),
                "2306.13596 and 2308.16898, local convergence",
                "always",
                "share of runs",
                each=False,
            ),
            Claim(
                "late-switches",
                "A choice that is not locally optimal at time "
                f"{self.flagged_at:g} changes later, however finished it looks.",
                lasting,
                "flag",
                above(0.5),
                ("softness", "as many runs flagged, those with the softest attention"),
                "beyond the papers",
                "not stated",
                "share of flagged runs that switch, by both losses",
                each=False,
            ),
            Claim(
                "descent",
                "The flow is gradient descent, where both can be run.",
                lambda run, at: self.gaps(run, at),
                1e4,
                below(1e-3),
                (1e3, "the flow at a tenth of the time"),
                "beyond the papers",
                "not stated",
                "relative distance of θ at time 1e4",
            ),
        ]

    def gaps(self, run: Readings, at: float) -> np.ndarray:
        """Return the distance of gradient descent to the flow, or of the flow to itself earlier."""
        found = run.of("logistic").theory.descent_gap.to_numpy()[: self.descents]
        if at == 1e4:
            return found
        pairs = [
            [self.weights(run, "logistic", seed, t) for t in (1e4, at)]
            for seed in range(len(found))
        ]
        return np.array([np.linalg.norm(a - b) / np.linalg.norm(a) for a, b in pairs])

    def figures(self, run: Readings) -> list[Figure]:
        """Draw s t/C over time, the attention of a run that changed its mind, and the shares."""
        ratio = run.of("logistic").theory.ratio
        time = ratio["time"].to_numpy()[1:]
        late = time >= 1e2
        curves = [
            Line(time[late], curve[1:][late], "", i % 6, thin=True)
            for i, seed in enumerate(ratio["seed"].to_numpy()[:6])
            for curve in ratio.sel(seed=seed).to_numpy().reshape(len(time) + 1, -1).T
            if np.isfinite(curve[-1])
        ]
        rule = Rule(1.0, "s t = C, from the SVM's dual")
        panels = [
            Panel("support tokens of six runs", "time", "s t/C", (*curves, rule), "log", "log")
        ]
        seed = self.latest(run)
        if seed is not None:
            seen = run.of("logistic").get("attention").sel(seed=seed).to_numpy()[1:]
            moved = np.diff(seen.argmax(axis=2), axis=0) != 0
            place = int((moved * np.arange(len(moved))[:, None]).max(axis=0).argmax())
            lines = tuple(
                Line(time, np.maximum(seen[:, place, t], 1e-30), f"token {t + 1}", t)
                for t in np.unique(seen[:, place].argmax(axis=1))
            )
            mark = Rule(self.flagged_at, "looked at here: not locally optimal", vertical=True)
            title = f"a late switch: seed {seed}, input {place + 1}"
            panels.append(Panel(title, "time", "attention", (*lines, mark), "log", "log"))
        return [
            Figure(
                "tail",
                "What is left on other tokens falls as C/t",
                "Left: attention on support tokens times time, over the constant from the SVM's "
                "dual, which knows the final choice and nothing else of the run. Right: attention "
                "that looks finished and then changes its mind, in the run where it did last.",
                tuple(panels),
                columns=2,
            )
        ]

    def latest(self, run: Readings) -> int | None:
        """Return the seed of the run that switched last, if any did after it was looked at."""
        found = run.of("logistic").theory.switched
        seeds = found["seed"].to_numpy()[found.to_numpy() > 0]
        return max(seeds, key=lambda seed: self.last_switch(run, int(seed)), default=None)

    def last_switch(self, run: Readings, seed: int) -> float:
        """Return the time at which the choice of a run last changed."""
        seen = run.of("logistic").get("attention").sel(seed=seed)
        chosen = seen.to_numpy().argmax(axis=2)
        moved = np.flatnonzero((chosen[1:] != chosen[:-1]).any(axis=1))
        return float(seen["time"].to_numpy()[moved[-1] + 1]) if moved.size else 0.0

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the shares, and the runs that changed their mind."""
        names = {
            "correlation_early": "correlation at 1e10",
            "correlation": "correlation at the end",
            "correlation_swapped": "one token swapped",
            **{name: f"within 10 %: {what}" for name, what in SHARES.items()},
            "median_ratio": "median s t/C",
            "growth": "d‖θ‖/d log t over ‖θ_mm‖",
            "locally_early": "locally optimal at 1e10",
            "locally": "locally optimal at the end",
            "globally": "globally optimal",
        }
        rows: list[tuple[Cell, ...]] = []
        for name, what in names.items():
            cells: list[float] = []
            for case in LOSSES:
                values = run.of(case).theory.get(name).to_numpy()
                cells += [float(values.mean()), float(values.min()), float(values.max())]
            rows.append((what, *cells))
        evaluations = [run.of(case).stats.evaluations.to_numpy() for case in LOSSES]
        counts = ((float(n.mean()), float(n.min()), float(n.max())) for n in evaluations)
        rows.append(("gradients", *(number for three in counts for number in three)))
        own = run.of("logistic").theory
        switches = tuple(
            (int(seed), bool(own.flag.sel(seed=seed)), bool(s), self.last_switch(run, int(seed)))
            for seed, s in zip(
                own.switched["seed"].to_numpy(), own.switched.to_numpy(), strict=True
            )
            if s or own.flag.sel(seed=seed)
        )
        heads = tuple(f"{case}, {what}" for case in LOSSES for what in ("mean", "least", "most"))
        return [
            Table("tail", "The end of time", ("over seeds", *heads), tuple(rows)),
            Table(
                "switches",
                f"Runs flagged at {self.flagged_at:g}, and runs that changed their choice after it",
                ("seed", "flagged", "switched", "last switch at"),
                switches,
            ),
        ]

    def printed(self, run: Readings) -> Sequence[Table]:
        """Print which runs were flagged and which changed their choice."""
        return self.tables(run)[1:]


def softmax_top(logits: np.ndarray) -> np.ndarray:
    """Return the largest attention of each input."""
    return np.asarray(1 / np.exp(logits - logits.max(axis=1, keepdims=True)).sum(axis=1))
