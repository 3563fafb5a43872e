"""Labels that follow from two words together and from neither alone: XOR of their presence.

For words a and b the parity of a text is 1 if it holds exactly one of them. By class c

    n(parity = 1, c) = n_ac + n_bc - 2 n_abc,

so all pairs of the most frequent words are two sparse products away. As with single words, a pair
counts if its z is beyond chance for as many pairs as were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from attnscope.probes.evidence.bags import LabelledBags

MOST = 300
"""Words of which all pairs are looked at: those that stand in about half of the texts first."""


@dataclass(frozen=True)
class Parity:
    """The pair of words whose parity says most of the label.

    Args:
        first: number of a word.
        second: number of the other.
        z: how far its parity is from saying nothing, in standard errors.
        critical: how many are beyond chance (5 %) for so many pairs, by Bonferroni's bound.
        accuracy: share of texts whose label it finds.
        pairs: how many pairs were looked at.
    """

    first: int
    second: int
    z: float
    critical: float
    accuracy: float
    pairs: int

    @property
    def sure(self) -> bool:
        """Whether it is beyond chance though many pairs were looked at."""
        return self.z > self.critical


def best_parity(bags: LabelledBags, skip: int = 0, most: int = MOST) -> Parity | None:
    """Return the pair whose parity says most of the label; ``None`` unless there are two words.

    Of more classes than two it is the one class against all others that the pair tells best.

    Args:
        bags: the texts.
        skip: words of the smallest numbers that are left out, such as the mark for rare ones.
        most: words that are taken, those whose presence is least certain.
    """
    n = float(len(bags))
    share = bags.texts_with / n
    unsure = share * (1 - share)
    unsure[:skip] = 0.0
    words = np.argsort(-unsure, kind="stable")[:most]
    words = words[unsure[words] > 0]
    if len(words) < 2:
        return None
    upper = np.triu_indices(len(words), 1)
    every = sparse.csr_array(bags.present[:, words])
    one = np.asarray(every.sum(axis=0)).ravel()
    odd = (one[:, None] + one[None, :] - 2 * (every.T @ every).toarray())[upper]
    best: Parity | None = None
    tests = len(odd) * (bags.classes if bags.classes > 2 else 1)
    critical = float(-ndtri(0.025 / max(tests, 1)))
    for c in range(1 if bags.classes == 2 else 0, bags.classes):
        own = every[np.flatnonzero(bags.labels == c)]
        held = np.asarray(own.sum(axis=0)).ravel()
        inside = (held[:, None] + held[None, :] - 2 * (own.T @ own).toarray())[upper]
        size = float(own.shape[0])
        spread = np.sqrt(odd * (n - odd) * size * (n - size) / n**2 / max(n - 1, 1))
        away = np.abs(inside - odd * size / n)
        z = np.divide(away, spread, out=np.zeros(len(odd)), where=spread > 0)
        at = int(z.argmax())
        if best is None or z[at] > best.z:
            agree = inside[at] + (n - odd[at]) - (size - inside[at])
            found = max(agree, n - agree) / n
            pair = int(words[upper[0][at]]), int(words[upper[1][at]])
            best = Parity(*pair, float(z[at]), critical, float(found), len(odd))
    return best
