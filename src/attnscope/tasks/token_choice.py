"""Inputs of a few tokens, each worth something: which one should attention choose?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.bounds import Count, check_fields
from attnscope.errors import AttnscopeError


@dataclass(frozen=True, eq=False)
class Choices:
    """Tokens with what attention can see of them, and what choosing them is worth.

    Args:
        features: k, shape ``(input, token, entry)``; logits are k·θ.
        scores: γ = y v·x, shape ``(input, token)``.
        tokens: x, shape ``(input, token, d)``; none where features are keys.
        queries: z, shape ``(input, d)``; likewise.
    """

    features: np.ndarray
    scores: np.ndarray
    tokens: np.ndarray | None = None
    queries: np.ndarray | None = None


@dataclass(frozen=True)
class TokenChoice:
    """Tokens, queries and a value vector uniform on the sphere, with random labels."""

    inputs: Count = 6
    """n, inputs."""
    tokens: Count = 8
    """T, tokens of an input."""
    width: Count = 10
    """d, entries of a token."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.tokens == 1:
            raise AttnscopeError(
                "tokens = 1: an input of one token has attention 1 on it whatever the weights, so "
                "there is nothing to choose; expected two tokens or more."
            )

    def sample(self, seed: int) -> Choices:
        """Draw tokens, queries, value vector and labels; features are x_it z_iᵀ."""
        source = np.random.default_rng(seed)

        def sphere(*shape: int) -> np.ndarray:
            drawn = source.normal(size=(*shape, self.width))
            return np.asarray(drawn / np.linalg.norm(drawn, axis=-1, keepdims=True))

        value, tokens, queries = sphere(), sphere(self.inputs, self.tokens), sphere(self.inputs)
        labels = source.choice([-1.0, 1.0], self.inputs)
        features = np.einsum("itd,ie->itde", tokens, queries)
        flat = features.reshape(self.inputs, self.tokens, -1)
        return Choices(flat, labels[:, None] * (tokens @ value), tokens, queries)


def one_input(scores: tuple[float, float, float]) -> Choices:
    """Return the papers' picture in the plane: one input of three keys, worth ``scores``."""
    keys = np.array([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]])
    return Choices(keys, np.array([scores]))
