"""Any model, any full-batch loss: train it and get the trajectory."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnscope.engines import Descent, Flow, Memory, Record
from attnscope.engines.stopping import Stop
from attnscope.trajectory import memory_tree

if TYPE_CHECKING:
    import xarray as xr
    from torch import nn

    from attnscope.engines.parameters import Loss


def train(
    model: nn.Module,
    loss: Loss,
    engine: Flow | Descent,
    *,
    time: float,
    record: Sequence[Record],
    stop: Sequence[Stop] = (),
) -> xr.DataTree:
    """Train a model of your own and return its trajectory, in memory.

    Args:
        model: any ``nn.Module``; it ends up trained.
        loss: ``loss(model)`` returns the full-batch loss as a tensor with one element.
        engine: :class:`Flow` or :class:`Descent`.
        time: learning rate × number of steps.
        record: what to read, and when.
        stop: conditions that end the run earlier.

    Returns:
        A tree with the groups ``observables`` (and ``params``) and ``stats``, and a single run;
        ``tree.attrs["status"]`` says how it ended. A run that diverged or gave up warns, too.
    """
    memory = Memory()
    solution = engine.run(model, loss, time=time, record=record, stop=stop, sink=memory)
    if solution.failed:
        warnings.warn(f"the run {solution.status}.", RuntimeWarning, stacklevel=2)
    return memory_tree(memory, solution, engine.grid)
