"""Running a study: folder, workers, theory, verdicts."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import shlex
import shutil
import signal
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import xarray as xr

from attnscope import __version__
from attnscope.claims import Finding, examine
from attnscope.errors import AttnscopeError
from attnscope.files import disk_full_as_sentence
from attnscope.studies import of_tree
from attnscope.studies.base import Study
from attnscope.studies.pool import Pool
from attnscope.studies.worker import execute
from attnscope.trajectory import (
    FORMAT,
    RunFolder,
    create_store,
    open_run,
    run_status,
    write_json,
)

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
    study: Study,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    resume: bool = False,
    listener: Listener | None = None,
    command: str = "",
) -> xr.DataTree:
    """Run a study and return its trajectory.

    Args:
        study: what to run.
        out: the run's folder; ``runs/<study>-<hash of the spec>`` unless given. An older run in it
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
    folder = RunFolder(Path(out) if out is not None else RUNS / study.identity())
    if resume and folder.manifest_path.exists():
        _check_same(folder, study)
        _check_data(folder, study)
    else:
        _prepare(folder, study, command)
    total = len(study.runs())
    most = workers if workers is not None else (os.cpu_count() or 1)
    try:
        for numbers in study.rounds():
            todo = [i for i in numbers if not _complete(folder.state(i))]
            count = min(len(todo), most)
            if count > 1 and not study.name().startswith("__main__:"):
                _run_in_pool(folder, study, todo, count, listener)
            else:
                _run_here(folder, study, todo, listener)
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
    broken = [
        f"{case}, seed {seed}: {state.get('status')}"
        for (case, seed), state in zip(study.runs(), map(folder.state, range(total)), strict=True)
        if state.get("outcome") in ("diverged", "exhausted")
    ]
    if broken:
        raise Broken(
            f"{len(broken)} of {total} runs broke down; the first: {broken[0]}. "
            f"The trajectory up to there is kept in {folder.path}."
        )
    tree = open_run(folder.path)
    with _one_thread():
        theory = study.theory(tree)
    with disk_full_as_sentence(folder.store):
        plain = theory.drop_vars(["case", "seed"], errors="ignore")
        plain.to_zarr(str(folder.store), group="theory", mode="w", consolidated=False)
    return open_run(folder.path)


def findings(tree: xr.DataTree) -> list[Finding]:
    """Decide every claim of the study that a trajectory came from."""
    return [examine(claim, tree) for claim in of_tree(tree).claims()]


def _complete(state: dict[str, Any]) -> bool:
    return state.get("outcome") in ("finished", "stopped")


def _check_same(folder: RunFolder, study: Study) -> None:
    manifest = folder.manifest()
    if manifest["study"] != study.name() or manifest["spec"] != study.to_json():
        theirs = {"study": manifest["study"], **manifest["spec"]}
        ours = {"study": study.name(), **study.to_json()}
        other = [k for k in {**theirs, **ours} if theirs.get(k) != ours.get(k)]
        raise AttnscopeError(
            f"'{folder.path}' holds a run with another spec ("
            + ", ".join(f"{k} = {theirs.get(k)!r} there, {ours.get(k)!r} here" for k in other)
            + "): expected the same spec to resume it."
        )


def _check_data(folder: RunFolder, study: Study) -> None:
    """Refuse to go on with a run on data that have changed since, such as another vocabulary."""
    if all(_complete(folder.state(run)) for run in range(len(study.runs()))):
        return
    there, here = open_run(folder.path)["data"].to_dataset(), study.truth()
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


def _prepare(folder: RunFolder, study: Study, command: str) -> None:
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
        _fill(new, study, command)
        if folder.path.exists():
            shutil.rmtree(folder.path)
        new.path.rename(folder.path)
    finally:
        shutil.rmtree(new.path, ignore_errors=True)


def _fill(folder: RunFolder, study: Study, command: str) -> None:
    case, seed = study.runs()[0]
    problem = study.build(case, seed)
    create_store(
        folder,
        problem.model,
        problem.records,
        runs=len(study.runs()),
        until=study.time,
        grid=study.make_engine(case, seed).grid,
        attrs={"study": study.name(), "spec": study.to_json(), "attnscope": __version__},
    )
    with disk_full_as_sentence(folder.store):
        study.truth().to_zarr(str(folder.store), group="data", mode="a", consolidated=False)
    manifest = {
        "format": FORMAT,
        "attnscope": __version__,
        "study": study.name(),
        "spec": study.to_json(),
        "runs": [{"case": case, "seed": seed} for case, seed in study.runs()],
        "lr": study.lr,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "numpy", "scipy", "xarray", "zarr")},
        },
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "status": "not begun",
    }
    write_json(folder.manifest_path, manifest)


def _write_status(folder: RunFolder) -> None:
    manifest = folder.manifest()
    states = [folder.state(run) for run in range(len(manifest["runs"]))]
    write_json(folder.manifest_path, {**manifest, "status": run_status(manifest, states)})


def _run_here(folder: RunFolder, study: Study, todo: list[int], listener: Listener | None) -> None:
    with _one_thread(), _ctrl_c() as stop:
        for index in todo:
            tell = None
            if listener is not None:
                listener(index, 0.0)

                def tell(time: float, index: int = index) -> None:
                    listener(index, time / study.time)

            execute(folder, study, index, progress=tell, interrupted=stop.is_set)
            if stop.is_set():
                raise KeyboardInterrupt
            if listener is not None:
                listener(index, 1.0)


def _run_in_pool(
    folder: RunFolder, study: Study, todo: list[int], count: int, listener: Listener | None
) -> None:
    failed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if "error" in message:
            failed.append(message["error"])
        elif listener is not None and "run" in message:
            fraction = 1.0 if "done" in message else message["time"] / study.time
            listener(message["run"], fraction)

    pool = Pool(folder, todo, count)
    try:
        pool.listen(hear)
    finally:
        pool.stop()
    if failed:
        raise AttnscopeError(failed[0])


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    # Two threads on a model this small are an order of magnitude slower than one.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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


def python_lines(study: Study) -> str:
    """Return the Python that makes exactly this run."""
    cls = type(study)
    default = cls()
    changed = ", ".join(
        f"{name}={value!r}"
        for name, value in vars(study).items()
        if value != getattr(default, name)
    )
    module = cls.__module__.rsplit(".", 1)[0] if ":" not in study.name() else cls.__module__
    return (
        "import attnscope\n"
        f"from {module} import {cls.__name__}\n\n"
        f"run = attnscope.run({cls.__name__}({changed}))   # an xarray.DataTree\n"
        "for finding in attnscope.findings(run):\n"
        "    print(finding.verdict, finding.sentence)\n"
        "attnscope.write_report(run)\n"
    )


def command_line(study: Study) -> str:
    """Return the command line that makes exactly this run."""
    default = type(study)()
    words = ["attnscope", "run", study.name()]
    for name, value in vars(study).items():
        if value == getattr(default, name):
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, tuple):
            words += [f"--{flag}", *map(str, value)]
        else:
            words += [f"--{flag}", str(value)]
    return shlex.join(words)
