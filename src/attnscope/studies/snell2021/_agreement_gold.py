"""Do attention and lexical knowledge find the words that people aligned?

A model's links are those of each target piece to the source piece with the largest value; two words
are linked where any of their pieces are. The mark of the end is no word: a piece that looks at it
most has no link.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor, nn

from attnscope.datasets.readers.alignments import read_alignments
from attnscope.engines import Final, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.probes import ibm1
from attnscope.probes.alignment import alignment_error_rate, best_links, diagonal_links, flipped
from attnscope.probes.counts import Sentences
from attnscope.report.page import Table
from attnscope.studies.snell2021._agreement_readings import Look
from attnscope.studies.snell2021._agreement_sentences import cell_counts, look
from attnscope.tasks.parallel_pieces import PiecePairs
from attnscope.tasks.pieces import Pieces
from attnscope.tasks.sequence_pairs import END

if TYPE_CHECKING:
    from attnscope.datasets.kinds import Alignments

ITERATIONS = 5
"""Of the EM algorithm for IBM Model 1."""
Links = frozenset[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Gold:
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

    def record(self) -> Record:
        """Return what is read at the beginning and the end of a run."""
        seen: list[Look] = []

        def alpha(model: nn.Module) -> Tensor:
            seen[:] = [look(model, self.pairs)]
            return seen[0].alpha

        def lexical(model: nn.Module) -> Tensor:
            return seen[0].lexical

        meaning = "sentences with gold alignments"
        return Record(
            (
                Observable("alpha_gold", alpha, ("cell_gold",), "", f"attention, {meaning}"),
                Observable("lexical_gold", lexical, ("cell_gold",), "", f"log β, {meaning}"),
            ),
            Final(),
            "end",
        )

    def tables(self, cells: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Cut a flat array of cells into ``(T, L)`` for each pair."""
        parts = np.split(cells, cell_counts(self.pairs).cumsum()[:-1])
        lengths = self.pairs.source_lengths
        return [part.reshape(-1, length) for part, length in zip(parts, lengths, strict=True)]

    def links(self, tables: list[NDArray[np.float64]]) -> list[Links]:
        """Return the word links of weights of 0 or more, ``(T, L)`` for each pair."""
        return [
            word_links(table, source, target)
            for table, source, target in zip(
                tables, self.source_words, self.target_words, strict=True
            )
        ]

    def error_rate(self, links: list[Links]) -> float:
        """Return the alignment error rate in percent."""
        return 100 * alignment_error_rate(links, self.alignments.sure, self.alignments.possible)


def read_gold(files: str, pieces: Pieces, *, turned: bool = False) -> Gold:
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
    sides = [[_cut(words, pieces) for words in side] for side in (found.source, found.target)]
    ids, words = zip(*(zip(*side, strict=True) for side in sides), strict=True)
    return Gold(found, PiecePairs(*(list(side) for side in ids)), list(words[0]), list(words[1]))


def word_links(
    weights: NDArray[np.float64], source: NDArray[np.int64], target: NDArray[np.int64]
) -> Links:
    """Return the links of words, of weights ``(T, L)`` of pieces.

    Args:
        weights: 0 or more.
        source: the word of every source piece, -1 for none.
        target: the same for target pieces.

    >>> weights = np.array([[0.1, 0.9, 0.0], [0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    >>> sorted(word_links(weights, np.array([0, 0, -1]), np.array([0, 1, 1])))
    [(0, 0), (0, 1)]
    """
    pairs = ((int(source[at]), int(target[t])) for at, t in best_links(weights))
    return frozenset(pair for pair in pairs if min(pair) >= 0)


def gold_table(gold: Gold, tree: xr.DataTree, train: PiecePairs) -> Table:
    """Tabulate alignment error rates at the end of the runs.

    Args:
        gold: what was read.
        tree: the trajectory.
        train: the training pairs, for IBM Model 1.
    """
    case = tree["observables"]["case"].to_numpy()
    normal, uniform, proxy = (
        int(np.flatnonzero(case == name)[0]) for name in ("normal", "uniform", "proxy")
    )

    def read(name: str, run: int) -> list[NDArray[np.float64]]:
        cells = tree[f"observables/{name}_gold"].isel(run=run, end=-1).to_numpy().astype(float)
        return gold.tables(cells if name == "alpha" else np.exp(cells))

    by_counts = _ibm(train, gold.pairs, tree["data"].sizes["id"])
    kinds: dict[str, list[Links]] = {
        "attention α, run A": gold.links(read("alpha", normal)),
        "lexical probe β, run A": gold.links(read("lexical", normal)),
        "lexical probe β^uf, uniform attention": gold.links(read("lexical", uniform)),
        "lexical probe β^px, proxy": gold.links(read("lexical", proxy)),
        f"IBM Model 1, {ITERATIONS} iterations": gold.links(by_counts),
        "diagonal": [
            diagonal_links(len(source), len(target))
            for source, target in zip(gold.alignments.source, gold.alignments.target, strict=True)
        ],
    }
    rows = tuple(
        (name, round(gold.error_rate(links), 2), sum(map(len, links)))
        for name, links in kinds.items()
    )
    sure = sum(map(len, gold.alignments.sure))
    title = (
        f"Gold alignments: {len(gold.pairs):,} pairs with {sure:,} sure links, at the end of the "
        "runs (alignment error rate; lower is better)"
    )
    return Table("gold", title, ("links of", "AER [%]", "links"), rows)


def _ibm(train: PiecePairs, pairs: PiecePairs, words: int) -> list[NDArray[np.float64]]:
    """Return α of IBM Model 1 trained on pieces; 0 where it never saw two together."""
    source, target = (
        Sentences(np.concatenate(side), np.cumsum([0, *map(len, side)]), words)
        for side in (train.source, train.target)
    )
    model = ibm1.fit(source, target, ITERATIONS)
    return [
        model.alpha(x.tolist(), y.tolist()) for x, y in zip(pairs.source, pairs.target, strict=True)
    ]


def _cut(words: list[str], pieces: Pieces) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pieces of words and the word of each, both with an entry for the end."""
    parts = pieces.encode(words)
    numbers = np.repeat(np.arange(len(words)), [len(part) for part in parts])
    return np.append(np.concatenate(parts), END), np.append(numbers, -1)
