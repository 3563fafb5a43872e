"""What to record and when, declared as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from torch import Tensor, nn

from attnscope.errors import AttnscopeError

Group = Literal["observables", "params"]


@dataclass(frozen=True)
class Observable:
    """A quantity that can be read off a model.

    Args:
        name: the variable's name in the trajectory.
        read: a function of the model that returns a tensor of fixed shape.
        dims: names of the tensor's axes.
        unit: what the number counts, empty for a pure number.
        meaning: a sentence or a formula, kept with the data.
        coords: labels of axes by their name, such as ``{"matrix": ("K", "Q", "V")}``.
    """

    name: str
    read: Callable[[nn.Module], Tensor]
    dims: tuple[str, ...] = ()
    unit: str = ""
    meaning: str = ""
    coords: Mapping[str, Sequence[str | int | float]] = field(default_factory=dict)

    def check(self, shape: tuple[int, ...]) -> None:
        """Check that declared axes and labels fit what was read.

        Raises:
            AttnscopeError: they do not.
        """
        if len(shape) != len(self.dims):
            raise AttnscopeError(
                f"observable '{self.name}' has dims {self.dims} but returned an array of shape "
                f"{shape}: expected one name per axis."
            )
        for dim, labels in self.coords.items():
            size = dict(zip(self.dims, shape, strict=True)).get(dim)
            if size != len(labels):
                raise AttnscopeError(
                    f"observable '{self.name}' has {len(labels)} labels for '{dim}' but returned "
                    f"an array of shape {shape} over {self.dims}: expected a label per entry."
                )


@dataclass(frozen=True)
class Linear:
    """``points`` times, evenly spaced from 0 to the end, both included."""

    points: int

    def times(self, until: float) -> np.ndarray:
        """Return the times of a run that ends at ``until``."""
        return np.linspace(0.0, until, max(2, self.points))


@dataclass(frozen=True)
class Logarithmic:
    """Time 0, then ``points - 1`` times in constant ratio from ``first`` to the end."""

    points: int
    first: float

    def times(self, until: float) -> np.ndarray:
        """Return the times of a run that ends at ``until``."""
        if not 0 < self.first <= until:
            raise AttnscopeError(
                f"Logarithmic(first={self.first}): expected a time above 0 and not after the end "
                f"of the run at {until:g}."
            )
        return np.concatenate([[0.0], np.geomspace(self.first, until, max(1, self.points - 1))])


@dataclass(frozen=True)
class Given:
    """The times listed, and time 0 whether it is listed or not."""

    at: tuple[float, ...]

    def times(self, until: float) -> np.ndarray:
        """Return the times of a run that ends at ``until``."""
        times = np.unique(np.concatenate([[0.0], np.asarray(self.at, dtype=float)]))
        if times[0] < 0 or times[-1] > until * (1 + 1e-12):
            raise AttnscopeError(
                f"Given(at={self.at}): expected times from 0 to the end of the run at {until:g}."
            )
        return times


@dataclass(frozen=True)
class Final:
    """Time 0, and the end of the run whenever it comes.

    The second reading is taken after the stopping rules have put back what they kept, such as the
    parameters of the best look. It stands at the planned end on the time axis, which all runs of a
    trajectory share; when a run did end is in its statistics.
    """

    def times(self, until: float) -> np.ndarray:
        """Return time 0 and the planned end."""
        return np.array([0.0, until])


Schedule = Linear | Logarithmic | Given | Final


@dataclass(frozen=True)
class Record:
    """Observables that are read at the same times, along one dimension of the trajectory.

    Args:
        observables: what is read.
        at: when; time 0 always belongs to it.
        dim: name of the dimension the readings lie along.
        group: where in the trajectory they go.
    """

    observables: tuple[Observable, ...]
    at: Schedule
    dim: str = "step"
    group: Group = "observables"

    def times(self, until: float, grid: float | None = None) -> np.ndarray:
        """Return the times, moved to the nearest multiple of ``grid`` if there is one.

        Gradient descent only exists at multiples of its learning rate. Putting the flow's record
        points there too makes the two comparable point by point.
        """
        times = self.at.times(until)
        return times if grid is None else np.unique(np.round(times / grid)) * grid


def snapshots(model: nn.Module, at: Schedule, dim: str = "snapshot") -> Record:
    """Return a record of all parameters of ``model``, for the group ``params``."""

    def reader(name: str) -> Callable[[nn.Module], Tensor]:
        return lambda module: module.get_parameter(name)

    return Record(
        tuple(
            Observable(name, reader(name), tuple(f"{name}[{axis}]" for axis in range(p.ndim)))
            for name, p in model.named_parameters()
        ),
        at,
        dim,
        "params",
    )


def check_records(records: Sequence[Record]) -> None:
    """Refuse two records along one dimension, and two observables of one name."""
    dims = [record.dim for record in records]
    names = [f"{record.group}/{o.name}" for record in records for o in record.observables]
    for kind, items in (("dimension", dims), ("observable", names)):
        twice = {item for item in items if items.count(item) > 1}
        if twice:
            raise AttnscopeError(f"{kind} {', '.join(sorted(twice))}: expected only one of a name.")
