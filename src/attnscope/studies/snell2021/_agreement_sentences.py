"""What is read off a translation model, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attnscope.models.seq2seq import Seq2Seq
from attnscope.models.seq2seq_saliency import translation_saliency
from attnscope.models.word_proxy import WordProxy
from attnscope.probes.bleu import corpus_bleu
from attnscope.studies.snell2021._agreement_readings import Look
from attnscope.tasks.parallel_pieces import PiecePairs
from attnscope.tasks.pieces import Pieces
from attnscope.tasks.sequence_pairs import SequencePairs

TOKENS_AT_ONCE = 1000
"""Target words that are read in one pass: each has a probability for every word."""


def cell_counts(pairs: PiecePairs) -> NDArray[np.int64]:
    """Return T · L of every pair."""
    return pairs.source_lengths * pairs.target_lengths


def look(model: nn.Module, pairs: PiecePairs, salient: int = 0, salient_cells: int = 0) -> Look:
    """Read the model on pairs, in batches of about one length.

    Args:
        model: the translation model or the proxy.
        pairs: what it is read on.
        salient: the first pairs, whose saliency is read.
        salient_cells: room for their saliency; NaN where it is not read.
    """
    ends = cell_counts(pairs).cumsum()
    alpha, lexical = torch.full((2, int(ends[-1])), torch.nan)
    delta = torch.full((salient_cells,), torch.nan)
    right, loss = 0, 0.0
    for rows in _by_length(pairs):
        batch = pairs.batch(rows)
        seen, log_beta, log_p, hits = _look(model, batch)
        right += hits
        loss -= log_p
        _put(lexical, log_beta, rows, pairs, ends)
        if seen is not None:
            _put(alpha, seen, rows, pairs, ends)
    if isinstance(model, Seq2Seq) and salient:
        for rows in _by_length(pairs.rows(range(min(salient, len(pairs))))):
            _put(delta, translation_saliency(model, pairs.batch(rows)), rows, pairs, ends)
    tokens = int(pairs.target_lengths.sum())
    return Look(alpha, lexical, delta, right / tokens, loss / tokens)


def scored(model: Seq2Seq, pairs: PiecePairs, pieces: Pieces, references: Sequence[str]) -> float:
    """Return BLEU of greedy translations."""
    translations = [""] * len(pairs)
    for rows in _by_length(pairs):
        batch = pairs.batch(rows)
        for row, ids in zip(rows, model.greedy(batch.source, batch.source_mask), strict=True):
            translations[row] = pieces.decode(ids.tolist())
    return corpus_bleu(translations, references)


@torch.no_grad()
def _look(model: nn.Module, batch: SequencePairs) -> tuple[Tensor | None, Tensor, float, int]:
    """Return attention (none for the proxy), log β, the sum of log p, and how many are right."""
    if isinstance(model, WordProxy):
        log_p = torch.log_softmax(model.logits(batch.source, batch.source_mask), dim=1)
        found = log_p.gather(1, batch.target)
        hit = batch.target == log_p.argmax(dim=1, keepdim=True)
        if batch.target_mask is not None:
            found, hit = found[batch.target_mask], hit[batch.target_mask]
        return None, model.log_beta(batch), float(found.double().sum()), int(hit.sum())
    assert isinstance(model, Seq2Seq)
    seen = model.look(batch)
    hit = seen.predicted == batch.target
    if batch.target_mask is not None:
        hit = hit & batch.target_mask
    return seen.weights[:, 0], seen.log_beta, float(seen.log_p.double().sum()), int(hit.sum())


def _put(
    cells: Tensor,
    values: Tensor,
    rows: NDArray[np.int64],
    pairs: PiecePairs,
    ends: NDArray[np.int64],
) -> None:
    """Lay ``values (row, T, L)`` into their cells."""
    for one, row in zip(values, rows, strict=True):
        times, length = len(pairs.target[row]), len(pairs.source[row])
        cells[ends[row] - times * length : ends[row]] = one[:times, :length].reshape(-1)


def _by_length(pairs: PiecePairs) -> list[NDArray[np.int64]]:
    """Return batches of pairs of about one length, as many as fit into one pass."""
    order = np.lexsort((pairs.target_lengths, pairs.source_lengths))
    sums = pairs.target_lengths[order].cumsum()
    cuts = np.flatnonzero(np.diff(sums // TOKENS_AT_ONCE)) + 1
    return np.split(order, cuts)
