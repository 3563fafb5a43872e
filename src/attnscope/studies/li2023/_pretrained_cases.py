"""Which models are read: trained ones, checkpoints of a run, and a random twin of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.pretrained.checkpoints import is_series, series
from attnscope.pretrained.loading import Source, load, source
from attnscope.pretrained.measuring import attend

Role = Literal["trained", "earlier", "twin"]
"""A trained model, or the last checkpoint of a run; an earlier checkpoint; random weights."""


@dataclass(frozen=True)
class Case:
    """One model that is read.

    Args:
        name: what it is called in tables.
        model: which of the given models it belongs to.
        role: what it is.
        step: steps of training, for checkpoints; -1 otherwise.
    """

    name: str
    model: str
    role: Role
    step: int = -1

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


@dataclass(frozen=True)
class Layout:
    """How much a model shows: layers of attention, heads, and depths of vectors."""

    layers: int
    heads: int
    depths: int


def expand(models: Sequence[str]) -> dict[str, tuple[Case, Source]]:
    """Return every case by its name, and where its model lies.

    Raises:
        AttnscopeError: a model is not there, or two have one name.
    """
    found: dict[str, tuple[Case, Source]] = {}

    def add(case: Case, where: Source) -> None:
        if case.name in found:
            raise AttnscopeError(
                f"two models are called '{case.name}': expected folders of different names."
            )
        found[case.name] = (case, where)

    for given in models:
        if is_series(given):
            steps = series(given)
            name, last = Path(given).expanduser().resolve().name, steps[-1]
            for step, where in steps:
                role: Role = "trained" if step == last[0] else "earlier"
                add(Case(f"{name}, step {step}", name, role, step), where)
            add(Case(f"{name}, random twin", name, "twin"), last[1])
        else:
            where = source(given)
            add(Case(where.name, where.name, "trained"), where)
            add(Case(f"{where.name}, random twin", where.name, "twin"), where)
    return found


@lru_cache(maxsize=32)
def layout(where: Source) -> Layout:
    """Load a model and see what it shows for a few words."""
    subject = load(where)
    heads: list[int] = []
    encoded = subject.encode(["a few words to see"], 16)
    output = attend(subject, encoded, lambda weights: heads.append(weights.shape[1]))
    hidden = subject.hidden(output) if subject.hidden is not None else ()
    return Layout(len(heads), max(heads), 1 + len(hidden))


def largest(layouts: Sequence[Layout]) -> Layout:
    """Return the room that is enough for all."""
    parts = np.array([[one.layers, one.heads, one.depths] for one in layouts]).max(axis=0)
    return Layout(*map(int, parts))
