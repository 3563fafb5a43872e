r"""The three answers to a Markov chain, with Laplace's rule for what has not been seen.

After the states :math:`x_1 \dots x_t`, with counts c, the next one is j with probability

- **uniform** :math:`1/k`,
- **unigram** :math:`(c_j + 1) / (t + k)`,
- **bigram** :math:`(c_{x_t \to j} + 1) / (c_{x_t \to} + k)`.

If rows of the transition matrix are uniform on the simplex and the first state says nothing of
them, the bigram rule is Bayes' rule: no predictor is better on average.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.errors import AttnscopeError

STRATEGIES = ("uniform", "unigram", "bigram")


def strategies(tokens: Tensor, states: int) -> Tensor:
    """Return the answer of each strategy at every position.

    Args:
        tokens: states, int64 of shape ``(sequence, position)``.
        states: k.

    Returns:
        Probabilities in double precision, shape ``(strategy, sequence, position, state)``.

    Raises:
        AttnscopeError: a state is not below k, or k is below 2.
    """
    if states < 2:
        raise AttnscopeError(f"states = {states}: expected 2 or more.")
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < states:
        raise AttnscopeError(
            f"states from {int(tokens.min())} to {int(tokens.max())}: expected 0 to {states - 1}."
        )
    seen = F.one_hot(tokens, states).double()
    counts = seen.cumsum(dim=1)
    unigram = (counts + 1) / (counts.sum(dim=-1, keepdim=True) + states)
    # Transitions into each position, summed over those that began at the present state.
    same = (tokens[:, :, None] == tokens[:, None, :-1]).double()
    same = same * torch.ones(tokens.shape[1], tokens.shape[1] - 1).tril(diagonal=-1)
    after = same @ seen[:, 1:]
    bigram = (after + 1) / (after.sum(dim=-1, keepdim=True) + states)
    return torch.stack([torch.full_like(unigram, 1 / states), unigram, bigram])


def divergence(answers: Tensor, log_probabilities: Tensor) -> Tensor:
    r"""Return :math:`KL(\text{answer} \,\|\, \text{model})` in nats, over the last axis."""
    return (torch.xlogy(answers, answers) - answers * log_probabilities).sum(dim=-1)
