"""Attention over convolved word pairs: Attn-TC-CNN of Lu 2021, appendix A."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnscope.models.classifiers import Classifier
from attnscope.models.pooling import bag_average, bag_softmax
from attnscope.tasks.word_pairs import Sentences


class WordPairAttention(nn.Module):
    """Two width-2 convolutions make an embedding and a key for each pair of neighbours.

    The pair (a, b) has the embedding C₁v_a + C₂v_b + c and the score qᵀ(D₁κ_a + D₂κ_b + e); all of
    them learn but the query. A convolution of width two is a sum of two maps of single words, so
    both are computed on the dictionary and added up per position.

    Args:
        vocabulary: number of words.
        dim: d = d', length of embeddings, keys and query; number of kernels of each convolution.
        classifier: what reads the context vector.
        std: standard deviation of the initial embeddings and keys.
        generator: source of everything that is drawn.
    """

    def __init__(
        self,
        vocabulary: int,
        dim: int,
        classifier: Classifier,
        *,
        std: float = 1e-3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(vocabulary, dim, generator=generator) * std)
        self.key = nn.Parameter(torch.randn(vocabulary, dim, generator=generator) * std)
        self.value_conv = nn.Conv1d(dim, dim, 2)
        self.key_conv = nn.Conv1d(dim, dim, 2)
        bound = (2 * dim) ** -0.5
        for parameter in (*self.value_conv.parameters(), *self.key_conv.parameters()):
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        query = torch.randn(dim, generator=generator)
        self.register_buffer("query", query)
        self.query: Tensor
        self.classifier = classifier

    def pair_embeddings(self, pairs: Tensor) -> Tensor:
        """Return v of the paper, ‖q‖ times the embedding, of each pair: ``(pair, dim)``."""
        first, second = self.value_conv.weight.unbind(dim=2)
        left, right = pairs.unbind(dim=1)
        out = self.embedding[left] @ first.T + self.embedding[right] @ second.T
        return (out + _bias(self.value_conv)) * self.query.norm()

    def pair_scores(self, pairs: Tensor) -> Tensor:
        """Return the scores of pairs of words; ``pairs`` has shape ``(pair, 2)``."""
        first, second = (
            self.key @ (part.T @ self.query) for part in self.key_conv.weight.unbind(dim=2)
        )
        left, right = pairs.unbind(dim=1)
        scores = first.index_select(0, left) + second.index_select(0, right)
        return scores + self.query @ _bias(self.key_conv)

    def attention(self, sentences: Sentences) -> Tensor:
        """Return the attention weights, shape ``(sentence, position)``."""
        return bag_softmax(self.pair_scores(sentences.pair_words), sentences.pairs)

    def forward(self, sentences: Sentences) -> Tensor:
        """Return the logits, shape ``(sentence, class)``."""
        first, second = (
            self.classifier.first(self.embedding @ part.T)
            for part in self.value_conv.weight.unbind(dim=2)
        )
        left, right = sentences.pair_words.unbind(dim=1)
        values = first.index_select(0, left) + second.index_select(0, right)
        scores = self.pair_scores(sentences.pair_words)
        pooled = bag_average(scores, values, sentences.pairs)
        return self.classifier.rest(pooled + _bias(self.value_conv) @ self.classifier.weight)

    def forward_padded(self, sentences: Sentences) -> Tensor:
        """Compute the logits the obvious way, through the two ``nn.Conv1d`` themselves."""
        values = self.value_conv(self.embedding[sentences.ids].transpose(1, 2))
        keys = self.key_conv(self.key[sentences.ids].transpose(1, 2))
        weights = torch.softmax(torch.einsum("d,ndl->nl", self.query, keys), dim=1)
        context = torch.einsum("nl,ndl->nd", weights, values)
        return self.classifier.rest(context @ self.classifier.weight)


def _bias(conv: nn.Conv1d) -> Tensor:
    assert conv.bias is not None
    return conv.bias
