"""Where word embeddings start: published vectors where there are some that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.place import data_dir
from attnscope.datasets.readers.glove import read_glove
from attnscope.errors import AttnscopeError

NONE = "none"
"""Asks for no vectors, whether there are some or not."""


@dataclass(frozen=True, eq=False)
class VocabularyVectors:
    """Vectors of some words of a vocabulary.

    Args:
        numbers: which words have one.
        values: shape ``(word, embedding)``.
        sentence: where they are from, or why there are none.
    """

    numbers: NDArray[np.int64]
    values: NDArray[np.float32]
    sentence: str


def word_vectors(file: str, words: Sequence[str], length: int) -> VocabularyVectors:
    """Read GloVe vectors of the vocabulary.

    Args:
        file: the file; or empty, for ``glove/glove.6B.<length>d.txt`` (packed or not) below the
            data folder if it is there; or ``"none"``.
        words: the vocabulary.
        length: of an embedding; vectors of another length are refused.

    Raises:
        AttnscopeError: the file is not there or does not fit.
    """
    empty = np.zeros(0, dtype=np.int64), np.zeros((0, length), dtype=np.float32)
    start = "embeddings start from N(0, 1), as they do in the released code"
    if file == NONE:
        return VocabularyVectors(*empty, f"none were asked for: {start}")
    kept = sorted((data_dir() / "glove").glob(f"glove.6B.{length}d*.txt*"))
    if not file and not kept:
        return VocabularyVectors(
            *empty,
            f"no GloVe vectors of length {length} below the data folder (glove/glove.6B."
            f"{length}d.txt): {start}",
        )
    path = Path(file) if file else kept[0]
    found = read_glove(path, words)
    if found.vectors.shape[1] != length:
        raise AttnscopeError(
            f"'{path}' holds vectors of length {found.vectors.shape[1]}: expected {length}, the "
            f"length of an embedding; pass --embedding {found.vectors.shape[1]} to use it."
        )
    numbers = {word: number for number, word in enumerate(words)}
    rows = np.array([numbers[word] for word in found.words])
    said = f"{path.name}: {len(rows):,} of {len(words):,} words start from it, others from N(0, 1)"
    return VocabularyVectors(rows, found.vectors, said)
