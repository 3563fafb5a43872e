"""Watching a model that ``transformers.Trainer`` trains.

::

    from attnscope.watching.trainer import WatchCallback

    Trainer(model, args, train_dataset=data, callbacks=[WatchCallback("runs/mine")]).train()
"""

from __future__ import annotations

import atexit
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching import Scope, watch

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise AttnscopeError(
        "The Trainer callback needs transformers, which is not installed here: expected "
        "`pip install transformers accelerate`, or a loop of your own with attnscope.watch."
    ) from error


class WatchCallback(TrainerCallback):
    """Records a model from the beginning of ``trainer.train()`` to its end.

    A step is a step of the optimizer: with accumulated gradients, its loss is that of all its
    batches together, and its gradients are those that the optimizer is given. The loss is the one
    that the model returns; if it is computed outside the model, it is NaN.

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
        self._shares = False
        self._hook: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Begin, with the reading before the first step."""
        self.close()
        if not state.is_world_process_zero:
            return
        model, optimizer = given["model"], given["optimizer"]
        options = {"optimizer": optimizer, **self._options, "begin": False}
        self.scope = watch(model, self._out, self._record, **options)
        self.scope.count = state.global_step
        self.scope.__enter__()
        self._hook = model.register_forward_hook(self._hear, with_kwargs=True)
        # A Trainer that raises tells nobody; readings must not be lost with the process.
        atexit.register(self.close)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Hear that the optimizer has taken a step."""
        if self.scope is None:
            return
        losses, self._losses = self._losses, []
        loss = sum(losses) if losses else None
        self.scope.step(loss if loss is None or self._shares else loss / len(losses))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write what is left."""
        self._end(None)

    def close(self) -> None:
        """End a recording whose training was broken off, if there is one."""
        self._end(getattr(sys, "last_value", None) or RuntimeError("training was broken off"))

    def _end(self, error: BaseException | None) -> None:
        scope, self.scope = self.scope, None
        if scope is not None:
            atexit.unregister(self.close)
            self._hook.remove()
            self._losses = []
            scope.__exit__(type(error) if error else None, error, None)

    def _hear(self, model: nn.Module, _: Any, given: Mapping[str, Any], output: Any) -> None:
        """Take the loss of a training batch."""
        if not model.training:
            return
        if isinstance(output, Mapping):
            loss = output.get("loss")
        else:
            loss = output[0] if isinstance(output, tuple) and output else None
        if isinstance(loss, Tensor) and loss.numel() == 1:
            self._losses.append(loss.detach())
            # With the number of words of the whole step at hand, losses are shares of it.
            self._shares = given.get("num_items_in_batch") is not None
