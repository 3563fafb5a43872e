"""The order of events in a run: readings and looks, in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.engines.observe import Final, Record, check_records
from attnscope.engines.sink import Sink
from attnscope.engines.stopping import Attempts, LossBelow, Patience, Reached, Stop
from attnscope.errors import AttnscopeError


class Agenda:
    """Readings that are due at given times, and the stopping rules that look in between."""

    def __init__(
        self,
        model: nn.Module,
        records: Sequence[Record],
        stops: Sequence[Stop],
        sink: Sink,
        *,
        until: float,
        grid: float | None,
    ) -> None:
        if isinstance(records, Record):
            raise AttnscopeError(
                f"record = {records!r:.60}...: expected a list of records, record=[Record(...)]."
            )
        check_records(records)
        self.model = model
        self.records = list(records)
        self.sink = sink
        self.until = until
        self.grid = grid
        self.times = [record.times(until, grid) for record in records]
        self.cursors = [0] * len(self.records)
        self.patience = [stop for stop in stops if isinstance(stop, Patience | Reached)]
        self.looks = [0] * len(self.patience)
        self.loss_below = max(
            (stop.value for stop in stops if isinstance(stop, LossBelow)), default=-math.inf
        )
        self.attempts = [stop for stop in stops if isinstance(stop, Attempts)]
        self._due = self._find_due()
        sink.open(self.model, self.records, self.times)

    def _look_time(self, index: int) -> float:
        time = self.looks[index] * self.patience[index].every
        return time if self.grid is None else round(time / self.grid) * self.grid

    def next_time(self) -> float:
        """Return the time of the next event, infinity if there is none before the end."""
        return self._due

    def _find_due(self) -> float:
        due = [
            times[cursor]
            for index, (times, cursor) in enumerate(zip(self.times, self.cursors, strict=True))
            if cursor < len(times) and not self._awaits_end(index)
        ]
        due += [self._look_time(index) for index in range(len(self.patience))]
        time = min(due, default=math.inf)
        return float(time) if time <= self.until * (1 + 1e-12) else math.inf

    def _awaits_end(self, index: int) -> bool:
        return isinstance(self.records[index].at, Final) and self.cursors[index] > 0

    def _read(self, index: int) -> None:
        values = []
        for item in self.records[index].observables:
            value = item.read(self.model)
            if not isinstance(value, Tensor):
                raise AttnscopeError(
                    f"observable '{item.name}' returned {value!r:.60}: expected a tensor, such as "
                    "torch.tensor(...) of it."
                )
            values.append(value.detach())
        self.sink.put(index, self.cursors[index], values)
        self.cursors[index] += 1

    def fire(self, time: float) -> str | None:
        """Do everything that is due at ``time``; return the sentence that ends the run, if any."""
        with torch.no_grad():
            for index, cursor in enumerate(self.cursors):
                if self._awaits_end(index):
                    continue
                if cursor < len(self.times[index]) and self.times[index][cursor] <= time:
                    self._read(index)
        sentence = None
        for index, stop in enumerate(self.patience):
            if self._look_time(index) <= time:
                sentence = stop.evaluate(time, self.model) or sentence
                self.looks[index] += 1
        self._due = self._find_due()
        return sentence

    def enough(self, time: float, tried: int) -> str | None:
        """Return the sentence that ends a flow after so many attempted steps, if one does."""
        return next((s.sentence(time) for s in self.attempts if tried >= s.steps), None)

    def finish(self) -> None:
        """Let the stopping rules put back what they kept, and take the final readings."""
        for stop in self.patience:
            if isinstance(stop, Patience) and stop.restore:
                stop.finish(self.model)
        with torch.no_grad():
            for index in range(len(self.records)):
                if self._awaits_end(index):
                    self._read(index)

    def missed(self) -> str:
        """Say what a run that came to its planned end has not reached; nothing if it had no aim."""
        aims = [stop for stop in self.patience if isinstance(stop, Reached)]
        return "".join(f" {stop.missed(self.model)}" for stop in aims)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what :meth:`restore` needs: tensors and JSON values."""
        tensors = {
            f"patience.{index}.{name}": value.contiguous()
            for index, stop in enumerate(self.patience)
            for name, value in stop.best_parameters.items()
        }
        marks = [(stop.best, stop.best_time) for stop in self.patience]
        return tensors, {"cursors": self.cursors, "looks": self.looks, "marks": marks}

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go back to where a checkpoint was taken."""
        self.cursors = list(values["cursors"])
        self.looks = list(values["looks"])
        for index, stop in enumerate(self.patience):
            stop.best, stop.best_time = values["marks"][index]
            prefix = f"patience.{index}."
            stop.best_parameters = {
                name.removeprefix(prefix): value
                for name, value in tensors.items()
                if name.startswith(prefix)
            }
        self._due = self._find_due()
