"""GloVe vectors as text: ``word v1 ... vd``, one word a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.kinds import WordVectors
from attnscope.datasets.text import Place, lines
from attnscope.errors import AttnscopeError


def read_glove(path: Path, vocabulary: Iterable[str]) -> WordVectors:
    """Read the vectors of the words asked for; the file is streamed and no other word is held.

    The first line tells the dimension. A word may hold spaces (some published files have such):
    it is what stands before the last d numbers. Of a word given twice the first counts, as in the
    GloVe tools. Reading stops when every word is found.

    Raises:
        AttnscopeError: with file and line, for a line of another dimension or a bad number; also
            if none of the words is in the file.
    """
    wanted = dict.fromkeys(vocabulary)
    found: dict[str, NDArray[np.float32]] = {}
    dimension = 0
    for number, line in lines(path):
        if not dimension:
            dimension = line.count(" ")
            if dimension < 2:
                raise Place(str(path), number).error(
                    f"found {line[:60]!r}. Expected 'word v1 ... vd', a word and its numbers."
                )
        word, *values = line.rstrip(" ").rsplit(" ", dimension)
        if len(values) != dimension:
            raise Place(str(path), number).error(
                f"there are {len(values)} numbers. Expected {dimension}, as in the first line."
            )
        if word not in wanted or word in found:
            continue
        try:
            vector = np.array(values, dtype=np.float32)
        except ValueError as error:
            raise Place(str(path), number).error(f"not a vector ({error}).") from error
        if not np.isfinite(vector).all():
            raise Place(str(path), number).error("the vector has a number that is not finite.")
        found[word] = vector
        if len(found) == len(wanted):
            break
    if not found:
        raise AttnscopeError(
            f"'{path}' has none of the {len(wanted)} words asked for. Expected some of them; are "
            "they of the same language and lower-cased like the file?"
        )
    words = tuple(word for word in wanted if word in found)
    missing = tuple(word for word in wanted if word not in found)
    return WordVectors(words, np.stack([found[word] for word in words]), missing)
