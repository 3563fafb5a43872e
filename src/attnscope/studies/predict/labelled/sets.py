"""The sets of the study: how they are named, read, and what they were used for."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets import labelled
from attnscope.errors import AttnscopeError
from attnscope.tasks.word_sequences import WordSequences, word_sequences

if TYPE_CHECKING:
    from attnscope.studies.predict.labelled.study import Labelled

CHOSEN_ON = ("sst2", "ag_news[World,Business]", "tweets", "newsgroups-sport")
"""Sets by which the predictor was chosen; on all others it is judged."""
PUBLISHED = ("sst2", "ag_news[World,Business]", "ag_news[Sports,Sci/Tech]", "imdb")
"""Sets of the catalogue that are run unless others are named."""


def short(name: str) -> str:
    """Return how a set is called in tables.

    >>> short("sets/tweets"), short("ag_news[Sports,Sci/Tech]"), short("a/mine.csv")
    ('tweets', 'ag_news[Sports,Sci/Tech]', 'mine.csv')
    """
    data, two = parts(name)
    return Path(data).name + (f"[{','.join(two)}]" if two else "")


def parts(name: str) -> tuple[str, tuple[str, ...]]:
    """Split ``data[one,other]`` into the set and its two classes.

    Raises:
        AttnscopeError: there are brackets, and not two names in them.
    """
    found = re.fullmatch(r"(.*?)\[([^\[\]]*)\]", name)
    if found is None:
        return name, ()
    two = tuple(part.strip() for part in found[2].split(","))
    if len(two) != 2 or not all(two):
        raise AttnscopeError(
            f"sets = '{name}': expected two classes, as in 'ag_news[World,Sports]'."
        )
    return found[1], two


def role(name: str) -> str:
    """Say what a set was used for."""
    return "chosen on" if short(name) in CHOSEN_ON else "judged on"


def sequences(study: Labelled, name: str) -> WordSequences:
    """Return a set as words, training texts and those that are looked at."""
    return texts_of(name, study.evaluated, study.limit, study.train_most)


@lru_cache(maxsize=64)
def texts_of(name: str, most: int, limit: int, train_most: int) -> WordSequences:
    """Return a set as words; two of its classes, the largest unless they are named.

    Args:
        name: the set, as in :func:`parts`.
        most: texts that are looked at, at most.
        limit: words of a text at most.
        train_most: training texts at most; 0 for all.
    """
    data, two = parts(name)
    text = labelled(data)
    if not two and len(text.classes) > 2:
        sizes = np.bincount(text.splits["train"].labels, minlength=len(text.classes))
        first, second = sorted(np.argsort(-sizes, kind="stable")[:2])
        two = (text.classes[first], text.classes[second])
    pair = (two[0], two[1]) if two else None
    return word_sequences(text, classes=pair, most=most, limit=limit, train_most=train_most or None)


def padded(rows: list[NDArray[np.int64]], texts: int, width: int) -> NDArray[np.int64]:
    """Return word ids side by side, shape ``(texts, width)``, -1 where there is none."""
    table = np.full((texts, width), -1, dtype=np.int64)
    for row, words in zip(table, rows, strict=False):
        row[: len(words)] = words
    return table
