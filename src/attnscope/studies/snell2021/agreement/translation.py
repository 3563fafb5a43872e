"""What the agreement study trains and reads on parallel text, sections 2.1 and 2.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines import Final, Record
from attnscope.models.seq2seq import Seq2Seq, cross_entropy
from attnscope.models.seq2seq.saliency import translation_saliency
from attnscope.models.word_proxy import ProxyObjective, WordProxy
from attnscope.probes.lexicon.aligned_pieces import AlignedPieces, read_aligned_pieces
from attnscope.probes.lexicon.bleu import corpus_bleu
from attnscope.studies.snell2021.agreement.setup import (
    PROXY_WIDTH,
    Numbers,
    Pass,
    Setup,
    SplitReading,
    observables,
    put_together,
)
from attnscope.tasks.length_batches import passes
from attnscope.tasks.parallel_pieces import ParallelPieces, PiecePairs, parallel_pieces
from attnscope.tasks.pieces import Pieces
from attnscope.tasks.sequence_pairs import PAD, SequencePairs

EPOCHS = {"multi30k": 20, "iwslt14": 30, "news_commentary": 40}
"""Epochs in the released code; a set of the user's own has those of Multi30k."""
LAYERS, DROPOUT = 2, 0.5
TOKENS_AT_ONCE = 1000
"""Target words that are read in one pass: each has a probability for every word."""


def read_pairs(
    model: nn.Module, pairs: PiecePairs, salient: int = 0, room: int = 0
) -> SplitReading:
    """Read the translation model or the proxy on pairs, see :attr:`Setup.look`."""
    tokens = int(pairs.target_lengths.sum())
    return put_together(_passes(model, pairs, salient), pairs.cells, room, tokens)


def scored(model: Seq2Seq, pairs: PiecePairs, pieces: Pieces, references: Sequence[str]) -> float:
    """Return BLEU of greedy translations."""
    translations = [""] * len(pairs)
    for rows in _by_length(pairs):
        batch = pairs.batch(rows)
        for row, ids in zip(rows, model.greedy(batch.source, batch.source_mask), strict=True):
            translations[row] = pieces.decode(ids.tolist())
    return corpus_bleu(translations, references)


@torch.no_grad()
def _passes(model: nn.Module, pairs: PiecePairs, salient: int) -> Iterator[Pass]:
    for rows in _by_length(pairs):
        batch = pairs.batch(rows)
        here, target, alpha = _cells(batch), batch.target != PAD, None
        if isinstance(model, WordProxy):
            logs = torch.log_softmax(model.logits(batch.source, batch.source_mask), dim=1)
            log_beta, log_p = model.log_beta(batch), logs.gather(1, batch.target)[target]
            hits = batch.target == logs.argmax(dim=1, keepdim=True)
        else:
            assert isinstance(model, Seq2Seq)
            seen = model.evaluate(batch)
            alpha, log_beta, log_p = seen.weights[:, 0][here], seen.log_beta, seen.log_p
            hits = seen.predicted == batch.target
        right, loss = int((hits & target).sum()), -float(log_p.double().sum())
        yield rows, right, loss, (alpha, log_beta[here], None)
    if isinstance(model, Seq2Seq):
        for rows in _by_length(pairs.rows(range(min(salient, len(pairs))))):
            batch = pairs.batch(rows)
            delta = translation_saliency(model, batch)[_cells(batch)]
            yield rows, 0, 0.0, (None, None, delta)


def _cells(batch: SequencePairs) -> Tensor:
    """Return where there is a target and a source word, shape ``(row, T, L)``."""
    return (batch.target != PAD)[:, :, None] & (batch.source != PAD)[:, None, :]


def _by_length(pairs: PiecePairs) -> list[Numbers]:
    """Return batches of pairs of about one length, as many as fit into one pass."""
    order = np.lexsort((pairs.target_lengths, pairs.source_lengths))
    return passes(order, pairs.target_lengths, TOKENS_AT_ONCE)


class TranslationSetup(Setup):
    """Parallel text and the models of sections 2.1 and 2.3."""

    kind = "parallel"
    paper = {"steps": "20 to 40 epochs", "batch": 16, "embedding": 256, "proxy_epochs": 30}
    salient = 100
    early, every = (50, 100, 500, 1000, 1500), 2000
    proxy_rates = {"": 1e-3}
    look = staticmethod(read_pairs)

    @cached_property
    def data(self) -> ParallelPieces:
        """The sentences as pieces."""
        study = self.study
        return parallel_pieces(
            self.text,
            source=study.source,
            vocabulary=study.vocabulary,
            most=study.evaluated,
            limit=study.limit,
            train_most=study.train_most or None,
        )

    @cached_property
    def splits(self) -> dict[str, PiecePairs]:
        """Validation pairs, and as many training pairs."""
        order = np.random.default_rng(1).permutation(len(self.data.train))
        sample = self.data.train.rows(np.sort(order[: len(self.data.dev)]))
        return {"dev": self.data.dev, "train": sample}

    @cached_property
    def gold(self) -> AlignedPieces | None:
        """Pairs that people aligned, if there are some."""
        if not self.study.gold:
            return None
        turned = self.data.languages != self.text.languages
        return read_aligned_pieces(self.study.gold, self.data.pieces, turned=turned)

    def lengths(self, case: str) -> Numbers:
        """Return source lengths; but for the proxy, equal ones are sorted by target.

        Sources are then hardly ever filled up.
        """
        pairs = self.data.train
        if case == "proxy":
            return pairs.source_lengths
        longest = int(pairs.target_lengths.max()) + 1
        return pairs.source_lengths * longest + pairs.target_lengths

    def model(self, case: str, seed: int) -> nn.Module:
        """Return the model of a case before training: the released code's, or smaller."""
        torch.manual_seed(seed)
        words = len(self.data.words)
        if case == "proxy":
            return WordProxy(words, words, PROXY_WIDTH)
        return Seq2Seq(
            words,
            embedding=self.study.wanted("embedding"),
            hidden=self.study.hidden,
            layers=LAYERS,
            bidirectional=True,
            output="relu",
            projection=True,
            attention="uniform" if case == "uniform" else "learned",
            trained="attention" if case == "frozen" else "all",
            dropout=DROPOUT,
        )

    def objective(self, case: str) -> Callable[[Any, Numbers], Tensor]:
        """Return the loss on training pairs of some numbers."""
        pairs = self.data.train
        if case == "proxy":
            whole = ProxyObjective(pairs.batch(range(len(pairs))))
            return lambda model, rows: whole(model, torch.from_numpy(rows))
        return lambda model, rows: cross_entropy(model, pairs.batch(rows))

    def records(self, case: str, first: bool) -> list[Record]:
        """Return what is read off the model of a case, at the end on aligned pairs too."""
        records = super().records(case, first)
        if self.gold is not None:
            alpha, lexical, *_ = observables(read_pairs, "gold", self.gold.pairs)
            records.append(Record((alpha, lexical), Final(), "end"))
        return records

    def bleu(self, model: nn.Module) -> float:
        """Return BLEU of translations of the validation pairs; NaN for the proxy."""
        if not isinstance(model, Seq2Seq):
            return torch.nan
        return scored(model, self.data.dev, self.data.pieces, self.data.dev_texts)
