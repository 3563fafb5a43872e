"""The spec of ``snell2021.multihead``: trials of single heads, and models put together of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Natural, Several
from attnscope.claims import Claim, above, below, call, within
from attnscope.engines import Adam, Observable
from attnscope.experiment import Problem
from attnscope.models.seq2seq import Seq2Seq, cross_entropy
from attnscope.models.seq2seq.options import Cell, Pooled
from attnscope.studies.snell2021._copying_study import HELD_OUT, SequenceStudy
from attnscope.studies.snell2021.multihead.figures import fig6_figures, fig6_tables
from attnscope.studies.snell2021.multihead.heads import (
    ALL_BAD,
    BAD,
    CANDIDATE,
    GOOD,
    ONE_GOOD,
    RANDOM,
    SCENARIOS,
    Head,
    best,
    candidate_head,
    chosen,
    end,
    judged,
    pools,
    random_heads,
)
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import END, SequencePairs
from attnscope.trajectory import Readings, final

FIG6 = "section 5.2, Fig 6"
FRESH = 1000
"""First seed of the data of runs with several heads: no candidate was judged on it."""


@dataclass(frozen=True)
class Multihead(SequenceStudy):
    """Permutations are copied with eight heads whose starts are known to be good or bad alone.

    Single heads with random starts are tried first, on several streams of data each. The rest of
    the model starts the same in all runs. Then eight bad ones, seven bad and a good one, or eight
    random ones are put together. Heads are judged at the end of training.
    """

    seeds: Count = 20
    """Runs of each scenario with several heads."""
    training: Adam = Adam(rate=1e-3, steps=200, batch=128)
    points: Several = 21
    heads: Several = 8
    """K, heads of the runs with several."""
    candidates: Several = 40
    """Starts of single heads that are tried."""
    streams: Count = 3
    """Streams of data that each of them is tried on."""
    cell: Cell = "lstm"
    """``lstm`` as in the paper; the released code has ``gru``."""
    pooled: Pooled = "sum"
    """``sum`` of the heads' contexts as in eq 21; the released code has their ``mean``."""
    head_projections: bool = False
    """A projection for each head, part of its start, as in the released code; eq 21 has none."""
    separate_embeddings: bool = False
    """Encoder and decoder have their own embeddings, as in the released code."""
    backbone: Natural = 0
    """Seed of everything but the heads, the same in all runs."""

    quick = {
        "seeds": 3,
        "steps": 300,
        "points": 16,
        "rate": 2e-3,
        "length": 24,
        "width": 64,
        "heads": 4,
        "candidates": 8,
        "streams": 2,
        "cell": "gru",
        "pooled": "mean",
        "head_projections": True,
        "separate_embeddings": True,
    }
    # With 510 steps all of eight single starts were good; at step 170 four were, and four bad.
    desk = {**quick, "steps": 170, "points": 18, "length": 40, "width": 128, "heads": 8}
    cases = (CANDIDATE, *SCENARIOS)
    figures = fig6_figures
    tables = fig6_tables

    def task(self) -> Copying:
        """Return the task, the same for all runs."""
        return Copying(self.length, self.length)

    def runs(self) -> list[tuple[str, int]]:
        """Return the trials of single heads, candidate by candidate, then the scenarios."""
        self.check_runs(self.candidates * self.streams + self.seeds * len(SCENARIOS))
        single = [(CANDIDATE, number) for number in range(self.candidates * self.streams)]
        return single + [(case, seed) for seed in range(self.seeds) for case in SCENARIOS]

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        """Return the trials of single heads, and then what is put together from them."""
        first, total = self.candidates * self.streams, len(self.runs())
        return tuple(range(first)), tuple(range(first, total))

    def build(self, case: str, seed: int) -> Problem:
        """Make a single head, or several random ones."""
        if case == CANDIDATE:
            return self._problem([candidate_head(seed // self.streams, self.width)], case, seed)
        return self._problem(random_heads(seed, self.heads, self.width), case, seed)

    def build_after(self, case: str, seed: int, earlier: Readings) -> Problem:
        """Put heads together whose trials are known."""
        if case == RANDOM:
            return self.build(case, seed)
        numbers = chosen(pools(self.trials(earlier)), case, seed, self.heads)
        return self._problem([candidate_head(n, self.width) for n in numbers], case, seed)

    def _problem(self, heads: Sequence[Head], case: str, seed: int) -> Problem:
        """Return a run with given heads; scenarios of one seed see the same data."""
        task = self.task()
        torch.manual_seed(self.backbone)
        model = Seq2Seq(
            task.vocabulary,
            task.vocabulary if self.separate_embeddings else None,
            embedding=self.width,
            hidden=self.width,
            heads=len(heads),
            heads_pooled=self.pooled,
            output="tanh",
            cell=self.cell,
            head_projections=self.head_projections,
        )
        parameters = [model.head_W, model.head_b]
        if (own := model.head_projections) is not None:
            parameters += [own.weight, own.bias]
        with torch.no_grad():
            for parameter, starts in zip(parameters, zip(*heads, strict=True), strict=False):
                parameter.copy_(torch.stack(starts))
        read = observables(task.sample(self.held_out, HELD_OUT), task.gold, self.heads)
        stream = seed % self.streams if case == CANDIDATE else FRESH + seed
        return self.problem(model, task, read, stream)

    def trials(self, run: Readings) -> xr.DataArray:
        """Return the accuracy of single heads, along ``candidate``, ``stream`` and ``step``."""
        single = run.of(CANDIDATE).accuracy.drop_vars("seed")
        return single.coarsen(seed=self.streams).construct(seed=("candidate", "stream"))

    def truth(self) -> dict[str, object]:
        """Return which candidate and which data a run of a single head is; -1 for the others."""
        candidate, stream = np.transpose(
            [divmod(k, self.streams) if case == CANDIDATE else (-1, -1) for case, k in self.runs()]
        )
        return {
            "candidate": ("run", candidate, {"meaning": "number of the head's start"}),
            "stream": ("run", stream, {"meaning": "number of its data"}),
        }

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict the share of runs with random heads that learn, if one good head is enough.

        With q the share of good heads among candidates it is 1 - (1 - q)^K.
        """
        q = float(judged(self.trials(run))["good"].mean())
        several, meaning = 1 - (1 - q) ** self.heads, "1 - (1 - q)^K, some head of K is good"
        return {
            "share_good": ((), q, {"meaning": "q, share of candidates that are good"}),
            "share_learned": ((), several, {"meaning": meaning}),
        }

    def claims(self) -> list[Claim]:
        """Return what the paper says of the three scenarios."""
        heads, steps, points = self.heads, self.training.steps, self.points

        def if_told(of: Callable[..., Any]) -> Callable[..., Any]:
            # Where no single start is bad, or none is good, stand-ins are neither, and nothing can
            # be said of heads that are: neither the statement nor its control.
            def statistic(run: Readings, given: Any) -> Any:
                found = of(run, given)
                return found if fewer(run, points) else found * np.nan

            return statistic

        def fewer(run: Readings, points: int) -> int:
            judgement = judged(self.trials(run).isel(step=slice(points)))
            return min(int(judgement[kind].sum()) for kind in ("good", "bad"))

        def bad_alone(run: Readings) -> np.ndarray:
            trials = self.trials(run)
            bad = trials.isel(candidate=list(pools(trials).bad))
            return bad.max("step", skipna=False).to_numpy().ravel()

        return [
            Claim(
                "both-kinds",
                "With everything but the head the same, some starts of a single head are good on "
                f"all of {self.streams} streams of data, and some are bad on all of them.",
                fewer,
                points,
                above(0),
                (1 + (points - 1) // 10, "the same heads judged after a tenth of the steps"),
                FIG6,
                "found by rejection sampling",
                "the smaller of the numbers of good and of bad starts",
                reason="the start of the head does not decide alone: see the table of candidates.",
            ),
            Claim(
                "all-bad",
                f"If the starts of all {heads} heads are bad, the model fails: its accuracy is "
                f"below {BAD:g} after {steps} steps.",
                if_told(end),
                ALL_BAD,
                below(BAD),
                (ONE_GOOD, "one of them is good"),
                FIG6,
                "likely to fail",
                "accuracy at the end",
                each=False,
                reason="heads that are bad alone need not be bad together: the model ends above "
                "what each of them reaches in its own trials (tables of scenarios and candidates).",
            ),
            Claim(
                "one-good",
                f"If the start of one of {heads} heads is good, the model learns: its accuracy "
                f"exceeds {GOOD:g} within {steps} steps.",
                if_told(call),
                lambda run: best(run, ONE_GOOD),
                above(GOOD),
                (bad_alone, "single bad heads, every trial"),
                FIG6,
                "likely to learn",
                "largest accuracy",
                each=False,
                reason="a good head is one of several that the output reads, and learns later than "
                "alone (figure of the attending heads).",
            ),
            Claim(
                "one-helps",
                "A good head in place of one of the bad ones raises the accuracy at the end.",
                if_told(call),
                lambda run: end(run, ONE_GOOD) - end(run, ALL_BAD),
                above(0.1),
                (
                    lambda run: end(run, ALL_BAD) - end(run, ALL_BAD).roll(seed=1),
                    "all bad less all bad of the next seed",
                ),
                FIG6,
                "blue above red",
                "accuracy at the end, one good less all bad, same data",
                each=False,
                reason="bad heads together learn as well by the end (table of scenarios).",
            ),
            Claim(
                "random",
                f"{heads} random heads learn: accuracy exceeds {GOOD:g} within {steps} steps.",
                if_told(best),
                RANDOM,
                above(GOOD),
                (CANDIDATE, "one random head"),
                FIG6,
                "with very high probability",
                "largest accuracy",
                each=False,
            ),
            Claim(
                "chance",
                f"{heads} random heads learn as often as one of them or more is good, "
                "1 - (1 - q)^K, with q the share of good single heads.",
                if_told(lambda run, name: (best(run, RANDOM) > GOOD).mean() - run.theory.get(name)),
                "share_learned",
                within(-0.25, 0.25),
                ("share_good", "q, as if there were one head"),
                FIG6,
                "the probability that all are bad is exponentially small",
                "share of runs that learn less the predicted one",
            ),
            Claim(
                "good-head",
                "It is the good head that ends up looking at the right positions, more than any of "
                "the bad ones.",
                if_told(ahead),
                slice(0, 1),
                above(0.0),
                (slice(1, None), "a bad head of the same run in its place, mean over them"),
                "beyond the paper; section 5.2",
                "not measured",
                "share of words whose right position has the head's largest α, less that of the "
                "best other head",
                each=False,
                reason="the start of a head does not decide where it looks when other heads learn "
                "with it (figure of the attending heads).",
            ),
        ]


def observables(pairs: SequencePairs, gold: Tensor, heads: int) -> tuple[Observable, ...]:
    """Return the readings on sequences of one length, END aside; NaN for heads that a run lacks."""
    words = int((pairs.target[0] != END).sum())

    def loss(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        return cross_entropy(model, pairs)

    def accuracy(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        right = model.log_probabilities(pairs).argmax(dim=2) == pairs.target
        return right[:, :words].double().mean()

    def attention(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        weights = model.attention_weights(model.states(pairs))[:, :, :words]
        found = (weights.argmax(dim=3) == gold[:words]).double().mean(dim=(0, 2))
        return F.pad(found, (0, heads - len(found)), value=torch.nan)

    meaning = "share of words whose gold position has the head's largest α"
    return (
        Observable("loss", loss, (), "nats", "mean of -log p of unseen sequences"),
        Observable("accuracy", accuracy, (), "", "share of words that are right"),
        Observable("attention", attention, ("head",), "", meaning),
    )


def ahead(run: Readings, which: slice) -> np.ndarray:
    """Return by how much some heads attend better than the best other one, mean over them."""
    attention = final(run.of(ONE_GOOD).attention)
    heads = range(attention.sizes["head"])[which]
    leads = [attention[:, k] - attention.drop_isel(head=k).max("head") for k in heads]
    return np.mean(leads, axis=0)
