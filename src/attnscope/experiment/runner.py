"""Running an experiment: folder, workers, theory, verdicts."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr

from attnscope import __version__
from attnscope.errors import AttnscopeError
from attnscope.experiment.base import Experiment
from attnscope.experiment.executor import execute, one_thread, theory_of, truth_of
from attnscope.files import disk_full_as_sentence
from attnscope.trajectory import RunFolder, create_store, open_run, run_status
from attnscope.trajectory.manifest import update_manifest, write_manifest
from attnscope.workers import Pool

RUNS = Path("runs")
"""Where runs go unless told otherwise, below the current directory."""


class Listener(Protocol):
    """Hears how far the runs are."""

    def __call__(self, run: int, fraction: float) -> None:
        """Learn that ``run`` has done ``fraction`` of its time."""


class Interrupted(AttnscopeError):
    """Ctrl-C: what was done is kept."""


class Broken(AttnscopeError):
    """A run diverged: what was recorded before is kept."""


def run(
    experiment: Experiment,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    command: str = "",
) -> xr.DataTree:
    """Run an experiment and return its trajectory.

    Args:
        experiment: what to run, a study of a paper or one of your own.
        out: the run's folder; ``runs/<name>-<hash of the spec>`` unless given. An older run in it
            is replaced.
        workers: processes side by side; one per core unless given. With 1 everything happens in
            this process.
        resume: go on with the run that is in the folder; complete runs are not repeated.
        listener: hears how far the runs are.
        command: the command line that asks for this, kept in the manifest.

    Returns:
        The trajectory, with the group ``theory``.

    Raises:
        Interrupted: on Ctrl-C; the message says how to go on.
        Broken: a run diverged; the message says where.
        AttnscopeError: anything else that a person can mend.
    """
    if workers is not None and workers < 1:
        raise AttnscopeError(f"workers = {workers}: expected 1 or more.")
    folder = RunFolder(Path(out) if out is not None else RUNS / experiment.identity())
    if resume and folder.manifest_path.exists():
        _check_same(folder, experiment)
        _check_data(folder, experiment)
    else:
        _prepare(folder, experiment, command)
    total = len(experiment.runs())
    most = workers if workers is not None else (os.cpu_count() or 1)
    try:
        for numbers in experiment.rounds():
            todo = [i for i in numbers if not _complete(folder.state(i))]
            count = min(len(todo), most)
            if count > 1:
                _run_in_pool(folder, experiment, todo, count, listener)
            else:
                _run_here(folder, experiment, todo, listener)
            if not all(_complete(folder.state(i)) for i in numbers):
                break  # What comes after needs what broke down.
    except KeyboardInterrupt:
        done = sum(_complete(folder.state(i)) for i in range(total))
        raise Interrupted(
            f"interrupted: {done} of {total} runs are complete, and what the others recorded is "
            f"kept in {folder.path}. Go on with the same command and --resume."
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
    theory = theory_of(experiment, open_run(folder.path))
    with disk_full_as_sentence(folder.store):
        theory.to_zarr(str(folder.store), group="theory", mode="w", consolidated=False)
    return open_run(folder.path)


def _complete(state: Mapping[str, Any]) -> bool:
    return state.get("outcome") in ("finished", "stopped")


def _check_same(folder: RunFolder, experiment: Experiment) -> None:
    manifest = folder.manifest()
    ours: dict[str, Any] = {"study": experiment.name(), **experiment.to_json()}
    theirs = {"study": manifest["study"], **manifest["spec"]}
    if theirs["study"] == ours["study"]:
        # An older version may have spelled the same spec otherwise.
        theirs |= type(experiment).from_json(manifest["spec"]).to_json()
        theirs = {name: value for name, value in theirs.items() if name in ours}
    other = [k for k in {**theirs, **ours} if theirs.get(k) != ours.get(k)]
    if other:
        raise AttnscopeError(
            f"'{folder.path}' holds a run with another spec ("
            + ", ".join(f"{k} = {theirs.get(k)!r} there, {ours.get(k)!r} here" for k in other)
            + "): expected the same spec to resume it."
        )


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


def _prepare(folder: RunFolder, experiment: Experiment, command: str) -> None:
    """Make the run's folder beside its place and then move it there, so that it is whole or not."""
    if folder.path.name in ("", ".."):
        raise AttnscopeError(f"out = '{folder.path}': expected the name of a folder of its own.")
    foreign = folder.path.exists() and not folder.manifest_path.exists()
    if foreign and (not folder.path.is_dir() or any(folder.path.iterdir())):
        raise AttnscopeError(
            f"'{folder.path}' exists and is not a run: expected an empty or a new folder."
        )
    new = RunFolder(folder.path.with_name(f".{folder.path.name}.{os.getpid()}"))
    try:
        try:
            with disk_full_as_sentence(folder.path):
                new.path.mkdir(parents=True)
        except OSError as error:
            raise AttnscopeError(
                f"'{folder.path}' cannot be made ({error.strerror}): expected a place to write to."
            ) from error
        _fill(new, experiment, command)
        if folder.path.exists():
            shutil.rmtree(folder.path)
        new.path.rename(folder.path)
    finally:
        shutil.rmtree(new.path, ignore_errors=True)


def _fill(folder: RunFolder, experiment: Experiment, command: str) -> None:
    job = experiment.job(*experiment.runs()[0])
    name, spec = experiment.name(), experiment.to_json()
    create_store(
        folder,
        job.model,
        job.records,
        runs=len(experiment.runs()),
        until=job.end,
        grid=job.grid,
        labels=experiment.labels,
        attrs={"study": name, "spec": spec, "attnscope": __version__},
    )
    with disk_full_as_sentence(folder.store):
        truth_of(experiment).to_zarr(str(folder.store), group="data", mode="a", consolidated=False)
    write_manifest(
        folder,
        experiment=name,
        spec=spec,
        runs=experiment.runs(),
        grid=experiment.unit,
        lr=experiment.unit,
        command=command,
    )


def _write_status(folder: RunFolder) -> None:
    manifest = folder.manifest()
    states = [folder.state(run) for run in range(len(manifest["runs"]))]
    update_manifest(folder, status=run_status(manifest, states))


def _run_here(
    folder: RunFolder, experiment: Experiment, todo: list[int], listener: Listener | None
) -> None:
    with one_thread(), _ctrl_c() as stop:
        for index in todo:
            tell = None
            if listener is not None:
                listener(index, 0.0)

                def tell(fraction: float, index: int = index) -> None:
                    listener(index, fraction)

            execute(folder, experiment, index, progress=tell, interrupted=stop.is_set)
            if stop.is_set():
                raise KeyboardInterrupt
            if listener is not None:
                listener(index, 1.0)


def _run_in_pool(
    folder: RunFolder,
    experiment: Experiment,
    todo: list[int],
    count: int,
    listener: Listener | None,
) -> None:
    failed: list[str] = []

    def hear(number: int, kind: str, value: Any) -> None:
        if kind == "sorry":
            failed.append(value)
        elif listener is not None and kind in ("part", "done"):
            listener(todo[number], 1.0 if kind == "done" else value)

    pool = Pool(_work, [(folder.path, experiment, index) for index in todo], count)
    try:
        pool.listen(hear)
    finally:
        pool.stop()
    if failed:
        raise AttnscopeError(failed[0])


def _work(path: Path, experiment: Experiment, index: int, job: Any) -> None:
    """Do one run in a worker process."""
    execute(RunFolder(path), experiment, index, progress=job.say, interrupted=job.stopped)


@contextlib.contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Let the first Ctrl-C end the run after its current step, with a checkpoint."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)

    def hear(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)  # a second one does not wait

    signal.signal(signal.SIGINT, hear)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
