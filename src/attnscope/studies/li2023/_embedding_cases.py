"""The runs of ``li2023.embedding``: the flow of the theory, and the paper's four experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FLOW = "flow, squared"
PRINTED = "flow from the printed example"


@dataclass(frozen=True)
class Training:
    """One of the paper's ways to train, on fresh documents.

    Args:
        optimizer: plain SGD or Adam.
        kind: the loss.
    """

    optimizer: Literal["gd", "adam"]
    kind: Literal["squared", "cross-entropy"]


TRAININGS = {
    "SGD, cross-entropy": Training("gd", "cross-entropy"),
    "SGD, squared": Training("gd", "squared"),
    "Adam, cross-entropy": Training("adam", "cross-entropy"),
    "Adam, squared": Training("adam", "squared"),
}
"""Figs 1, 2, 9 and 10."""
