"""From what somebody asked for to readings on schedules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.engines.observe import Observable
from attnscope.errors import AttnscopeError, nearest
from attnscope.watching.moment import Moment, Reading
from attnscope.watching.readings.chosen import AT, chosen
from attnscope.watching.readings.offer import NO_ATTENTION, Offer
from attnscope.watching.recording.losses import LOSS
from attnscope.watching.track import Every
from attnscope.watching.undisturbed import undisturbed

Wanted = str | Reading | Observable | Callable[[nn.Module], Any]
ReadingPlan = list[tuple[str, int, list[Reading]]]


def select(
    record: Sequence[Wanted | Every] | None, every: int, offers: Mapping[str, Offer]
) -> ReadingPlan:
    """Return readings by schedule, as ``(dimension, steps in between, readings)``.

    The loss is read at every step unless it is named somewhere else.

    Args:
        record: what was asked for; ``None`` for all that is usual and possible.
        every: steps between readings that have no schedule of their own.
        offers: what has a name.

    Raises:
        AttnscopeError: a name is not known, twice there, or something is missing for it.
    """
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise AttnscopeError(f"every = {every!r}: expected 1 step or more.")
    if isinstance(record, str | Reading | Observable | Every) or callable(record):
        record = [record]
    if record is None:
        # What costs more, or changes slowly, is read less often unless it is asked for.
        record = [
            name if offer.apart == 1 else Every(every * offer.apart, name)
            for name, offer in offers.items()
            if offer.usual and not offer.lacks
        ]
    steps: dict[int, list[Reading]] = {every: []}
    lost: list[str] = []
    for item in record:
        number, wanted = (item.steps, item.record) if isinstance(item, Every) else (every, (item,))
        for each in wanted:
            reading = _reading(each, offers)
            if reading is None:
                lost.append(str(each))
            else:
                steps.setdefault(number, []).append(reading)
    _check_names(steps)
    if not any(reading.name == LOSS.name for part in steps.values() for reading in part):
        steps.setdefault(1, []).insert(0, LOSS)
    if lost:
        warnings.warn(
            f"attnscope: {', '.join(lost)} cannot be recorded: no attention was found in the "
            "model. The rest is.",
            stacklevel=3,
        )
    return [
        ("step" if number == every else f"every_{number}", number, part)
        for number, part in steps.items()
        if part
    ]


def _reading(wanted: object, offers: Mapping[str, Offer]) -> Reading | None:
    if isinstance(wanted, str):
        if wanted == LOSS.name:
            return LOSS
        name, at, which = wanted.partition(AT)
        if name not in offers:
            raise AttnscopeError(
                f"record: there is no reading '{name}'.{nearest(name, offers)} Expected some "
                f"of: {', '.join(['loss', *offers])}; or a function of the model."
            )
        offer = offers[name]
        if offer.lacks == NO_ATTENTION:
            return None
        if offer.lacks:
            raise AttnscopeError(f"record: '{name}' needs {offer.lacks}.")
        return chosen(offer.reading, which, offer.labels) if at else offer.reading
    if isinstance(wanted, Reading):
        return replace(wanted, read=_undisturbed(wanted.read))
    if isinstance(wanted, Observable):
        reading = _of_model(wanted.name, wanted.read)
        return replace(
            reading,
            dims=wanted.dims,
            unit=wanted.unit,
            meaning=wanted.meaning,
            coords=wanted.coords,
        )
    if callable(wanted):
        return _of_model(_name(wanted), wanted)
    raise AttnscopeError(
        f"record: {wanted!r} is a {type(wanted).__name__}: expected a name, a function of the "
        "model, a Reading or an Every."
    )


def _of_model(name: str, function: Callable[..., Any]) -> Reading:
    calls = 0

    def read(moment: Moment) -> Tensor | None:
        nonlocal calls
        calls += 1
        try:
            value = function(moment.model)
        except Exception:
            # Before the first step there may be nothing to read, such as a gradient.
            if calls == 1:
                return None
            raise
        return None if value is None else torch.as_tensor(value)

    return Reading(name, _undisturbed(read))


def _undisturbed(
    read: Callable[[Moment], Tensor | float | None],
) -> Callable[[Moment], Tensor | float | None]:
    def careful(moment: Moment) -> Tensor | float | None:
        with undisturbed(moment.model):
            return read(moment)

    return careful


def _name(function: Callable[..., Any]) -> str:
    """Return a function's name; for a lambda what it takes, as in ``fc.weight.norm``."""
    name = getattr(function, "__name__", type(function).__name__)
    if name != "<lambda>":
        return str(name)
    used = [part for part in function.__code__.co_names if part not in function.__globals__]
    return ".".join(used) or "observable"


def _check_names(steps: Mapping[int, list[Reading]]) -> None:
    names = [reading.name for part in steps.values() for reading in part]
    for name in names:
        if "/" in name or name.startswith("time") or name in ("run", "case", "seed"):
            raise AttnscopeError(
                f"record: '{name}' cannot be the name of a reading: expected one without '/' that "
                "is not time, run, case or seed."
            )
        if names.count(name) > 1:
            raise AttnscopeError(
                f"record: '{name}' is there twice: expected one of a name. Another name for a "
                "function is attnscope.Observable(name, function)."
            )
