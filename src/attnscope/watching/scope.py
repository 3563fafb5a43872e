"""The recorder: it reads somebody's model while it is trained, and never gets in the way."""

from __future__ import annotations

import atexit
import math
import sys
import time as clock
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn

from attnscope.trajectory.channel import Channel, WriterThread
from attnscope.trajectory.folder import RunFolder
from attnscope.trajectory.lock import Lock
from attnscope.trajectory.manifest import update_manifest
from attnscope.watching.moment import AttentionPoint, Evaluation, Handle, Moment, Need, Reading
from attnscope.watching.place import claimed
from attnscope.watching.recording.cost import PROBE, Costs
from attnscope.watching.recording.lane import Lane, Left
from attnscope.watching.recording.live import Log, Logger, logger_of
from attnscope.watching.recording.losses import LossReader
from attnscope.watching.recording.progress import tell
from attnscope.watching.recording.step_tensors import gradients_of, hear_steps, weights_of
from attnscope.watching.track import Track, log_readings

FLUSH = 5.0
"""Seconds after which readings are on disk at the latest, so that one can look on."""


class Scope:
    """A recording that is going on; made by :func:`attnscope.watch`.

    It ends with its ``with`` block or :meth:`close`; a process that just ends writes what is left.
    ``count`` is the number of steps taken; set it first if training goes on from a checkpoint.

    Args:
        model: what is watched.
        folder: where the trajectory goes.
        tracks: readings by schedule, as ``(dimension, steps in between, readings)``.
        points: where the model attends.
        evaluate: evaluates the model on the probe batch; ``None``: what training leaves.
        optimizer: gradients are taken as it sees them: unscaled, clipped; else at a step's end.
        spec: what was asked for, as JSON values.
        labels: names of the entries of axes, for readings that have none of their own.
        introduction: says what was found, given what readings cost; printed once.
    """

    def __repr__(self) -> str:
        return f"Scope({self.folder.path}: {self.count} steps, {self.status})"

    def __init__(
        self,
        model: nn.Module,
        folder: RunFolder,
        tracks: Sequence[tuple[str, int, Sequence[Reading]]],
        *,
        points: Sequence[AttentionPoint],
        evaluate: Callable[[], Evaluation] | None,
        optimizer: torch.optim.Optimizer | None,
        spec: dict[str, Any],
        labels: Mapping[str, Sequence[str]] = MappingProxyType({}),
        introduction: Callable[[str], str] | None = None,
    ) -> None:
        self.model, self.folder, self.points = model, folder, points
        self.count, self.status = 0, "not begun"
        self._plan, self._evaluate, self._optimizer = tracks, evaluate, optimizer
        self.spec, self._labels, self._introduction = spec, labels, introduction
        self._writer: WriterThread | None = None
        self._lock: Lock | None = None
        self._tracks: list[Track] = []
        self._due: list[Track] = []
        self._needs: frozenset[Need] = frozenset()
        self._handles: list[Any] = []
        self._attached: list[Handle] = []
        self._left = [torch.empty(0)] * len(points)
        self._lane = Lane(self._left)
        self._gradients: dict[str, Tensor] = {}
        self._before: dict[str, Tensor] = {}
        self._loss, self._begun, self._flushed = math.nan, 0.0, 0.0
        self._straight: tuple[Track, Moment] | None = None
        self._straight_until = 0
        self._losses = LossReader()
        self.costs = Costs()
        self._loggers: list[Logger] = []

    def __enter__(self) -> Self:
        """Begin, if it has not."""
        return self.begin()

    def begin(self) -> Self:
        """Take the reading at step 0; once begun, nothing happens."""
        if self._begun:
            return self
        self._begun = self._flushed = clock.monotonic()
        atexit.register(self._forgotten)
        with self._quietly("could not begin"):
            self.folder, self._lock, store = claimed(self.folder.path, self.spec, self.status)
            self._writer = writer = WriterThread(store)
            self._tracks = [Track(writer, *part, self._labels, self.costs) for part in self._plan]
            if self._optimizer is not None:
                self._handles += hear_steps(self._optimizer, self._hear_optimizer)
            self.status = "recording"
            self._expect(self.count)
            self._record(trained=False)
            if self._introduction:
                names = [reading.name for track in self._tracks for reading in track.readings]
                print(self._introduction(self.costs.sentence(names)))
            self._prepare(self.count + 1)
            self._flush()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write what is left; an exception of the training passes through."""
        outcome = "finished"
        if error is not None:
            outcome = "interrupted"
            self.status = f"training ended with {type(error).__name__} at step {self.count}"
        elif self.recording:
            self.status = f"finished at step {self.count}"
        self._end(outcome)

    def log_to(self, to: str | Log | Logger) -> Self:
        """Have readings logged while training goes on, from the first one on.

        Args:
            to: ``"tensorboard"``, ``"wandb"``, ``"mlflow"`` or ``"trackio"``; or a function of the
                step and a dictionary of numbers by tag, such as ``entropy/layer0/head1``.

        Raises:
            AttnscopeError: there is no such tool, or it is not installed.
        """
        self._loggers.append(logger_of(to, self.folder.path))
        log_readings(self._loggers[-1:], self.count, self._tracks)
        return self

    def close(self) -> None:
        """End the recording and write what is left; once ended, nothing happens."""
        self.__exit__(None, None, None)

    @property
    def recording(self) -> bool:
        """Whether readings are still taken."""
        return self._writer is not None

    def step(self, loss: Tensor | float | None = None) -> None:
        """Hear that a step of training is done.

        Args:
            loss: what the step was taken on.
        """
        self.count += 1
        writer = self._writer
        if writer is None:
            self._losses.say_closed(self.status, self.count)
            return
        # This is all that a step pays for, so it goes without a context manager.
        try:
            if self.count < self._straight_until:
                if not (self._lane.open and self._lane.take(self.count, loss)):
                    self._read_on(loss)
            else:
                self._lane.leave()
                self._catch_up()
                self._loss = self._losses.number(loss, self.count)
                if self._due:
                    self._record(trained=True)
                self._prepare(self.count + 1)
            if writer.trouble is not None or clock.monotonic() - self._flushed > FLUSH:
                self._settle(writer)
        except Exception as error:
            self._give_up("stopped", error)

    def _read_on(self, loss: Tensor | float | None) -> None:
        """Record a step that only hands on what is there, but not as the lane has it."""
        self._lane.leave()
        assert self._straight is not None
        track, moment = self._straight
        if self._losses.waits(loss, self.count, track):
            if self._losses.many:
                self._catch_up()
            return
        self._loss = self._losses.number(loss, self.count)
        moment.step, moment.loss = self.count, self._loss
        track.read_on(moment)
        self._lane.enter(track, self._evaluate is None)

    def at(self, step: int) -> None:
        """Read the model as it is after ``step`` steps of a training that nobody watched.

        What is known of a step while it is taken is NaN: its loss, its gradients, its length.
        """
        if self._writer is not None and step <= self.count:
            warnings.warn(
                f"attnscope: step {step} comes after step {self.count}: expected a later one. It "
                "is not recorded; the recording goes on.",
                stacklevel=2,
            )
            return
        self.count = step
        if self._writer is None:
            self._losses.say_closed(self.status, step)
            return
        with self._quietly("stopped"):
            self._expect(step)
            self._record(trained=False)
            self._settle(self._writer)

    def _settle(self, writer: WriterThread) -> None:
        """Hear what went wrong on the disk, and flush from time to time."""
        if writer.trouble is not None:
            raise writer.trouble
        if clock.monotonic() - self._flushed > FLUSH:
            self._flush()

    def _expect(self, step: int) -> None:
        """Find what will be read at a step."""
        self._lane.leave()
        self._straight, self._straight_until = None, 0
        self._due = due = [track for track in self._tracks if step % track.every == 0]
        if len(due) == 1:
            self._needs = due[0].needs
        else:
            self._needs = frozenset().union(*(track.needs for track in due))

    def _record(self, trained: bool) -> None:
        needs = self._needs
        moment = Moment(
            self.model,
            self.count,
            self._loss,
            self.points,
            self._evaluate or (lambda: Evaluation(list(self._left))),
            (self._gradients or gradients_of(self.model))
            if trained and "gradients" in needs
            else {},
            self._before,
        )
        if self._evaluate is None and "attention" in needs:
            # A reading may run the model, and what training left would be gone.
            _ = moment.evaluation
        for track in self._due:
            if track.plain:
                track.read(moment, trained)
            else:
                with torch.no_grad():
                    track.read(moment, trained)
        log_readings(self._loggers, self.count, self._due)
        if moment.evaluating and self._evaluate is not None:
            self.costs.add(PROBE, moment.evaluating)
        self._gradients, self._before = {}, {}

    def _prepare(self, step: int) -> None:
        """Do what has to be done before a step that will be read."""
        self._expect(step)
        # Weights are computed beside a fused path, so only the steps that are read pay for them.
        wanted = self._evaluate is None and "attention" in self._needs
        if wanted and not self._attached:
            self._attached = [
                point.attach(Left(self._lane, index)) for index, point in enumerate(self.points)
            ]
        elif self._attached and not wanted:
            self._detach()
        self._go_straight(step)
        if "before" in self._needs:
            parts = [track.before for track in self._due if "before" in track.needs]
            self._before = weights_of(self.model, parts)

    def _go_straight(self, step: int) -> None:
        """Find whether this step and the next ones only hand on what is there; they share it."""
        left: frozenset[Need] = frozenset({"attention"} if self._evaluate is None else ())
        if len(self._due) != 1 or not self._needs <= left:
            return
        track = self._due[0]
        if track.every == 1 and track.goes_on():
            others = [other.every for other in self._tracks if other is not track]
            # The step before another track's prepares for it.
            self._straight_until = min((step + -step % n for n in others), default=2**63) - 1
            evaluation = Evaluation(self._left)
            moment = Moment(self.model, step, math.nan, self.points, lambda: evaluation)
            self._straight = track, moment
            self._lane.enter(track, self._evaluate is None)

    def _detach(self) -> None:
        for handle in self._attached:
            handle.remove()
        self._attached = []

    def _hear_optimizer(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if not self.recording or "gradients" not in self._needs:
            return
        try:
            self._gradients = gradients_of(self.model, optimizer)
        except Exception as error:
            # This runs inside the optimizer's own step.
            self._gradients = {}
            self._warn("could not copy the gradients", error)

    def _catch_up(self) -> None:
        """Record losses that waited on their device, and what the lane has written down."""
        if (last := self._lane.settle()) is not None:
            self._loss = last
        if self._straight is not None:
            track, moment = self._straight
            for step, value in self._losses.take():
                moment.step, moment.loss = step, value
                self._loss = value
                track.read_on(moment)

    def _flush(self) -> None:
        assert self._writer is not None
        self._catch_up()
        for track in self._tracks:
            track.flush()
        state = self._state("running")
        channels = self._channels()  # Another may come before this is done.
        self._writer.submit(partial(tell, self.folder, state, channels))
        self._flushed = clock.monotonic()

    def _channels(self) -> list[Channel]:
        return [channel for track in self._tracks for channel in track.all_channels()]

    def _state(self, outcome: str) -> dict[str, Any]:
        return {
            "outcome": outcome,
            "status": self.status,
            "recorded": {track.dim: track.clock.count for track in self._tracks},
            "steps": self.count,
            "time": self.count,
            "loss": None if math.isnan(self._loss) else self._loss,
            "seconds": round(clock.monotonic() - self._begun, 3),
        }

    def _forgotten(self) -> None:
        """The process ends, and nobody has closed the recording."""
        error = getattr(sys, "last_value", None)
        if error is not None:
            self.__exit__(type(error), error, None)
        elif self.recording:
            self.status = f"the process ended at step {self.count}, and nobody closed the recording"
            self._end("interrupted")

    def _end(self, outcome: str) -> None:
        atexit.unregister(self._forgotten)
        for logger in self._loggers:
            logger.close()
        self._detach()
        for handle in self._handles:
            handle.remove()
        self._handles = []
        writer, lock = self._writer, self._lock
        try:
            if writer is not None:
                # What there is, is said before arrays are told their lengths, one by one.
                self._flush()
                self._writer = None
                writer.close(self._channels())
                tell(self.folder, self._state(outcome), self._channels(), sync=True)
                self.spec["costs"] = self.costs.to_json()
                update_manifest(self.folder, sync=True, spec=self.spec, status=self.status)
        except Exception as error:
            self._writer = None
            self._warn("could not write its last readings", error)
        finally:
            self._lock = None
            if lock is not None:
                lock.release()

    @contextmanager
    def _quietly(self, what: str) -> Iterator[None]:
        """Let no error of the recorder reach the training."""
        try:
            yield
        except Exception as error:
            self._give_up(what, error)

    def _give_up(self, what: str, error: Exception) -> None:
        self.status = f"recording {what} at step {self.count}: {error}"
        self._warn(what, error)
        self._end("interrupted")

    def _warn(self, what: str, error: Exception) -> None:
        warnings.warn(
            f"attnscope: recording {what} at step {self.count} ({type(error).__name__}: {error}). "
            f"Training goes on; what was recorded is kept in '{self.folder.path}'.",
            stacklevel=4,
        )
