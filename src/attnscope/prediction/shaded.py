"""Texts of the set, and of the reader's own, with the attention that is predicted for them."""

from __future__ import annotations

import numpy as np

from attnscope.prediction.asked import AskedLabelled
from attnscope.report.section import Section, ShadedText

DRAWN = 6
LONGEST = 40
"""Words of a text that is shown at most; of a longer one the beginning is."""


def shaded_section(asked: AskedLabelled) -> Section:
    """Shade the reader's sentences first, then texts drawn at random, as many of each class."""
    own = tuple(asked.shade(text, "yours") for text in asked.sentences)
    held = "dev" if "dev" in asked.data.splits else "test"
    source = held if held in asked.data.splits else "train"
    split = asked.data.splits[source]
    dice = np.random.default_rng(asked.seed)
    classes = [c for c in np.argsort(-np.bincount(split.labels)) if (split.labels == c).any()]
    share = max(1, DRAWN // len(classes))
    drawn = [
        int(i)
        for c in sorted(map(int, classes[:DRAWN]))
        for i in dice.permutation(np.flatnonzero(split.labels == c))[:share]
    ]
    texts = tuple(
        _short(asked.shade(split.texts[i], asked.classes[split.labels[i]])) for i in drawn
    )
    where = "the training texts" if source == "train" else f"the {source} split"
    sentences: tuple[str, ...] = (
        f"Texts are drawn at random from {where}. Their labels stand before them, but are not used "
        "to shade them: attention does not know the label either.",
    )
    if asked.leak:
        sentences += (
            "A word is weighed with those around it, as the states of a model hold them: words "
            "that speak for one class strengthen each other.",
        )
    return Section(
        "sentences",
        "Your sentences",
        sentences,
        own + texts,
        "Predicted attention, darker is more",
    )


def _short(text: ShadedText) -> ShadedText:
    if len(text.words) <= LONGEST:
        return text
    words = (*text.words[:LONGEST], "…")
    return ShadedText(words, np.r_[text.weights[:LONGEST], 0.0], text.note)
