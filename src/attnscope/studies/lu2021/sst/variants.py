"""The two settings of Lu 2021, section 5.2: what the paper says, and what its code does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch

from attnscope.datasets.load import labelled
from attnscope.datasets.place import data_dir
from attnscope.models import BagAttention, classifier
from attnscope.models.bag_attention import ScoreTable
from attnscope.models.classifiers import ClassifierKind
from attnscope.tasks.text_bags import TextBags, text_bags

Model = Literal["FC", "TC"]
Name = Literal["paper", "released"]
MODELS: tuple[Model, ...] = ("FC", "TC")


@dataclass(frozen=True)
class Variant:
    """What a variant fixes.

    Args:
        padded: the padding symbol is an ordinary word instead of being masked.
        fixed: which fixed classifier Attn-FC has.
        dims: embedding length of Attn-FC and Attn-TC.
        std: standard deviation of the initial embeddings.
        query: length and standard deviation of the fixed query; ``None`` for scores on their own.
        patience: epochs that early stopping waits.
        every: epochs between two evaluations on the dev set.
    """

    padded: bool
    fixed: ClassifierKind
    dims: dict[Model, int]
    std: float
    query: tuple[int, float] | None
    patience: int
    every: int = 100

    def model(self, model: Model, text: TextBags, seed: int) -> BagAttention:
        """Return Attn-FC or Attn-TC at its start; one seed gives both one embedding."""
        source = torch.Generator().manual_seed(seed)
        vocabulary, dim = len(text.words), self.dims[model]
        kind: ClassifierKind = self.fixed if model == "FC" else "TC"
        head = classifier(kind, dim, len(text.classes), generator=source)
        scores = ScoreTable(vocabulary)
        if self.query is not None:
            length, std = self.query
            query = std * torch.randn(length, generator=source)
            scores = ScoreTable(vocabulary, float(query.norm()))
        embeddings = torch.Generator().manual_seed(seed + 1_000_003)
        return BagAttention(
            vocabulary, dim, head, scores=scores, std=self.std, generator=embeddings
        )


VARIANTS: dict[Name, Variant] = {
    # The variance of the paper's embeddings is σ²/d = 10⁻⁶.
    "paper": Variant(False, "FC", {"FC": 200, "TC": 200}, std=1e-3, query=None, patience=100),
    "released": Variant(
        True, "FC-released", {"FC": 200, "TC": 100}, std=1e-6, query=(10, 0.3), patience=2000
    ),
}


def parts(case: str) -> tuple[Model, Name]:
    """Return model and variant of a case.

    >>> parts("TC, released")
    ('TC', 'released')
    """
    model, _, variant = case.partition(", ")
    return next(m for m in MODELS if m == model), next(v for v in VARIANTS if v == variant)


def texts(data: str, variant: Name) -> TextBags:
    """Return the sentences as a variant reads them."""
    return _texts(data, VARIANTS[variant].padded, str(data_dir()))


@lru_cache(maxsize=4)
def _texts(data: str, padded: bool, folder: str) -> TextBags:
    return text_bags(labelled(data, data_dir=folder), padded=padded)
