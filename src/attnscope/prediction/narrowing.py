"""Which texts of a labelled set a prediction is about: some classes, a sample, no regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnscope.datasets.kinds import LabelledText, Split
from attnscope.datasets.readers.table import NOT_DRAWN
from attnscope.errors import AttnscopeError, nearest

OWN = 0.9
"""Share of texts with a label of their own from which on labels are no classes."""
REGRESSION = 10
"""More numbers than this, with a fraction or few texts each, are no classes."""
FEW = 5


def of_classes(text: LabelledText, classes: Sequence[str]) -> LabelledText:
    """Return the texts of some classes, in the order of the set; classes without texts go.

    Raises:
        AttnscopeError: a class is not in the set, or only one is named.
    """
    unknown = [name for name in classes if name not in text.classes]
    if unknown or len(set(classes)) == 1:
        known = ", ".join(text.classes[:20])
        raise AttnscopeError(
            f"--classes {' '.join(classes)} of '{text.name}': expected two or more of {known}."
            f"{nearest(unknown[0], text.classes) if unknown else ''}"
        )
    sizes = np.bincount(text.splits["train"].labels, minlength=len(text.classes))
    kept = [
        i for i, name in enumerate(text.classes) if (not classes or name in classes) and sizes[i]
    ]
    if len(kept) == len(text.classes):
        return text
    place = np.full(len(text.classes), -1)
    place[kept] = np.arange(len(kept))
    splits = {}
    for name, split in text.splits.items():
        rows = np.flatnonzero(place[split.labels] >= 0)
        if len(rows):
            here = Split([split.texts[i] for i in rows], place[split.labels[rows]], split.skipped)
            splits[name] = here
    return LabelledText(text.name, tuple(text.classes[i] for i in kept), splits)


def drawn(text: LabelledText, most: int, seed: int) -> LabelledText:
    """Return the set with so many training texts at most, drawn at random; the rest is counted."""
    train = text.splits["train"]
    if len(train) <= most:
        return text
    rows = np.sort(np.random.default_rng(seed).permutation(len(train))[:most])
    skipped = {**train.skipped, NOT_DRAWN: train.skipped.get(NOT_DRAWN, 0) + len(train) - most}
    fewer = Split([train.texts[i] for i in rows], train.labels[rows], skipped)
    return of_classes(replace(text, splits={**text.splits, "train": fewer}), ())


def refuse_no_classes(text: LabelledText) -> LabelledText:
    """Return the set, unless its labels are numbers to regress, or one for each text.

    Raises:
        AttnscopeError: they are.
    """
    train = text.splits["train"]
    try:
        values = [float(name) for name in text.classes]
    except ValueError:
        if len(text.classes) > REGRESSION and len(text.classes) > OWN * len(train):
            raise AttnscopeError(
                f"'{text.name}' has {len(text.classes):,} different labels for {len(train):,} "
                f"texts, such as {text.classes[train.labels[0]]!r} for the text "
                f"{train.texts[0][:60]!r}: expected classes that several texts share. A header "
                "that names the columns text and label, or --text and --label, says where they are."
            ) from None
        return text
    fractions = any(value != int(value) for value in values if np.isfinite(value))
    if len(values) > REGRESSION and (fractions or len(train) < FEW * len(values)):
        raise AttnscopeError(
            f"'{text.name}' has {len(values):,} different labels, all of them numbers, such as "
            f"{text.classes[train.labels[0]]} for the text {train.texts[0][:60]!r}. That is a "
            "number to regress, not a class: expected classes, such as low and high."
        )
    return text
