"""Score and embedding pull each other up, or first hold each other down (Fig 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.engines import Given
from attnscope.models import BagAttention
from attnscope.models.bag_attention import Freeze
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.lu2021 import _synergy_claims, _synergy_figures
from attnscope.studies.lu2021._topic_words import TopicWordsStudy
from attnscope.trajectory import select
from attnscope.theory import lu2021

FREEZE: dict[str, Freeze] = {"TC": "nothing", "TC-KF": "scores", "TC-EF": "embeddings"}
NEGATIVE = ", negative start"


@dataclass(frozen=True)
class Synergy(TopicWordsStudy):
    """Attn-TC against its twins with frozen scores (KF) and frozen embeddings (EF).

    One topic word is followed. Its initial embedding is given a projection of a chosen size on the
    direction that it will move along, positive in three cases and negative in three others.
    """

    epochs: int = 60_000
    variance: float = 0.1
    projection: float = 0.5
    """Initial projection of the followed word on u_y - mean(u); its opposite if negative."""
    early: int = 3000
    """Epochs at the beginning that are recorded densely."""

    quick: ClassVar[dict[str, Any]] = {"seeds": 2}

    def cases(self) -> tuple[str, ...]:
        """Return the three models, from a positive and from a negative start."""
        return (*FREEZE, *(name + NEGATIVE for name in FREEZE))

    def curve_schedule(self) -> Given:
        """Evenly over the early epochs, then in constant ratio."""
        early = min(self.early, self.epochs) * self.lr
        dense = np.linspace(0, early, self.points)
        late = np.geomspace(early, self.time, 40)
        return Given((*dense, *late[1:]))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model with one seed."""
        base = case.removesuffix(NEGATIVE)
        model = self.model("TC", seed, FREEZE[base])
        push(model, -self.projection if case.endswith(NEGATIVE) else self.projection)
        return self.problem(model, self.task().sample(seed))

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict ½‖v - ⟨v̄⟩‖² by Theorem 1 from the score, with initial values that matter."""
        sides = tree["observables/identity"]
        left, right = sides.isel(side=0), sides.isel(side=1)
        predicted = left - left.isel(probe=0) + right.isel(probe=0)
        times = tree["observables/time"].to_numpy()
        score = tree["observables/score"]
        return xr.Dataset(
            {
                "norm": (
                    score.dims,
                    lu2021.norm_from_score(score.to_numpy(), self.m),
                    {"meaning": "Corollary 1 at the measured score, blind to the start"},
                ),
                "distance": (
                    predicted.dims,
                    np.sqrt(np.maximum(0, 2 * predicted.to_numpy())),
                    {"meaning": "Theorem 1 at the measured score"},
                ),
            },
            coords={"time": ("step", times)},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what section 5.1 says of the synergy."""
        return _synergy_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Fig 3, and Theorem 1 where Corollary 1 does not reach."""
        return _synergy_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate when the diminution turns, seed by seed."""
        turn = _synergy_claims.turning_epochs(tree)
        lowest = _synergy_claims.lowest_scores(tree, "TC" + NEGATIVE)
        rows = tuple(
            (int(seed), float(turn[seed]), float(lowest[seed])) for seed in range(self.seeds)
        )
        end = tuple(
            (
                case,
                float(select(tree, "loss", case).isel(step=-1).mean()),
                float(select(tree, "score", case).isel(step=-1, word=0).mean()),
                float(select(tree, "norm", case).isel(step=-1, word=0).mean()),
                float(select(tree, "test_accuracy", case).isel(snapshot=-1).mean()),
                float(select(tree, "evaluations", case, "stats").mean()),
            )
            for case in self.cases()
        )
        score = select(tree, "score", "TC-EF").isel(step=-1).to_numpy()
        right = select(tree, "test_accuracy", "TC-EF").isel(snapshot=-1).to_numpy()
        frozen = tuple(
            (seed, float(right[seed]), int((score[seed] < 0).sum()), float(score[seed].min()))
            for seed in range(self.seeds)
        )
        return [
            Table(
                "frozen-embeddings",
                "Attn-TC-EF at the end",
                ("seed", "test accuracy", "topic words with a negative score", "lowest score"),
                frozen,
            ),
            Table(
                "turn",
                "From mutual diminution to mutual enhancement",
                ("seed", "epoch from which TC's norm grows faster than KF's", "lowest score"),
                rows,
            ),
            Table(
                "end",
                f"End of training, mean over {self.seeds} seeds",
                ("case", "loss (nats)", "score", "norm", "test accuracy", "gradients computed"),
                end,
            ),
        ]


def push(model: BagAttention, projection: float) -> None:
    """Give word 0, of topic 0, an initial embedding with this projection on u_0 - mean(u)."""
    weight = model.classifier.weight.detach()
    direction = weight[:, 0] - weight.mean(dim=1)
    direction = direction / direction.norm()
    with torch.no_grad():
        word = model.embedding[0]
        word += (projection - word @ direction) * direction
