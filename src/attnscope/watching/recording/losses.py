"""The loss of every step: a number as soon as it costs nothing, and a word if it is none."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor

from attnscope.watching.moment import Reading
from attnscope.watching.track import Track

LOSS = Reading(
    "loss",
    lambda moment: moment.loss,
    meaning="training loss that the step was taken on, NaN at step 0",
    plain=True,
)
WAITING = 100
"""So many losses stay on their device before they are asked for."""


class LossReader:
    """Turns losses into numbers.

    To ask a device for a number is to wait for it, at every step of a training that would run
    ahead. So losses that are not on the CPU wait there, and are fetched all at once.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Tensor]] = []
        self._said: set[str] = set()

    def waits(self, loss: Any, step: int, track: Track) -> bool:
        """Keep a loss for later, if asking for it would make the training wait."""
        if not isinstance(loss, Tensor) or loss.is_cpu or len(track.readings) > 1:
            return False
        if loss.numel() != 1:
            return False
        # A training may write into its loss.
        self._waiting.append((step, loss.detach().clone().reshape(())))
        return True

    @property
    def many(self) -> bool:
        """Whether it is time to fetch them."""
        return len(self._waiting) >= WAITING

    def take(self) -> list[tuple[int, float]]:
        """Return steps and losses that waited."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return []
        kinds = {(loss.device, loss.dtype) for _, loss in waiting}
        if len(kinds) == 1:
            values = torch.stack([loss for _, loss in waiting]).tolist()
        else:
            values = [loss.item() for _, loss in waiting]
        for (step, _), value in zip(waiting, values, strict=True):
            self._look_at(value, step)
        return [(step, value) for (step, _), value in zip(waiting, values, strict=True)]

    def number(self, loss: Any, step: int) -> float:
        """Return a loss as a number; NaN, and a word once, if it is none."""
        if loss is None:
            return math.nan
        try:
            value = loss.item() if isinstance(loss, Tensor) else float(loss)
        except (TypeError, ValueError, RuntimeError):
            what = f"of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)[:60]
            self._say(
                "kind",
                f"attnscope: the loss of step {step} is {what}: expected a single number. It is "
                "NaN in the recording; training goes on.",
            )
            return math.nan
        self._look_at(value, step)
        return float(value)

    def say_closed(self, status: str, step: int) -> None:
        """Say once that a recording that is over hears of another step."""
        if status.startswith("finished"):
            self._say(
                "closed",
                f"attnscope: step {step} comes after the recording was closed ({status}), and is "
                "not recorded.",
            )

    def _look_at(self, value: float, step: int) -> None:
        if not math.isfinite(value):
            self._say(
                "finite",
                f"attnscope: the loss of step {step} is {value}. It is recorded as it is; training "
                "goes on.",
            )

    def _say(self, what: str, sentence: str) -> None:
        if what not in self._said:
            self._said.add(what)
            warnings.warn(sentence, stacklevel=4)
