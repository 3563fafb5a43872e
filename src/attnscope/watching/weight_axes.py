"""Which axis of attention weights is the row, the head, the query and the key."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

ROW_HEAD = 2


def arranged(weights: Tensor, heads: int = 0, rows: int = 0) -> Tensor:
    """Return weights ``(..., query, key)`` as ``(row, head, query, key)``.

    Args:
        weights: with any number of axes before queries and keys. One of them is rows, or heads
            within rows if their number says so; of two the first is rows; of more, those that are
            not the head are rows.
        heads: how many there are, 0 if nobody knows.
        rows: of the batch, 0 if nobody knows.
    """
    lead = weights.shape[:-2]
    if not lead:
        return weights[None, None]
    if len(lead) == 1:
        each = heads if heads and lead[0] % heads == 0 and lead[0] != rows else 0
        if not each and rows and lead[0] % rows == 0:
            each = lead[0] // rows
        return weights.unflatten(0, (-1, each)) if each else weights[:, None]
    if len(lead) > ROW_HEAD:
        if heads and lead[-1] == heads:
            return weights.flatten(0, len(lead) - 2)
        return weights.flatten(1, len(lead) - 1)
    return query_behind_head(weights, heads, rows)


def query_behind_head(weights: Tensor, heads: int = 0, rows: int = 0) -> Tensor:
    """Return weights of four axes as ``(row, head, query, key)``, in whatever order they are.

    Without the number of heads, ``(row, query, head, key)`` is told by as many queries as keys.
    """
    first, second, third, keys = weights.shape
    if heads:
        if second == heads:
            return weights
        if third == heads:
            return weights.transpose(1, 2)
        if first == heads and second == rows:
            return weights.transpose(0, 1)
        return weights
    return weights.transpose(1, 2) if second == keys != third else weights


def einsum_order(
    equation: str, place: int, shapes: Sequence[tuple[int, ...]], key: int
) -> tuple[list[int], list[int]] | None:
    r"""Return which axes of weights go before the query, and which are the query.

    In :math:`\sum_k A_{bhqk} V_{bkhd}` the key is summed over, rows and heads are those that both
    factors and the result have, and queries are in the weights and the result alone.

    Args:
        equation: as ``torch.einsum`` takes it.
        place: which operand the weights are.
        shapes: of the operands.
        key: axis of the weights that sums to 1.

    Returns:
        Axes before the query and axes of the query, in order; ``None`` if the weights are not used
        as attention: the key stays, or there are no queries.
    """
    names = _letters(equation, shapes)
    if names is None:
        return None
    operands, result = names
    own = operands[place]
    others = {letter for i, letters in enumerate(operands) if i != place for letter in letters}
    if own[key] in result or own[key] not in others:
        return None
    queries = [i for i, x in enumerate(own) if i != key and x not in others and x in result]
    before = [i for i, x in enumerate(own) if i != key and x in others]
    return (before, queries) if queries and len(before) + len(queries) == len(own) - 1 else None


def _letters(
    equation: str, shapes: Sequence[tuple[int, ...]]
) -> tuple[list[list[str]], list[str]] | None:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(shapes):
        return None

    def spread(term: str, count: int) -> list[str]:
        before, dots, after = term.partition("...")
        if not dots:
            return list(term)
        return [*before, *(f".{i}" for i in reversed(range(count))), *after]

    counts = [
        len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True)
    ]
    operands = [spread(term, count) for term, count in zip(terms, counts, strict=True)]
    if any(len(names) != len(shape) for names, shape in zip(operands, shapes, strict=True)):
        return None
    return operands, spread(right, max(counts))


def ordered(weights: Tensor, before: Sequence[int], queries: Sequence[int], key: int) -> Tensor:
    """Return weights with their axes as ``(..., query, key)``; several of queries become one."""
    sizes = [weights.shape[axis] for axis in before]
    count = math.prod(weights.shape[axis] for axis in queries)
    return weights.permute(*before, *queries, key).reshape(*sizes, count, weights.shape[key])
