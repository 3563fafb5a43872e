"""IMDB reviews: ``aclImdb/{train,test}/{pos,neg}/ID_RATING.txt`` in a tar or a folder."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from attnscope.datasets.archives import by_number, members
from attnscope.datasets.kinds import Rows, Split
from attnscope.datasets.text import Place
from attnscope.errors import AttnscopeError

CLASSES = ("neg", "pos")
UNLABELLED = "unlabelled review"

_REVIEW = re.compile(r"(?:^|/)(train|test)/(pos|neg|unsup)/([0-9]+)_[0-9]+\.txt$")


def read_imdb(path: Path) -> dict[str, Split]:
    """Read the splits ``train`` and ``test``.

    The text is as published, ``<br />`` included. Rows are ordered by class (negative first),
    then by the number of the review, whatever the order in the archive. The 50,000 reviews
    without a label (``train/unsup``) are left out and counted.

    Args:
        path: ``aclImdb_v1.tar.gz``, the same as ``.tar.xz`` or ``.zip``, or the unpacked folder.
    """
    found: dict[str, list[tuple[str, tuple[int, str], str, str]]] = {"train": [], "test": []}
    skipped: Counter[str] = Counter()
    for member in members(path, skipped):
        match = _REVIEW.search(str(member.path))
        if match is None:
            continue  # the readme, the vocabulary, bags of words and addresses
        split, label, number = match.groups()
        if label == "unsup":
            skipped[UNLABELLED] += 1
            continue
        found[split].append((label, by_number(number), member.text(), member.label))
    splits = {}
    for split, reviews in found.items():
        if not reviews:
            raise AttnscopeError(
                f"'{path}' holds no review of the split {split}. Expected files such as "
                f"'aclImdb/{split}/pos/0_9.txt'."
            )
        rows = Rows(CLASSES)
        if split == "train":
            rows.skipped.update(skipped)
        for label, _, text, name in sorted(reviews):
            rows.add(text, label, Place(name, 1))
        splits[split] = rows.split()
    return splits
