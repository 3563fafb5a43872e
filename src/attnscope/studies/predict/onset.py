"""When attention starts in the model of Li 2023, said from running text alone, against training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, Finding, below
from attnscope.datasets.kinds import LabelledText, ParallelText
from attnscope.engines import Descent, Flow, Linear, Observable, Record
from attnscope.engines.stopping import Reached
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models import TopicObjective
from attnscope.prediction.answer import read
from attnscope.prediction.onset import RATE, VALUE_NOISE, Growth, Said, growth
from attnscope.prediction.onset_windows import Windows, windows_of
from attnscope.report import Cell, Figure, Line, Panel, Rule, Table
from attnscope.studies.predict.labelled.sets import short
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import near_zero, score_norm
from attnscope.trajectory import Readings

CHOSEN_ON = ("wikitext2",)
"""Vocabulary, windows, masks and draws were set on it; all other sets are judged on."""
JUDGED_ON = ("ag_news", "imdb", "multi30k", "iwslt14", "sst2")
WITHIN = 0.1
"""Part of the measured onset by which a prediction may be off."""
AWAKE = 3.0
"""‖W^Kᵀ W^Q‖₂ at which a run may end: its onset is over."""
SAID, SHUFFLED = "said", "shuffled"
MASKS = (
    "A text does not know the masks that a training will draw. Where windows are short (4.5 words "
    "in SST-2, 5.1 in IWSLT'14) they move the onset by 10 to 20 %, and the interval says so: every "
    "training of the published run is inside. With the masks and the start of the training itself "
    "the linear system is off by 1.2 % at most in its two cases that fail; that is a look "
    "afterwards."
)


@dataclass(frozen=True)
class Onset(Study):
    """Say from the texts when attention starts; then train the model, and see.

    The one-layer masked-word model of Li 2023 on windows of the commonest content words of a text.
    The prediction and every training draw their own masks and their own W^V, and the prediction
    knows no W^K and W^Q: they share the windows.
    """

    training: Flow = Flow(until=16_000.0, rtol=1e-5, atol=1e-8)
    sets: tuple[str, ...] = (*CHOSEN_ON, *JUDGED_ON)
    """Sets of any kind, or files; of pairs the English side is taken, of others the first split."""
    seeds: Count = 3
    """Trainings of each case."""
    points: Several = 801
    """Record points, evenly spaced; the rate divides the time between two of them."""
    noise: Positive = 1e-3
    """ε of the runs by gradient flow, standard deviation of W^K and W^Q at the start."""
    loud: Positive = 2e-2
    """ε of the runs by gradient descent; that of GPT-2."""
    rate: Positive = RATE
    """Learning rate of gradient descent."""

    citation = "The linear system: theory/li2023/onset.py, docs/predict.md; model: Li 2023."
    quick: ClassVar[dict[str, Any]] = {"sets": ("sst2",), "seeds": 2}

    def check(self) -> None:
        """Refuse sets of one name, and a rate without a step at every record point."""
        names = [short(name) for name in self.sets]
        twice = [name for name in names if names.count(name) > 1]
        if twice or not names:
            said = f"'{twice[0]}' is there twice" if twice else "there is none"
            raise AttnscopeError(f"sets = {self.sets}: {said}. Expected one or more, each once.")
        apart = self.end / (self.points - 1)
        if abs(apart / self.rate - max(1, round(apart / self.rate))) > 1e-9:
            raise AttnscopeError(
                f"rate = {self.rate:g} with record points {apart:g} apart: expected a rate that "
                f"divides {apart:g}."
            )

    @property
    def settings(self) -> dict[str, tuple[str, float, float | None]]:
        """Set, noise and learning rate of each case; None is the flow."""
        found: dict[str, tuple[str, float, float | None]] = {}
        for name in self.sets:
            found[f"{short(name)}, flow"] = (name, self.noise, None)
            found[f"{short(name)}, descent"] = (name, self.loud, self.rate)
        return found

    @property
    def cases(self) -> tuple[str, ...]:
        """Set and training of each case: ``ag_news, flow``."""
        return tuple(self.settings)

    def departures(self) -> str:
        """There is no paper to depart from."""
        return ""

    def introduction(self) -> str:
        """Say what was trained on what."""
        return (
            f"{len(self.runs())} runs on {len(self.sets)} sets, {self.seeds} seeds each: gradient "
            f"flow from noise {self.noise:g}, and gradient descent at rate {self.rate:g} from "
            f"noise {self.loud:g}."
        )

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return gradient flow or gradient descent."""
        rate = self.settings[case][2]
        return self.training if rate is None else Descent(lr=rate)

    def build(self, case: str, seed: int) -> Problem:
        """Make a run with masks, values, keys and queries of its own."""
        name, noise, _ = self.settings[case]
        windows = windows_in(name)
        model = near_zero(windows.vocabulary, "learned", noise, VALUE_NOISE, seed, torch.float64)
        loss = TopicObjective(windows.masked(seed))
        curves = (
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
            Observable("loss", loss, (), "nats", "cross-entropy"),  # type: ignore[arg-type]
        )
        over = Reached(
            lambda model: score_norm(model).reciprocal()[None],
            {"1/‖W^Kᵀ W^Q‖₂": 1 / AWAKE},
            self.end / (self.points - 1),
        )
        return Problem(model, loss, [Record(curves, Linear(self.points))], stop=(over,))

    def said(self, case: str, shuffled: bool = False) -> Said:
        """Return the prediction of a case; ``shuffled`` deals its words anew between windows."""
        name, noise, rate = self.settings[case]
        return _growth(name, shuffled).onset(noise, rate)

    def theory(self, run: Readings) -> xr.Dataset:
        """Say when attention starts, and read when it did.

        ``said``, ``low`` and ``high`` know the windows alone. ``shuffled`` is said in the same way
        of the same words dealt anew between windows; where that has no onset it is the end.
        """
        own = [self.said(case) for case in self.cases]
        mixed = [self.said(case, shuffled=True) for case in self.cases]
        came = [
            [_onset(run, case, row) for row in range(run.score_norm.sizes["seed"])]
            for case in self.cases
        ]
        unit = {"unit": "time"}
        return xr.Dataset(
            {
                SAID: (("case",), [one.time for one in own], unit),
                "low": (("case",), [one.low for one in own], unit),
                "high": (("case",), [one.high for one in own], unit),
                SHUFFLED: (
                    ("case",),
                    [self.end if np.isnan(one.time) else one.time for one in mixed],
                    unit,
                ),
                "came": (("case", "seed"), np.array(came), unit),
            }
        )

    def claims(self) -> list[Claim]:
        """Attention starts when it was said, in every training."""
        return [
            Claim(
                "onset",
                "On {case} attention starts when it was said from the texts, within "
                f"{WITHIN:.0%}, in every training.",
                _off,
                SAID,
                below(WITHIN),
                (SHUFFLED, "the same prediction for words dealt anew between windows"),
                "the linear system of theory/li2023/onset.py",
                measure="time said over time measured, less 1, without its sign",
                reason=MASKS,
                per=self.cases,
            )
        ]

    def table(self, run: Readings) -> Table:
        """Return times said and measured, case by case."""
        rows: list[tuple[Cell, ...]] = []
        for case, (name, noise, rate) in self.settings.items():
            own = run.of(case).theory
            said, low, high, mixed = (
                float(np.ravel(own.get(each).to_numpy())[0])
                for each in (SAID, "low", "high", SHUFFLED)
            )
            came = own.came.to_numpy()
            off = np.abs(said / came - 1)
            rows.append(
                (
                    case,
                    "chosen on" if short(name) in CHOSEN_ON else "judged on",
                    len(windows_in(name).rows),
                    noise,
                    "flow" if rate is None else f"{rate:g}",
                    _whole(said),
                    f"{low:.0f} to {high:.0f}",
                    ", ".join("none" if np.isnan(time) else f"{time:.0f}" for time in came),
                    None if np.isnan(off).any() else round(100 * float(off.max()), 1),
                    f"{int(((low <= came) & (came <= high)).sum())} of {len(came)}",
                    _whole(mixed),
                )
            )
        columns = (
            *("set and training", "used to", "windows", "noise", "rate"),
            *("said (time)", "its interval", "measured", "off, most (%)", "in the interval"),
            "said of shuffled words",
        )
        title = "When attention starts: said from the texts, and measured"
        return Table("onset", title, columns, tuple(rows))

    def printed(self, run: Readings) -> list[Table]:
        """Print times said and measured."""
        return [self.table(run)]

    def tables(self, run: Readings) -> list[Table]:
        """Times said and measured."""
        return [self.table(run)]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw ‖S‖₂ of every training with what was said of it."""
        panels = []
        for case, (name, noise, rate) in self.settings.items():
            curve = run.of(case).score_norm.transpose("seed", "step")
            times = curve["time"].to_numpy()
            marks: list[Any] = []
            for i, row in enumerate(curve.to_numpy().astype(float)):
                known = np.isfinite(row)
                label = "trained" if not i else ""
                marks.append(Line(times[known], row[known], label, 0, thin=True))
            told, grown = self.said(case), _growth(name, False)
            mean = grown.expected(noise, rate)[0]
            at = grown.times[:: max(1, round(len(grown.times) / len(mean)))][: len(mean)]
            shown = (mean > 0) & (mean < 2 * AWAKE)
            marks.append(Line(at[shown], mean[shown], "expected", theory=True))
            for time, label in ((told.time, "said"), (told.low, ""), (told.high, "")):
                if np.isfinite(time):
                    marks.append(Rule(time, label, vertical=True))
            marks.append(Rule(1.0, "onset"))
            panels.append(
                Panel(case, "learning rate × step", "‖W^Kᵀ W^Q‖₂", tuple(marks), yscale="log")
            )
        return [
            Figure(
                "predict-onset",
                "When attention starts: said, and seen",
                "‖W^Kᵀ W^Q‖₂ of every training, one curve a seed, and dashed the expected one of "
                "the linear system, which was driven by a run without attention. Upright: when it "
                "was said to reach 1, and the ends of the interval.",
                tuple(panels),
                columns=2,
            )
        ]

    def outcome(self, run: Readings, found: Sequence[Finding]) -> str:
        """Say how far off the judged predictions were at most."""
        judged = [c for c, (name, *_) in self.settings.items() if short(name) not in CHOSEN_ON]
        if not judged:
            return ""
        off = _off(run, SAID).sel(case=judged)
        return (
            f"Off by {100 * float(off.mean()):.1f} % on average and {100 * float(off.max()):.1f} % "
            f"at most, over {off.size} trainings that nothing was chosen on."
        )


@lru_cache(maxsize=16)
def windows_in(name: str) -> Windows:
    """Return the windows of a set of any kind."""
    data = read(name)
    if isinstance(data, LabelledText):
        return windows_of(data.splits["train"].texts)
    if isinstance(data, ParallelText):
        side = data.languages.index("en") if "en" in data.languages else 1
        return windows_of(data.splits["train"][side])
    return windows_of(data.splits.get("train") or next(iter(data.splits.values())))


@lru_cache(maxsize=32)
def _growth(name: str, shuffled: bool) -> Growth:
    windows = windows_in(name)
    return growth(windows.shuffled(0), draws=1) if shuffled else growth(windows)


def _off(run: Readings, what: str) -> xr.DataArray:
    found: xr.DataArray = abs(run.theory.get(what) / run.theory.came - 1)
    return found


def _whole(time: float) -> Cell:
    return None if np.isnan(time) else round(time)


def _onset(run: Readings, case: str, row: int) -> float:
    curve = run.of(case).score_norm.isel(seed=row)
    norms, times = curve.to_numpy().astype(float), curve["time"].to_numpy()
    known = np.isfinite(norms)
    found = li2023.measured_onset(times[known], norms[known])
    return float("nan") if found.coarse else found.time
