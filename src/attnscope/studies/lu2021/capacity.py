"""The less a classifier can do, the more attention learns: FC > TC > TL (Fig 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, within
from attnscope.models.classifiers import Kind
from attnscope.probes import mean_interval
from attnscope.report.figure import Dots, Figure, Panel
from attnscope.report.page import Table
from attnscope.studies.base import Problem
from attnscope.studies.lu2021._topic_words import TopicWordsStudy
from attnscope.studies.readings import select
from attnscope.theory import lu2021

MODELS: tuple[Kind, ...] = ("FC", "TC", "TL")
SEEN = {"FC": 4.8, "TC": 3.0, "TL": 1.8}
"""Mean final topic scores that an independent implementation of the paper's setting gave."""


@dataclass(frozen=True)
class Capacity(TopicWordsStudy):
    """The end of training under three classifiers of growing capacity."""

    quick: ClassVar[dict[str, Any]] = {"seeds": 3}

    def cases(self) -> tuple[str, ...]:
        """Return the three models."""
        return MODELS

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model with one seed."""
        kind = next(kind for kind in MODELS if kind == case)
        return self.problem(self.model(kind, seed), self.task().sample(seed))

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict the attention on the topic word from its score alone."""
        score = tree["observables/score"]
        return xr.Dataset(
            {
                "attention": (
                    score.dims,
                    lu2021.weight_from_score(score.to_numpy(), self.m),
                    {"meaning": "exp(s)/(exp(s) + m)"},
                )
            },
            coords={"time": ("step", tree["observables/time"].to_numpy())},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return the orderings, and the values where there are values to compare with."""
        orderings = [
            _ordering(name, what, larger, smaller)
            for name, what in (("score", "score"), ("norm", "embedding norm"))
            for larger, smaller in (("FC", "TC"), ("TC", "TL"))
        ]
        orderings += [
            _ordering("attention_mean", "attention", larger, smaller)
            for larger, smaller in (("FC", "TC"), ("TC", "TL"))
        ]
        values = [_value(case) for case in MODELS] if self == Capacity(seeds=self.seeds) else []
        return (*orderings, *values)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw final score, norm and attention against capacity."""
        panels = []
        for name, label in (
            ("score", "mean topic score"),
            ("norm", "mean topic norm"),
            ("attention_mean", "mean attention on the topic word"),
        ):
            finals = np.stack([final(tree, name, case) for case in MODELS], axis=1)
            mean, low, high = mean_interval(finals)
            panels.append(
                Panel(
                    label,
                    "classifier, capacity growing",
                    label,
                    (Dots(np.arange(3.0), mean, low, high, "mean over seeds, 95 %"),),
                    xticks=tuple((float(i), f"Attn-{case}") for i, case in enumerate(MODELS)),
                )
            )
        return [
            Figure(
                "capacity",
                "Lower capacity, stronger attention",
                f"End of training after {self.epochs:,} epochs, {self.seeds} seeds: a classifier "
                "that explains less leaves more for attention to explain (Lu 2021, section 5.1).",
                tuple(panels),
            )
        ]

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the end of training."""
        rows = tuple(
            (
                case,
                *(
                    float(final(tree, name, case).mean())
                    for name in ("score", "norm", "attention_mean", "loss")
                ),
            )
            for case in MODELS
        )
        columns = ("model", "mean topic score", "mean topic norm", "mean attention", "loss (nats)")
        return [Table("capacity", f"End of training, {self.seeds} seeds", columns, rows)]


def final(tree: xr.DataTree, name: str, case: str) -> np.ndarray:
    """Return a reading at the end of training, averaged over topic words, one per seed."""
    data = select(tree, name, case)
    data = data.isel({data.dims[1]: -1})
    return data.mean("word").to_numpy() if "word" in data.dims else data.to_numpy()


def _ordering(name: str, what: str, larger: str, smaller: str) -> Claim:
    return Claim(
        key=f"{what.split()[-1]}-{larger}-{smaller}",
        sentence=f"Topic words end up with a larger {what} under Attn-{larger} than under "
        f"Attn-{smaller}, whose classifier can do more.",
        source="section 5.1, Fig 1",
        paper=f"{larger} > {smaller}",
        statistic=lambda tree: final(tree, name, larger) / final(tree, name, smaller),
        criterion=above(1.1),
        control_sentence=f"Attn-{smaller} against itself with another seed",
        control=lambda tree: final(tree, name, smaller) / np.roll(final(tree, name, smaller), 1),
        each=False,
        measure=f"ratio of mean final {what}s",
    )


def _value(case: str) -> Claim:
    def score(tree: xr.DataTree, step: int) -> np.ndarray:
        return select(tree, "score", case).isel(step=step).mean("word").to_numpy()

    return Claim(
        key=f"score-{case}",
        sentence=f"The mean topic score of Attn-{case} ends at {SEEN[case]}.",
        source="section 5.1, Fig 1; the number is from an independent run of its setting",
        paper="a histogram",
        statistic=lambda tree: score(tree, -1),
        criterion=within(SEEN[case] - 0.3, SEEN[case] + 0.3),
        control_sentence="the same models after a tenth of the training",
        control=lambda tree: score(tree, select(tree, "score", case).sizes["step"] // 10),
        each=False,
        measure="mean topic score",
    )
