"""Aligners behind one interface: what predicts the attention of a translation model from pairs.

Each is a name and a way to fit; what it returns has ``alpha(x, y)``, the attention that it predicts
for a pair, and ``links``. Which one `attnscope predict` shows was chosen by the protocol of
``benchmarks/alignments.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnscope.probes.lexicon import diagonal, ibm1
from attnscope.probes.lexicon.alignment import Link, best_links
from attnscope.probes.lexicon.counts import Sentences
from attnscope.probes.lexicon.ibm1 import Ids, Model1

ITERATIONS = 5


@dataclass(frozen=True)
class Aligner:
    """One member of the family.

    Args:
        name: how it is shown.
        fit: makes a model from the source and the target sentences.
    """

    name: str
    fit: Callable[[Sentences, Sentences], Model1]


IBM1 = Aligner("IBM Model 1", lambda x, y: ibm1.fit(x, y, ITERATIONS))
IBM1_NULL = Aligner("IBM Model 1 with a null word", lambda x, y: ibm1.fit(x, y, ITERATIONS, True))
DIAGONAL = Aligner("diagonal model", lambda x, y: diagonal.fit(x, y, ITERATIONS))
DIAGONAL_PRIOR = Aligner(
    "diagonal model with a prior", lambda x, y: diagonal.fit(x, y, ITERATIONS, alpha=0.01)
)
FAMILY = (IBM1, IBM1_NULL, DIAGONAL, DIAGONAL_PRIOR)
CHOSEN = DIAGONAL_PRIOR


def attention(model: Model1, x: Ids, y: Ids) -> NDArray[np.float64]:
    """Return the attention that is predicted, shape ``(t, l)``, without a null word.

    A row sums to 1 less what the null word takes.
    """
    alpha = model.alpha(x, y)
    return alpha[:, :-1] if model.null else alpha


def links(model: Model1, x: Ids, y: Ids) -> frozenset[Link]:
    """Return the links ``(l, t)`` of each target word to its likeliest origin, if that is a word.

    Where the model never saw the target word with any of these, it has no link.
    """
    return best_links(model.alpha(x, y), model.null)
