"""The two words of Fig 5: a rare word that is pure and a frequent one that is not."""

from __future__ import annotations

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.probes.topics.purity import class_counts, topic_purity
from attnscope.tasks.text_bags import TextBags

FIG5 = ("powerful", "best")
"""The paper's pair."""


def rivals(text: TextBags, pair: tuple[str, str]) -> tuple[int, int]:
    """Return the numbers of the pure and of the frequent word.

    If the text does not hold the paper's pair, a similar one is chosen.

    Raises:
        AttnscopeError: a word that was asked for is not in the training sentences.
    """
    if pair[0] == pair[1]:
        raise AttnscopeError(f"pair = {pair}: expected two different words.")
    try:
        return text.number(pair[0]), text.number(pair[1])
    except AttnscopeError:
        if pair != FIG5:
            raise
    return choose(text)


def choose(text: TextBags) -> tuple[int, int]:
    """Choose a pair as the paper's is: same class, one pure, the other frequent and less pure.

    The pure word is the most frequent one of the highest purity among words in five sentences or
    more; the other is the most frequent word of the same class whose purity is below 0.9 and
    above one half, or failing that above none.
    """
    counts = class_counts(text.train, len(text.classes))
    occurrences, purity = counts.sum(axis=1), topic_purity(text.train, len(text.classes))
    seen = np.flatnonzero(occurrences >= min(5, occurrences.max()))
    pure = int(seen[np.lexsort((-occurrences[seen], -purity[seen]))[0]])
    own_class = counts.argmax(axis=1) == counts[pure].argmax()
    for low in (0.5, 0.0, -1.0):
        rest = np.flatnonzero(own_class & (occurrences > 0) & (purity > low) & (purity < 0.9))
        rest = rest[rest != pure]
        if rest.size:
            return pure, int(rest[occurrences[rest].argmax()])
    raise AttnscopeError(
        f"no two words of {text.name} compete: expected a frequent word of purity below 0.9 in "
        "the same class as a pure one; name two by --pair."
    )
