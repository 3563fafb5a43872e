"""Watching a model that Lightning trains.

::

    from attnscope.watching.lightning import WatchCallback

    Trainer(callbacks=[WatchCallback("runs/mine")]).fit(module, loader)
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.watching import Scope, watch

LIBRARIES = ("lightning.pytorch", "pytorch_lightning")
"""Two names of one library, with classes of their own."""


def _base() -> Any:
    """Return the class of callbacks of the library in use, or else of the one that is installed."""
    for library in sorted(LIBRARIES, key=lambda name: name not in sys.modules):
        try:
            return import_module(library).Callback
        except ImportError:
            continue
    raise AttnscopeError(
        "The Lightning callback needs Lightning, which is not installed here: expected "
        "`pip install lightning`, or a loop of your own with attnscope.watch."
    )


class WatchCallback(_base()):  # type: ignore[misc]
    """Records a module from the first step of ``trainer.fit`` to the last.

    A step is a batch after which an optimizer has stepped: with accumulated gradients, its loss is
    the mean over the batches since the step before. Gradients are those that the optimizer was
    given, unscaled and clipped.

    Args:
        out: folder for the trajectory.
        record: what is recorded, as for :func:`attnscope.watch`.
        **options: ``every``, ``probe`` and the others of :func:`attnscope.watch`.
    """

    def __init__(
        self, out: str | Path, record: Sequence[Any] | None = None, **options: Any
    ) -> None:
        inspect.signature(watch).bind(None, out, record, **options)
        self.scope: Scope | None = None
        self._out, self._record, self._options = out, record, options
        self._losses: list[Tensor] = []
        self._steps = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, with the reading before the first step."""
        self._end(None)
        if not trainer.is_global_zero:
            return
        # Its optimizers run the backward pass inside their step, so a hook before it is too early;
        # gradients stay on the parameters until the next batch.
        options = {**self._options, "begin": False}
        self.scope = watch(pl_module, self._out, self._record, **options)
        self.scope.count = self._steps = trainer.global_step
        self.scope.__enter__()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Hear of a batch; it was a step if an optimizer has stepped."""
        if self.scope is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, Tensor):
            # Lightning has divided it by the number of batches that it accumulates.
            parts = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
            self._losses.append(loss.detach() * parts)
        if trainer.global_step > self._steps:
            self._steps = trainer.global_step
            losses, self._losses = self._losses, []
            self.scope.step(sum(losses) / len(losses) if losses else None)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write what is left."""
        self._end(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Keep what was read before training broke off."""
        self._end(exception)

    def _end(self, error: BaseException | None) -> None:
        scope, self.scope = self.scope, None
        self._losses = []
        if scope is not None:
            scope.__exit__(type(error) if error else None, error, None)
