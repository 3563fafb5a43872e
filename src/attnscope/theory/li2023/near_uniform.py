"""What the onset of attention is about: a start near zero, and G = ∂L/∂(W^Kᵀ W^Q) at uniform A."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnscope.engines import Observable
from attnscope.models import TopicTransformer
from attnscope.models.topic_transformer import AttentionMode
from attnscope.tasks.topic_documents import Documents
from attnscope.theory.li2023.onset import top_singular
from attnscope.theory.li2023.score_gradient import score_gradient


def near_zero(
    vocabulary: int,
    attention: AttentionMode,
    noise: float,
    value_noise: float,
    seed: int,
    dtype: torch.dtype = torch.float32,
) -> TopicTransformer:
    """Return the one-layer model with one-hot embeddings and small initial matrices.

    All models of one seed have the same W^V, with learned attention or without, and the same W^K
    and W^Q up to the factor ``noise``: nothing else differs between two cases.
    """
    source = torch.Generator().manual_seed(seed)
    model = TopicTransformer(
        vocabulary, attention=attention, noise=1.0, value_noise=value_noise, generator=source
    ).to(dtype)
    values = torch.Generator().manual_seed(seed + 1_000_003)
    assert model.W_V is not None
    with torch.no_grad():
        model.W_V.copy_(torch.randn(model.W_V.shape, generator=values) * value_noise)
        for matrix in (model.W_K, model.W_Q):
            if matrix is not None:
                matrix.mul_(noise)
    return model


class UniformGradient:
    """G = ∂L/∂(W^Kᵀ W^Q) at W^Kᵀ W^Q = 0, for the cross-entropy on given documents.

    Args:
        documents: what the loss is over.
        dtype: that of the model.
    """

    def __init__(self, documents: Documents, dtype: torch.dtype) -> None:
        self.contexts = documents.contexts(dtype)
        self.dtype = dtype

    def __call__(self, model: nn.Module) -> Tensor:
        """Return G at the model's W^V, shape ``(key, query)``."""
        topic = _topic(model)
        words = topic.word_map().detach()
        contexts = self.contexts

        def loss(added: Tensor) -> Tensor:
            attention = torch.softmax(contexts.offsets + added.T[contexts.query], dim=1)
            return -(contexts.target * torch.log_softmax(attention @ words.T, dim=1)).sum()

        shape = (topic.vocabulary, topic.vocabulary)
        return score_gradient(loss, shape, topic.attention_dim, self.dtype)

    def side(self, model: nn.Module, which: int) -> Tensor:
        """Return a side of G's leading singular triple: 1 for keys, 2 for queries."""
        return torch.from_numpy(top_singular(self(model)[None].numpy())[which][0])

    def observables(self) -> tuple[Observable, ...]:
        """Return the readings of a run with uniform attention: G's leading singular triple."""

        def sigma(model: nn.Module) -> Tensor:
            return torch.linalg.svdvals(self(model))[:2]

        what = "side of the leading singular pair of G"
        both = ("key_word", "query_word")
        return (
            Observable("sigma", sigma, ("rank",), "1/time", "two largest singular values of G"),
            Observable("left", lambda m: self.side(m, 1), ("key",), "", f"u, key {what}"),
            Observable("right", lambda m: self.side(m, 2), ("query",), "", f"w, query {what}"),
            Observable("gradient", self, both, "1/time", "G, by W^Kᵀ W^Q at uniform attention"),
        )


def score_norm(model: nn.Module) -> Tensor:
    """Return ‖W^Kᵀ W^Q‖₂, zero for uniform attention."""
    topic = _topic(model)
    if topic.W_K is None:
        return torch.zeros((), dtype=topic.dtype)
    return torch.linalg.matrix_norm(topic.score_matrix(), 2)


def _topic(model: nn.Module) -> TopicTransformer:
    assert isinstance(model, TopicTransformer)
    return model
