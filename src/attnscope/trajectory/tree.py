"""Trajectories as labelled arrays: an ``xarray.DataTree`` of named groups and dimensions.

Groups are ``observables`` (what was read), ``params`` (snapshots that were asked for), ``data``
(ground truth), ``theory`` (what should have been read) and ``stats`` (what the engine says of
itself). The dimension ``run`` carries the coordinates ``case`` and ``seed``. Record dimensions such
as ``step`` are indexed by the step of training, so that ``sel(step=400)`` is the reading after 400
steps, and carry ``time`` = learning rate × steps. Other axes carry the labels that they were
declared with.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnscope.engines.sink import Memory
from attnscope.engines.solution import Solution
from attnscope.errors import AttnscopeError
from attnscope.trajectory.documents import DamagedFile
from attnscope.trajectory.folder import CHECKED, RunFolder
from attnscope.trajectory.loading import look
from attnscope.trajectory.method_stats import method_stats

STATS = ("time", "loss", "steps", "evaluations", "rejected", "plain_steps", "seconds")


def open_run(path: str | Path, *, allow_damaged: bool = False) -> xr.DataTree:
    """Read a run, finished or not, into memory; nothing is ever written.

    Points that were not reached are NaN. ``tree.attrs`` hold the study's name, its spec, versions,
    and the status as a sentence.

    Args:
        path: the run's folder.
        allow_damaged: open what is still good of a run with damaged or missing files;
            ``tree.attrs["damaged"]`` then says in sentences what is wrong.

    Raises:
        DamagedFile: a file is gone or is not what was written; the message names it.
        AttnscopeError: the folder is not a run, or a newer version wrote it.
    """
    folder = RunFolder(Path(path))
    manifest = folder.manifest()
    states, damage = states_of(folder, manifest)
    found = look(folder, manifest, states)
    damage += found.damage
    if damage and not allow_damaged:
        raise DamagedFile(
            damage[0].path,
            damage[0].what,
            f"`attnscope check {folder.path}` says what is still good, and "
            "open_run(..., allow_damaged=True) opens it.",
        )
    try:
        return _labelled(folder, manifest, states, found.tree(), damage)
    except (AttnscopeError, KeyboardInterrupt):
        raise
    except Exception as error:  # Whatever the libraries say of arrays that are not ours.
        raise DamagedFile(
            folder.store, f"cannot be read ({type(error).__name__}: {error})"
        ) from error


def states_of(
    folder: RunFolder, manifest: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[DamagedFile]]:
    """Return how far each run is, and which of the files that say so are damaged."""
    states: list[dict[str, Any]] = []
    damage: list[DamagedFile] = []
    sealed = manifest["format"] >= CHECKED
    for run in range(len(manifest["runs"])):
        try:
            states.append(folder.state(run, sealed=sealed))
        except DamagedFile as error:
            damage.append(error)
            states.append({})
            continue
        if sealed and not states[-1]:
            damage.append(DamagedFile(folder.state_path(run), "is gone"))
    return states, damage


def _labelled(
    folder: RunFolder,
    manifest: dict[str, Any],
    states: list[dict[str, Any]],
    tree: xr.DataTree,
    damage: list[DamagedFile],
) -> xr.DataTree:
    cases = [run["case"] for run in manifest["runs"]]
    seeds = [run["seed"] for run in manifest["runs"]]
    lr = manifest.get("lr")
    groups = {
        name: with_runs(node.to_dataset(), cases, seeds, lr, manifest.get("grid", lr))
        for name, node in sorted(tree.children.items())
    }
    groups["stats"] = stats_of(states, cases, seeds)
    attrs = {
        "study": manifest["study"],
        "spec": json.dumps(manifest["spec"]),
        "attnscope": manifest.get("attnscope", ""),
        "versions": json.dumps(manifest.get("versions", {})),
        "command": manifest.get("command", ""),
        "created": manifest.get("created", ""),
        "status": run_status(manifest, states),
        "path": str(folder.path),
    }
    if damage:
        attrs["damaged"] = [str(each) for each in damage]
        attrs["status"] = f"damaged: {len(damage)} files; {attrs['status']}"
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **groups})


def run_status(manifest: dict[str, Any], states: list[dict[str, Any]]) -> str:
    """Say in a sentence how far the runs of a folder are."""
    total = len(manifest["runs"])
    outcomes = [state.get("outcome", "not begun") for state in states]
    done = sum(outcome in ("finished", "stopped") for outcome in outcomes)
    if done == total:
        runs = f"all {total} runs are" if total > 1 else "the run is"
        return f"finished: {runs} complete"
    if is_watched(manifest):
        return _watched_status(states[0])
    parts = [f"{done} of {total} runs are complete"]
    for index, (run, state) in enumerate(zip(manifest["runs"], states, strict=True)):
        if outcomes[index] in ("diverged", "exhausted"):
            parts.append(f"{run['case']}, seed {run['seed']}: {state.get('status', '')}")
    return "; ".join(parts)


def is_watched(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest, or the attributes of a tree, are those of a watched model."""
    return manifest.get("study") in ("watched", "attnscope.watching.reading:Watched")


def _watched_status(state: dict[str, Any]) -> str:
    """Say how far a recording of somebody's training is that has not ended well."""
    steps = f"{state.get('steps', 0):,} steps"
    match state.get("outcome"):
        case "running":
            return f"not finished: {steps} are recorded so far, and more may come"
        case None:
            return "not begun: nothing is recorded yet"
    return f"not finished: {state.get('status', '')}; {steps} are recorded"


def memory_tree(memory: Memory, solution: Solution, lr: float | None = None) -> xr.DataTree:
    """Turn what an engine recorded in memory into a tree with a single run."""
    groups: dict[str, dict[str, xr.DataArray]] = {}
    for record, times, arrays in zip(memory.records, memory.times, memory.arrays, strict=True):
        suffix = "" if record.dim == "step" else f"_{record.dim}"
        for observable in record.observables:
            observable.check(arrays[observable.name].shape[1:])
            groups.setdefault(record.group, {})[observable.name] = xr.DataArray(
                arrays[observable.name][None],
                dims=("run", record.dim, *observable.dims),
                coords={f"time{suffix}": (record.dim, times)},
                attrs={
                    "unit": observable.unit,
                    "meaning": observable.meaning,
                    "labels": {dim: list(each) for dim, each in observable.coords.items()},
                },
            )
    trees = {
        name: with_runs(xr.Dataset(variables), ["run"], [0], lr)
        for name, variables in groups.items()
    }
    trees["stats"] = stats_of([state_in_memory(solution)], ["run"], [0])
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"status": solution.status}), **trees})


def state_in_memory(solution: Solution) -> dict[str, Any]:
    """Return how a run ended, as the state in a run's folder says it."""
    state = {name: getattr(solution, name) for name in STATS if name != "seconds"}
    return {**state, **solution.details(), "outcome": solution.outcome.value}


def with_runs(
    data: xr.Dataset,
    cases: list[str],
    seeds: list[int],
    lr: float | None,
    grid: float | None = None,
) -> xr.Dataset:
    """Give a group its coordinates: clocks, steps, labels, cases and seeds."""
    grid = lr if grid is None else grid
    clocks = {f"time_{dim}": str(dim) for dim in data.dims if f"time_{dim}" in data.variables}
    # In a trajectory's statistics `time` says when each run ended.
    clocks |= {"time": "step"} if "time" in data.variables and "step" in data.dims else {}
    data = data.set_coords(list(clocks))
    for name, dim in clocks.items():
        if lr is not None:
            epoch = (data[name] / lr).round()
            data = data.assign_coords({name.replace("time", "epoch"): epoch.drop_vars(name)})
        data = data.assign_coords({dim: _steps(data[name].to_numpy(), grid)})
    for variable in list(data.data_vars):
        for dim, labels in data[variable].attrs.pop("labels", {}).items():
            if len(labels) == data.sizes.get(dim):
                data = data.assign_coords({dim: labels})
    if "run" in data.dims:
        data = data.assign_coords(case=("run", cases), seed=("run", seeds))
    # A store lists its arrays in whatever order their metadata arrives: two readings must be alike.
    return data[sorted(map(str, data.data_vars))].assign_coords(data.coords)


def _steps(times: np.ndarray, grid: float | None) -> np.ndarray:
    """Return times as steps of training; as times where no step has a length."""
    if grid is None:
        return times
    steps = np.round(times / grid)
    # A flow may be read between the steps of the gradient descent that it stands for.
    return steps.astype(int) if np.allclose(steps * grid, times) else times / grid


def stats_of(states: list[dict[str, Any]], cases: list[str], seeds: list[int]) -> xr.Dataset:
    """Return how runs ended and what they cost, along ``run``."""
    variables: dict[str, tuple[str, list[Any]]] = {
        name: ("run", [state.get(name, math.nan) for state in states]) for name in STATS
    }
    variables["outcome"] = ("run", [state.get("outcome", "not begun") for state in states])
    made = xr.Dataset(variables, coords={"case": ("run", cases), "seed": ("run", seeds)})
    return made.merge(method_stats(states))
