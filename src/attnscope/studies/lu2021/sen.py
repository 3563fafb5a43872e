"""Score and embedding norm of a topic word grow together along a closed curve (Figs 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from attnscope.claims import Claim
from attnscope.models.classifiers import Kind
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.studies.base import Problem
from attnscope.studies.lu2021 import _sen_claims, _sen_figures
from attnscope.studies.lu2021._topic_words import TopicWordsStudy
from attnscope.studies.readings import select
from attnscope.theory import lu2021

MODELS: tuple[Kind, ...] = ("FC", "TC", "TL")
DEPENDENT = "FC, dependent U"


@dataclass(frozen=True)
class Sen(TopicWordsStudy):
    """Attn-FC, -TC and -TL on topic words, at the paper's own scale.

    A fourth case breaks the condition of Theorem 2: two columns of the fixed U are equal.
    """

    quick: ClassVar[dict[str, Any]] = {"seeds": 2}

    def cases(self) -> tuple[str, ...]:
        """Return the three models, and the control of Theorem 2."""
        return (*MODELS, DEPENDENT)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model with one seed."""
        if case == DEPENDENT:
            model = self.model("FC", seed)
            with torch.no_grad():
                model.classifier.weight[:, 1] = model.classifier.weight[:, 0]
        else:
            model = self.model(next(kind for kind in MODELS if kind == case), seed)
        return self.problem(model, self.task().sample(seed))

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict norms by Corollary 1, and for Attn-FC everything, from the data alone.

        ``norm`` is eq (10) at the measured scores. ``score_lemma2`` integrates eqs (7) and (8) on
        their own from the run's initial state, for seed 0 of Attn-FC and Attn-TC; the kinks of
        Attn-TL are beyond an ODE solver. ``norm_ahead`` is the closed solution for a fixed
        orthonormal U, which knows neither scores nor embeddings.
        """
        observed = tree["observables"].to_dataset()
        times = observed["time"].to_numpy()
        shape = observed["score"].shape
        dims = observed["score"].dims
        lemma, ahead = np.full(shape, np.nan), np.full(shape, np.nan)
        loss_ahead = np.full(shape[:2], np.nan)
        for run, (case, seed) in enumerate(self.runs()):
            data = self.task().sample(seed)
            if case == "FC":
                share = data.train.occurrences[: shape[-1]].double() / len(data.train)
                ahead[run] = lu2021.fixed_linear_norm(times, self.m, self.topics, share)
                losses = lu2021.fixed_linear_loss(ahead[run], self.m, self.topics)
                loss_ahead[run] = losses @ share.numpy()
            if case in ("FC", "TC") and seed == 0:
                lemma[run] = self._lemma2(case, seed, times)
        return xr.Dataset(
            {
                "norm": (
                    dims,
                    lu2021.norm_from_score(observed["score"].to_numpy(), self.m),
                    {"meaning": "Corollary 1 at the measured score"},
                ),
                "score_lemma2": (dims, lemma, {"meaning": "Lemma 2 integrated on its own"}),
                "norm_ahead": (dims, ahead, {"meaning": "closed solution, before training"}),
                "loss_ahead": (dims[:2], loss_ahead, {"meaning": "the loss that goes with it"}),
            },
            coords={"time": ("step", times)},
        )

    def _lemma2(self, case: str, seed: int, times: np.ndarray) -> np.ndarray:
        model = self.build(case, seed).model
        words = np.arange(self.task().topic_words)
        sentences = self.task().sample(seed).train
        flow = lu2021.lemma2_flow(
            model.scores(),  # type: ignore[operator]
            model.embeddings(),  # type: ignore[operator]
            model.classifier,  # type: ignore[arg-type]
            sentences,
            words,
            times,
        )
        return flow.scores

    def claims(self) -> tuple[Claim, ...]:
        """Return what section 4 and section 5.1 say of these runs."""
        return _sen_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Figs 1 and 2, and theory over training time."""
        return _sen_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the end of training, model by model."""
        rows = []
        for case in self.cases():
            norm = select(tree, "norm", case)
            score = select(tree, "score", case)
            everywhere = select(tree, "score_all", case).isel(snapshot=-1)
            others = np.abs(everywhere.to_numpy()[:, self.task().topic_words :])
            rows.append(
                (
                    case,
                    float(select(tree, "loss", case).isel(step=-1).mean()),
                    float(score.isel(step=-1).mean()),
                    float(norm.isel(step=-1).mean()),
                    float(others.mean()),
                    float(others.max()),
                    float(select(tree, "attention_mean", case).isel(probe=-1).mean()),
                    float(select(tree, "test_accuracy", case).isel(snapshot=-1).mean()),
                    float(select(tree, "evaluations", case, "stats").mean()),
                )
            )
        columns = (
            "model",
            "training loss (nats)",
            "mean topic score",
            "mean topic norm",
            "mean |non-topic score|",
            "largest |non-topic score|",
            "mean attention on the topic word",
            "test accuracy",
            "gradients computed",
        )
        title = f"End of training, mean over {self.seeds} seeds"
        lemma = []
        for case in ("FC", "TC"):
            error, shift, left = _sen_claims.lemma2_shift(tree, case)
            lemma.append((case, error, round(shift / self.lr), left))
        heads = ("model", "largest error", "best shift of the clock (epochs)", "error after it")
        return [
            Table("end", title, columns, tuple(rows)),
            Table(
                "lemma2", "Lemma 2 on its own, over the final score, seed 0", heads, tuple(lemma)
            ),
        ]
