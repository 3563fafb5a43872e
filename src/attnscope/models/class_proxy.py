"""The bag-of-words proxy for two classes, as in the released code of Snell 2021.

    logit = wᵀ (1/L) Σ_l e_{x_l} + b,    β_l = σ((2y - 1) wᵀ e_{x_l}),

section 2.3 with T = 1 and two output words, whose difference is all that counts. The bias is no
word's, so the probe leaves it out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.sequences import check_ids
from attnscope.tasks.keyword import LabelledSequences


class ClassProxy(nn.Module):
    """Embeddings from N(0, 1), averaged, and a linear layer with PyTorch's start.

    Args:
        vocabulary: number of word ids.
        width: length of embeddings.
    """

    def __init__(self, vocabulary: int, width: int = 256) -> None:
        super().__init__()
        for name, size in (("vocabulary", vocabulary), ("width", width)):
            if size < 1:
                raise AttnscopeError(f"{name} = {size}: expected 1 or more.")
        self.embedding = nn.Embedding(vocabulary, width)
        self.readout = nn.Linear(width, 1)

    def log_odds_by_word(self) -> Tensor:
        """Return wᵀ e_i of every word, shape ``(word,)``."""
        return self.embedding.weight @ self.readout.weight[0]

    def logits(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the log odds of the positive class, shape ``(row,)``."""
        check_ids("sequences", ids, self.embedding.num_embeddings)
        here = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
        ends = here.sum(dim=1).cumsum(dim=0)
        starts = torch.cat([ends.new_zeros(1), ends[:-1]])
        mean = F.embedding_bag(ids[here], self.embedding.weight, starts, mode="mean")
        return self.readout(mean)[:, 0]


def class_proxy_loss(model: ClassProxy, sequences: LabelledSequences) -> Tensor:
    """Return the SUM of -log p(label) over rows, which is what the released code descends."""
    logits = model.logits(sequences.source, sequences.mask)
    label = sequences.label.to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, label, reduction="sum")
