"""The readings of ``watch`` in a run of an engine: one instrument for studies and for own models.

::

    read = as_observables(model, THEORIES, probe=tokens)
    Problem(model, loss, [Record(read, Linear(101))])
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from attnscope.engines.observe import Observable
from attnscope.errors import AttnscopeError
from attnscope.watching.moment import Moment, Reading
from attnscope.watching.points import search
from attnscope.watching.probe import Batch, Probe
from attnscope.watching.readings import catalogue
from attnscope.watching.readings.offer import WatchedModel
from attnscope.watching.recording.losses import LOSS
from attnscope.watching.selection import select
from attnscope.watching.track import OF_STEPS

THEORIES = ("onset_distance", "mass_previous", "rank_growth", "entropy", "entropy_floor")
"""What theories of attention speak of: onset (Li 2023), heads that look back (Edelman 2024), rank
of what was learned (Boix-Adsera 2023), entropy and its floor (Zhai 2023). A report that finds them
lays them on one axis."""


def as_observables(
    model: nn.Module, names: Sequence[str], *, probe: Batch
) -> tuple[Observable, ...]:
    """Return readings of a watched model as observables, to be recorded together.

    The state of the model now is the start that readings of change count from, also where a run
    goes on after an interruption.

    Args:
        model: that the engine will train.
        names: of readings, as ``watch`` takes them.
        probe: the batch that is evaluated for each reading.

    Raises:
        AttnscopeError: a name is not known, something is missing for it, or it is a reading of a
            step rather than of a model.
    """
    asked = Probe(model, probe)
    with asked.beginning() as run:
        found = search(model, None, run, asked.rows)
    asked.watch(found.points)
    watched = WatchedModel(model, found.points, asked, asked.evaluate())
    plan = select(list(names), 1, catalogue(watched))
    readings = [each for _, _, part in plan for each in part if each.name != LOSS.name]
    if len(readings) < len(names):
        raise AttnscopeError(f"no attention was found in {type(model).__name__}: expected some.")
    for each in readings:
        if each.needs & OF_STEPS:
            raise AttnscopeError(
                f"'{each.name}' is read off a step of training: expected readings of the model "
                "alone."
            )
    shared = _Together(watched)
    return tuple(shared.observable(each) for each in readings)


class _Together:
    """Lets the readings of one record point share one evaluation of the probe batch."""

    def __init__(self, watched: WatchedModel) -> None:
        self.watched = watched
        self.moment: Moment | None = None
        self.served: set[str] = set()

    def now(self, name: str) -> Moment:
        """Return the present moment; a reading that comes a second time begins another."""
        if self.moment is None or name in self.served:
            probe = self.watched.probe
            assert probe is not None
            points, self.served = self.watched.points, set()
            self.moment = Moment(self.watched.model, 0, math.nan, points, probe.evaluate)
        self.served.add(name)
        return self.moment

    def observable(self, reading: Reading) -> Observable:
        """Return a reading as a function of the model, with its axes and labels."""

        def take() -> Tensor:
            with torch.no_grad():
                value = reading.read(self.now(reading.name))
            return torch.as_tensor(math.nan if value is None else value).double()

        shape = take().shape
        labels = {"layer": [point.name for point in self.watched.points], **reading.coords}
        sizes = dict(zip(reading.dims, shape, strict=True))
        fitting = {dim: names for dim, names in labels.items() if sizes.get(dim) == len(names)}

        def read(model: nn.Module) -> Tensor:
            assert model is self.watched.model
            return take()

        return Observable(reading.name, read, reading.dims, reading.unit, reading.meaning, fitting)
