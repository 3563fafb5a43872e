"""The curves of a trajectory for other people's tools: CSV, TensorBoard, W&B, MLflow."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnscope.errors import AttnscopeError, nearest
from attnscope.files import write_bytes
from attnscope.trajectory.arrays import clock_name

GROUPS = ("observables", "theory")
MOST = 1000
"""A variable with more curves than this is no set of curves."""
MAP = {"query", "key"}
"""Axes of attention between all words, which is none either, however short the words' row."""
NAMES = {"matrix": "matrices", "word": "words", "block": "blocks"}
"""Axes whose entries have names in the spec of a watched run, and where they are."""
NUMBERED = {"layer", "weight_layer"}
"""Axes whose entries are counted, since their names are paths of modules."""
BATCH = 1000
"""MLflow takes so many numbers at once."""


@dataclass(frozen=True, eq=False)
class Series:
    """One number over training.

    Args:
        tag: its name, such as ``entropy/layer0/head1``; several runs come first in it.
        steps: number of steps taken; of a flow, which has none, the number of the reading.
        times: learning rate × steps, or the time of the flow; of a watched model the steps.
        values: the number; NaN where it was not read.
    """

    tag: str
    steps: np.ndarray
    times: np.ndarray
    values: np.ndarray

    def known(self) -> Iterator[tuple[int, float]]:
        """Give steps and values where there is one."""
        for step, value in zip(self.steps.tolist(), self.values.tolist(), strict=True):
            if not math.isnan(value):
                yield step, value


def series_of(tree: xr.DataTree) -> tuple[list[Series], dict[str, int]]:
    """Return every curve of a trajectory, and variables that are left out.

    Returns:
        The curves; and, by variable that is a map, how many they would be.
    """
    spec = json.loads(tree.attrs.get("spec", "{}"))
    found: list[Series] = []
    left: dict[str, int] = {}
    for group in GROUPS:
        if group not in tree.children:
            continue
        lead = "" if group == GROUPS[0] else f"{group}/"
        for name, array in tree[group].to_dataset().data_vars.items():
            if array.ndim < 2 or array.dims[0] != "run" or array.dtype.kind not in "fiub":
                continue
            clock = _clock(array)
            if clock is None:
                continue
            count = math.prod(array.shape[2:])
            if count > MOST or MAP.issubset(map(str, array.dims)):
                left[f"{lead}{name}"] = count
            else:
                found += _curves(f"{lead}{name}", array, clock, spec)
    return found, left


def _clock(array: xr.DataArray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return steps and times of a variable's readings; ``None`` if it has no times."""
    along = array.dims[1]
    name = clock_name(str(along))
    if name not in array.coords:
        return None
    times = array[name].to_numpy().astype(float)
    epoch = name.replace("time", "epoch")
    steps = array[epoch].to_numpy() if epoch in array.coords else np.arange(len(times))
    return steps, times


def _curves(
    name: str, array: xr.DataArray, clock: tuple[np.ndarray, np.ndarray], spec: dict[str, Any]
) -> Iterator[Series]:
    steps, times = clock
    reached = np.isfinite(times) & np.isfinite(steps)
    places = [_labels(array, str(dim), spec) for dim in array.dims[2:]]
    values = array.to_numpy()
    several = array.sizes["run"] > 1
    for run in range(array.sizes["run"]):
        lead = ""
        if several:
            lead = f"{array['case'].to_numpy()[run]}/seed{array['seed'].to_numpy()[run]}/"
        for index in np.ndindex(*array.shape[2:]):
            tag = "/".join(
                [f"{lead}{name}", *(labels[i] for labels, i in zip(places, index, strict=True))]
            )
            part = values[(run, slice(None), *index)].astype(float)
            if not np.isnan(part).all():
                yield Series(tag, steps[reached].astype(int), times[reached], part[reached])


def _labels(array: xr.DataArray, dim: str, spec: dict[str, Any]) -> list[str]:
    size = array.sizes[dim]
    named = list(spec.get(NAMES.get(dim, ""), ()))
    if len(named) == size:
        return [str(name) for name in named]
    if dim in array.coords and array[dim].dtype.kind in "UTO" and dim not in NUMBERED:
        return [str(label) for label in array[dim].to_numpy()]
    # The name of an axis that a function of one line has is that of its variable.
    short = "" if "[" in dim else dim
    return [f"{short}{index}" for index in range(size)]


def to_csv(series: list[Series], out: Path, _: str = "") -> Path:
    """Write a table with the columns tag, step, time, value; numbers survive to the last bit."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("tag", "step", "time", "value"))
    for one in series:
        steps, times, values = one.steps.tolist(), one.times.tolist(), one.values.tolist()
        table.writerows(zip([one.tag] * len(steps), steps, times, values, strict=True))
    return write_bytes(out, text.getvalue().encode())


def to_tensorboard(series: list[Series], out: Path, _: str = "") -> Path:
    """Write an event file; its numbers are of single precision."""
    _library("tensorboard", "tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(out)) as writer:
        for one in series:
            for step, value in one.known():
                writer.add_scalar(one.tag, value, step)
    return out


def to_wandb(series: list[Series], out: Path, name: str) -> Path:
    """Write a run of W&B without asking its server; ``wandb sync`` brings it there."""
    wandb = _library("wandb", "wandb")
    rows: dict[int, dict[str, float]] = {}
    for one in series:
        for step, value in one.known():
            rows.setdefault(step, {})[one.tag] = value
    out.mkdir(parents=True, exist_ok=True)
    quiet = wandb.Settings(silent=True)
    with wandb.init(
        project="attnscope", name=name, dir=str(out), mode="offline", settings=quiet
    ) as run:
        for step in sorted(rows):
            run.log(rows[step], step=step)
    return out


def to_mlflow(series: list[Series], out: Path, name: str) -> Path:
    """Write a run of MLflow into a database in a folder."""
    _library("mlflow", "mlflow")
    from mlflow.entities import Metric
    from mlflow.tracking import MlflowClient

    out.mkdir(parents=True, exist_ok=True)
    client = MlflowClient(tracking_uri=f"sqlite:///{(out / 'mlflow.db').resolve()}")
    experiment = client.get_experiment_by_name("attnscope")
    key = experiment.experiment_id if experiment else client.create_experiment("attnscope")
    run = client.create_run(key, run_name=name).info.run_id
    for one in series:
        tag = re.sub(r"[^\w\-. /]", "_", one.tag)
        metrics = [Metric(tag, value, 0, step) for step, value in one.known()]
        for first in range(0, len(metrics), BATCH):
            client.log_batch(run, metrics=metrics[first : first + BATCH])
    client.set_terminated(run)
    return out


def _library(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise AttnscopeError(
            f"{package} is not installed here: expected `pip install {package}`. A CSV table needs "
            "nothing: --to csv."
        ) from None


TOOLS: dict[str, tuple[Callable[[list[Series], Path, str], Path], str]] = {
    "csv": (to_csv, "scalars.csv"),
    "tensorboard": (to_tensorboard, "tensorboard"),
    "wandb": (to_wandb, "wandb"),
    "mlflow": (to_mlflow, "mlflow"),
}
"""By name: what writes it, and what it is called in the run's folder."""


def export(
    tree: xr.DataTree, to: str, out: str | Path | None = None
) -> tuple[Path, dict[str, int]]:
    """Write the curves of a trajectory for another tool.

    Args:
        tree: any trajectory, of a watched model or of a study.
        to: ``csv``, ``tensorboard``, ``wandb`` or ``mlflow``.
        out: where to; in the run's folder unless given.

    Returns:
        Where it was written, and variables that are no curves but maps, with their size.

    Raises:
        AttnscopeError: there is no such tool, or it is not installed.
    """
    if to not in TOOLS:
        raise AttnscopeError(
            f"'{to}' is nothing to export to.{nearest(to, TOOLS)} Expected one of: "
            f"{', '.join(TOOLS)}."
        )
    write, file = TOOLS[to]
    series, left = series_of(tree)
    run = Path(tree.attrs.get("path", "run")).resolve()
    if out is None and "path" not in tree.attrs:
        raise AttnscopeError("this trajectory has no folder: expected out=..., where to write it.")
    return write(series, run / file if out is None else Path(out), run.name), left
