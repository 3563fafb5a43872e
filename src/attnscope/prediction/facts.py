"""What was read, what was left out, and what is odd about the data: nothing goes silently."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnscope.prediction.asked import AskedLabelled
from attnscope.report.section import Section

MANY_CLASSES = 50
QUOTED = 60


def data_section(asked: AskedLabelled) -> Section:
    """Say how much was read and how, with every row that was left out, and doubtful ones."""
    table, train = asked.table, asked.data.splits["train"]
    lines = [
        f"{len(asked.texts):,} training texts of {len(asked.classes)} classes, "
        f"{table.tokens:,} words, {len(table.words) - 1:,} different ones that occur three times "
        f"or more. {table.rare / max(table.tokens, 1):.1%} of the words are rarer and stand "
        "together as <unk>."
    ]
    for split, rows in asked.data.splits.items():
        lines += [
            f"{count:,} rows of {split} were left out: {reason}."
            for reason, count in rows.skipped.items()
        ]
    if table.wordless:
        lines.append(
            f"{table.wordless:,} texts hold no word; they keep their label and say nothing."
        )
    if table.unspaced:
        lines.append(
            f"{table.unspaced:,} texts are in a script without spaces between words: each of its "
            "letters was counted as a word. Put spaces between words for words to be counted."
        )
    lines += _duplicates(asked.texts, train.labels, asked.classes)
    if len(asked.classes) > MANY_CLASSES:
        lines.append(
            f"{len(asked.classes)} classes are many: words are weighed for each against all "
            "others, and the smallest classes have few texts to learn from."
        )
    sizes = np.bincount(asked.labels, minlength=len(asked.classes))
    if sizes.min() < 10:
        least = int(sizes.argmin())
        lines.append(
            f"Class '{asked.classes[least]}' has {sizes[least]:,} texts: nothing can be said of it."
        )
    return Section("data", "What was read", tuple(lines))


def _duplicates(
    texts: Sequence[str], labels: NDArray[np.int64], classes: tuple[str, ...]
) -> list[str]:
    """Count texts that occur more than once, and those whose copies have different labels."""
    first: dict[bytes, int] = {}
    doubles, torn, example = 0, set(), None
    for row, text in enumerate(texts):
        # A short digest in the place of the text: memory does not grow with its length.
        key = hashlib.blake2b(" ".join(text.lower().split()).encode(), digest_size=8).digest()
        before = first.setdefault(key, row)
        if before == row:
            continue
        doubles += 1
        if labels[before] != labels[row]:
            torn.add(key)
            example = example or (before, row)
    lines = []
    if doubles:
        lines.append(f"{doubles:,} training texts repeat an earlier one; all were counted.")
    if torn and example:
        before, row = example
        lines.append(
            f"{len(torn):,} texts occur with labels that contradict each other, such as "
            f"{texts[row][:QUOTED]!r}: '{classes[labels[before]]}' as text {before + 1:,} and "
            f"'{classes[labels[row]]}' as text {row + 1:,}. They set a limit to any accuracy."
        )
    return lines
