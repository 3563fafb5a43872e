"""What the training pairs alone say about attention, before any model is trained.

Section 4 of Snell 2021: the count table C (eq 16) is what a model under uniform attention learns
first (eq 15), and α^IBM (eq 19) is where IBM Model 1 looks. A class is a sentence of one word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from attnscope.probes import ibm1
from attnscope.probes.agreement import TOP, mean_agreement, top_count
from attnscope.probes.counts import Sentences, Words, count_table, sentences, translation_table
from attnscope.studies.snell2021._agreement_cells import Cells
from attnscope.studies.snell2021._agreement_table import Runs
from attnscope.tasks.word_sequences import Texts

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement

COUNTS, IBM, EM = "counts", "ibm", "em"
COUNTED = (COUNTS, IBM)
"""Predictions that are read off the count table."""
PERMUTATIONS = 11
"""Ways to put pairs together at random: ten to compare with, and one that is a control."""
ITERATIONS = 5
"""Of the EM algorithm; the first gives eq 17."""
WORDS = {
    COUNTS: "count table: start of the log odds, C_io - mean over o' of C_io' (eq 15)",
    IBM: "α of IBM Model 1 after one iteration (eq 17 to 19)",
    EM: f"α of IBM Model 1 after {ITERATIONS} iterations of EM",
}


def predictions(study: Agreement, tree: xr.DataTree) -> xr.Dataset:
    """Predict attention for every validation cell from all training pairs of the study.

    Returns:
        What :func:`from_pairs` and :func:`permuted` give.
    """
    train = study.side.data.train
    truth = tree["data"].to_dataset()
    if isinstance(train, Texts):
        source, target = _end_to_end(train.ids), sentences(train.labels[:, None])
    else:
        source, target = _end_to_end(train.source), _end_to_end(train.target)
    chance = permuted(truth, source, target, Runs(tree).alpha)
    return from_pairs(truth, source, target).merge(chance)


def from_pairs(truth: xr.Dataset, source: Words, target: Words) -> xr.Dataset:
    """Predict attention for every validation cell from pairs alone.

    Args:
        truth: the group ``data``.
        source: word numbers of all training sentences.
        target: of what belongs to them: translations, or a list of one class each.

    Returns:
        A variable ``NAME_dev`` of dimension ``cell_dev`` for each name of :data:`WORDS`. Those of
        IBM Model 1 are weights that sum to 1 over the positions of a row, or to 0 where no source
        word was ever seen with the target word.
    """
    cells = _Asked(truth)
    one, other = cells.sized(source, target)
    counts = count_table(one, other)
    em = ibm1.fit(one, other, ITERATIONS)
    found = {**cells.predicted(counts), EM: cells.weights(em.translation)}
    return xr.Dataset(
        {
            f"{name}_dev": (
                "cell_dev",
                values.astype(np.float32),
                {"unit": "", "meaning": WORDS[name]},
            )
            for name, values in found.items()
        }
    )


def permuted(
    truth: xr.Dataset, source: Words, target: Words, alpha: NDArray[np.float64]
) -> xr.Dataset:
    """Return A(α, v) in percent, v from pairs put together at random, several times.

    Words that are rare have extreme counts by chance, and attention may prefer rare words: this,
    not random order, is what a prediction must exceed.

    Args:
        truth: as for :func:`from_pairs`.
        source: the same.
        target: the same.
        alpha: attention, shape ``(row, position)``.

    Returns:
        A variable ``NAME_permuted`` for each name of :data:`COUNTED`.
    """
    asked = _Asked(truth)
    one, other = asked.sized(source, target)
    values: dict[str, list[float]] = {name: [] for name in COUNTED}
    for seed in range(PERMUTATIONS):
        counts = count_table(one, _shuffled(other, seed))
        for name, flat in asked.predicted(counts).items():
            v = asked.cells.padded(flat)
            values[name].append(100 * mean_agreement(alpha, v, asked.cells.mask).value)
    attrs = {"unit": "%", "meaning": "A(α, v) for training pairs put together at random"}
    return xr.Dataset(
        {f"{name}_permuted": ("permutation", found, attrs) for name, found in values.items()}
    )


class _Asked:
    """The cells that are asked about: a source word and a target word each.

    Args:
        truth: the group ``data``.
    """

    def __init__(self, truth: xr.Dataset) -> None:
        self.cells = Cells(truth["length_dev"].to_numpy())
        self.words = truth["source_dev"].to_numpy()
        self.goals = np.repeat(truth["target_dev"].to_numpy(), self.cells.length)
        self.vocabulary = truth.sizes["id"]
        self.outputs = 2 if truth.attrs["kind"] == "labelled" else self.vocabulary

    def sized(self, source: Words, target: Words) -> tuple[Sentences, Sentences]:
        """Return both sides with the whole vocabulary, since not all of it need occur in them."""
        return (
            replace(sentences(source), vocabulary=self.vocabulary),
            replace(sentences(target), vocabulary=self.outputs),
        )

    def predicted(self, counts: sparse.csr_array) -> dict[str, NDArray[np.float64]]:
        """Return what a count table says of every cell."""
        mean = counts.sum(axis=1) / self.outputs
        return {
            COUNTS: self.read(counts) - mean[self.words],
            IBM: self.weights(translation_table(counts)),
        }

    def read(self, table: sparse.csr_array) -> NDArray[np.float64]:
        """Return the entry of every cell."""
        return np.asarray(table[self.words, self.goals], dtype=float)

    def weights(self, table: sparse.csr_array) -> NDArray[np.float64]:
        """Return α^IBM of every cell (eq 19)."""
        beta = self.read(table)
        total = np.add.reduceat(beta, self.cells.ends - self.cells.length)
        return beta / np.repeat(np.where(total > 0, total, 1.0), self.cells.length)


def tied_baseline(values: NDArray[np.float64], mask: NDArray[np.bool_], top: float = TOP) -> float:
    """Expected agreement of a random position with v, ties of v included.

    The mean over rows of the share of positions that fewer than top · L others exceed: with ties
    more than ⌈top · L⌉ positions may count as the top, and tables of counts have many.

    Args:
        values: v, shape ``(row, position)``.
        mask: where there is a position.
        top: as for :func:`~attnscope.probes.agreement.agreement`.
    """
    ranked = -np.sort(-np.where(mask, values, -np.inf), axis=1)
    lengths = mask.sum(axis=1)
    last = np.take_along_axis(ranked, top_count(lengths, top)[:, None] - 1, axis=1)
    return float(np.mean((mask & (values >= last)).sum(axis=1) / lengths))


def _shuffled(words: Sentences, seed: int) -> Sentences:
    order = np.random.default_rng(seed).permutation(len(words))
    parts = [words.ids[words.starts[m] : words.starts[m + 1]] for m in order]
    return replace(_end_to_end(parts), vocabulary=words.vocabulary)


def _end_to_end(parts: list[NDArray[np.int64]]) -> Sentences:
    ids = np.concatenate(parts)
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return Sentences(ids, starts, int(ids.max()) + 1)
