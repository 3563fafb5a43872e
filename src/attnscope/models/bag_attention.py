"""Bag-of-words attention with a global query: the model of Lu 2021, section 3."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from attnscope.models.classifiers import Classifier
from attnscope.models.pooling import bag_average, bag_average_padded, bag_softmax
from attnscope.tasks.bags import Bags

Freeze = Literal["nothing", "scores", "embeddings"]


class ScoreTable(nn.Module):
    """One trained score s_w per word: keys and a fixed query, reduced to what they do.

    With the query fixed, gradient descent on keys κ_w at learning rate τ is gradient descent on
    s_w = qᵀκ_w at η = τ‖q‖² (Lu 2021, eqs 3 and 4). Keys that start at zero only ever move along q,
    so one number k_w per word with s_w = ‖q‖ k_w, trained at τ, is all there is to them.

    Args:
        vocabulary: number of words.
        query_norm: ‖q‖ of the fixed query.
    """

    def __init__(self, vocabulary: int, query_norm: float = 1.0) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.zeros(vocabulary))
        self.query_norm = query_norm

    def forward(self) -> Tensor:
        """Return the scores, shape ``(word,)``."""
        return self.score if self.query_norm == 1 else self.score * self.query_norm

    def scale(self) -> Tensor:
        """Return ‖q‖, the factor between an embedding ν_w and the paper's v_w = ‖q‖ν_w."""
        return torch.tensor(self.query_norm, dtype=self.score.dtype)


class KeyQuery(nn.Module):
    """Scores s_w = qᵀκ_w from explicit keys, zero at the start, and a query drawn from N(0, σ²).

    Args:
        vocabulary: number of words.
        dim: d', length of keys and query.
        variance: σ² of the entries of the query (Lu 2021, appendix B).
        train_query: whether the query learns.
        generator: source of the query.
    """

    def __init__(
        self,
        vocabulary: int,
        dim: int,
        *,
        variance: float,
        train_query: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.key = nn.Parameter(torch.zeros(vocabulary, dim))
        self.query = nn.Parameter(
            torch.randn(dim, generator=generator) * variance**0.5, requires_grad=train_query
        )

    def forward(self) -> Tensor:
        """Return the scores, shape ``(word,)``."""
        return self.key @ self.query

    def scale(self) -> Tensor:
        """Return ‖q‖, the factor between an embedding ν_w and the paper's v_w = ‖q‖ν_w."""
        return self.query.norm()


class BagAttention(nn.Module):
    """A classifier on the attention-weighted average of word embeddings.

    v̄(χ) = Σ_w v_w exp(s_w) / Z(χ),  Z(χ) = Σ_w exp(s_w)   (Lu 2021, section 3)

    Args:
        vocabulary: number of words.
        dim: d, length of embeddings.
        classifier: what reads the context vector.
        scores: where scores come from; a :class:`ScoreTable` unless given.
        std: standard deviation of the initial embeddings, σ/√d of the paper.
        freeze: hold the scores (KF) or the embeddings (EF) at their initial values.
        generator: source of the embeddings.
    """

    def __init__(
        self,
        vocabulary: int,
        dim: int,
        classifier: Classifier,
        *,
        scores: ScoreTable | KeyQuery | None = None,
        std: float = 1e-3,
        freeze: Freeze = "nothing",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(vocabulary, dim, generator=generator) * std)
        self.score_source = scores if scores is not None else ScoreTable(vocabulary)
        self.classifier = classifier
        if freeze == "scores":
            self.score_source.requires_grad_(False)
        elif freeze == "embeddings":
            self.embedding.requires_grad_(False)

    def scores(self) -> Tensor:
        """Return s_w, shape ``(word,)``."""
        scores: Tensor = self.score_source()
        return scores

    def embeddings(self) -> Tensor:
        """Return v_w in the paper's sense, ‖q‖ν_w when there is a query; ``(word, dim)``."""
        return self.embedding * self.score_source.scale()

    def embeddings_of(self, words: slice | Tensor) -> Tensor:
        """Return v_w of some words only, shape ``(word, dim)``."""
        return self.embedding[words] * self.score_source.scale()

    def attention(self, bags: Bags) -> Tensor:
        """Return the attention weights, shape ``(sentence, position)``."""
        return bag_softmax(self.scores(), bags)

    def forward(self, bags: Bags) -> Tensor:
        """Return the logits, shape ``(sentence, class)``."""
        words = self.classifier.first(self.embedding)
        return self.classifier.rest(bag_average(self.scores(), words, bags))

    def forward_padded(self, bags: Bags) -> Tensor:
        """Compute the logits the obvious way; slower, and differentiable twice."""
        context = bag_average_padded(self.scores(), self.embedding, bags)
        return self.classifier.rest(context @ self.classifier.weight)
