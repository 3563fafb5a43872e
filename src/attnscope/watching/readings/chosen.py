"""Readings of some layers or blocks only: ``"entropy@0,3"``, ``"gradient_norm@blocks.1.*"``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError, nearest
from attnscope.watching.moment import Moment, Reading

AT = "@"


def chosen(reading: Reading, which: str, labels: Mapping[str, Sequence[str]]) -> Reading:
    """Return a reading of some entries of its first axis.

    Args:
        reading: what is read of all layers, blocks or words.
        which: numbers and patterns of names, separated by commas: ``"0,3"``, ``"encoder.*"``.
        labels: names of the entries, by axis.

    Raises:
        AttnscopeError: the reading has no such axis, or nothing is meant.
    """
    axis = reading.dims[0] if reading.dims else ""
    names = list(reading.coords.get(axis, labels.get(axis, ())))
    if not names:
        raise AttnscopeError(
            f"record: '{reading.name}{AT}{which}': '{reading.name}' is not read by layer or block; "
            "expected its name alone."
        )
    places = [place for part in which.split(",") for place in _places(part.strip(), names, reading)]
    kept = sorted(set(places))
    index = torch.tensor(kept)

    def read(moment: Moment) -> Tensor | float | None:
        value = reading.read(moment)
        if not isinstance(value, Tensor):
            return value
        return value.index_select(0, index.to(value.device))

    return replace(
        reading,
        name=f"{reading.name}_at_{re.sub(r'[^0-9A-Za-z]+', '_', which).strip('_') or 'all'}",
        read=read,
        coords={**reading.coords, axis: tuple(str(names[place]) for place in kept)},
    )


def _places(part: str, names: Sequence[object], reading: Reading) -> list[int]:
    if part.isdigit() and int(part) < len(names):
        return [int(part)]
    found = [place for place, name in enumerate(names) if fnmatchcase(str(name), part)]
    if not found:
        raise AttnscopeError(
            f"record: '{reading.name}{AT}{part}': there is no '{part}'."
            f"{nearest(part, [str(name) for name in names])} Expected a number from 0 to "
            f"{len(names) - 1}, or a pattern of: {', '.join(map(str, names))}."
        )
    return found
