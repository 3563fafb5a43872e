"""The runs of ``li2023.two_stage``, and the onset that a run without attention predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Amount, Count, Positive
from attnscope.engines import Adam, Linear, Observable, Record, Sgd, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models import TopicObjective
from attnscope.models.topic_transformer import AttentionMode
from attnscope.studies.li2023._topic_documents import TopicDocumentsStudy
from attnscope.studies.li2023.two_stage.claims import claims
from attnscope.studies.li2023.two_stage.figures import figures, tables
from attnscope.studies.li2023.two_stage.settings import MATRICES, SETTINGS
from attnscope.tasks import TopicDocuments, TopicStream
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import UniformGradient, near_zero, score_norm
from attnscope.trajectory import Readings

HELD_OUT = 1_000_003
"""Seed of the documents on which losses and G are measured; runs have small seeds."""


@dataclass(frozen=True)
class TwoStage(TopicDocumentsStudy):
    """Norms of W^K, W^Q and W^V over steps of SGD and Adam, on fresh documents.

    The paper gives neither the noise nor the learning rate of its Fig 4, so several are run. Two
    more runs have frozen uniform attention; they predict when attention starts in the others.
    """

    training: Steps = Steps(steps=1000, batch=40)
    """Steps on fresh documents; every case has its own learning rate."""
    alpha: Positive = 0.1
    """Parameter of the Dirichlet distribution of a document's topics."""
    length: Count = 128
    """N, positions of a document."""
    value_noise: Amount = 1e-2
    """Standard deviation of the initial entries of W^V."""
    held_out: Count = 400
    """Documents on which the loss and G are measured."""

    quick = {"seeds": 2, "steps": 600, "points": 121, "held_out": 200}
    cases = tuple(SETTINGS)
    labels: ClassVar = {"matrix": MATRICES, "rank": ("largest", "second")}
    claims, figures, tables = claims, figures, tables

    def check(self) -> None:
        """Check that there are such documents, and that record points are steps."""
        self.documents()
        if self.training.steps % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {self.training.steps} steps: expected points a whole "
                "number of steps apart."
            )

    def documents(self) -> TopicDocuments:
        """Return what documents look like."""
        return self.task(alpha=self.alpha, length=self.length)

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.training.steps:,} steps of SGD or Adam on fresh documents"

    def engine(self, case: str, seed: int) -> Adam | Sgd:
        """Return the optimizer of a case."""
        setting = SETTINGS[case]
        return (self.training.adam if setting.adam else self.training.sgd)(setting.rate)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case; all cases of a seed see the same documents."""
        task, setting = self.documents(), SETTINGS[case]
        attention: AttentionMode = "uniform" if setting.uniform else "learned"
        model = near_zero(task.vocabulary, attention, setting.noise, self.value_noise, seed)
        start = [matrix.detach().clone() for matrix in matrices(model)]
        held_out = task.sample(self.held_out, HELD_OUT)

        def norms(module: nn.Module) -> Tensor:
            return torch.stack([matrix.norm() for matrix in matrices(module)])

        def changes(module: nn.Module) -> Tensor:
            pairs = zip(matrices(module), start, strict=True)
            return torch.stack([(matrix - first).norm() for matrix, first in pairs])

        loss = TopicObjective(held_out)
        curves = (
            Observable("loss", loss, (), "nats", "cross-entropy of unseen documents"),  # type: ignore[arg-type]
            Observable("norm", norms, ("matrix",), "", "‖W^K‖_F, ‖W^Q‖_F, ‖W^V‖_F"),
            Observable("change", changes, ("matrix",), "", "‖W - W(0)‖_F of the same"),
            Observable("score_norm", score_norm, (), "", "‖W^Kᵀ W^Q‖₂"),
        )
        records = [Record(curves, Linear(self.points))]
        if setting.uniform:
            readings = UniformGradient(held_out, torch.float32).observables()[:1]
            records.append(Record(readings, Linear(self.points), dim="probe"))
        rows = (self.training.batch or 0) * (self.training.steps + 1)
        fresh = TopicObjective(TopicStream(task, seed))
        return Problem(model, fresh, records, rows=rows, seed=seed)

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Predict ‖W^Kᵀ W^Q‖₂ of every SGD run from a run of its seed without attention.

        (ε² d_a/2) exp(2∫σ dt) with σ → log(1 + ησ)/η, where time is learning rate × steps. The
        onset of a slow run may lie beyond its own end: W^V under uniform attention depends on
        time, nearly not on the learning rate, so σ of a faster run knows it.
        """
        norms = xr.full_like(run.score_norm, np.nan, dtype=float)
        onsets = norms.isel(step=0, drop=True).copy()
        for case, (rate, noise, source, *_) in SETTINGS.items():
            if source:
                onsets.loc[case] = self.predicted_onset(run, case)
                times, own = (each * norms["step"] for each in (SETTINGS[source].rate, rate))
                for seed, sigma in enumerate(run.of(source).sigma.sel(rank="largest")):
                    along = np.interp(own, times, sigma)
                    ahead = li2023.predicted_norms(own, along, noise, self.width, rate)
                    norms.loc[case, seed] = ahead
        meaning = "‖W^Kᵀ W^Q‖₂ predicted without training attention"
        return {
            "score_norm_ahead": norms.assign_attrs(meaning=meaning),
            "onset_ahead": onsets.assign_attrs(unit="steps", meaning="where it reaches 1"),
        }

    @property
    def width(self) -> int:
        """d_a, rows of W^K and W^Q, as many as there are words."""
        return self.task().vocabulary

    def predicted_onset(self, run: Readings, case: str, factor: float = 1.0) -> np.ndarray:
        """Return the step where attention starts in a case, at so many times its noise."""
        rate, noise, source, *_ = SETTINGS[case]
        sigma = run.of(source).sigma.sel(rank="largest")
        times = SETTINGS[source].rate * sigma["probe"].to_numpy()
        found = [
            li2023.predicted_onset(times, own, factor * noise, self.width, rate).time
            for own in sigma
        ]
        return np.array(found) / rate


def matrices(model: nn.Module) -> list[Tensor]:
    """Return W^K, W^Q and W^V; those that uniform attention does not have are zero."""
    zero = torch.zeros((1, 1), dtype=next(model.parameters()).dtype)
    found = [getattr(model, f"W_{name}") for name in MATRICES]
    return [zero if matrix is None else matrix for matrix in found]
