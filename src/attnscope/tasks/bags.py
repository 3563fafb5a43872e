"""Sentences as bags of words: the data every bag-of-words model reads."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError


@dataclass(frozen=True, eq=False)
class Bags:
    """Labelled sentences whose words have no order.

    Args:
        ids: word ids, shape ``(sentence, position)``; padded positions may hold any word.
        labels: class of each sentence, shape ``(sentence,)``.
        vocabulary: number of words there are; ids lie in ``0 .. vocabulary - 1``.
        mask: true where a position holds a word; ``None`` when every sentence has the same length.
    """

    ids: Tensor
    labels: Tensor
    vocabulary: int
    mask: Tensor | None = None

    def __post_init__(self) -> None:
        # A look at numbers that are on a device would wait for it at every batch.
        if self.ids.numel() == 0 or not self.ids.is_cpu:
            return
        low, high = (int(end) for end in torch.aminmax(self.ids))
        if low < 0 or high >= self.vocabulary:
            raise AttnscopeError(
                f"word ids go from {low} to {high}: expected 0 to {self.vocabulary - 1}, for a "
                f"vocabulary of {self.vocabulary}."
            )

    def __len__(self) -> int:
        return self.ids.shape[0]

    def __getitem__(self, rows: Tensor) -> Bags:
        mask = None if self.mask is None else self.mask[rows]
        return Bags(self.ids[rows], self.labels[rows], self.vocabulary, mask)

    @cached_property
    def words(self) -> Tensor:
        """Word number of every occupied position, sentence after sentence, shape ``(token,)``."""
        return self.ids.reshape(-1) if self.mask is None else self.ids[self.mask]

    @cached_property
    def lengths(self) -> Tensor:
        """Number of words of each sentence."""
        if self.mask is None:
            return torch.full((len(self),), self.ids.shape[1])
        return self.mask.sum(dim=1)

    @cached_property
    def sentences(self) -> Tensor:
        """Sentence number of every occupied position, shape ``(token,)``."""
        return torch.repeat_interleave(torch.arange(len(self)), self.lengths)

    def counts(self, dtype: torch.dtype) -> Tensor:
        """How often each word stands in each sentence: sparse, ``(sentence, word)``."""
        return self._sparse(dtype, False)

    def counts_by_word(self, dtype: torch.dtype) -> Tensor:
        """The transpose of :meth:`counts`, stored by its own rows: sparse, ``(word, sentence)``."""
        return self._sparse(dtype, True)

    def _sparse(self, dtype: torch.dtype, transposed: bool) -> Tensor:
        key = (dtype, transposed)
        if key not in self._cache:
            pair = (self.words, self.sentences) if transposed else (self.sentences, self.words)
            shape = (len(self), self.vocabulary)
            self._cache[key] = _csr(*pair, shape[::-1] if transposed else shape, dtype)
        return self._cache[key]

    @cached_property
    def _cache(self) -> dict[tuple[torch.dtype, bool], Tensor]:
        return {}

    @cached_property
    def occurrences(self) -> Tensor:
        """How many sentences hold each word, shape ``(word,)``: |Ψ_w| of Lu 2021."""
        pairs = torch.unique(self.sentences * self.vocabulary + self.words)
        return torch.bincount(pairs % self.vocabulary, minlength=self.vocabulary)


def _csr(rows: Tensor, columns: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    ones = torch.ones(rows.numel(), dtype=dtype)
    with warnings.catch_warnings():
        # PyTorch says once per process that its CSR tensors are in beta. The tests compare every
        # product with the padded computation, so the announcement would only worry the reader.
        warnings.simplefilter("ignore")
        long = torch.sparse_coo_tensor(torch.stack([rows, columns]), ones, shape).to_sparse_csr()
        # MKL counts in 32 bits; wider indices would be converted at every product.
        index = (long.crow_indices().int(), long.col_indices().int())
        return torch.sparse_csr_tensor(*index, long.values(), shape)
