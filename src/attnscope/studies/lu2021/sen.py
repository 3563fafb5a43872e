"""Score and embedding norm of a topic word grow together along a closed curve (Figs 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from attnscope.claims import Claim, above, below
from attnscope.experiment import Problem
from attnscope.probes import histogram_interval, largest, relative_deviation
from attnscope.report import Figure, Histogram, Line, Panel, Table, bands, ends
from attnscope.report.figure import Scale
from attnscope.studies.lu2021._topic_words import MODELS, TopicWordsStudy
from attnscope.theory import lu2021
from attnscope.trajectory import Readings, final, initial

DEPENDENT = "FC, dependent U"
GROWN = 0.3
"""Norms below this still feel their random start, which eq (10) leaves out."""


@dataclass(frozen=True)
class Sen(TopicWordsStudy):
    """Attn-FC, -TC and -TL on topic words, at the paper's own scale.

    A fourth case breaks the condition of Theorem 2: two columns of the fixed U are equal.
    """

    quick = {"seeds": 2}
    cases = (*MODELS, DEPENDENT)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model with one seed."""
        model = self.model(next((kind for kind in MODELS if kind == case), "FC"), seed)
        if case == DEPENDENT:
            with torch.no_grad():
                model.classifier.weight[:, 1] = model.classifier.weight[:, 0]
        return self.problem(model, self.task.sample(seed))

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict norms by Corollary 1, and for Attn-FC everything, from the data alone.

        ``norm`` is eq (10) at the measured scores. ``score_lemma2`` integrates eqs (7) and (8) on
        their own from the run's initial state, for seed 0 of Attn-FC and Attn-TC; the kinks of
        Attn-TL are beyond an ODE solver. ``norm_ahead`` is the closed solution for a fixed
        orthonormal U, which knows neither scores nor embeddings.
        """
        score = run.score
        times, nothing = score["time"].to_numpy(), xr.full_like(score, np.nan, dtype=float)
        lemma, ahead, loss = nothing.copy(), nothing.copy(), nothing.isel(word=0).copy()
        for seed in range(self.seeds):
            share = self.shares(seed)
            norm = lu2021.fixed_linear_norm(times, self.task.m, self.task.topics, share)
            ahead.loc["FC", seed] = norm
            losses = lu2021.fixed_linear_loss(norm, self.task.m, self.task.topics)
            loss.loc["FC", seed] = losses @ share
        for case in ("FC", "TC"):
            lemma.loc[case, 0] = self.lemma2(case, 0, times)
        norm = lu2021.norm_from_score(score, self.task.m)
        return {
            "norm": (score.dims, norm, {"meaning": "Corollary 1 at the measured score"}),
            "score_lemma2": lemma.assign_attrs(meaning="Lemma 2 integrated on its own"),
            "norm_ahead": ahead.assign_attrs(meaning="closed solution, before training"),
            "loss_ahead": loss.assign_attrs(meaning="the loss that goes with it"),
        }

    def shares(self, seed: int) -> np.ndarray:
        """Return the share of training sentences that each topic word occurs in."""
        train = self.task.sample(seed).train
        return train.occurrences[: self.task.topic_words].double().numpy() / len(train)

    def lemma2(self, case: str, seed: int, times: np.ndarray) -> np.ndarray:
        """Integrate Lemma 2's equations from the start of a run; return the scores."""
        model = self.model("FC" if case == "FC" else "TC", seed)
        words, train = np.arange(self.task.topic_words), self.task.sample(seed).train
        return lu2021.lemma2_flow(
            model.scores(), model.embeddings(), model.classifier, train, words, times
        ).scores

    def claims(self) -> list[Claim]:
        """Return what section 4 and section 5.1 say of these runs."""
        m, topics, words = self.task.m, self.task.topics, self.task.topic_words

        def ahead_of_training(run: Readings, classes: int) -> np.ndarray:
            score, norm = run.of("FC").score, run.of("FC").theory.norm_ahead.to_numpy()
            if classes != topics:
                shares, times = map(self.shares, score["seed"].to_numpy()), score["time"]
                norm = np.stack([lu2021.fixed_linear_norm(times, m, classes, s) for s in shares])
            ahead = xr.DataArray(lu2021.score_from_norm(norm, m), dims=score.dims)
            return np.asarray(abs(ahead - score).max(("step", "word")) / final(score).mean("word"))

        return [
            Claim(
                "corollary1",
                "Attn-{case}: the norm of every topic word is √(2(s + (exp(s) - 1)/m)), "
                "whatever the classifier.",
                deviation,
                m,
                below(0.02),
                (2 * m, f"the wrong m: {2 * m} instead of {m}"),
                "Corollary 1, eq (10), Fig 2",
                "curves coincide",
                "largest relative deviation while the norm is above 0.3",
                per=MODELS,
            ),
            Claim(
                "theorem1",
                "Attn-{case}: s + exp(s)⟨1/Z(χ∖t)⟩ and ½‖v - ⟨v̄(χ∖t)⟩‖² grow by the same amount.",
                residual,
                True,
                below(0.02),
                (False, "without the softmax term: s alone against ½‖v - ⟨v̄⟩‖²"),
                "Theorem 1, eq (9)",
                "equal",
                "largest gap over the total growth",
                per=MODELS,
            ),
            Claim(
                "lemma2",
                "Attn-{case}: Lemma 2's equations, integrated on their own with all other words "
                "at rest, give the scores of the topic words at all times.",
                lemma2_error,
                1.0,
                below(0.05),
                (2.0, "the same equations with twice the learning rate"),
                "Lemma 2, eqs (7) and (8)",
                "stated as an approximation",
                "largest error over the final score, seed 0",
                reason="the rise of the score is steep, and the trained classifier lets non-topic "
                "words shift its onset: the same curve, a little earlier or later (see the table "
                "of Lemma 2). Theorem 1, which has no clock, is not affected.",
                per=("FC", "TC"),
            ),
            Claim(
                "assumption1-scores",
                "The scores of topic words exceed those of all non-topic words by two orders of "
                "magnitude, in all three models.",
                scores_apart,
                (0, words),
                above(100),
                ((words, words), f"{words} non-topic words in place of the topic words"),
                "Assumption 1, section 5.1, Fig 1",
                "two orders of magnitude",
                "mean |score| of topic words over the largest of a non-topic word, in the model "
                "where it is least",
            ),
            Claim(
                "assumption1-norms",
                "The embedding norms of non-topic words are nearly constant beside those of topic "
                "words, in all three models.",
                norms_apart,
                (0, words),
                below(0.02),
                ((words, words), f"{words} non-topic words in place of the topic words"),
                "Assumption 1, section 5.1, Fig 1",
                "nearly constant",
                "mean growth of non-topic norms over that of topic norms, in the model where it "
                "is most",
            ),
            Claim(
                "theorem2-attention",
                "A fixed linear classifier makes the model attend to the topic word in every "
                "training sentence.",
                lambda run, when: when(run.of("FC").attended),
                final,
                above(0.999),
                (initial, "the same model before training"),
                "Theorem 2",
                "every sentence",
                "share of sentences whose topic word has the largest weight",
            ),
            Claim(
                "theorem2-loss",
                "A fixed linear classifier with linearly independent columns brings the training "
                "loss close to zero.",
                lambda run, case: final(run.of(case).loss),
                "FC",
                below(0.05),
                (DEPENDENT, "two columns of U are equal: the theorem's condition is broken"),
                "Theorem 2; section 5.1",
                "close to zero",
                "nats",
            ),
            Claim(
                "ahead-of-training",
                "With an orthonormal U the whole curve of every topic score follows, before any "
                "training, from m, J and how often the word occurs.",
                ahead_of_training,
                topics,
                below(0.1),
                (topics + 4, f"the same for {topics + 4} topics instead of {topics}"),
                "beyond the paper: eqs (7) and (10) solved for a fixed orthonormal U",
                "not stated",
                "largest error over the final score",
            ),
            Claim(
                "accuracy",
                "Attn-{case} classifies all test sentences rightly.",
                lambda run, when: when(run.test_accuracy),
                final,
                above(0.999),
                (initial, "the same model before training"),
                "section 5.1",
                "100.0 %",
                "share of test sentences",
                per=MODELS,
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw Figs 1 and 2, and theory over training time."""
        return [self.sen_curves(run), self.histograms(run), self.over_time(run)]

    def sen_curves(self, run: Readings) -> Figure:
        """Draw Fig 2: one topic word's norm against its score, all seeds, and Corollary 1."""
        task = self.task
        panels: list[Panel] = []
        gaps: list[Panel] = []
        grid = np.linspace(0, 1.05 * float(run.score.sel(case=list(MODELS)).max()), 200)
        theory = Line(grid, lu2021.norm_from_score(grid, task.m), "Corollary 1", theory=True)
        zero = Line(grid[[0, -1]], np.zeros(2), "Corollary 1", theory=True)
        xlabel = "score of a topic word"
        for case in MODELS:
            score = run.of(case).score.isel(word=0).to_numpy()
            norm = run.of(case).norm.isel(word=0).to_numpy()
            predicted = lu2021.norm_from_score(score, task.m)
            gap = 100 * relative_deviation(norm, predicted, GROWN) * np.sign(norm - predicted)
            for y, what, more, into in (
                (norm, "norm of its embedding", theory, panels),
                (gap, "off Corollary 1 (%)", zero, gaps),
            ):
                lines = [Line(score[i], y[i], f"seed {i}", i) for i in range(len(y))]
                title = f"Attn-{case}" + (", magnified" if into is gaps else "")
                into.append(Panel(title, xlabel, what, (*lines, more)))
        return Figure(
            "fig2-sen",
            "Score and embedding norm grow along one curve",
            f"A topic word's embedding norm against its score over {self.training.epochs:,} "
            f"epochs, for three classifiers and {self.seeds} seeds, and "
            f"√(2(s + (exp(s) - 1)/m)) with m = {task.m}, which knows nothing of the classifier "
            "(Lu 2021, Corollary 1 and Fig 2). Below, the distance to the curve while the norm is "
            f"above {GROWN}.",
            (*panels, *gaps),
        )

    def histograms(self, run: Readings) -> Figure:
        """Draw Fig 1: where scores and norms of both kinds of words lie after training."""
        words, panels = self.task.topic_words, []
        for name, what in (("score_all", "score"), ("norm_all", "embedding norm")):
            for part, kind in ((slice(words, None), "non-topic"), (slice(words), "topic")):
                found = {c: final(run.of(c).get(name))[:, part].to_numpy() for c in MODELS}
                low, high = (f([f(v) for v in found.values()]) for f in (np.min, np.max))
                edges = np.linspace(low, high, 31)
                bars = tuple(
                    Histogram(edges, *histogram_interval(values, edges), f"Attn-{case}", i)
                    for i, (case, values) in enumerate(found.items())
                )
                panels.append(Panel(f"{what}, {kind} words", what, "share of words", bars))
        return Figure(
            "fig1-histograms",
            "Non-topic words hardly move",
            f"Scores and embedding norms after {self.training.epochs:,} epochs: mean over "
            f"{self.seeds} seeds with 95 % intervals. Mind the different horizontal axes: "
            "non-topic words stay near zero (Lu 2021, Assumption 1 and Fig 1).",
            tuple(panels),
            columns=2,
        )

    def over_time(self, run: Readings) -> Figure:
        """Draw score, norm and loss over epochs, with what theory says of each."""
        epochs, ahead = run.score["epoch"].to_numpy(), run.of("FC").theory
        norm = ahead.norm_ahead.mean(("word", "seed")).to_numpy()
        lemma = run.of("TC").theory.score_lemma2.sel(seed=0).mean("word").to_numpy()
        before = "Attn-FC, known before training"
        more = {
            "score": (
                Line(epochs, lu2021.score_from_norm(norm, self.task.m), before, theory=True),
                Line(epochs, lemma, "Attn-TC, Lemma 2, seed 0", theory=True),
            ),
            "norm": (Line(epochs, norm, before, theory=True),),
            "loss": (Line(epochs, ahead.loss_ahead.mean("seed").to_numpy(), before, theory=True),),
        }
        panels = []
        for name, title, ylabel in (
            ("score", "score", "mean topic score"),
            ("norm", "embedding norm", "mean topic norm"),
            ("loss", "training loss", "cross-entropy (nats)"),
        ):
            log = name == "loss"
            found = {f"Attn-{case}": run.of(case).get(name) for case in MODELS}
            marks = (*bands(found, x="epoch", log=log), *more[name])
            yscale: Scale = "log" if log else "linear"
            panels.append(Panel(title, "epoch", ylabel, marks, yscale=yscale))
        return Figure(
            "over-time",
            "The same runs over training time",
            f"Mean over topic words and {self.seeds} seeds with 95 % bands. Dashed: for Attn-FC "
            "the closed solution from m, J and word counts alone, computed before any training; "
            "for Attn-TC Lemma 2 integrated on its own from the initial state of seed 0.",
            tuple(panels),
        )

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the end of training, model by model, and what is off in Lemma 2."""
        others = abs(final(run.score_all)).isel(vocab=slice(self.task.topic_words, None))
        columns = {
            "training loss (nats)": run.loss,
            "mean topic score": run.score,
            "mean topic norm": run.norm,
            "mean |non-topic score|": others,
            "largest |non-topic score|": others.max(("vocab", "seed")),
            "mean attention on the topic word": run.attention_mean,
            "test accuracy": run.test_accuracy,
            "gradients computed": run.stats.evaluations,
        }
        title = f"End of training, mean over {self.seeds} seeds"
        rows = []
        for case in ("FC", "TC"):
            error, shift, left = lemma2_shift(run.of(case))
            rows.append((case, error, round(shift / (self.unit or 1.0)), left))
        return [
            ends(run, title=title, more=columns, head="model"),
            Table(
                "lemma2",
                "Lemma 2 on its own, over the final score, seed 0",
                ("model", "largest error", "best shift of the clock (epochs)", "error after it"),
                tuple(rows),
            ),
        ]


def deviation(run: Readings, m: float) -> np.ndarray:
    """Return how far norms are from Corollary 1 at the measured scores, one number per seed."""
    predicted = lu2021.norm_from_score(run.score, m)
    return largest(relative_deviation(run.norm.to_numpy(), predicted, GROWN), axis=(1, 2))


def residual(run: Readings, with_softmax: bool) -> xr.DataArray:
    """Return the gap between the growth of both sides of eq (9), over the total growth."""
    sides = run.identity
    left, right = (sides.sel(side=side) for side in ("score", "embedding"))
    if not with_softmax:
        left = run.score.interp(step=sides["probe"])
    left, right = (side - side.isel(probe=0) for side in (left, right))
    return (abs(left - right) / right.isel(probe=-1)).max(("probe", "word"))


def lemma2_error(run: Readings, stretch: float = 1.0, shift: float = 0.0) -> list[float]:
    """Return the largest error of Lemma 2 for seed 0, over the final score."""
    score, lemma = run.score.sel(seed=0), run.theory.score_lemma2.sel(seed=0).to_numpy()
    clock = score["time"].to_numpy()
    moved = [np.interp(clock * stretch - shift, clock, column) for column in lemma.T]
    gap = np.abs(score.to_numpy() - np.stack(moved, axis=-1)).max()
    return [float(gap / final(score).mean())]


def lemma2_shift(run: Readings) -> tuple[float, float, float]:
    """Return Lemma 2's largest error, the best common shift of its clock, and the error after it.

    Errors are over the final score, for seed 0; the shift is in units of time.
    """
    shifts = np.linspace(-0.1, 0.1, 201) * float(run.score["time"][-1])
    errors = [lemma2_error(run, shift=shift)[0] for shift in shifts]
    best = int(np.argmin(errors))
    return lemma2_error(run)[0], float(shifts[best]), errors[best]


def _split(reading: xr.DataArray, part: tuple[int, int]) -> tuple[xr.DataArray, xr.DataArray]:
    """Return some words of the dictionary, and those that are neither topic words nor controls."""
    start, count = part
    models = reading.sel(case=[case for case in MODELS if case in reading["case"]])
    return models.isel(vocab=slice(start, start + count)), models.isel(vocab=slice(2 * count, None))


def scores_apart(run: Readings, part: tuple[int, int]) -> xr.DataArray:
    """Return the mean |score| of some words over the largest of a non-topic word.

    Not over the mean of non-topic words: gradients of a softmax sum to zero, so that mean is
    (topic words / dictionary) × the topic mean however training goes.
    """
    own, others = _split(abs(final(run.score_all)), part)
    ratio = own.mean("vocab") / others.max("vocab")
    return ratio.max("case") if part[0] else ratio.min("case")


def norms_apart(run: Readings, part: tuple[int, int]) -> xr.DataArray:
    """Return the mean growth of non-topic norms over that of some words."""
    own, others = _split(abs(final(run.norm_all) - initial(run.norm_all)), part)
    share = others.mean("vocab") / own.mean("vocab")
    return share.min("case") if part[0] else share.max("case")
