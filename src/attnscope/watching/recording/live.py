"""Curves for other people's tools while training goes on: TensorBoard, W&B, MLflow, Trackio.

Tags are those of ``attnscope export``: ``entropy/layer0/head1``, ``gradient_norm/layer0/Q``. A
reading of more than :data:`MOST` numbers is the mean of each layer, ``entropy/layer0``; maps of
attention are no curves and are left out.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError, nearest
from attnscope.watching.moment import Reading

MOST = 64
NUMBERED = ("layer", "weight_layer", "head", "row")
"""Axes whose entries are counted; those of others are called by their names."""
MAP = {"query", "key"}

Values = dict[str, float]
Log = Callable[[int, Values], object]
"""Takes the step and numbers by tag."""


class Logger:
    """Hands numbers on; after an error it says so once, and is silent.

    Args:
        name: what it is called in sentences.
        log: takes them.
        close: ends it.
    """

    def __init__(self, name: str, log: Log, close: Callable[[], object] = lambda: None) -> None:
        self.name, self._log, self._close = name, log, close
        self.broken = False

    def log(self, step: int, values: Callable[[], Values]) -> None:
        """Hand numbers on, if there are any; they are made when they are asked for."""
        if not self.broken and (made := values()):
            self._quietly(lambda: self._log(step, made))

    def close(self) -> None:
        """Write what is left."""
        self._quietly(self._close)

    def _quietly(self, what: Callable[[], object]) -> None:
        if self.broken:
            return
        try:
            what()
        except Exception as error:
            self.broken = True
            warnings.warn(
                f"attnscope: nothing more is logged to {self.name} ({type(error).__name__}: "
                f"{error}). Training and the recording go on.",
                stacklevel=4,
            )


def logger_of(to: str | Log | Logger, folder: Path) -> Logger:
    """Return what logs to a tool, or to a function of the step and numbers by tag.

    Raises:
        AttnscopeError: there is no such tool, or it is not installed.
    """
    if isinstance(to, Logger):
        return to
    if callable(to):
        return Logger(getattr(to, "__name__", type(to).__name__), to)
    if to not in TOOLS:
        raise AttnscopeError(
            f"log_to({to!r}): there is no such tool.{nearest(str(to), TOOLS)} Expected one of: "
            f"{', '.join(TOOLS)}; or a function of the step and a dictionary of numbers."
        )
    try:
        return TOOLS[to](folder)
    except ImportError as error:
        raise AttnscopeError(
            f"log_to('{to}'): {to} is not installed here ({error}): expected `pip install {to}`, "
            "or a function of the step and a dictionary of numbers."
        ) from error


def _tensorboard(folder: Path) -> Logger:
    import_module("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard"))

    def log(step: int, values: Values) -> None:
        for tag, value in values.items():
            writer.add_scalar(tag, value, step)
        writer.flush()

    return Logger("tensorboard", log, writer.close)


def _wandb(folder: Path) -> Logger:
    wandb = import_module("wandb")
    own = wandb.run is None
    # Nothing is sent anywhere unless the training itself does so.
    run = wandb.run or wandb.init(
        project="attnscope", name=folder.name, dir=str(folder), mode="offline"
    )
    # The training's own steps may be others.
    run.define_metric("attnscope/*", step_metric="attnscope/step")

    def log(step: int, values: Values) -> None:
        run.log(
            {f"attnscope/{tag}": value for tag, value in values.items()} | {"attnscope/step": step}
        )

    return Logger("wandb", log, run.finish if own else lambda: None)


def _mlflow(folder: Path) -> Logger:
    mlflow = import_module("mlflow")
    active = mlflow.active_run()
    if active is None:
        client = mlflow.tracking.MlflowClient(
            tracking_uri=f"sqlite:///{(folder / 'mlflow.db').resolve()}"
        )
        known = client.get_experiment_by_name("attnscope")
        experiment = known.experiment_id if known else client.create_experiment("attnscope")
        run = client.create_run(experiment, run_name=folder.name).info.run_id
    else:
        client, run = mlflow.tracking.MlflowClient(), active.info.run_id

    def log(step: int, values: Values) -> None:
        for tag, value in values.items():
            client.log_metric(run, re.sub(r"[^\w\-. /]", "_", tag), value, step=step)

    def close() -> None:
        if active is None:
            client.set_terminated(run)

    return Logger("mlflow", log, close)


def _trackio(folder: Path) -> Logger:
    trackio = import_module("trackio")
    trackio.init(project="attnscope", name=folder.name)

    def log(step: int, values: Values) -> None:
        trackio.log(values, step=step)

    return Logger("trackio", log, trackio.finish)


TOOLS: dict[str, Callable[[Path], Logger]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
    "trackio": _trackio,
}


def scalars(
    reading: Reading, value: Tensor | float, labels: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, float]]:
    """Yield the tags and numbers of a reading; those that are not numbers are left out.

    Args:
        reading: what was read.
        value: what it came to.
        labels: names of the entries of axes.
    """
    if not isinstance(value, Tensor) or not value.ndim:
        number = float(value)
        if math.isfinite(number):
            yield reading.name, number
        return
    if set(reading.dims) >= MAP:
        return
    value = value.detach().to("cpu", torch.float64)
    dims = reading.dims if len(reading.dims) == value.ndim else ("",) * value.ndim
    if value.numel() > MOST:
        value, dims = value.flatten(1).nanmean(dim=1) if value.ndim > 1 else value, dims[:1]
        if value.numel() > MOST:
            return
    names = [_names(dim, size, labels) for dim, size in zip(dims, value.shape, strict=True)]
    for parts, number in zip(itertools.product(*names), value.flatten().tolist(), strict=True):
        if math.isfinite(number):
            yield "/".join([reading.name, *parts]), number


def _names(dim: str, size: int, labels: Mapping[str, Sequence[Any]]) -> list[str]:
    known = labels.get(dim, ())
    if dim in NUMBERED or len(known) != size:
        return [f"{dim}{index}" for index in range(size)]
    return [str(label) for label in known]
