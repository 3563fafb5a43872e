"""What was found in a model, what will be recorded and what it costs: said once, in a few lines."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence

from attnscope.watching.moment import AttentionPoint

WIDTH = 100
NOTHING = (
    "attnscope: no attention was found in this model, so nothing about attention is recorded. "
    "Looked for were nn.MultiheadAttention, the attention interface of Hugging Face and, with "
    "probe=..., calls of scaled_dot_product_attention and flex_attention and softmax of products "
    "of queries and keys. If the model does attend, name the modules that compute it, "
    "attention='blocks.*.attn' (they return their weights) or 'blocks.*.attn:weights' (they keep "
    "them as an attribute), or give a function, attention=lambda model: ..., that returns the "
    "weights after a forward pass."
)


def describe(
    points: Sequence[AttentionPoint],
    readings: Sequence[str],
    cost: str,
    notes: Sequence[str] = (),
) -> str:
    """Return what was found, what will be recorded and what it costs, in a few aligned lines.

    Args:
        points: where the model attends.
        readings: what is recorded and when, such as ``"entropy every 100 steps"``.
        cost: what a reading costs, such as ``"48.0 kB per reading"``.
        notes: what else there is to say.

    Without points it is a sentence that says what to do, before the other lines.
    """
    lines: list[tuple[str, str]] = []
    if points:
        lines.append(("attention", _count(points)))
        lines += [("", words) for words in _folded(points)]
        own = dict.fromkeys(getattr(point, "note", "") for point in points)
        lines += [("note", note) for note in own if note]
    lines.append(("records", ", ".join(readings) or "nothing"))
    lines += [("costs", cost), *(("note", note) for note in notes if note)]
    text = "attnscope watches this model" if points else textwrap.fill(NOTHING, WIDTH)
    for title, words in lines:
        begin = f"  {title:<11}"
        text += "\n" + textwrap.fill(
            words,
            WIDTH,
            initial_indent=begin,
            subsequent_indent=" " * len(begin),
            break_on_hyphens=False,
            break_long_words=False,
        )
    return text


def _count(points: Sequence[AttentionPoint]) -> str:
    layers = f"{len(points)} layer{'s' * (len(points) > 1)}"
    heads = [point.heads for point in points]
    if not all(heads):
        return f"{layers}; heads are known after the first forward pass"
    if len(set(heads)) == 1:
        return f"{layers} of {heads[0]} head{'s' * (heads[0] > 1)}"
    return f"{layers}, {sum(heads)} heads in all"


def _folded(points: Sequence[AttentionPoint]) -> list[str]:
    """Return a line for every group of names that differ in their numbers only."""
    groups: dict[tuple[str, str, int], list[str]] = {}
    for point in points:
        # Calls of one module are told apart by a number behind "#".
        name = point.name.replace("#", ".#.")
        key = (re.sub(r"(?<![^.])\d+(?![^.])", "@", name), point.kind, point.heads)
        groups.setdefault(key, []).append(name)
    lines = []
    for (pattern, kind, heads), names in groups.items():
        count = f", {heads} head{'s' * (heads > 1)}" if heads else ""
        folded = (name.replace(".#.", "#") for name in _fold(pattern, names))
        lines += [f"{name or 'the model'} ({kind}{count})" for name in folded]
    return lines


def _fold(pattern: str, names: Sequence[str]) -> list[str]:
    """Return names as one, with ranges for numbers, if they are all of its combinations."""
    places = [place for place, part in enumerate(pattern.split(".")) if part == "@"]
    columns = [sorted({int(name.split(".")[place]) for name in names}) for place in places]
    if len(names) == 1 or math.prod(map(len, columns)) != len(names):
        return list(names)
    words = iter(_ranges(column) for column in columns)
    return [".".join(next(words) if part == "@" else part for part in pattern.split("."))]


def _ranges(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{{{numbers[0]}-{numbers[-1]}}}"
    return "{" + ",".join(map(str, numbers)) + "}"
