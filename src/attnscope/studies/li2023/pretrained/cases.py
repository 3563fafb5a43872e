"""Which models are read: trained ones, checkpoints of a run, and a random twin of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from attnscope.errors import AttnscopeError
from attnscope.pretrained.checkpoints import is_series, series
from attnscope.pretrained.loading import Source, load, source
from attnscope.pretrained.measuring import attend


@dataclass(frozen=True)
class Case:
    """One model that is read.

    Args:
        name: what it is called in tables.
        model: which of the given models it belongs to.
        role: a trained model, or the last checkpoint of a run; an earlier checkpoint; random
            weights.
        step: steps of training, for checkpoints; -1 otherwise.
    """

    name: str
    model: str
    role: Literal["trained", "earlier", "twin"]
    step: int = -1


class Layout(NamedTuple):
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
    for given in models:
        for case, where in _cases(given):
            if case.name in found:
                raise AttnscopeError(
                    f"two models are called '{case.name}': expected folders of different names."
                )
            found[case.name] = (case, where)
    return found


def _cases(given: str) -> Iterator[tuple[Case, Source]]:
    if is_series(given):
        *earlier, (last, where) = series(given)
        name = Path(given).expanduser().resolve().name
        for step, before in earlier:
            yield Case(f"{name}, step {step}", name, "earlier", step), before
        yield Case(f"{name}, step {last}", name, "trained", last), where
    else:
        where = source(given)
        name = where.name
        yield Case(name, name, "trained"), where
    yield Case(f"{name}, random twin", name, "twin"), where


def common_layout(models: Sequence[str]) -> Layout:
    """Return sizes that are enough for all models; checkpoints of one run are alike."""
    found = [_layout(where) for case, where in expand(models).values() if case.role == "trained"]
    return Layout(*map(max, zip(*found, strict=True)))


@lru_cache(maxsize=32)
def _layout(where: Source) -> Layout:
    """Load a model and see what it shows for a few words."""
    model = load(where)
    heads: list[int] = []
    encoded = model.encode(["a few words to see"], 16)
    output = attend(model, encoded, lambda weights: heads.append(weights.shape[1]))
    hidden = model.hidden(output) if model.hidden is not None else ()
    return Layout(len(heads), max(heads), 1 + len(hidden))
