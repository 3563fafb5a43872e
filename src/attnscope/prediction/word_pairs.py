"""Which pairs of words will be learned first and last, by how much evidence there is for them."""

from __future__ import annotations

import numpy as np

from attnscope.prediction.asked_parallel import AskedParallel
from attnscope.report import Section, Table

SHOWN = 12
LIKELY = 0.3
"""Probability from which on a translation is taken for one."""


def pairs_section(asked: AskedParallel) -> Section | None:
    """Rank pairs of words by evidence: what stands out of the data most is learned first."""
    if not asked.told:
        return None
    found, table = asked.association, asked.model.translation.tocoo()
    sources = len(asked.source_words)
    likely = (table.data > LIKELY) & (table.row < sources)
    row, column, value = table.row[likely], table.col[likely], table.data[likely]
    evidence = np.asarray(found.evidence[row, column]).ravel()
    together = np.asarray(found.together[row, column]).ravel()
    beyond = np.flatnonzero(evidence > found.bound)
    order = beyond[np.argsort(-evidence[beyond], kind="stable")]
    chosen = [(i, "first") for i in order[:SHOWN]]
    chosen += [(i, "last") for i in order[SHOWN:][-SHOWN:]]
    often = np.bincount(asked.counted[0].ids, minlength=sources)
    learnable = found.best > found.bound
    share = float(often[learnable].sum() / max(often.sum(), 1))
    never = int((~learnable & (often > 0)).sum())
    return Section(
        "word-pairs",
        "Which word pairs will be learned first and last",
        (
            f"{len(order):,} pairs of words go together beyond chance and translate each other "
            f"(probability above {LIKELY}). Those with most evidence come first.",
            f"{share:.0%} of the source words of a text have a partner beyond chance. {never:,} "
            "words have none in so few pairs: attention to them is learned last, from where they "
            "stand, or not at all.",
            "What this is based on: evidence is in nats, the logarithm of how unlikely it is by "
            f"chance that two words share so many pairs; {found.bound:.1f} are beyond chance for "
            "all pairs of words together. It is an order by what the data say, not by a training.",
        ),
        tables=(
            Table(
                "word-pairs",
                "Word pairs by evidence",
                (*asked.data.languages, "learned", "evidence (nats)", "pairs with both",
                 "probability"),
                tuple(
                    (
                        asked.source_words[row[i]],
                        asked.target_words[column[i]],
                        when,
                        round(float(evidence[i]), 1),
                        int(together[i]),
                        round(float(value[i]), 2),
                    )
                    for i, when in chosen
                ),
            ),
        ),
    )  # fmt: skip
