"""The classifier with attention of Snell 2021, section 2.4, after Wiegreffe & Pinter (2019).

    a_l = vᵀ ReLU(Q h_l),   α = softmax(a),   logit = Wᵀ Σ_l α_l h_l + b = Σ_l α_l γ_l,

with the states h_l of an LSTM and the log odds γ_l = Wᵀ h_l + b of a look at position l alone
(eq 22; the bias, which the paper leaves out, is in the released code). The lexical probe of a row
with label y is β_l = σ((2y - 1) γ_l) (eq 9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_packed_sequence

from attnscope.errors import AttnscopeError
from attnscope.models.lstm import LSTM
from attnscope.models.sequences import check_ids, evaluating, frozen, row_lengths
from attnscope.tasks.keyword import LabelledSequences

AttentionMode = Literal["learned", "uniform"]
Trained = Literal["all", "attention"]


@dataclass(frozen=True, eq=False)
class ClassifierLook:
    """What can be read off the classifier on a batch.

    Padding has weight 0 and log odds NaN: there is no word to look at.

    Attributes:
        weights: attention α, shape ``(row, L)``.
        log_odds: γ_l, shape ``(row, L)``.
        logits: shape ``(row,)``.
    """

    weights: Tensor
    log_odds: Tensor
    logits: Tensor


class SequenceClassifier(nn.Module):
    """An LSTM, attention over its states, and a linear layer with two answers.

    Args:
        vocabulary: number of ids.
        embedding: length of embeddings.
        hidden: H, length of a state of one direction.
        attention_hidden: length of the hidden layer of attention.
        bidirectional: whether the LSTM reads both ways.
        attention: ``"learned"``, or ``"uniform"`` for α = 1/L with Q and v that are not trained.
        trained: ``"all"``, or ``"attention"`` to freeze everything but Q and v.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        embedding: int = 300,
        hidden: int = 256,
        attention_hidden: int = 256,
        bidirectional: bool = True,
        attention: AttentionMode = "learned",
        trained: Trained = "all",
    ) -> None:
        super().__init__()
        for name, word, known in (
            ("attention", attention, AttentionMode),
            ("trained", trained, Trained),
        ):
            if word not in get_args(known):
                raise AttnscopeError(f"{name} = {word!r}: expected one of {get_args(known)}.")
        for name, size in (
            ("vocabulary", vocabulary),
            ("embedding", embedding),
            ("hidden", hidden),
            ("attention_hidden", attention_hidden),
        ):
            if size < 1:
                raise AttnscopeError(f"{name} = {size}: expected 1 or more.")
        if attention == "uniform" and trained == "attention":
            raise AttnscopeError(
                "attention = 'uniform' with trained = 'attention': expected something to train."
            )
        self.vocabulary, self.attention_kind, self.trained = vocabulary, attention, trained
        width = hidden * (2 if bidirectional else 1)
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.encoder = LSTM(embedding, hidden, bidirectional=bidirectional)
        self.readout = nn.Linear(width, 1)
        self.scorer = nn.Sequential(
            nn.Linear(width, attention_hidden), nn.ReLU(), nn.Linear(attention_hidden, 1)
        )
        if trained == "attention":
            self.requires_grad_(False)
        self.scorer.requires_grad_(attention == "learned")

    def states(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return h_l, shape ``(row, L, width)``."""
        check_ids("sequences", ids, self.vocabulary)
        return self.encoder.over_words(self.embedding.weight, ids, mask)[0]

    def attention_weights(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return α, shape ``(row, L)``; padded positions have exactly 0."""
        return self._weights(self.states(ids, mask), mask)

    def log_odds(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return γ_l = Wᵀ h_l + b, shape ``(row, L)``; NaN where there is no word."""
        return _only(self._log_odds(self.states(ids, mask)), mask)

    def logits(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the log odds of the positive class, shape ``(row,)``."""
        return self._logits(self.states(ids, mask), mask)

    @torch.no_grad()
    def evaluate(self, ids: Tensor, mask: Tensor | None = None) -> ClassifierLook:
        """Read attention, log odds and answers off the model in one pass."""
        with evaluating(self):
            check_ids("sequences", ids, self.vocabulary)
            return self._look(ids, mask)

    def saliency(self, ids: Tensor, mask: Tensor | None, label: Tensor) -> Tensor:
        """Return Δ_l = -∂Loss/∂gate_l, where a gate of 1 multiplies the embedding of word l.

        The loss is the row's own cross-entropy. More of a helpful word lowers the loss, so such a
        word is positive.

        Args:
            ids: the words, shape ``(row, L)``.
            mask: where there is a word.
            label: 0 or 1, shape ``(row,)``.

        Returns:
            Shape ``(row, L)``; zero where there is no word.
        """
        return self.evaluate_with_saliency(ids, mask, label)[1]

    def evaluate_with_saliency(
        self, ids: Tensor, mask: Tensor | None, label: Tensor
    ) -> tuple[ClassifierLook, Tensor]:
        """Return :meth:`look` and :meth:`saliency` of one pass through the model.

        Parameters get no gradients, which is half of the way back.
        """
        check_ids("sequences", ids, self.vocabulary)
        with evaluating(self), frozen(self), torch.enable_grad():
            gate = self.embedding.weight.new_ones(ids.shape).requires_grad_()
            seen = self._look(ids, mask, gate)
            delta = -torch.autograd.grad(_loss(seen.logits, label).sum(), gate)[0]
        return ClassifierLook(
            seen.weights.detach(), seen.log_odds.detach(), seen.logits.detach()
        ), delta

    def _look(self, ids: Tensor, mask: Tensor | None, gate: Tensor | None = None) -> ClassifierLook:
        """Read everything off the states of words alone: nothing is made of padding."""
        table = self.embedding.weight
        states, _ = self.encoder.packed_words(table, ids, mask, gate=gate)

        def padded(numbers: Tensor) -> Tensor:
            packed = states._replace(data=numbers)
            return pad_packed_sequence(packed, batch_first=True, total_length=ids.shape[1])[0]

        odds = padded(self._log_odds(states.data))
        scores = table.new_zeros(ids.shape)
        if self.attention_kind == "learned":
            scores = padded(self._scores(states.data))
        weights = self._softmax(scores, mask)
        return ClassifierLook(weights, _only(odds, mask), (weights * odds).sum(dim=1))

    def _weights(self, states: Tensor, mask: Tensor | None) -> Tensor:
        row_lengths(states.shape[:2], mask)
        if self.attention_kind == "uniform":
            return self._softmax(torch.zeros_like(states[:, :, 0]), mask)
        return self._softmax(self._scores(states), mask)

    def _scores(self, states: Tensor) -> Tensor:
        return self.scorer(states)[..., 0]

    def _softmax(self, scores: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, dim=1)

    def _log_odds(self, states: Tensor) -> Tensor:
        return self.readout(states)[..., 0]

    def _logits(self, states: Tensor, mask: Tensor | None) -> Tensor:
        return (self._weights(states, mask) * self._log_odds(states)).sum(dim=1)


def classifier_loss(model: SequenceClassifier, sequences: LabelledSequences) -> Tensor:
    """Return the mean of -log p(label) over rows."""
    return _loss(model.logits(sequences.source, sequences.mask), sequences.label).mean()


class Batches(Protocol):
    """Where mini-batches come from."""

    def batch(self, rows: Tensor) -> LabelledSequences:
        """Return the sequences of these numbers."""


class ClassifierObjective:
    """:func:`classifier_loss` on mini-batches.

    Args:
        batches: anything with ``.batch(rows)``.
    """

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __call__(self, model: SequenceClassifier, rows: Tensor) -> Tensor:
        """Return the loss on the sequences numbered ``rows``."""
        return classifier_loss(model, self.batches.batch(rows))


def _loss(logits: Tensor, label: Tensor) -> Tensor:
    """Return -log p(label) of every row."""
    return F.binary_cross_entropy_with_logits(logits, label.to(logits.dtype), reduction="none")


def _only(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else values.masked_fill(~mask, torch.nan)
