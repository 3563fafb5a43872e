"""The Stanford Sentiment Treebank as trees: Penn brackets with a label 0 .. 4 on each node."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attnscope.datasets.kinds import Rows, Split
from attnscope.datasets.text import Place, filled, lines

NEUTRAL = "neutral label 2"

_FIVE = ("0", "1", "2", "3", "4")
_TWO = {"0": "0", "1": "0", "3": "1", "4": "1"}
_PART = re.compile(r"[()]|[^()\s]+")


def read_trees(path: Path, *, classes: int = 5, phrases: bool = False) -> Split:
    """Read the sentences of a file of trees, or all their phrases.

    Words stay as published: cased, brackets written ``-LRB-`` and ``-RRB-``.

    Args:
        path: ``train.txt``, ``dev.txt`` or ``test.txt``; one tree a line.
        classes: 5 for the labels as they are; 2 for negative (0, 1) and positive (3, 4), where
            the neutral ones (2) are left out and counted.
        phrases: give every node of every tree, each tree in post-order (its root comes last),
            rather than the roots alone.
    """
    rows = Rows(_FIVE if classes == 5 else ("0", "1"))
    for number, line in filled(lines(path), rows.skipped):
        place = Place(str(path), number)
        nodes = list(_nodes(line, place))
        for label, words in nodes if phrases else nodes[-1:]:
            if classes == 2 and label == "2":
                rows.skipped[NEUTRAL] += 1
                continue
            rows.add(words, label if classes == 5 else _TWO.get(label, label), place)
    return rows.split()


def _nodes(line: str, place: Place) -> Iterator[tuple[str, str]]:
    """Yield ``(label, words)`` of each node, children before their parent."""
    words: list[str] = []
    open_nodes: list[tuple[str, int]] = []  # label, and how many words stood before the node
    parts = _PART.findall(line)
    position = 0
    while position < len(parts):
        part = parts[position]
        position += 1
        if part == "(":
            if position == len(parts) or parts[position] in "()" or (words and not open_nodes):
                raise place.error(f"expected one tree '(label ...)'. Found {_around(line)}.")
            open_nodes.append((parts[position], len(words)))
            position += 1
        elif not open_nodes:
            raise place.error(f"expected one tree '(label ...)'. Found {_around(line)}.")
        elif part == ")":
            label, start = open_nodes.pop()
            yield label, " ".join(words[start:])
        else:
            words.append(part)
    if open_nodes:
        raise place.error(f"{len(open_nodes)} brackets are not closed. Found {_around(line)}.")


def _around(line: str) -> str:
    return repr(line if len(line) <= 60 else f"{line[:40]} ... {line[-15:]}")
