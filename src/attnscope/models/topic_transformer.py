"""The transformer of Li 2023: one layer of attention without positions, residuals or norms.

    f(X̃) = W^pred (W^V Z) A(Z) + b,   Z = W^E X̃,
    A(Z) = softmax((W^K Z)ᵀ (W^Q Z) / √d_a),  column by column:

A_ij is the attention that position j pays to position i. Since words carry no position, everything
follows from matrices over words: the logits S = (W^K W^E)ᵀ (W^Q W^E) of attention and the map
W^pred W^V W^E from a word to what it adds to the output.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.topic_padded import padded_attention, padded_logits
from attnscope.tasks.topic_contexts import Contexts
from attnscope.tasks.topic_documents import Documents

Embedding = Literal["one-hot", "trained"]
Decoder = Literal["tied", "free", "identity"]
AttentionMode = Literal["learned", "uniform", "frozen"]
Value = Literal["free", "identity", "block", "diagonal"]


class TopicTransformer(nn.Module):
    """The model of Li 2023 with a switch for each case of the theory.

    Parameters are ``W_E (dim, word)``, ``W_K`` and ``W_Q (attention_dim, dim)``, ``W_V``, ``W_pred
    (word, dim)`` and ``b_K, b_Q, b_V, b_pred``; those that a switch leaves out are ``None``. To
    hold one at a value, write it and call ``requires_grad_(False)``.

    With more layers or heads ``W_K``, ``W_Q`` and ``W_V`` begin with the axes (layer, head), their
    biases too. The outputs of a layer's heads are added, and every layer but the last adds its
    input: one layer and one head are the model of the paper.

    Args:
        vocabulary: V, number of words with [MASK].
        embedding: ``"one-hot"`` for W^E = I, or ``"trained"``.
        dim: d, length of embeddings; V unless given, and always V if they are one-hot.
        decoder: W^pred; ``"tied"`` is (W^E)ᵀ, ``"free"`` is trained, ``"identity"`` needs d = V.
        attention: ``"learned"``; ``"uniform"`` for 1/N everywhere, without W^K and W^Q; or
            ``"frozen"`` for W^K and W^Q that keep their values.
        value: W^V; ``"free"`` is any matrix. ``"identity"`` is fixed. ``"diagonal"`` trains V
            numbers. ``"block"`` trains three, in ``W_V``: the entries of two words of one topic,
            those of two topics, and those W_i0 of the column of [MASK]; its row is zero.
        biases: train b^K, b^Q, b^V and b^pred, zero at the start.
        noise: standard deviation of the entries of W^K and W^Q at the start.
        value_noise: standard deviation of what is trained of W^V at the start.
        embedding_noise: standard deviation of the entries of W^E and a free W^pred at the start.
        attention_dim: d_a, length of keys and queries; d unless given.
        layers: number of layers.
        heads: number of heads of each layer.
        topic_of: topic of every word, -1 for [MASK]; needed for ``value="block"``.
        output_bias: a b^pred that does not learn, shape ``(word,)``, as in theorem 1.
        generator: source of the noise.
    """

    W_E: nn.Parameter | None
    W_K: nn.Parameter | None
    W_Q: nn.Parameter | None
    W_V: nn.Parameter | None
    W_pred: nn.Parameter | None
    b_K: nn.Parameter | None
    b_Q: nn.Parameter | None
    b_V: nn.Parameter | None
    b_pred: nn.Parameter | None
    output_bias: Tensor | None
    same_topic: Tensor | None

    def __init__(
        self,
        vocabulary: int,
        *,
        embedding: Embedding = "one-hot",
        dim: int | None = None,
        decoder: Decoder = "tied",
        attention: AttentionMode = "learned",
        value: Value = "free",
        biases: bool = False,
        noise: float = 1e-2,
        value_noise: float = 1e-2,
        embedding_noise: float = 2e-2,
        attention_dim: int | None = None,
        layers: int = 1,
        heads: int = 1,
        topic_of: np.ndarray | None = None,
        output_bias: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        d = vocabulary if dim is None else dim
        d_a = d if attention_dim is None else attention_dim
        for name, number in {
            "dim": d,
            "attention_dim": d_a,
            "layers": layers,
            "heads": heads,
        }.items():
            if number < 1:
                raise AttnscopeError(f"{name} = {number}: expected 1 or more.")
        for name, size in {
            "noise": noise,
            "value_noise": value_noise,
            "embedding_noise": embedding_noise,
        }.items():
            if not 0 <= size < math.inf:
                raise AttnscopeError(f"{name} = {size}: expected a standard deviation, 0 or more.")
        if d != vocabulary and (embedding == "one-hot" or decoder == "identity"):
            which = "embedding = 'one-hot'" if embedding == "one-hot" else "decoder = 'identity'"
            raise AttnscopeError(
                f"dim = {d} with {which}: expected the size of the vocabulary, {vocabulary}."
            )
        if layers * heads > 1 and value not in ("free", "identity"):
            raise AttnscopeError(
                f"value = {value!r} with {layers} layers of {heads} heads: expected 'free' or "
                "'identity'; other forms are for one layer and one head."
            )
        if value == "block" and (topic_of is None or d != vocabulary):
            raise AttnscopeError(
                "value = 'block': expected topic_of, the topic of every word, and embeddings as "
                "long as the vocabulary."
            )
        if output_bias is not None and (biases or output_bias.shape != (vocabulary,)):
            raise AttnscopeError(
                f"output_bias of shape {tuple(output_bias.shape)} with biases = {biases}: expected "
                f"shape ({vocabulary},), and no trained biases besides."
            )
        if attention == "learned" and noise == 0:
            warnings.warn(
                "noise = 0 starts W^K and W^Q at exactly zero, where the gradient of each is a "
                "multiple of the other: both stay zero for ever and attention never moves. Give "
                "noise above 0, or attention='uniform' to mean it.",
                stacklevel=2,
            )
        self.vocabulary, self.dim, self.attention_dim = vocabulary, d, d_a
        self.layers, self.heads = layers, heads
        self.embedding_kind, self.decoder_kind = embedding, decoder
        self.attention_kind, self.value_kind = attention, value

        def normal(std: float, *shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator) * std)

        each = () if layers * heads == 1 else (layers, heads)
        scored, valued = attention != "uniform", value != "identity"
        shape = {"free": (*each, d, d), "diagonal": (d,), "block": (3,), "identity": ()}[value]
        self.W_E = normal(embedding_noise, d, vocabulary) if embedding == "trained" else None
        self.W_K = normal(noise, *each, d_a, d) if scored else None
        self.W_Q = normal(noise, *each, d_a, d) if scored else None
        self.W_V = normal(value_noise, *shape) if valued else None
        self.W_pred = normal(embedding_noise, vocabulary, d) if decoder == "free" else None
        keyed = biases and scored
        self.b_K = nn.Parameter(torch.zeros(*each, d_a)) if keyed else None
        self.b_Q = nn.Parameter(torch.zeros(*each, d_a)) if keyed else None
        self.b_V = nn.Parameter(torch.zeros(*each, d)) if biases else None
        self.b_pred = nn.Parameter(torch.zeros(vocabulary)) if biases else None
        if attention == "frozen":
            for p in (self.W_K, self.W_Q, self.b_K, self.b_Q):
                if p is not None:
                    p.requires_grad_(False)
        default = torch.get_default_dtype()
        self.register_buffer(
            "output_bias", None if output_bias is None else output_bias.to(default)
        )
        self.register_buffer("same_topic", None)
        if value == "block" and topic_of is not None:
            topic = torch.from_numpy(topic_of)
            self.same_topic = topic[:, None] == topic

    @property
    def single(self) -> bool:
        """Whether this is the model of the paper, one layer with one head."""
        return self.layers == self.heads == 1

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the parameters."""
        first = next(self.parameters(), None)
        return torch.get_default_dtype() if first is None else first.dtype

    def embeddings(self) -> Tensor:
        """Return W^E, shape ``(dim, word)``."""
        return self._eye() if self.W_E is None else self.W_E

    def embedding_gram(self) -> Tensor:
        """Return E = (W^E)ᵀ W^E, shape ``(word, word)``."""
        return self._eye() if self.W_E is None else self.W_E.T @ self.W_E

    def decoder(self) -> Tensor:
        """Return W^pred, shape ``(word, dim)``."""
        if self.W_pred is not None:
            return self.W_pred
        return self._eye() if self.decoder_kind == "identity" else self.embeddings().T

    def value_matrix(self) -> Tensor:
        """Return W^V, shape ``(dim, dim)``, or ``(layer, head, dim, dim)``."""
        w = self.W_V
        if w is None:
            return (
                self._eye() if self.single else self._eye().expand(self.layers, self.heads, -1, -1)
            )
        if self.value_kind == "diagonal":
            return torch.diag(w)
        if self.same_topic is not None:
            words = torch.where(self.same_topic[1:, 1:], w[0], w[1])
            column = torch.cat([w[2].expand(self.dim - 1, 1), words], dim=1)
            return F.pad(column, (0, 0, 1, 0))
        return w

    def word_map(self) -> Tensor:
        """Return W^pred W^V W^E, what each word adds to the output, shape ``(word, word)``."""
        self._need_single("word_map")
        matrix = self.value_matrix()
        if self.W_E is not None:
            matrix = matrix @ self.W_E
        return matrix if self._plain_decoder else self.decoder() @ matrix

    def offset(self) -> Tensor | None:
        """Return W^pred b^V + b, what the output is without any word, or ``None`` for zero."""
        self._need_single("offset")
        if self.b_V is None or self.b_pred is None:
            return self.output_bias
        return (self.b_V if self._plain_decoder else self.decoder() @ self.b_V) + self.b_pred

    def score_matrix(self) -> Tensor:
        """Return S[i, j] = (W^K e_i + b^K)ᵀ (W^Q e_j + b^Q), the logits between words.

        Word j pays to word i attention proportional to exp(S[i, j] / √d_a): the root is NOT in S.

        Returns:
            Shape ``(word, word)``. With more layers or heads ``(layer, head, word, word)``: what a
            layer would do to bare embeddings.
        """
        if self.W_K is None:
            each = () if self.single else (self.layers, self.heads)
            return self._eye().new_zeros(*each, self.vocabulary, self.vocabulary)
        keys, queries = self.keys_and_queries()
        return keys.mT @ queries

    def attention_by_word(self) -> Tensor:
        """Return softmax(S / √d_a) over its first word axis: shape of :meth:`score_matrix`.

        It is the attention that each word pays to each in a document that holds every word and
        [MASK] once. The ratio of two entries of a column is that of the weights in any document.
        """
        return torch.softmax(self.score_matrix() / self.attention_dim**0.5, dim=-2)

    def keys_and_queries(self) -> tuple[Tensor, Tensor]:
        """Return W^K W^E + b^K and W^Q W^E + b^Q, shape ``(..., attention_dim, word)``."""
        if self.W_K is None or self.W_Q is None:
            raise AttnscopeError("attention = 'uniform' has neither keys nor queries.")
        keys: Tensor = self.W_K
        queries: Tensor = self.W_Q
        if self.W_E is not None:
            keys, queries = keys @ self.W_E, queries @ self.W_E
        if self.b_K is None or self.b_Q is None:
            return keys, queries
        return keys + self.b_K[..., None], queries + self.b_Q[..., None]

    def on_contexts(self, contexts: Contexts) -> Tensor:
        """Return the output in each context, shape ``(context, word)``."""
        self._need_single("on_contexts")
        logits = contexts.offsets
        if self.W_K is not None:
            keys, queries = self.keys_and_queries()
            # By query, so that a context's logits are a row.
            scores = queries.T @ keys / self.attention_dim**0.5
            logits = logits + scores[contexts.query]
        out = torch.softmax(logits, dim=1) @ self.word_map().T
        offset = self.offset()
        return out if offset is None else out + offset

    def forward(self, documents: Documents) -> Tensor:
        """Return the output at the selected positions, in reading order, ``(position, word)``."""
        if not self.single:
            return self.forward_padded(documents)
        self.check_vocabulary(documents.vocabulary)
        by_query = self.attention_kind != "uniform"
        contexts = documents.contexts(self.dtype, by_query=by_query)
        return self.on_contexts(contexts)[contexts.of_position]

    def forward_padded(self, documents: Documents) -> Tensor:
        """Compute :meth:`forward` the obvious way, with one-hot vectors and all pairs."""
        return padded_logits(self, documents)

    def attention(self, documents: Documents) -> Tensor:
        """Return A, shape ``(document, key, query)``; columns sum to 1 over the occupied keys.

        With more layers or heads ``(document, layer, head, key, query)``.
        """
        return padded_attention(self, documents)

    def check_vocabulary(self, words: int) -> None:
        """Refuse documents of another vocabulary."""
        if words != self.vocabulary:
            raise AttnscopeError(
                f"a model of {self.vocabulary} words on documents of {words}: expected the same "
                "vocabulary, [MASK] being one of its words."
            )

    @property
    def _plain_decoder(self) -> bool:
        return self.decoder_kind == "identity" or (self.decoder_kind == "tied" and self.W_E is None)

    def _eye(self) -> Tensor:
        return torch.eye(self.dim, dtype=self.dtype)

    def _need_single(self, name: str) -> None:
        if not self.single:
            raise AttnscopeError(
                f"{name} of {self.layers} layers with {self.heads} heads: expected one layer with "
                "one head; only there words do not depend on their neighbours."
            )
