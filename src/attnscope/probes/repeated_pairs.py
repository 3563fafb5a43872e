"""How often pairs of words repeat within a window, and how reliably: what induction heads live on.

At a word that has stood in the window before, with a successor, an induction head predicts that
successor. *Frequency* is the share of words at which it has one, P(AB...A); *reliability* the share
of those at which it is right, P(B | AB...A) (Aoyama 2025).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(eq=False)
class RepeatedPairs:
    """Counts over all windows.

    Args:
        pairs: neighbouring words.
        repeats: of them, those whose first word stood in the window before with a successor.
        kept: of those, the ones with the same successor as the last time.
        by_first: repeats, by their first word.
        by_pair: repeats with the same successor, by pair.
        unigram: how often each word stands in the texts.
    """

    pairs: int = 0
    repeats: int = 0
    kept: int = 0
    by_first: Counter[str] = field(default_factory=Counter)
    by_pair: Counter[tuple[str, str]] = field(default_factory=Counter)
    unigram: Counter[str] = field(default_factory=Counter)


def repeated_pairs(texts: Iterable[list[str]], window: int) -> RepeatedPairs:
    """Count repeats; a text is cut into windows, and nothing is remembered from one to the next.

    Args:
        texts: words of each.
        window: words in a window.

    >>> found = repeated_pairs(["a b c a b d a c".split()], 100)
    >>> found.pairs, found.repeats, found.kept, dict(found.by_pair)
    (7, 3, 1, {('a', 'b'): 1})
    """
    found = RepeatedPairs()
    for words in texts:
        found.unigram.update(words)
        for start in range(0, len(words), window):
            seen: dict[str, str] = {}
            for left, right in pairwise(words[start : start + window]):
                before = seen.get(left)
                if before is not None:
                    found.repeats += 1
                    found.by_first[left] += 1
                    if before == right:
                        found.kept += 1
                        found.by_pair[left, right] += 1
                seen[left] = right
                found.pairs += 1
    return found
