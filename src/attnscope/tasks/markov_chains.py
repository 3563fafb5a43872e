"""The task of Edelman 2024: Markov chains, each sequence with a transition matrix of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import Fraction, check_fields
from attnscope.errors import AttnscopeError

Rows = Literal["dirichlet", "doubly stochastic"]
Start = Literal["uniform", "stationary"]
MOST_STATES = 64
EXACT = 3
"""Up to so many states a doubly stochastic matrix is drawn uniformly, by rejection; of four states
one in a thousand would be kept, and matrices are scaled by Sinkhorn's iteration instead."""
SINKHORN = 200
_SAMPLE, _STREAM = 0xED24, 0xED25


@dataclass(frozen=True)
class MarkovChains:
    """Every sequence has a random transition matrix; the next state follows from the last one.

    What a predictor knows of the matrix is what the sequence has shown so far. It can answer with
    1/k (**uniform**), with how often each state came (**unigram**), or with how often each state
    came after the present one (**bigram**).

    Args:
        states: k.
        length: states in a sequence.
        rows: how matrices are drawn. ``"dirichlet"`` is independent rows, uniform on the simplex;
            ``"doubly stochastic"`` matrices have columns that sum to 1 too, so that all states are
            equally frequent and the unigram rule has nothing to say.
        unigram_share: share of sequences whose matrix has equal rows: there the unigram rule is
            all there is to know.
        start: the first state; ``"uniform"``, so that it says nothing of the matrix and the bigram
            rule is exactly Bayes', or from the ``"stationary"`` distribution.
    """

    states: int = 2
    length: int = 48
    rows: Rows = "dirichlet"
    unigram_share: Fraction = 0.0
    start: Start = "uniform"

    def __post_init__(self) -> None:
        check_fields(self)
        if not 2 <= self.states <= MOST_STATES:
            raise AttnscopeError(
                f"states = {self.states}: expected 2 to {MOST_STATES}; with one state there is "
                "nothing to predict."
            )
        if self.length < 3:
            raise AttnscopeError(
                f"length = {self.length}: expected 3 or more, since a transition has to be seen "
                "before it can be used."
            )

    def sample(self, count: int, seed: int) -> Chains:
        """Draw sequences with their matrices."""
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 sequence or more.")
        return self.draw(np.random.default_rng([seed, _SAMPLE]), count)

    def stream(self, seed: int) -> MarkovStream:
        """Return sequences that are never seen twice."""
        return MarkovStream(self, seed)

    def draw(self, rng: np.random.Generator, count: int) -> Chains:
        """Draw sequences with a generator of one's own."""
        matrices = self._matrices(rng, count)
        first = np.full((count, self.states), 1 / self.states)
        if self.start == "stationary":
            first = stationary(matrices)
        draws = rng.random((self.length, count))
        steps = matrices.cumsum(axis=-1)
        tokens = np.empty((count, self.length), dtype=np.int64)
        own = np.arange(count)
        bounds = first.cumsum(axis=-1)
        for t, draw in enumerate(draws):
            # Rounding may leave the last bound a hair below 1.
            tokens[:, t] = (draw[:, None] > bounds[:, :-1]).sum(axis=-1)
            bounds = steps[own, tokens[:, t]]
        return Chains(torch.from_numpy(tokens), torch.from_numpy(matrices))

    def _matrices(self, rng: np.random.Generator, count: int) -> np.ndarray:
        k = self.states
        matrices = rng.dirichlet(np.ones(k), size=(count, k))
        if self.rows == "doubly stochastic":
            matrices = _rejected(rng, count, k) if k <= EXACT else _scaled(matrices)
        equal = rng.random(count) < self.unigram_share
        matrices[equal] = rng.dirichlet(np.ones(k), size=int(equal.sum()))[:, None]
        return np.asarray(matrices)


@dataclass(frozen=True, eq=False)
class Chains:
    """Sequences and their ground truth.

    Args:
        tokens: states, int64 of shape ``(sequence, position)``.
        matrices: P, float64 of shape ``(sequence, state, next state)``.
    """

    tokens: Tensor
    matrices: Tensor

    def __len__(self) -> int:
        return len(self.tokens)

    def next_laws(self) -> Tensor:
        """Return the true law of the state after each position, (sequence, position, state)."""
        own = torch.arange(len(self))[:, None]
        return self.matrices[own, self.tokens]


@dataclass(frozen=True)
class MarkovStream:
    """Sequences that are never seen twice: drawn when asked for, not kept.

    Which ones is a function of the seed and of the row numbers, so training can be resumed.

    Args:
        task: what sequences look like.
        seed: of all batches.
    """

    task: MarkovChains
    seed: int

    def batch(self, rows: Tensor) -> Chains:
        """Return as many fresh sequences as there are row numbers."""
        first = int(rows[0])
        return self.task.draw(np.random.default_rng([self.seed, _STREAM, first]), len(rows))


def stationary(matrices: np.ndarray) -> np.ndarray:
    """Return π with πP = π of every matrix, shape ``(..., state)``."""
    k = matrices.shape[-1]
    balance = np.swapaxes(matrices, -1, -2) - np.eye(k)
    # One balance equation follows from the others; that the shares sum to 1 takes its place.
    balance[..., -1, :] = 1.0
    right = np.zeros((*matrices.shape[:-1], 1))
    right[..., -1, 0] = 1.0
    return np.asarray(np.linalg.solve(balance, right)[..., 0])


def _rejected(rng: np.random.Generator, count: int, k: int) -> np.ndarray:
    """Draw all but the last row and column uniformly until the last ones can be filled in."""
    found = np.empty((0, k, k))
    while len(found) < count:
        minor = rng.random((16 * count, k - 1, k - 1))
        rows = np.concatenate([minor, 1 - minor.sum(axis=-1, keepdims=True)], axis=-1)
        whole = np.concatenate([rows, 1 - rows.sum(axis=-2, keepdims=True)], axis=-2)
        found = np.concatenate([found, whole[(whole >= 0).all(axis=(1, 2))]])
    return found[:count]


def _scaled(matrices: np.ndarray) -> np.ndarray:
    for _ in range(SINKHORN):
        matrices = matrices / matrices.sum(axis=-2, keepdims=True)
        matrices = matrices / matrices.sum(axis=-1, keepdims=True)
    return matrices
