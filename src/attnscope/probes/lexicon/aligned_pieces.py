"""Sentence pairs whose words people aligned, cut into pieces as a translation model reads them.

Links of a model are those of each target piece to the source piece with the largest value; two
words are linked where any of their pieces are. The mark of the end is no word: a piece that attends
to it most has no link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.kinds import Alignments
from attnscope.datasets.readers.alignments import read_alignments
from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.alignment import Links, alignment_error_rate, flipped, word_links
from attnscope.tasks.parallel_pieces import PiecePairs
from attnscope.tasks.pieces import Pieces
from attnscope.tasks.sequence_pairs import END


@dataclass(frozen=True, eq=False)
class AlignedPieces:
    """Sentence pairs that people aligned, as pieces.

    Args:
        alignments: words and links, from the language that is translated from.
        pairs: the pieces of both sides.
        source_words: for each pair the word of every source piece; -1 for the end.
        target_words: the same for targets.
    """

    alignments: Alignments
    pairs: PiecePairs
    source_words: list[NDArray[np.int64]]
    target_words: list[NDArray[np.int64]]

    def weights(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Cut a flat array of cells into ``(T, L)`` for each pair."""
        parts = np.split(cells, self.pairs.cells.cumsum()[:-1])
        lengths = self.pairs.source_lengths
        return [part.reshape(-1, length) for part, length in zip(parts, lengths, strict=True)]

    def links(self, weights: Sequence[NDArray[np.float64]]) -> list[Links]:
        """Return the word links of weights of 0 or more, ``(T, L)`` for each pair."""
        words = zip(weights, self.source_words, self.target_words, strict=True)
        return [word_links(*of_pair) for of_pair in words]

    def error_rate(self, links: Sequence[Links]) -> float:
        """Return the alignment error rate in percent."""
        return 100 * alignment_error_rate(links, self.alignments.sure, self.alignments.possible)


def read_aligned_pieces(files: str, pieces: Pieces, *, turned: bool = False) -> AlignedPieces:
    """Read gold alignments and cut their words into pieces.

    Args:
        files: ``TEXTS:LINKS``, as :func:`~attnscope.datasets.readers.alignments.read_alignments`
            reads them; the texts are in the order of the set's languages.
        pieces: of the models.
        turned: whether the models translate from the second language.

    Raises:
        AttnscopeError: there are no such files, or they cannot be read.
    """
    for colon in (at for at, letter in enumerate(files) if letter == ":"):
        texts, links = Path(files[:colon]), Path(files[colon + 1 :])
        if texts.is_file() and links.is_file():
            break
    else:
        raise AttnscopeError(
            f"gold = '{files}': expected two files that exist, as TEXTS:LINKS, with "
            "'source ||| target' and links such as '1-2 3p4', one pair a line."
        )
    found = read_alignments(texts, links)
    if turned:
        found = replace(
            found,
            source=found.target,
            target=found.source,
            sure=[flipped(one) for one in found.sure],
            possible=[flipped(one) for one in found.possible],
        )
    source, target = (
        [_cut(words, pieces) for words in side] for side in (found.source, found.target)
    )
    return AlignedPieces(
        found,
        PiecePairs([ids for ids, _ in source], [ids for ids, _ in target]),
        [words for _, words in source],
        [words for _, words in target],
    )


def _cut(words: list[str], pieces: Pieces) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pieces of words and the word of each, both with an entry for the end."""
    parts = pieces.encode(words)
    numbers = np.repeat(np.arange(len(words)), [len(part) for part in parts])
    return np.append(np.concatenate(parts), END), np.append(numbers, -1)
