"""Will attention have anything to follow? Told before training, for pairs and for labels.

Parallel text: whether single words tell where a target word comes from
(:mod:`attnscope.probes.lexicon.places`). Labelled text: whether the label follows from two words
together though from none alone (:mod:`attnscope.probes.evidence.parity`), which attention cannot
find word by word.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from attnscope.datasets.kinds import ParallelText
from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import Asked, AskedLabelled
from attnscope.probes.evidence.parity import Parity, best_parity
from attnscope.probes.lexicon.counts import number_words
from attnscope.probes.lexicon.places import Places, told_places
from attnscope.report import Section
from attnscope.tasks.word_sequences import Rule

Learnable = Literal["learnable", "not learnable", "cannot tell"]
PAIRS = 4000
"""Pairs that are counted at most."""
FEWEST = 50
"""Pairs below which nothing can be told."""


def places_of(data: ParallelText, seed: int = 0) -> Places | None:
    """Say how well two halves of a corpus agree on where words come from; ``None`` if too few."""
    source, target = data.splits["train"]
    order = np.random.default_rng(seed).permutation(len(source))[:PAIRS]
    rule = Rule()
    rows = [(rule.words(source[i]), rule.words(target[i])) for i in order]
    rows = [(x, y) for x, y in rows if x and y]
    if len(rows) < FEWEST:
        return None
    one, source_words = number_words([x for x, _ in rows])
    other, target_words = number_words([y for _, y in rows])
    sides = [
        [side.ids[side.starts[m] : side.starts[m + 1]] for m in range(len(rows))]
        for side in (one, other)
    ]
    return told_places(*sides, vocabulary=len(source_words), outputs=len(target_words), seed=seed)


def learnable_pairs(data: ParallelText, seed: int = 0) -> Learnable:
    """Tell from pairs alone whether attention has something to follow."""
    try:
        found = places_of(data, seed)
    except AttnscopeError:
        return "cannot tell"
    if found is None:
        return "cannot tell"
    return "learnable" if found.learnable else "not learnable"


def learnable_labels(asked: AskedLabelled) -> Learnable:
    """Tell from labelled text alone whether single words carry the label.

    "Not learnable" is said where that can be known: a pair of words carries the label together and
    no word does alone, or a bag of words is no better than the most frequent class.
    """
    found = asked.accuracy
    if asked.told and found.bag.low > found.majority.share:
        return "learnable"
    if asked.told or together(asked) is not None:
        return "not learnable"
    return "cannot tell"


def together(asked: AskedLabelled) -> Parity | None:
    """Return two words whose parity carries the label beyond chance, if there are any."""
    found = best_parity(asked.table.bags, skip=1)
    return found if found is not None and found.sure else None


def parity_sentence(asked: AskedLabelled, found: Parity) -> str:
    """Say that two words carry the label together."""
    first, second = (asked.table.words[i] for i in (found.first, found.second))
    return (
        "Nothing to learn from single words: none of them stands out from chance, but two together "
        f"carry the label (XOR). Whether a text holds exactly one of '{first}' and '{second}' "
        f"finds the label of {found.accuracy:.1%} of the texts ({found.z:.1f} standard errors, "
        f"{found.critical:.1f} needed with {found.pairs:,} pairs). Attention has no word to go to "
        "first; a bag of words never learns this, and a recurrent model only late, by other means."
    )


def learnable_section(asked: Asked[ParallelText]) -> Section:
    """Say whether attention over parallel text has words to follow."""
    asked.tell("comparing two halves of the pairs", 0, 0)
    title = "Whether attention can learn"
    try:
        found = places_of(asked.data, asked.seed)
    except AttnscopeError as error:
        return Section("learnable", title, (f"Cannot tell: {error}",))
    if found is None:
        size = len(asked.data.splits["train"][0])
        return Section(
            "learnable",
            title,
            (
                f"Cannot tell: {size} pairs are too few; expected {FEWEST} with words on both "
                "sides.",
            ),
        )
    numbers = (
        f"two halves of the pairs name the same source word for {found.agreed:.0%} of "
        f"{found.words:,} target words; by chance {found.chance:.0%}, with pairs put together at "
        f"random {found.shuffled:.0%}"
    )
    if found.learnable:
        said = (
            f"Learnable: single words tell where a target word comes from ({numbers}). Attention "
            "has something to follow."
        )
    else:
        said = (
            f"Not learnable word by word: single words do not tell where a target word comes from "
            f"({numbers}). Every source word goes equally with the target words of its pairs, as "
            "in permutations of one set of words: attention has nothing to follow, and comes late, "
            "by position, or not at all (Snell 2021, section 3.3)."
        )
    return Section("learnable", title, (said,))
