"""W^V learns first and attention later, with SGD and a small start but not with Adam (Fig 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.li2023 import _two_stage_claims, _two_stage_figures, _two_stage_tables
from attnscope.studies.li2023._onset_model import (
    UniformGradient,
    near_zero,
    score_norm,
)
from attnscope.studies.li2023._old_topic_documents import TopicDocumentsStudy
from attnscope.studies.li2023._two_stage_settings import MATRICES, SETTINGS
from attnscope.trajectory import select
from attnscope.tasks import TopicDocuments, TopicStream
from attnscope.theory import li2023

HELD_OUT = 1_000_003
"""Seed of the documents on which losses and G are measured; runs have small seeds."""


@dataclass(frozen=True)
class TwoStage(TopicDocumentsStudy):
    """Norms of W^K, W^Q and W^V over steps of SGD and Adam, on fresh documents.

    The paper gives neither the noise nor the learning rate of its Fig 4, so several are run. Two
    more runs have frozen uniform attention; they predict when attention starts in the others.
    """

    engine: Literal["flow", "descent"] = "descent"
    """Gradient descent step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps, and every case has its own learning rate."""
    epochs: int = 1000
    """Steps."""
    points: int = 201
    """Record points, evenly spaced."""
    alpha: float = 0.1
    """Parameter of the Dirichlet distribution of a document's topics."""
    length: int = 128
    """N, positions of a document."""
    batch: int = 40
    """Documents in a step, never seen again."""
    value_noise: float = 1e-2
    """Standard deviation of the initial entries of W^V."""
    held_out: int = 400
    """Documents on which the loss and G are measured."""

    quick: ClassVar[dict[str, Any]] = {"seeds": 2, "epochs": 600, "points": 121, "held_out": 200}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._documents()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and every case has its own rate."
            )
        for name in ("batch", "held_out"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        if self.epochs % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {self.epochs} steps: expected points a whole number "
                "of steps apart."
            )

    def _documents(self) -> TopicDocuments:
        return self.task(alpha=self.alpha, length=self.length)

    def cases(self) -> tuple[str, ...]:
        """Return the settings."""
        return tuple(SETTINGS)

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.epochs:,} steps of SGD or Adam on fresh documents"

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return the optimizer of a case on fresh mini-batches."""
        setting = SETTINGS[case]
        return Descent(
            lr=setting.lr,
            optimizer=setting.optimizer,
            batch_size=self.batch,
            samples=self.batch * (self.epochs + 1),
            seed=seed,
            tick=1.0,
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed see the same documents."""
        task, setting = self._documents(), SETTINGS[case]
        model = near_zero(task.vocabulary, setting.attention, setting.noise, self.value_noise, seed)
        start = [matrix.detach().clone() for matrix in _matrices(model)]
        held_out = task.sample(self.held_out, HELD_OUT)
        test = TopicObjective(held_out)

        def norms(module: nn.Module) -> Tensor:
            return torch.stack([matrix.norm() for matrix in _matrices(module)])

        def changes(module: nn.Module) -> Tensor:
            pairs = zip(_matrices(module), start, strict=True)
            return torch.stack([(matrix - first).norm() for matrix, first in pairs])

        curves = (
            Observable("loss", test, (), "nats", "cross-entropy of unseen documents"),  # type: ignore[arg-type]
            Observable("norm", norms, ("matrix",), "", "‖W^K‖_F, ‖W^Q‖_F, ‖W^V‖_F"),
            Observable("change", changes, ("matrix",), "", "‖W - W(0)‖_F of the same"),
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
        )
        records = [Record(curves, Linear(self.points))]
        if setting.attention == "uniform":
            readings = UniformGradient(held_out, torch.float32).observables()[:1]
            records.append(Record(readings, Linear(self.points), dim="probe"))
        return Problem(model, TopicObjective(TopicStream(task, seed)), records)

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict ‖W^Kᵀ W^Q‖₂ of every SGD run from a run of its seed without attention.

        (ε² d_a/2) exp(2∫σ dt) with σ → log(1 + ησ)/η, where time is learning rate × steps. The
        onset of a slow run may lie beyond its own end: W^V under uniform attention depends on
        time, nearly not on the learning rate, so σ of a faster run knows it.
        """
        steps = tree["observables/time"].to_numpy()
        runs = self.runs()
        norms, onsets = np.full((len(runs), len(steps)), np.nan), np.full(len(runs), np.nan)
        for run, (case, seed) in enumerate(runs):
            setting = SETTINGS[case]
            if not setting.source:
                continue
            source = SETTINGS[setting.source]
            sigma = select(tree, "sigma", setting.source).isel(run=seed, rank=0).to_numpy()
            times, d_a = source.lr * steps, self._documents().vocabulary
            onset = li2023.predicted_onset(times, sigma, setting.noise, d_a, setting.lr)
            onsets[run] = onset.time / setting.lr
            own = setting.lr * steps
            along = np.interp(own, times, sigma)
            norms[run] = li2023.predicted_norms(own, along, setting.noise, d_a, setting.lr)
        return xr.Dataset(
            {
                "score_norm_ahead": (
                    ("run", "step"),
                    norms,
                    {"meaning": "‖W^Kᵀ W^Q‖₂ predicted without training attention"},
                ),
                "onset_ahead": ("run", onsets, {"unit": "steps", "meaning": "where it reaches 1"}),
            },
            coords={"time": ("step", steps)},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what the paper says of the two stages, and what predicts them."""
        return _two_stage_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Fig 4 for every setting, and the predicted onset."""
        return _two_stage_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate when each matrix starts, and the onset with its prediction."""
        return _two_stage_tables.tables(self, tree)


def _matrices(model: nn.Module) -> list[Tensor]:
    """Return W^K, W^Q and W^V; those that uniform attention does not have are zero."""
    zero = torch.zeros((1, 1), dtype=next(model.parameters()).dtype)
    found = [getattr(model, f"W_{name}") for name in MATRICES]
    return [zero if matrix is None else matrix for matrix in found]
