r"""What each answer costs on chains whose rows are uniform on the simplex.

A row's mean entropy is :math:`\sum_{i=2}^k 1/i`. After m visits of a state the bigram rule costs,
over knowing the row,

.. math::

    D(m) = \sum_{c=0}^m w(c) \, \frac{k (c+1)}{m+k} \ln \frac{m+k}{c+1} - \sum_{i=2}^k \frac1i,
    \qquad w(c) = \binom{m-c+k-2}{k-2} \Big/ \binom{m+k-1}{k-1},

about :math:`(k-1)/(2m)`. With infinite context the unigram rule costs the mutual information of
neighbours :math:`H(\pi) - \sum_i \pi_i H(P_i)`, and the uniform one :math:`\ln k` less the entropy
rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.integrate import dblquad
from scipy.special import entr, gammaln

from attnscope.errors import AttnscopeError
from attnscope.tasks.markov_chains import stationary

DRAWS = 2**17
"""Matrices that means are taken over where there is no integral; the error is below 0.001."""


def row_entropy(states: int) -> float:
    """Return the mean entropy of a row, in nats.

    >>> print(f"{row_entropy(3):.4f}")
    0.8333
    """
    return float((1 / np.arange(2, _several(states) + 1)).sum())


def laplace_regret(visits: int, states: int) -> float:
    """Return D(m), what the bigram rule costs after m visits of the present state, in nats.

    >>> print(f"{laplace_regret(20, 2):.5f}")
    0.02162
    """
    m, k = visits, _several(states)
    if m < 0:
        raise AttnscopeError(f"visits = {m}: expected 0 or more.")
    c = np.arange(m + 1)

    def log_choose(n: np.ndarray, r: int) -> np.ndarray:
        return np.asarray(gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1))

    weight = np.exp(log_choose(m - c + k - 2, k - 2) - log_choose(np.array(m + k - 1), k - 1))
    chance = (c + 1) / (m + k)
    return float((weight * k * entr(chance)).sum() - row_entropy(k))


@dataclass(frozen=True)
class Costs:
    """KL divergences from the true law with infinite context, in nats; the bigram rule's is 0."""

    uniform: float
    unigram: float
    entropy_rate: float


@cache
def infinite_context(states: int) -> Costs:
    """Return what the uniform and the unigram answer cost in the limit of long sequences.

    For two states these are integrals over both rows; for more, means over seeded draws.

    >>> costs = infinite_context(2)
    >>> print(f"{costs.uniform:.4f} {costs.unigram:.4f} {costs.entropy_rate:.4f}")
    0.2123 0.0829 0.4809
    """
    if _several(states) == 2:

        def mean(of: str) -> float:
            def value(p: float, q: float) -> float:
                share = q / (p + q)
                if of == "rate":
                    own = share * (entr(p) + entr(1 - p)) + (1 - share) * (entr(q) + entr(1 - q))
                else:
                    own = entr(share) + entr(1 - share)
                return float(own)

            return float(dblquad(value, 0, 1, 0, 1, epsabs=1e-7)[0])

        rate, marginal = mean("rate"), mean("marginal")
    else:
        chance = np.random.default_rng(0)
        matrices = chance.dirichlet(np.ones(states), size=(DRAWS, states))
        share = stationary(matrices)
        rate = float((share * entr(matrices).sum(axis=-1)).sum(axis=-1).mean())
        marginal = float(entr(np.maximum(share, 0)).sum(axis=-1).mean())
    return Costs(float(np.log(states)) - rate, marginal - rate, rate)


@cache
def one_look(states: int) -> float:
    r"""Return the loss of the best answer from a single earlier state, far back, in nats.

    Attention whose entropy has collapsed sees one state. The next one is the same with probability
    :math:`E \sum_i \pi_i^2`, for two states :math:`2 (1 - \ln 2)`, so its loss need not be above
    that of the uniform answer.

    >>> print(f"{one_look(2):.4f} of {np.log(2):.4f}")
    0.6671 of 0.6931
    """
    if _several(states) == 2:
        same = 2 * (1 - np.log(2))
    else:
        matrices = np.random.default_rng(0).dirichlet(np.ones(states), size=(DRAWS, states))
        same = float((stationary(matrices) ** 2).sum(axis=-1).mean())
    return float(entr(same) + (states - 1) * entr((1 - same) / (states - 1)))


def _several(states: int) -> int:
    if states < 2:
        raise AttnscopeError(f"states = {states}: expected 2 or more.")
    return states
