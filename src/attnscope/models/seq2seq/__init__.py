"""Sequence to sequence with attention, by LSTMs or GRUs (Snell 2021)."""

from attnscope.models.seq2seq.model import (
    Seq2Seq,
    Seq2SeqObjective,
    Seq2SeqReadings,
    States,
    cross_entropy,
)

__all__ = ["Look", "Seq2Seq", "Seq2SeqObjective", "States", "cross_entropy"]
