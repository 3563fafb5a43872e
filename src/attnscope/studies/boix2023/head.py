"""One head at a setting of your choice climbs down its staircase; the lab plays it (section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, Finding
from attnscope.engines import Flow
from attnscope.experiment import NOW, AttentionOverTime, Playable
from attnscope.report import Figure, Line, Mark, Panel, Rule, Table
from attnscope.studies.boix2023._head import numbers, stage_times
from attnscope.studies.boix2023.stages.claims import claims
from attnscope.studies.boix2023.stages.figures import tables
from attnscope.studies.boix2023.stages.study import StagesStudy
from attnscope.trajectory import Readings, final

SHARED = ("times", "order", "plateaus", "conserved")
"""Claims of the study of stages that one head decides, too."""


@dataclass(frozen=True)
class HeadRun(Playable, StagesStudy):
    """A diagonal head from starts of size α and α², which is what extrapolation needs."""

    seeds: Count = 1
    training: Flow = Flow(until=7.0, rtol=1e-5, atol=1e-3)
    points: Several = 701
    alpha: Positive = 1e-8
    """α, the size of the larger start; the other one is its square."""

    quick = {}

    def check(self) -> None:
        """Check the starts."""
        super(StagesStudy, self).check()

    def sizes(self) -> dict[str, float]:
        """Return α of both cases."""
        return {f"α = {size:g}": size for size in (self.alpha, self.alpha**2)}

    def last_two(self, full: bool = False) -> tuple[tuple[str, float], tuple[str, float]]:
        """Return both starts."""
        first, second = self.sizes().items()
        return first, second

    def engine(self, case: str, seed: int) -> Flow:
        """Return the flow."""
        found = super().engine(case, seed)
        assert isinstance(found, Flow)
        return found

    def claims(self) -> list[Claim]:
        """Return what the study of stages says of such runs."""
        return [claim for claim in claims(self) if claim.key in SHARED]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw loss and products of both starts with the greedy stairs."""
        known = run.theory.stage_time.to_numpy()
        at = np.concatenate([[0.0], np.repeat(known, 2), [self.end]])
        start = self.loss_at(np.zeros(2 * self.task.width))
        bottom, time = 1e-3 * start, run.loss["time"].to_numpy()
        stairs = np.repeat(np.concatenate([[start], run.theory.stage_loss.to_numpy()]), 2)
        now = Rule(float(time[-1]), NOW, vertical=True)
        fall: list[Mark] = [
            Line(time, np.maximum(run.of(case).loss.isel(seed=0).to_numpy(), bottom), case, i)
            for i, case in enumerate(self.cases)
        ]
        fall += [Line(at, np.maximum(stairs, bottom), "theory, α → 0", theory=True), now]
        panels = [Panel("loss", "time t/log(1/α)", "loss", tuple(fall), yscale="log")]
        plateau = np.vstack([np.zeros(2 * self.task.width), run.theory.plateau.to_numpy()])
        for case in self.cases:
            product = run.of(case).product.isel(seed=0).stack(number=("matrix", "entry"))
            marks: list[Mark] = []
            for i, number in enumerate(numbers(run) if np.isfinite(known).all() else ()):
                curve = product.isel(number=number).to_numpy()
                marks.append(Line(time, curve, self.entry_name(number), i))
                heights = np.repeat(plateau[:, number], 2)
                marks.append(Line(at, heights, "theory, α → 0", theory=True))
            title = f"products, {case}"
            panels.append(Panel(title, "time t/log(1/α)", "w = uv", (*marks, now)))
        return [
            Figure(
                "play-boix2023",
                "One product at a time",
                "Loss and products of a head over time in units of log(1/α). Dashed: the greedy "
                "algorithm, which knows the gradient of the loss and nothing of the start. The "
                "smaller the start, the closer training comes to it.",
                tuple(panels),
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the stages."""
        return tables(self, run)

    def attention(self, run: Readings) -> AttentionOverTime:
        """Return attention between the tokens of the first sample, from the smaller start."""
        seen = run.of(self.cases[-1]).get("attention").isel(seed=0)
        count = self.task.tokens
        names = tuple(f"token {i + 1}" for i in range(count))
        thin = seen.isel(step=slice(None, None, max(1, seen.sizes["step"] // 100)))
        return AttentionOverTime(
            "Attention on the first sample",
            "Every token of the sample attends to all of them. Attention stays uniform until a "
            "product of W_K W_Qᵀ leaves zero.",
            thin["time"].to_numpy(),
            "time t/log(1/α)",
            names,
            names,
            thin.to_numpy(),
            tuple(-1 for _ in names),
            tuple(-1 for _ in names),
        )

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say which products grew and when."""
        smallest = self.cases[-1]
        loss = float(final(run.of(smallest).loss).isel(seed=0))
        if not np.isfinite(run.theory.stage_time.to_numpy()).all():
            return f"No product leaves zero within time {self.end:g}; loss {loss:.3g}."
        times = stage_times(run, smallest)[0]
        said = ", ".join(
            f"{self.entry_name(number)} at {time:.3g}"
            for number, time in zip(numbers(run), times, strict=True)
            if np.isfinite(time)
        )
        return f"Products leave zero one by one: {said}. Loss {loss:.3g}."
