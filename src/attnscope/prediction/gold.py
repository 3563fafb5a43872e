"""How far predicted alignments are from those that people made."""

from __future__ import annotations

import numpy as np

from attnscope.prediction.asked_parallel import AskedParallel
from attnscope.probes.lexicon.aligners import CHOSEN, IBM1
from attnscope.probes.lexicon.alignment import (
    Links,
    chance_error_rate,
    diagonal_links,
    score_links,
    word_links,
)
from attnscope.probes.lexicon.ibm1 import Model1
from attnscope.report import Section, Table
from attnscope.report.page import Cell


def gold_section(asked: AskedParallel) -> Section | None:
    """Compare alignments with gold links: alignment error rates, chance and diagonal beside."""
    if asked.gold is None:
        return None
    made = asked.gold.alignments
    lengths = [(len(x), len(y)) for x, y in zip(made.source, made.target, strict=True)]
    chance = chance_error_rate(lengths, made.sure, made.possible)
    ways: dict[str, list[Links]] = {
        "diagonal alone": [diagonal_links(*both) for both in lengths],
        IBM1.name: predicted_links(asked, asked.ibm1),
        CHOSEN.name: predicted_links(asked, asked.model),
    }
    rows: list[tuple[Cell, ...]] = [("chance", round(100 * chance, 1), "", "", "", "")]
    found = {name: score_links(links, made.sure, made.possible) for name, links in ways.items()}
    rows += [
        (
            name,
            round(100 * one.error, 1),
            f"{100 * one.low:.1f} to {100 * one.high:.1f}",
            round(100 * one.precision, 1),
            round(100 * one.recall, 1),
            one.links,
        )
        for name, one in found.items()
    ]
    best = found[CHOSEN.name]
    links = sum(map(len, made.sure)), sum(map(len, made.possible))
    unseen = _unseen(asked)
    return Section(
        "gold",
        "Beside alignments by people",
        (
            f"Alignment error rate {best.error:.1%} (95 % interval {best.low:.1%} to "
            f"{best.high:.1%}) on {len(made.sure):,} pairs that people aligned; chance has "
            f"{chance:.1%}, the diagonal alone {found['diagonal alone'].error:.1%}, IBM Model 1 "
            f"{found[IBM1.name].error:.1%}.",
            f"{unseen:.0%} of their target words are not in the corpus at all, and can only be "
            "guessed by where they stand."
            if asked.gold.own_text
            else "The pairs are lines of the corpus.",
            f"Read as {asked.gold.form}, words counted from {asked.gold.base}: {links[0]:,} sure "
            f"and {links[1]:,} possible links. No link was used to align"
            + (", their texts were." if asked.gold.own_text else "."),
        ),
        tables=(
            Table(
                "gold",
                "Alignment error rate (Och and Ney 2003): 0 is best",
                ("links by", "AER (%)", "95 % interval", "precision (%)", "recall (%)", "links"),
                tuple(rows),
            ),
        ),
    )


def predicted_links(asked: AskedParallel, model: Model1) -> list[Links]:
    """Return the links of the gold pairs' words; two words are linked where their pieces are."""
    one, other = asked.gold_pieces
    found: list[Links] = []
    for n, (x, y) in enumerate(zip(one, other, strict=True)):
        alpha = model.alpha(*asked.ids(len(asked.rows) + n))
        if model.null:
            # A target word that the null word has is linked to nothing.
            alpha = np.where(alpha[:, -1:] > alpha[:, :-1].max(axis=1, keepdims=True), 0.0, alpha)
            alpha = alpha[:, :-1]
        found.append(word_links(alpha, x.of, y.of))
    return found


def _unseen(asked: AskedParallel) -> float:
    """Return the share of the gold pairs' target words that the corpus does not have."""
    seen = {word for _, y in asked.rows for word in y}
    words = [word for piece in asked.gold_pieces[1] for word in piece.words]
    return sum(word not in seen for word in words) / max(len(words), 1)
