"""The switches of :class:`~attnscope.models.seq2seq.Seq2Seq`, and which of them go together."""

from __future__ import annotations

from typing import Literal, get_args

from attnscope.errors import AttnscopeError
from attnscope.tasks.sequence_pairs import END

Pooled = Literal["sum", "mean"]
Output = Literal["linear", "tanh", "relu", "added"]
AttentionMode = Literal["learned", "uniform"]
Trained = Literal["all", "attention"]
Cell = Literal["lstm", "gru"]


def check_words(
    heads_pooled: Pooled, output: Output, attention: AttentionMode, trained: Trained, cell: Cell
) -> None:
    """Refuse words that name no switch, and a model with nothing to train."""
    for name, word, known in (
        ("heads_pooled", heads_pooled, Pooled),
        ("output", output, Output),
        ("attention", attention, AttentionMode),
        ("trained", trained, Trained),
        ("cell", cell, Cell),
    ):
        if word not in get_args(known):
            raise AttnscopeError(f"{name} = {word!r}: expected one of {get_args(known)}.")
    if attention == "uniform" and trained == "attention":
        raise AttnscopeError(
            "attention = 'uniform' with trained = 'attention': expected something to train."
        )


def check_sizes(
    source_vocabulary: int,
    target_vocabulary: int,
    embedding: int,
    hidden: int,
    layers: int,
    heads: int,
) -> None:
    """Refuse sizes that leave nothing."""
    for name, size in (
        ("source_vocabulary", source_vocabulary),
        ("target_vocabulary", target_vocabulary),
    ):
        if size <= END + 1:
            raise AttnscopeError(
                f"{name} = {size}: expected {END + 2} or more, for PAD, START, END and a word."
            )
    for name, size in (
        ("embedding", embedding),
        ("hidden", hidden),
        ("layers", layers),
        ("heads", heads),
    ):
        if size < 1:
            raise AttnscopeError(f"{name} = {size}: expected 1 or more.")


def check_dropout(dropout: float, layers: int) -> None:
    """Refuse a share that is none, or that drops nothing."""
    if not 0 <= dropout < 1:
        raise AttnscopeError(f"dropout = {dropout}: expected a share from 0 to below 1.")
    if dropout and layers == 1:
        raise AttnscopeError(
            f"dropout = {dropout} with one layer: expected 0, or 2 layers or more to drop "
            "outputs between."
        )


def check_projections(
    output: Output, width: int, hidden: int, projection: bool, head_projections: bool
) -> None:
    """Refuse two maps of the context, and none where lengths differ."""
    if projection and head_projections:
        raise AttnscopeError(
            "projection and head_projections: expected one of them, since both map a context."
        )
    if output == "added" and width != hidden and not (projection or head_projections):
        raise AttnscopeError(
            "output = 'added' with a bidirectional encoder: expected projection=True, since h "
            f"has length {width} and s has {hidden}."
        )
