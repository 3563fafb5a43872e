"""The less a classifier can do, the more attention learns: FC > TC > TL (Fig 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, within
from attnscope.experiment import Problem
from attnscope.probes import mean_interval
from attnscope.report import Dots, Figure, Panel, Table, ends
from attnscope.studies.lu2021._topic_words import MODELS, TopicWordsStudy
from attnscope.theory import lu2021
from attnscope.trajectory import Readings, final

SEEN = {"FC": 4.8, "TC": 3.0, "TL": 1.8}
"""Mean final topic scores that an independent implementation of the paper's setting gave."""


@dataclass(frozen=True)
class Capacity(TopicWordsStudy):
    """The end of training under three classifiers of growing capacity."""

    quick = {"seeds": 3}
    cases = MODELS

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model with one seed."""
        kind = next(kind for kind in MODELS if kind == case)
        return self.problem(self.model(kind, seed), self.task.sample(seed))

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict the attention on the topic word from its score alone."""
        weight = lu2021.weight_from_score(run.score, self.task.m)
        return {"attention": (run.score.dims, weight, {"meaning": "exp(s)/(exp(s) + m)"})}

    def claims(self) -> list[Claim]:
        """Return the orderings, and the values where there are values to compare with."""
        orderings = [
            Claim(
                f"{what.split()[-1]}-{larger}-{smaller}",
                f"Topic words end up with a larger {what} under Attn-{larger} than under "
                f"Attn-{smaller}, whose classifier can do more.",
                ratio,
                (name, larger, smaller),
                above(1.1),
                ((name, smaller, smaller), f"Attn-{smaller} against itself with another seed"),
                "section 5.1, Fig 1",
                f"{larger} > {smaller}",
                f"ratio of mean final {what}s",
                each=False,
            )
            for name, what in (
                ("score", "score"),
                ("norm", "embedding norm"),
                ("attention_mean", "attention"),
            )
            for larger, smaller in (("FC", "TC"), ("TC", "TL"))
        ]
        values = [
            Claim(
                "score",
                f"The mean topic score of Attn-{case} ends at {seen}.",
                lambda run, at: run.score.isel(step=at).mean("word"),
                -1,
                within(seen - 0.3, seen + 0.3),
                (self.points // 10, "the same models after a tenth of the training"),
                "section 5.1, Fig 1; the number is from an independent run of its setting",
                "a histogram",
                "mean topic score",
                each=False,
                per=(case,),
            )
            for case, seen in SEEN.items()
        ]
        return orderings + (values if self == Capacity(seeds=self.seeds) else [])

    def figures(self, run: Readings) -> list[Figure]:
        """Draw final score, norm and attention against capacity."""
        panels = []
        for name, label in (
            ("score", "mean topic score"),
            ("norm", "mean topic norm"),
            ("attention_mean", "mean attention on the topic word"),
        ):
            interval = mean_interval(end(run, name).to_numpy(), axis=1)
            dots = Dots(np.arange(3.0), *interval, "mean over seeds, 95 %")
            ticks = tuple((float(i), f"Attn-{case}") for i, case in enumerate(MODELS))
            xlabel = "classifier, capacity growing"
            panels.append(Panel(label, xlabel, label, (dots,), xticks=ticks))
        return [
            Figure(
                "capacity",
                "Lower capacity, stronger attention",
                f"End of training after {self.training.epochs:,} epochs, {self.seeds} seeds: a "
                "classifier that explains less leaves more for attention to explain (Lu 2021, "
                "section 5.1).",
                tuple(panels),
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the end of training."""
        columns = {
            "mean topic score": end(run, "score"),
            "mean topic norm": end(run, "norm"),
            "mean attention": end(run, "attention_mean"),
            "loss (nats)": end(run, "loss"),
        }
        title = f"End of training, {self.seeds} seeds"
        return [ends(run, key="capacity", title=title, head="model", more=columns)]


def end(run: Readings, name: str) -> xr.DataArray:
    """Return a reading at the end of training, averaged over topic words."""
    reading = final(run.get(name))
    return reading.mean("word") if "word" in reading.dims else reading


def ratio(run: Readings, given: tuple[str, str, str]) -> xr.DataArray:
    """Return what a reading of a model ends at, over another's; over its own of another seed."""
    name, larger, smaller = given
    other = end(run.of(smaller), name)
    return end(run.of(larger), name) / (other.roll(seed=1) if larger == smaller else other)
