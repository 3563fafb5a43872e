"""One attention head with a fixed value vector: only what it looks at is learned."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn


class TokenSelector(nn.Module):
    """Outputs Σ_t s_it γ_it with s = softmax(k·θ), for θ = p or θ = W.

    The output is computed as γ_ref + Σ_t s_it (γ_it - γ_ref), ref the token with most attention. It
    is the same number, but every term keeps its own digits: attention of 1e-30 on a token still
    has its gradient, which is lost in the sum beyond time 1e13 otherwise.

    Args:
        features: k, shape ``(input, token, entry)``.
        scores: γ, shape ``(input, token)``.
        start: θ at the start.
    """

    def __init__(self, features: np.ndarray, scores: np.ndarray, start: np.ndarray) -> None:
        super().__init__()
        self.features, self.scores = torch.as_tensor(features), torch.as_tensor(scores)
        self.theta = nn.Parameter(torch.tensor(start, dtype=torch.float64))

    def parameters_of_logits(self) -> Tensor:
        """Return θ, the vector that logits are linear in."""
        return self.theta

    def logits(self) -> Tensor:
        """Return k·θ, shape ``(input, token)``."""
        return self.features @ self.parameters_of_logits()

    def attention(self) -> Tensor:
        """Return s, shape ``(input, token)``."""
        return torch.softmax(self.logits(), dim=1)

    def forward(self) -> tuple[Tensor, Tensor]:
        """Return γ_ref and Σ s (γ - γ_ref) of every input; their sum is the output."""
        weights = self.attention()
        best = self.scores.gather(1, weights.detach().argmax(dim=1, keepdim=True))
        return best[:, 0], (weights * (self.scores - best)).sum(dim=1)


class FactoredSelector(TokenSelector):
    """The same with W = K Qᵀ, both trained.

    Args:
        features: x_it z_iᵀ, shape ``(input, token, d * d)``.
        scores: γ, shape ``(input, token)``.
        keys: K at the start, shape ``(d, d)``.
        queries: Q at the start.
    """

    def __init__(
        self, features: np.ndarray, scores: np.ndarray, keys: np.ndarray, queries: np.ndarray
    ) -> None:
        super().__init__(features, scores, np.zeros(0))
        del self.theta
        self.keys = nn.Parameter(torch.tensor(keys, dtype=torch.float64))
        self.queries = nn.Parameter(torch.tensor(queries, dtype=torch.float64))

    def parameters_of_logits(self) -> Tensor:
        """Return W = K Qᵀ as a vector."""
        return (self.keys @ self.queries.T).flatten()


def selector_loss(model: nn.Module, kind: str = "logistic") -> Tensor:
    """Return the mean of log(1 + exp(-f)) over inputs, or of -f for ``"linear"``."""
    best, rest = model()
    if kind == "linear":
        return -(best + rest).mean()
    return nn.functional.softplus(-(best + rest)).mean()
