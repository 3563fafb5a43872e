"""The words of the probe batch, as people read them; they are written beside what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from attnscope.errors import AttnscopeError

Tokens = Sequence[str] | Sequence[Sequence[str]]
"""Words of every row; or of one row, if all rows have the same."""

IDS_KEPT = 2**16
"""Words of the probe batch go into the manifest up to this number of positions."""


def read_tokens(
    tokens: Tokens | None, tokenizer: Any, ids: Tensor | None, rows: int = 1
) -> list[list[str]]:
    """Return the words of the probe batch by row and position; empty if nobody named them.

    Args:
        tokens: words as they are, see :data:`Tokens`.
        tokenizer: names the ids of the probe batch: an object with ``convert_ids_to_tokens``,
            ``id_to_token`` or ``decode``, or a function of one id.
        ids: what went into the model, ``(row, position)``.
        rows: of the probe batch.

    Raises:
        AttnscopeError: both are given, or what is given names no words.
    """
    if tokens is not None and tokenizer is not None:
        raise AttnscopeError("tokens=... and tokenizer=...: expected one of them.")
    if tokens is not None:
        return _rows(tokens, rows)
    if tokenizer is None:
        return []
    if ids is None:
        raise AttnscopeError(
            "tokenizer=... names the words of the probe batch, and there is none whose word ids go "
            "through an nn.Embedding: expected probe=... of such a model, or tokens=[[...], ...]."
        )
    name = _naming(tokenizer)
    if ids.numel() > IDS_KEPT:
        return []
    known: dict[int, str] = {}
    for word in ids.unique().tolist():
        try:
            known[word] = str(name(word))
        except Exception as error:
            raise AttnscopeError(
                f"tokenizer={type(tokenizer).__name__} cannot name the word {word} of the probe "
                f"batch ({type(error).__name__}: {error}): expected the tokenizer of this model."
            ) from error
    return [[known[word] for word in row] for row in ids.tolist()]


def _rows(tokens: Tokens, rows: int) -> list[list[str]]:
    if not isinstance(tokens, str) and isinstance(tokens, Sequence):
        if tokens and all(isinstance(word, str) for word in tokens):
            return [[str(word) for word in tokens]] * rows
        if all(
            isinstance(row, Sequence)
            and not isinstance(row, str)
            and all(isinstance(word, str) for word in row)
            for row in tokens
        ):
            return [list(row) for row in tokens]
    raise AttnscopeError(
        f"tokens={str(tokens)[:60]!r}: expected a list of words for every row of the probe batch, "
        "such as [['the', 'cat'], ['a', 'dog']], or one list for all of them."
    )


def _naming(tokenizer: Any) -> Callable[[int], Any]:
    for method in ("convert_ids_to_tokens", "id_to_token"):
        if callable(function := getattr(tokenizer, method, None)):
            return function
    if callable(decode := getattr(tokenizer, "decode", None)):
        return lambda word: decode([word])
    if callable(tokenizer):
        return tokenizer
    raise AttnscopeError(
        f"tokenizer of type {type(tokenizer).__name__}: expected an object with "
        "convert_ids_to_tokens, id_to_token or decode, or a function of a word id."
    )
