"""The Stanford Sentiment Treebank as sentences: ``label sentence``, one a line."""

from __future__ import annotations

from pathlib import Path

from attnscope.datasets.kinds import Rows, Split
from attnscope.datasets.text import Place, filled, lines


def read_stsa(path: Path, classes: int) -> Split:
    """Read ``stsa.binary.*`` (two classes) or ``stsa.fine.*`` (five).

    The sentences are tokenised and lower-cased as published. Labels are the digits from 0.
    """
    rows = Rows([str(label) for label in range(classes)])
    for number, line in filled(lines(path), rows.skipped):
        label, _, sentence = line.strip().partition(" ")
        rows.add(sentence, label, Place(str(path), number))
    return rows.split()
