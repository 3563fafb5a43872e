"""Running an experiment: folder, workers, theory, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnscope import __version__
from attnscope.engines.device import choosing
from attnscope.errors import AttnscopeError, Interrupted
from attnscope.experiment.base import Experiment
from attnscope.experiment.crew import Listener, crew_for
from attnscope.experiment.executor import theory_of, truth_of
from attnscope.experiment.place import place_of
from attnscope.experiment.signals import Stop, stopping
from attnscope.files import sync_all
from attnscope.trajectory import Lock, RunFolder, create_store, open_run, run_status
from attnscope.trajectory.groups import write_group
from attnscope.trajectory.manifest import sums_of, update_manifest, write_manifest
from attnscope.workers.cluster import LOCAL, Needs, check_way

RUNS = Path("runs")
"""Where runs go unless told otherwise, below the current directory."""


class Broken(AttnscopeError):
    """A run diverged: what was recorded before is kept."""


def run(
    experiment: Experiment,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    resume: bool = False,
    again: bool = False,
    overwrite: bool = False,
    listener: Listener | None = None,
    command: str = "",
    on: str = LOCAL,
    cpus: int = 1,
    gpus: float = 0.0,
    memory: float = 0.0,
    device: str | None = None,
) -> xr.DataTree:
    """Run an experiment and return its trajectory.

    A run of the same spec that is in the folder already is found: what is complete is not repeated,
    and what is not goes on. A run of another spec is left alone.

    Args:
        experiment: what to run, a study of a paper or one of your own.
        out: the run's folder; ``runs/<name>-<hash of the spec>`` unless given.
        workers: processes side by side; one per core unless given. With 1 everything happens in
            this process.
        resume: expect that a run in the folder goes on; without one, a new one begins.
        again: leave a run that is there alone, and make a new one beside it: ``<out>-2``.
        overwrite: replace a run that is there, in one step; refused if the folder holds anything
            that is not part of a run.
        listener: hears how far the runs are.
        command: the command line that asks for this, kept in the manifest.
        on: where runs are done: ``"local"``, on this computer; ``"ray"``, on a Ray cluster that is
            started here and stopped again; ``"auto"``, on the one this computer belongs to;
            ``"ray://HOST:PORT"``, on one elsewhere. What is recorded comes back and is written
            here, and is the same to the last bit.
        cpus: processors that a run takes of a node of a cluster.
        gpus: graphics processors that it takes.
        memory: gigabytes that are kept free for it there.
        device: where tensors lie while a model is trained: ``"cpu"``, ``"cuda"``, ``"mps"``, or
            ``"auto"`` for the first of cuda, mps and cpu that is there. ``ATTNSCOPE_DEVICE`` or
            the CPU unless given.

    Returns:
        The trajectory, with the group ``theory``.

    Raises:
        Busy: another process is writing there; the message says which.
        Interrupted: on Ctrl-C, SIGTERM or SIGHUP; the message says how to go on.
        Broken: a run diverged; the message says where.
        AttnscopeError: anything else that a person can mend.
    """
    if workers is not None and workers < 1:
        raise AttnscopeError(f"workers = {workers}: expected 1 or more.")
    if resume + again + overwrite > 1:
        raise AttnscopeError("expected one of resume, again and overwrite at most.")
    check_way(on)
    needs = Needs(cpus, gpus, memory)
    path = Path(out) if out is not None else RUNS / experiment.identity()

    def fill(new: RunFolder) -> None:
        _fill(new, experiment, command)

    with (
        # A node has a device of its own, which the driver need not have.
        choosing(device, check=on == LOCAL),
        place_of(experiment, path, fill, again=again, overwrite=overwrite) as (folder, lock),
    ):
        return _go(folder, experiment, listener, lock, on, workers, needs)


def is_complete(path: str | Path) -> bool:
    """Return whether all runs of a folder are complete, theory included."""
    folder = RunFolder(Path(path))
    manifest = folder.manifest()
    states = map(folder.state, range(len(manifest["runs"])))
    return all(map(_complete, states)) and _has_theory(folder)


def _go(
    folder: RunFolder,
    experiment: Experiment,
    listener: Listener | None,
    lock: Lock,
    on: str,
    workers: int | None,
    needs: Needs,
) -> xr.DataTree:
    """Do the runs that are not complete, then lay theory over them."""
    _check_data(folder, experiment)
    total = len(experiment.runs())
    there = [i for i in range(total) if _complete(folder.state(i))]
    whole = len(there) == total
    if listener is not None and not whole:
        for i in there:
            listener(i, 1.0)
    stop = Stop()
    try:
        with crew_for(LOCAL if whole else on, workers, needs) as crew, stopping() as stop:
            for numbers in experiment.rounds():
                todo = [i for i in numbers if not _complete(folder.state(i))]
                if todo:
                    crew(folder, experiment, todo, listener, lock, stop)
                if not all(_complete(folder.state(i)) for i in numbers):
                    break  # What comes after needs what broke down.
    except KeyboardInterrupt:
        done = sum(_complete(folder.state(i)) for i in range(total))
        raise Interrupted(
            f"interrupted: {done} of {total} runs are complete, and what the others recorded is "
            f"kept in {folder.path}. Go on with the same command and --resume.",
            stop.signal,
        ) from None
    finally:
        _write_status(folder)
    states = map(folder.state, range(total))
    broken = [
        f"{case}, seed {seed}: {state.get('status')}"
        for (case, seed), state in zip(experiment.runs(), states, strict=True)
        if state.get("outcome") in ("diverged", "exhausted")
    ]
    if broken:
        raise Broken(
            f"{len(broken)} of {total} runs broke down; the first: {broken[0]}. "
            f"The trajectory up to there is kept in {folder.path}."
        )
    if not _has_theory(folder):
        write_theory(folder, experiment)
    return open_run(folder.path)


def write_theory(folder: RunFolder, experiment: Experiment) -> None:
    """Write what an experiment predicts beside what was read, and have it all on the disk."""
    theory = theory_of(experiment, open_run(folder.path))
    # Until it is listed nobody looks for it.
    listed = [n for n in folder.manifest()["arrays"] if not n.startswith("theory/")]
    update_manifest(folder, arrays=listed)
    names = write_group(folder.store, "theory", theory)
    # Chunks of readings are on the disk; what is said of them, times and ground truth may not be.
    others = [*folder.store.rglob("zarr.json"), *folder.store.glob("data/*/c/**/*")]
    others += folder.store.glob("*/time*/c/**/*")
    sync_all([file for file in others if file.is_file()], folder.store)
    names = sorted([*listed, *names])
    update_manifest(folder, sync=True, arrays=names, sums=sums_of(folder, names), theory=True)


def _has_theory(folder: RunFolder) -> bool:
    """Return whether theory has been written, be it without any array."""
    return bool(folder.manifest().get("theory"))


def _complete(state: Mapping[str, Any]) -> bool:
    return state.get("outcome") in ("finished", "stopped")


def _check_data(folder: RunFolder, experiment: Experiment) -> None:
    """Refuse to go on with a run on data that have changed since, such as another vocabulary."""
    if all(_complete(folder.state(run)) for run in range(len(experiment.runs()))):
        return
    there, here = open_run(folder.path)["data"].to_dataset(), truth_of(experiment)
    for name, array in here.data_vars.items():
        if name not in there or there[name].shape != array.shape:
            was = there[name].shape if name in there else "none"
            raise AttnscopeError(
                f"the data of '{folder.path}' have changed since it was begun ('{name}' has shape "
                f"{was} there and {array.shape} here): expected the same files, to resume it."
            )
        if not _same(there[name].to_numpy(), array.to_numpy()):
            raise AttnscopeError(
                f"the data of '{folder.path}' have changed since it was begun ('{name}' differs): "
                "expected the same files, to resume it."
            )


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    if other.dtype.kind == "f":
        return np.array_equal(one, other, equal_nan=True)
    return bool((one == other).all())


def _fill(folder: RunFolder, experiment: Experiment, command: str) -> None:
    job = experiment.job(*experiment.runs()[0])
    name, spec = experiment.name(), experiment.to_json()
    arrays = create_store(
        folder,
        job.model,
        job.records,
        runs=len(experiment.runs()),
        until=job.end,
        grid=job.grid,
        labels=experiment.labels,
        attrs={"study": name, "spec": spec, "attnscope": __version__},
    )
    arrays += write_group(folder.store, "data", truth_of(experiment))
    write_manifest(
        folder,
        experiment=name,
        spec=spec,
        runs=experiment.runs(),
        grid=experiment.unit,
        lr=experiment.unit,
        command=command,
        arrays=arrays,
        sums=sums_of(folder, arrays),
    )


def _write_status(folder: RunFolder) -> None:
    manifest = folder.manifest()
    states = [folder.state(run) for run in range(len(manifest["runs"]))]
    update_manifest(folder, sync=True, status=run_status(manifest, states))
