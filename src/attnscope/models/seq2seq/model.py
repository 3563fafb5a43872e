"""The sequence-to-sequence model of Snell 2021, section 2.1, and its lexical probe.

    a_{t,l} = s_tᵀ W h_l,   α_t = softmax(a_t),   c_t = Σ_l α_{t,l} h_l,   p_t = N([c_t, s_t]),

with the states h_l of an LSTM over the source and s_t of one over the target. The lexical probe is
what the model would say if it looked at one position alone, β_{t,l} = N([h_l, s_t])_{y_t} (eq 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.lstm import GRU, LSTM, State
from attnscope.models.seq2seq.head_projections import HeadProjections
from attnscope.models.seq2seq.options import (
    AttentionMode,
    Cell,
    Output,
    Pooled,
    Trained,
    check_dropout,
    check_projections,
    check_sizes,
    check_words,
)
from attnscope.models.seq2seq.probe import OnePosition
from attnscope.models.sequences import check_ids, evaluating, row_lengths
from attnscope.tasks.sequence_pairs import END, PAD, START, SequencePairs


@dataclass(frozen=True, eq=False)
class States:
    """What both networks make of a batch.

    Attributes:
        encoder: h_l, shape ``(row, L, E)``.
        decoder: s_t, shape ``(row, T, H)``.
        source_mask: where there is a source word, ``(row, L)``, or ``None`` for everywhere.
    """

    encoder: Tensor
    decoder: Tensor
    source_mask: Tensor | None


@dataclass(frozen=True, eq=False)
class Seq2SeqReadings:
    """What can be read off the model on a batch.

    A target token that is padding has weights 0, log β = -inf, log p = 0 and predicts PAD; a source
    token that is padding has weight 0 and log β = -inf.

    Attributes:
        weights: attention α, shape ``(row, head, T, L)``.
        log_beta: log β_{t,l}, shape ``(row, T, L)``.
        log_p: log probability of the right word, shape ``(row, T)``.
        predicted: the likeliest word, shape ``(row, T)``.
    """

    weights: Tensor
    log_beta: Tensor
    log_p: Tensor
    predicted: Tensor


class Seq2Seq(nn.Module):
    """Encoder, decoder, attention and output network, with a switch for each case of the paper.

    The decoder starts from the mean over directions of the encoder's last state, layer by layer.

    Args:
        source_vocabulary: number of source ids, PAD, START and END among them.
        target_vocabulary: number of target ids; ``None`` for one vocabulary and one embedding
            matrix for both sides.
        embedding: length of embeddings.
        hidden: H, length of a state of one direction, and of the hidden layer of N.
        layers: of the encoder, and of the decoder.
        bidirectional: of the encoder; E, the length of h_l, is then 2H.
        heads: K, number of attention heads (eq 20).
        heads_pooled: how the context vectors of the heads become one: ``"sum"`` as in eq 21, or
            their ``"mean"``.
        output: N. ``"linear"`` is one layer on [c, s]; ``"tanh"`` and ``"relu"`` have a hidden
            layer before it; ``"added"`` is softmax(W (c + s)), eq 32.
        projection: map the context by c ← P c + b to length H, as the released code does.
        head_projections: map the context of each head so, by a P^(k) of its own, before they become
            one; in place of ``projection``.
        attention: ``"learned"``, or ``"uniform"`` for α = 1/L with heads that are not trained.
        trained: ``"all"``, or ``"attention"`` to freeze everything but the heads.
        cell: ``"lstm"`` or ``"gru"``.
        dropout: between the layers of encoder and decoder, in training.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int | None = None,
        *,
        embedding: int = 256,
        hidden: int = 256,
        layers: int = 1,
        bidirectional: bool = False,
        heads: int = 1,
        heads_pooled: Pooled = "sum",
        output: Output = "tanh",
        projection: bool = False,
        head_projections: bool = False,
        attention: AttentionMode = "learned",
        trained: Trained = "all",
        cell: Cell = "lstm",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        targets = source_vocabulary if target_vocabulary is None else target_vocabulary
        check_words(heads_pooled, output, attention, trained, cell)
        check_sizes(source_vocabulary, targets, embedding, hidden, layers, heads)
        check_dropout(dropout, layers)
        width = hidden * (2 if bidirectional else 1)
        check_projections(output, width, hidden, projection, head_projections)
        projected = projection or head_projections
        self.source_vocabulary, self.target_vocabulary = source_vocabulary, targets
        self.heads, self.heads_pooled = heads, heads_pooled
        self.output_kind, self.attention_kind, self.trained = output, attention, trained

        kind = LSTM if cell == "lstm" else GRU
        self.embedding = nn.Embedding(source_vocabulary, embedding)
        self.target_embedding = (
            None if target_vocabulary is None else nn.Embedding(target_vocabulary, embedding)
        )
        self.encoder = kind(embedding, hidden, layers, bidirectional, dropout)
        self.decoder = kind(embedding, hidden, layers, False, dropout)
        self.projection = nn.Linear(width, hidden) if projection else None
        context = hidden if projected else width
        layered = output in ("tanh", "relu")
        self.mixing = nn.Linear(context + hidden, hidden) if layered else None
        joined = context + hidden if output == "linear" else hidden
        self.readout = nn.Linear(joined, targets, bias=output != "added")
        # Heads come last: the rest then starts the same whatever their number.
        bound = hidden**-0.5
        self.head_W = nn.Parameter(torch.empty(heads, hidden, width).uniform_(-bound, bound))
        self.head_b = nn.Parameter(torch.empty(heads, width).uniform_(-bound, bound))
        self.head_projections = (
            HeadProjections(heads, width, hidden, mean=heads_pooled == "mean")
            if head_projections
            else None
        )
        if trained == "attention":
            self.requires_grad_(False)
        for p in (self.head_W, self.head_b):
            p.requires_grad_(attention == "learned")

    def states(self, pairs: SequencePairs, vectors: Tensor | None = None) -> States:
        """Run both networks; the decoder reads START, y_1, ..., y_{T-1} (teacher forcing).

        Args:
            pairs: the batch.
            vectors: what the encoder reads in place of the embeddings of the source words, shape
                ``(row, L, embedding)``.
        """
        encoder, last, mask = self._encode(pairs.source, pairs.source_mask, vectors)
        target = pairs.target
        check_ids("target", target, self.target_vocabulary)
        if len(target) != len(encoder):
            raise AttnscopeError(
                f"{len(encoder)} sources and {len(target)} targets: expected as many."
            )
        read = torch.cat([torch.full_like(target[:, :1], START), target[:, :-1]], dim=1)
        decoder, _ = self.decoder.over_words(self._target_table, read, pairs.target_mask, last)
        return States(encoder, decoder, mask)

    def attention_weights(self, states: States) -> Tensor:
        """Return α, shape ``(row, head, T, L)``; padded positions have exactly 0."""
        h, s, mask = states.encoder, states.decoder, states.source_mask
        rows, length, width = h.shape
        steps = s.shape[1]
        if self.attention_kind == "uniform":
            share = torch.ones_like(h[:, :, 0]) if mask is None else mask.to(h.dtype)
            share = share / share.sum(dim=1, keepdim=True)
            return share[:, None, None, :].expand(rows, self.heads, steps, length)
        # (head, H, E) side by side, so that all heads' queries are one product.
        matrix = self.head_W.permute(1, 0, 2).reshape(-1, self.heads * width)
        queries = torch.addmm(self.head_b.view(-1), s.reshape(rows * steps, -1), matrix)
        logits = queries.view(rows, steps * self.heads, width) @ h.transpose(1, 2)
        if mask is not None:
            logits = logits.masked_fill(~mask[:, None, :], -torch.inf)
        weights = torch.softmax(logits, dim=2)
        return weights.view(rows, steps, self.heads, length).transpose(1, 2)

    def context(self, states: States, weights: Tensor) -> Tensor:
        """Return the pooled context of all heads, projected if so, shape ``(row, T, width)``."""
        if self.head_projections is not None:
            return self.head_projections(weights, states.encoder)
        pooled = weights.sum(dim=1) if self.heads_pooled == "sum" else weights.mean(dim=1)
        return self._project(pooled @ states.encoder)

    def logits(self, states: States, weights: Tensor) -> Tensor:
        """Return what the softmax of N is of, shape ``(row, T, word)``."""
        return self.output(self.context(states, weights), states.decoder)

    def token_logits(self, pairs: SequencePairs) -> tuple[Tensor, Tensor]:
        """Return what the softmax is of, and the right words, of the tokens that are not padding.

        Shapes are ``(token, word)`` and ``(token,)``; tokens lie row after row.
        """
        states = self.states(pairs)
        context, decoder = self.context(states, self.attention_weights(states)), states.decoder
        mask = pairs.target_mask
        if mask is None:
            return self.output(context, decoder).flatten(0, 1), pairs.target.flatten()
        # Padding is dropped before the output network, which is most of the work.
        return self.output(context[mask], decoder[mask]), pairs.target[mask]

    def log_probabilities(self, pairs: SequencePairs) -> Tensor:
        """Return log p_t under teacher forcing, shape ``(row, T, word)``."""
        states = self.states(pairs)
        return torch.log_softmax(self.logits(states, self.attention_weights(states)), dim=2)

    @torch.no_grad()
    def lexical_probe(
        self, states: States, target: Tensor, target_mask: Tensor | None = None
    ) -> Tensor:
        """Return log β_{t,l}, the log probability of y_t if every head looked at l alone (eq 4).

        Heads that are summed then make the context K h_l; one head, or the mean of several, makes
        it h_l. With projections for each head it is the sum or mean of P^(k) h_l + p^(k).

        Args:
            states: of the batch.
            target: the right words, shape ``(row, T)``.
            target_mask: where there is one; everywhere unless given.

        Returns:
            Shape ``(row, T, L)``; -inf where source or target are padded.
        """
        by_source, by_target = self._split(self._at_one(states.encoder), states.decoder)
        rows, length, width = by_source.shape
        mixed = self.mixing is not None
        probe = OnePosition(
            self.readout if mixed else None,
            self._activate,
            self.target_vocabulary,
            length,
            width,
            by_source,
        )
        out = by_source.new_full((rows, target.shape[1], length), -torch.inf)
        lengths, steps = (
            [size] * rows if mask is None else mask.sum(dim=1).tolist()
            for mask, size in ((states.source_mask, length), (target_mask, target.shape[1]))
        )
        for row, (here, times) in enumerate(zip(lengths, steps, strict=True)):
            out[row, :times, :here] = probe.row(
                by_source[row, :here], by_target[row, :times], target[row, :times]
            )
        return out

    @torch.no_grad()
    def evaluate(self, pairs: SequencePairs) -> Seq2SeqReadings:
        """Read attention, lexical probe and predictions off the model, without dropout."""
        with evaluating(self):
            states = self.states(pairs)
            weights = self.attention_weights(states)
            log_p = torch.log_softmax(self.logits(states, weights), dim=2)
            log_beta = self.lexical_probe(states, pairs.target, pairs.target_mask)
        right = log_p.gather(2, pairs.target[:, :, None])[:, :, 0]
        predicted = log_p.argmax(dim=2)
        if pairs.target_mask is not None:
            absent = ~pairs.target_mask
            weights = weights.masked_fill(absent[:, None, :, None], 0.0)
            right, predicted = right.masked_fill(absent, 0.0), predicted.masked_fill(absent, PAD)
        return Seq2SeqReadings(weights, log_beta, right, predicted)

    @torch.no_grad()
    def greedy(
        self, source: Tensor, source_mask: Tensor | None = None, limit: int | None = None
    ) -> Tensor:
        """Translate, the likeliest word at a time, without dropout.

        Args:
            source: shape ``(row, L)``.
            source_mask: where there is a word.
            limit: largest number of words; twice L unless given.

        Returns:
            Ids of shape ``(row, words)``, PAD after END.
        """
        if limit is None:
            limit = 2 * source.shape[1]
        elif limit < 1:
            raise AttnscopeError(f"limit = {limit}: expected 1 word or more.")
        with evaluating(self):
            encoder, last, mask = self._encode(source, source_mask)
            word = torch.full_like(source[:, :1], START)
            ended = torch.zeros_like(word, dtype=torch.bool)
            words: list[Tensor] = []
            while len(words) < limit and not bool(ended.all()):
                decoder, last = self.decoder.over_words(self._target_table, word, None, last)
                states = States(encoder, decoder, mask)
                word = self.logits(states, self.attention_weights(states)).argmax(dim=2)
                word = word.masked_fill(ended, PAD)
                ended = ended | (word == END)
                words.append(word)
        return torch.cat(words, dim=1)

    @property
    def _target_table(self) -> Tensor:
        return (self.embedding if self.target_embedding is None else self.target_embedding).weight

    def _encode(
        self, source: Tensor, mask: Tensor | None, vectors: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor | None]:
        """Return the encoder's states, the state the decoder starts from, and the mask if any."""
        check_ids("source", source, self.source_vocabulary)
        padded = row_lengths(source.shape, mask) is not None
        mask = mask if padded else None
        if vectors is None:
            encoder, last = self.encoder.over_words(self.embedding.weight, source, mask)
        else:
            encoder, last = self.encoder.over_vectors(vectors, mask)
        if self.encoder.bidirectional:
            last = tuple(part.unflatten(0, (-1, 2)).mean(dim=1) for part in last)
        return encoder, last, mask

    def output(self, context: Tensor, decoder: Tensor) -> Tensor:
        """Return what the softmax of N is of, for contexts and states ``(..., length)``."""
        if self.output_kind == "added":
            return self.readout(context + decoder)
        out = torch.cat([context, decoder], dim=-1)
        if self.mixing is not None:
            out = self._activate(self.mixing(out))
        return self.readout(out)

    def _project(self, context: Tensor) -> Tensor:
        return context if self.projection is None else self.projection(context)

    def _at_one(self, encoder: Tensor) -> Tensor:
        """Return the context if all heads looked at l alone, for each l."""
        if self.head_projections is not None:
            return self.head_projections.at_one_position(encoder)
        times = self.heads if self.heads_pooled == "sum" else 1
        return self._project(times * encoder)

    def _activate(self, x: Tensor) -> Tensor:
        """Apply the hidden layer's function, in place."""
        return x.tanh_() if self.output_kind == "tanh" else x.relu_()

    def _split(self, context: Tensor, decoder: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first layer of N as two terms, one of the context and one of the decoder."""
        first = self.readout if self.mixing is None else self.mixing
        if self.output_kind == "added":
            return F.linear(context, first.weight), F.linear(decoder, first.weight)
        by_context, by_decoder = first.weight.split([context.shape[2], decoder.shape[2]], dim=1)
        return F.linear(context, by_context), F.linear(decoder, by_decoder, first.bias)


def cross_entropy(model: Seq2Seq, pairs: SequencePairs) -> Tensor:
    """Return the mean of -log p over the target tokens that are not padding (eq 3, per token)."""
    return F.cross_entropy(*model.token_logits(pairs))


class Batches(Protocol):
    """Where mini-batches come from."""

    def batch(self, rows: Tensor) -> SequencePairs:
        """Return the pairs of these numbers."""


class Seq2SeqObjective:
    """:func:`cross_entropy` on mini-batches.

    Args:
        batches: anything with ``.batch(rows)``.
    """

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __call__(self, model: Seq2Seq, rows: Tensor) -> Tensor:
        """Return the loss on the pairs numbered ``rows``."""
        return cross_entropy(model, self.batches.batch(rows))
