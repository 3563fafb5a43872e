"""The bag-of-words proxy of Snell 2021, section 2.3: what lexical knowledge starts out as.

    p_t = softmax((1/L) Σ_l W e_{x_l}) for all t (eq 5),
    β_{t,l} = softmax(W e_{x_l})_{y_t} (eq 6).

It says the same at every t, so a pair matters through its two bags of words alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.sequences import check_ids, row_lengths
from attnscope.tasks.sequence_pairs import SequencePairs


class WordProxy(nn.Module):
    """Embeddings e of the source words and a linear layer W.

    Entries of ``embedding (source word, d)`` and ``W (target word, d)`` start from N(0, 1/d), as in
    section 4.1.

    Args:
        source_vocabulary: number of source ids.
        target_vocabulary: number of target ids.
        width: d, length of embeddings.
        generator: source of the start.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        width: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = {
            "source_vocabulary": source_vocabulary,
            "target_vocabulary": target_vocabulary,
            "width": width,
        }
        for name, size in sizes.items():
            if size < 1:
                raise AttnscopeError(f"{name} = {size}: expected 1 or more.")

        def normal(words: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(words, width, generator=generator) * width**-0.5)

        self.embedding, self.W = normal(source_vocabulary), normal(target_vocabulary)

    def logits_by_word(self) -> Tensor:
        """Return W e, shape ``(source word, target word)``."""
        return self.embedding @ self.W.T

    def logits(self, source: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what the softmax of eq 5 is of, the same at every t; shape ``(row, word)``."""
        check_ids("source", source, len(self.embedding))
        share = torch.ones(source.shape, dtype=self.W.dtype) if mask is None else mask.to(self.W)
        share = share / share.sum(dim=1, keepdim=True)
        return (share[:, None, :] @ self.embedding[source])[:, 0] @ self.W.T

    def log_beta(self, pairs: SequencePairs) -> Tensor:
        """Return log β_{t,l} (eq 6), shape ``(row, T, L)``; -inf where there is no word."""
        check_ids("source", pairs.source, len(self.embedding))
        check_ids("target", pairs.target, len(self.W))
        # Of the words that are there alone: all words by all words are many.
        words, place = torch.unique(pairs.source, return_inverse=True)
        table = torch.log_softmax(self.embedding[words] @ self.W.T, dim=1)
        out = table[place[:, None, :], pairs.target[:, :, None]]
        if pairs.source_mask is not None:
            out = out.masked_fill(~pairs.source_mask[:, None, :], -torch.inf)
        if pairs.target_mask is not None:
            out = out.masked_fill(~pairs.target_mask[:, :, None], -torch.inf)
        return out

    @torch.enable_grad()
    def velocity(self, loss: Callable[[WordProxy], Tensor], probabilities: bool = False) -> Tensor:
        """Return d/dτ of W e, or of its softmax, along the negative gradient of a loss."""
        gradients = torch.autograd.grad(loss(self), (self.embedding, self.W))

        def table(embedding: Tensor, outputs: Tensor) -> Tensor:
            logits = embedding @ outputs.T
            return torch.softmax(logits, dim=1) if probabilities else logits

        start = (self.embedding.detach(), self.W.detach())
        moved = tuple(-part for part in gradients)
        velocity: Tensor = torch.autograd.functional.jvp(table, start, moved)[1]
        return velocity


class ProxyObjective:
    """Sum of -log p over all target tokens (eq 14), from bags of words.

    Args:
        pairs: the sequences; only their bags are kept.
    """

    def __init__(self, pairs: SequencePairs) -> None:
        check_ids("source", pairs.source)
        check_ids("target", pairs.target)
        row_lengths(pairs.source.shape, pairs.source_mask)
        row_lengths(pairs.target.shape, pairs.target_mask)
        source = _bags(pairs.source, pairs.source_mask)
        self._source = sparse.diags_array(1 / source.sum(axis=1)) @ source
        self._target = _bags(pairs.target, pairs.target_mask)
        self._all: dict[torch.dtype, _Cells] = {}

    def __call__(self, model: WordProxy, rows: Tensor | None = None) -> Tensor:
        """Return the loss over all pairs, or over ``rows``."""
        words = len(model.embedding), len(model.W)
        known = self._source.shape[1], self._target.shape[1]
        if words[0] < known[0] or words[1] < known[1]:
            raise AttnscopeError(
                f"a proxy of {words[0]} source and {words[1]} target words: expected {known[0]} "
                f"and {known[1]} or more, for the words of the pairs."
            )
        cells = self._cells(rows, model.W.dtype)
        # Whichever is fewer, words or pairs, goes through W.
        by_word = words[0] <= len(cells.tokens)
        table = model.logits_by_word() if by_word else model.embedding
        pooled = F.embedding_bag(
            cells.words, table, cells.starts, mode="sum", per_sample_weights=cells.shares
        )
        logits = pooled if by_word else pooled @ model.W.T
        right = cells.counts @ logits.flatten()[cells.rows * words[1] + cells.targets]
        return cells.tokens @ logits.logsumexp(dim=1) - right

    def _cells(self, rows: Tensor | None, dtype: torch.dtype) -> _Cells:
        if rows is not None:
            index = rows.numpy()
            return _Cells.of(self._source[index], self._target[index], dtype)
        if dtype not in self._all:
            self._all[dtype] = _Cells.of(self._source, self._target, dtype)
        return self._all[dtype]


@dataclass(frozen=True, eq=False)
class _Cells:
    """The entries of both tables of bags, row after row.

    Attributes:
        words: source word of every entry.
        shares: share of the source that the word is.
        starts: first entry of every pair.
        targets: target word of every entry of the other table.
        rows: its pair.
        counts: how often the word is there.
        tokens: length of every target.
    """

    words: Tensor
    shares: Tensor
    starts: Tensor
    targets: Tensor
    rows: Tensor
    counts: Tensor
    tokens: Tensor

    @classmethod
    def of(cls, source: sparse.csr_array, target: sparse.csr_array, dtype: torch.dtype) -> _Cells:
        def whole(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array.astype(np.int64))

        def real(array: np.ndarray) -> Tensor:
            return torch.from_numpy(array).to(dtype)

        pairs = np.repeat(np.arange(target.shape[0]), np.diff(target.indptr))
        return cls(
            whole(source.indices),
            real(source.data),
            whole(source.indptr[:-1]),
            whole(target.indices),
            whole(pairs),
            real(target.data),
            real(target.sum(axis=1)),
        )


def _bags(ids: Tensor, mask: Tensor | None) -> sparse.csr_array:
    """Return how often every word is in every row."""
    here = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
    rows, words = here.nonzero()[:, 0].numpy(), ids[here].numpy()
    shape = (len(ids), int(words.max()) + 1)
    return sparse.coo_array((np.ones(len(words)), (rows, words)), shape=shape).tocsr()
