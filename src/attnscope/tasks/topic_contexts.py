"""What a prediction without word order depends on, each case once.

Words without positions are exchangeable: one layer of attention predicts from how often each word
is visible in the document and from the word visible at the position itself, the query. A document
of 128 positions, 19 of them selected, has about 5 distinct queries there, so predictions are
computed for distinct (document, query) pairs. Neither one-hot vectors nor arrays of (document,
position, position) are ever built.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Contexts:
    """Distinct pairs of a document and a query, and what has to be predicted there.

    Args:
        log_counts: logarithm of how often each visible word stands in each document, up to a
            constant for each document; minus infinity for words that are absent. Shape
            ``(document, word)``.
        document: document of each context, shape ``(context,)``.
        query: visible word of each context; 0 throughout if queries are not told apart.
        target: share of each original word in the loss, shape ``(context, word)``. All shares sum
            to 1, or to less if some selected positions are left out.
        of_position: context of each selected position, in reading order; ``None`` if there are no
            positions, as in a population.
    """

    log_counts: Tensor
    document: Tensor
    query: Tensor
    target: Tensor
    of_position: Tensor | None = None

    def __len__(self) -> int:
        return self.document.shape[0]

    @cached_property
    def offsets(self) -> Tensor:
        """Logarithm of the counts in each context's document, shape ``(context, word)``."""
        return self.log_counts[self.document]

    @cached_property
    def weight(self) -> Tensor:
        """Share of each context in the loss, as a column, shape ``(context, 1)``."""
        return self.target.sum(dim=1, keepdim=True)
