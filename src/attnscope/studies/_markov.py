"""What studies of the Markov task share: fresh sequences to learn from, held-out ones to read on.

Edelman 2024 reads a model at the last position of sequences that it has not seen: how far is its
answer from that of each strategy, and from the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Bounds, Count, Positive, Several
from attnscope.engines import Adam, Given, Observable, Record, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.relative_attention import RelativeTransformer, next_state_loss
from attnscope.tasks.markov_chains import MarkovChains, MarkovStream
from attnscope.theory.edelman2024 import STRATEGIES, divergence, strategies
from attnscope.trajectory import Readings

ANSWERS = (*STRATEGIES, "truth")
UNIFORM, UNIGRAM, BIGRAM, TRUTH = range(4)
TIED = -1
"""In place of a strategy where two are equally close."""
ROUNDING = 1e-7
"""Nats between two strategies that are rounding of a model in single precision: a tie."""
FIRST = 20
"""The first steps are all recorded: what is learned first is learned in a few steps."""
HELD_OUT = 1_000_003
"""Seed of the held-out sequences; no run has it."""


class FreshLoss:
    """Cross-entropy of the next state on sequences that are never seen again."""

    def __init__(self, stream: MarkovStream) -> None:
        self.stream = stream

    def __call__(self, model: nn.Module, rows: Tensor) -> Tensor:
        """Return the mean over a batch."""
        tokens = self.stream.batch(rows).tokens
        return next_state_loss(model(tokens), tokens)


class HeldOut:
    """Sequences to be read on, with the answers that a model may come near.

    Args:
        task: what sequences look like.
        count: how many.
    """

    def __init__(self, task: MarkovChains, count: int) -> None:
        chains = task.sample(count, HELD_OUT)
        self.tokens = chains.tokens
        own = strategies(chains.tokens, task.states)[:, :, -1]
        self.answers = torch.cat([own, chains.next_laws()[None, :, -1]])

    def divergences(self, model: nn.Module) -> Tensor:
        """Return KL(answer || model) at the last position, mean over sequences; (answer,)."""
        logs = model(self.tokens)[:, -1].double().log_softmax(dim=-1)
        return divergence(self.answers, logs).mean(dim=-1)

    def costs(self) -> Tensor:
        """Return KL(truth || answer) of the three strategies on these very sequences."""
        return divergence(self.answers[TRUTH], self.answers[:TRUTH].log()).mean(dim=-1)

    def observables(self, layers: int) -> tuple[Observable, ...]:
        """Return what is read of every model; layers that one has less than another are NaN."""

        def looks_back(model: nn.Module) -> Tensor:
            assert isinstance(model, RelativeTransformer)
            found = torch.full((layers,), torch.nan, dtype=torch.float64)
            for i, weights in enumerate(model.answer(self.tokens).attention):
                found[i] = weights.diagonal(-1, 1, 2).mean()
            return found

        return (
            Observable(
                "kl",
                self.divergences,
                ("answer",),
                "nats",
                "KL divergence of the model's answer from an answer, at the last position",
                {"answer": ANSWERS},
            ),
            Observable("looks_back", looks_back, ("layer",), "", "attention to the previous state"),
        )


@dataclass(frozen=True)
class MarkovStudy(Study):
    """Transformers with relative positions that learn to predict Markov chains."""

    training: Adam | Steps = Adam(rate=5e-4, steps=2000, batch=64)
    states: Annotated[int, Bounds(2, 64)] = 2
    """k."""
    length: Annotated[int, Bounds(4)] = 100
    """T, states in a sequence."""
    width: Count = 16
    """d, of the stream and of a head."""
    distance_std: Positive = 0.02
    """Standard deviation of the vectors of distances at the start."""
    held_out: Several = 256
    """Sequences that are read on and not learned from."""
    every: Count = 4
    """Steps from one record point to the next, after the first ones."""

    def check(self) -> None:
        """Check that there is a batch."""
        if self.training.batch is None:
            raise AttnscopeError("batch = None: expected the number of fresh sequences in a step.")

    def task(self, case: str) -> MarkovChains:
        """Return the chains of a case."""
        return MarkovChains(self.states, self.length)

    def layers(self, case: str) -> int:
        """Return the number of layers of a case."""
        return 2

    def model(self, case: str, seed: int) -> RelativeTransformer:
        """Return the model at its start; cases of one seed have the same."""
        return RelativeTransformer(
            self.states,
            self.length,
            layers=self.layers(case),
            width=self.width,
            distance_std=self.distance_std,
            generator=torch.Generator().manual_seed(seed),
        )

    def read(self, tree: xr.DataTree) -> Readings:
        """Return the readings; answers have names."""
        return Readings(tree, {"answer": ANSWERS, **self.labels})

    def problem(
        self,
        model: nn.Module,
        task: MarkovChains,
        seed: int,
        read: tuple[Observable, ...],
        batch: int | None = None,
    ) -> Problem:
        """Return the run of a model on sequences that are never seen again."""
        rows = (batch or self.training.batch or 0) * (self.training.steps + 1)
        loss = FreshLoss(task.stream(seed))
        last = self.training.steps
        times = {*range(min(FIRST, last) + 1), *range(0, last, self.every), last}
        record = Record(read, Given(tuple(map(float, sorted(times)))))
        return Problem(model, loss, [record], rows=rows, seed=seed, shuffle=False)


def closest(kl: xr.DataArray, dim: str = "answer") -> xr.DataArray:
    """Return the number of the strategy that the model is closest to, at every record point.

    Where two are equally close, or none was read, it is ``TIED``: the order in which strategies
    are named decides nothing.
    """
    known = _of_strategies(kl, dim).fillna(float("inf"))
    return known.argmin(dim).where(lead(kl, dim) > ROUNDING, TIED)


def lead(kl: xr.DataArray, dim: str = "answer") -> xr.DataArray:
    """Return how much further off the runner-up is than the closest strategy, in nats."""
    ranked = np.sort(_of_strategies(kl, dim).transpose(..., dim).to_numpy(), axis=-1)
    return kl.isel({dim: 0}, drop=True).copy(data=ranked[..., 1] - ranked[..., 0])


def _of_strategies(kl: xr.DataArray, dim: str) -> xr.DataArray:
    return kl.isel({dim: slice(0, TRUTH)})


def entropies(logits: Tensor) -> Tensor:
    """Return the entropy of attention from its logits, in double precision, over the last axis."""
    logs = logits.double().log_softmax(dim=-1)
    # What a query may not see has weight 0 and logarithm -inf.
    return -(logs.exp() * logs.nan_to_num(neginf=0.0)).sum(dim=-1)
