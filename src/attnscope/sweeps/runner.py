"""Running a sweep: its points, handed out to workers, kept by one writer."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import xarray as xr

from attnscope.engines.device import choosing
from attnscope.errors import AttnscopeError
from attnscope.experiment import RUNS, Experiment, Interrupted
from attnscope.experiment.signals import Stop, stopping
from attnscope.sweeps.axes import Axis, Grid, Over, axes_of, key, said
from attnscope.sweeps.crew import Jobs, crew_for
from attnscope.sweeps.folder import SweepFolder, Writer, fill
from attnscope.sweeps.refine import Refinement
from attnscope.sweeps.tree import open_sweep
from attnscope.trajectory.folder import holds_something
from attnscope.trajectory.lock import Lock
from attnscope.trajectory.staging import clear, new_folder
from attnscope.workers import Pool
from attnscope.workers.cluster import LOCAL, Needs, check_way
from attnscope.workers.process import LOST, JobFailed

MANY = 64
"""Points that refining may ask for at once, about."""
HOPELESS = 5
"""Points that may fail one after the other, from the first on, before the sweep gives up."""


class Listener(Protocol):
    """Hears how far a sweep is."""

    def __call__(self, done: float, total: int, complete: int, row: Mapping[str, Any]) -> None:
        """Learn how many points are done, with the parts of others; the row of the latest."""


def sweep(
    study: Experiment,
    over: Over,
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    refine: str | None = None,
    within: float = 0.01,
    most_seeds: int | None = None,
    overwrite: bool = False,
    listener: Listener | None = None,
    command: str = "",
    part: tuple[int, int] | None = None,
    on: str = LOCAL,
    cpus: int = 1,
    gpus: float = 0.0,
    memory: float = 0.0,
    device: str | None = None,
) -> xr.DataTree:
    """Run a study at every point of a grid of settings.

    Points that are in the folder already are not run again: a sweep goes on after a kill, and is
    extended by more values or more seeds, with the same call.

    Args:
        study: the settings that stay as they are.
        over: the values of each field that is swept, crossed: ``{"m": [5, 10], "lr": [0.1, 1]}``;
            several fields in step by a tuple of names: ``{("m", "dim"): [(5, 2), (10, 4)]}``.
            A text is read as on the command line: ``{"m": "5:80:log9"}``.
        out: the sweep's folder; ``runs/sweep-<study>-<hash>`` unless given.
        workers: processes side by side; one per core unless given. With 1 everything happens in
            this process.
        refine: key of a claim; between neighbours on the grid where its verdict differs, points are
            added by bisection until the place is known.
        within: how exactly, as a share of each axis.
        most_seeds: seeds that refining may take where a verdict stays undecided; four times those
            of the study unless given.
        overwrite: replace a sweep that is there.
        listener: hears how far it is.
        command: the command line that asks for this, kept in the manifest.
        part: do only the points of one part of several, as ``(3, 40)``.
        on: where points are done, as for :func:`attnscope.run`: here, or on a Ray cluster.
        cpus: processors that a point takes of a node of a cluster.
        gpus: graphics processors that it takes.
        memory: gigabytes that are kept free for it there.
        device: where tensors lie while a model is trained, as for :func:`attnscope.run`.

    Returns:
        One tree with the swept fields as dimensions, see :func:`open_sweep`.

    Raises:
        Busy: another process is writing there.
        Interrupted: on Ctrl-C, SIGTERM or SIGHUP; what is done is kept.
        AttnscopeError: a point is out of bounds, or the folder holds something else.
    """
    if workers is not None and workers < 1:
        raise AttnscopeError(f"workers = {workers}: expected 1 or more.")
    grid = Grid(study, axes_of(study, over))
    grid.check()
    refinement = None
    if refine is not None:
        refinement = Refinement(grid, refine, within, most_seeds or 4 * study.seeds)
    check_way(on)
    needs = Needs(cpus, gpus, memory)
    path = Path(out) if out is not None else RUNS / name_of(grid)
    with (
        choosing(device, check=on == LOCAL),
        place_of(grid, path, command, overwrite=overwrite) as (folder, lock),
    ):
        _go(folder, grid, listener, lock, refinement, part, on, workers, needs)
        return open_sweep(folder.path)


def name_of(grid: Grid) -> str:
    """Return what the folder of a sweep is called; more values do not change it."""
    text = f"{grid.base()} {[axis.fields for axis in grid.axes]}"
    short = grid.study.name().split(":")[-1]
    return f"sweep-{short}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@contextmanager
def place_of(
    grid: Grid, path: Path, command: str, *, overwrite: bool = False
) -> Iterator[tuple[SweepFolder, Lock]]:
    """Find or make the folder of a sweep, and hold its lock.

    Raises:
        Busy: somebody else is writing there.
        AttnscopeError: what is there is another sweep, or none.
    """
    folder, what = SweepFolder(path), f"attnscope sweep {grid.study.name()}"
    source = source_of(grid.study)

    def make(new: Path) -> None:
        fill(
            SweepFolder(new),
            study=grid.study.name(),
            base=grid.base(),
            axes=grid.axes,
            source=source,
            command=command,
        )

    if not holds_something(path):
        with new_folder(path, what, make) as lock:
            yield folder, lock
        return
    if not folder.is_sweep():
        raise AttnscopeError(
            f"'{path}' exists and is not a sweep: expected an empty or a new folder."
        )
    clear(path.parent)
    lock = Lock(path, what)
    if overwrite:
        from attnscope.sweeps.check import check_ours

        try:
            check_ours(folder)
        except BaseException:
            lock.release()
            raise
        with new_folder(path, what, make, old=lock) as new:
            yield folder, new
        return
    with lock:
        axes = check_same(folder, grid, source)
        Writer(folder).tell(axes=[axis.to_json() for axis in axes])
        yield folder, lock


def check_same(folder: SweepFolder, grid: Grid, source: str) -> list[Axis]:
    """Refuse to go on with another sweep; return the axes of both together."""
    manifest, name = folder.manifest(), grid.study.name()
    theirs: dict[str, Any] = {"study": manifest["study"], **manifest["base"]}
    ours: dict[str, Any] = {"study": name, **grid.base()}
    axes = {axis.fields: axis for axis in folder.axes()}
    advice = "Choose another --out, or --overwrite to replace it."
    if set(axes) != {axis.fields for axis in grid.axes}:
        there, here = (
            " × ".join("+".join(fields) for fields in each)
            for each in (axes, [axis.fields for axis in grid.axes])
        )
        raise AttnscopeError(
            f"'{folder.path}' holds a sweep over {there}, this one is over {here}: expected the "
            f"same fields to go on with it. {advice}"
        )
    other = [k for k in {**theirs, **ours} if theirs.get(k) != ours.get(k)]
    if other:
        raise AttnscopeError(
            f"'{folder.path}' holds a sweep with other settings ("
            + ", ".join(f"{k} = {theirs.get(k)!r} there, {ours.get(k)!r} here" for k in other)
            + f"): expected the same to go on with it. {advice}"
        )
    if manifest["source"] != source:
        raise AttnscopeError(
            f"the study {name} has changed since the sweep in '{folder.path}' was begun: expected "
            "the same code, or its points could not be compared. Take back the change, choose "
            "another --out, or --overwrite to replace it."
        )
    return [axes[axis.fields].joined(axis) for axis in grid.axes]


def source_of(study: Experiment) -> str:
    """Return what tells the code of a study from any other: its module and those it builds on."""
    files: set[Path] = set()
    for base in type(study).__mro__:
        if base.__module__.startswith((Experiment.__module__.rpartition(".")[0], "builtins")):
            continue  # What all studies have in common is not this study.
        with suppress(TypeError, OSError):  # Typed into a session.
            file = Path(inspect.getfile(base))
            # A study that is a folder is all files in it.
            alone = base.__module__.count(".") < 4
            files |= {file} if alone else set(file.parent.glob("*.py"))
    texts = [file.read_bytes() for file in sorted(files) if file.is_file()]
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16] if texts else "unknown"


def _go(
    folder: SweepFolder,
    grid: Grid,
    listener: Listener | None,
    lock: Lock,
    refinement: Refinement | None,
    part: tuple[int, int] | None,
    on: str,
    workers: int | None,
    needs: Needs,
) -> None:
    """Do the points that are not there, then those that refining asks for."""
    writer = Writer(folder)
    with stopping() as stop:
        turn = _Turn(grid, writer, listener, refinement)
        turn.ask(_share(list(grid.points()), part))
        if refinement is not None:
            turn.ask_more()
        if not turn.wanted:
            writer.tell(status=_status(writer, turn))
            return
        try:
            with crew_for(
                len(turn.wanted),
                turn.arguments,
                turn.title,
                lock,
                stop,
                on=on,
                workers=workers,
                needs=needs,
                most=len(turn.wanted) if refinement is None else MANY,
            ) as turn.jobs:
                _listen(turn, stop)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted: {turn.complete} of {turn.total} points are done and kept in "
                f"{folder.path}, and so is how far the others were. Go on with the same command.",
                stop.signal,
            ) from None
        finally:
            writer.tell(status=_status(writer, turn))
    if turn.failed:
        values, why = turn.failed[0]
        raise AttnscopeError(
            f"{len(turn.failed)} of {turn.total} points could not be done; the first, "
            f"{said(values)}: {why} The others are kept in {folder.path}; the same command tries "
            f"again.\n{turn.printed}".rstrip()
        )


def _listen(turn: _Turn, stop: Stop) -> None:
    """Keep what workers say until all points are done."""
    jobs = turn.jobs
    assert jobs is not None
    try:
        if isinstance(jobs, Pool):
            with stop.at_once():
                jobs.listen(turn.hear)
        else:
            jobs.listen(turn.hear)  # It looks between two messages whether somebody asked to end.
    except JobFailed as error:
        turn.printed = str(error).partition("\n")[2]  # Points that failed are told of together.
    finally:
        jobs.stop()
        jobs.rest(turn.hear)
    if stop.is_set():
        raise KeyboardInterrupt


class _Turn:
    """One call of a sweep: which points are wanted, and what becomes of them."""

    def __init__(
        self,
        grid: Grid,
        writer: Writer,
        listener: Listener | None,
        refinement: Refinement | None,
    ) -> None:
        self.grid, self.writer, self.listener, self.refinement = grid, writer, listener, refinement
        self.wanted: list[tuple[dict[str, Any], Experiment]] = []
        self.asked: dict[str, int] = {}
        self.fractions: dict[int, float] = {}
        self.failed: list[tuple[dict[str, Any], str]] = []
        self.total = self.complete = 0
        self.jobs: Jobs | None = None
        self.printed = ""

    def ask(self, points: Sequence[Mapping[str, Any]], seeds: int | None = None) -> None:
        """Want points, with so many seeds; those that are there count as done."""
        for values in points:
            study = self.grid.at(values)
            if seeds is not None:
                study = study.but(seeds=seeds)
            before = self.asked.get(key(values))
            if before is not None and before >= study.seeds:
                continue
            self.total += before is None
            self.asked[key(values)] = study.seeds
            row = self.writer.known.get(key(values))
            if row is not None and is_done(row, study.seeds):
                self.complete += 1
                continue
            self.wanted.append((dict(values), study))
            if self.jobs is not None:
                self.jobs.add()

    def ask_more(self) -> None:
        """Want what refining needs next."""
        assert self.refinement is not None
        before = -1
        while before != len(self.asked) + sum(self.asked.values()):
            before = len(self.asked) + sum(self.asked.values())
            for values, seeds in self.refinement.wants(self.writer.known):
                self.ask([values], seeds)

    def arguments(self, number: int, args: tuple[Any, ...] = ()) -> tuple[Any, ...]:
        """Return what a point needs, with all that has come back from it by now."""
        values, study = self.wanted[number]
        return study, self.writer.packed(values), self.writer.state(values)

    def title(self, number: int) -> str:
        """Return what a point is called."""
        return f"the point {said(self.wanted[number][0])}"

    def hear(self, number: int, kind: str, value: Any) -> None:
        """Keep what a worker says."""
        values, _ = self.wanted[number]
        row: Mapping[str, Any] = {}
        if kind == "part" and value[0] == "state":
            self.writer.keep_going(values, value[1])
            return
        if kind == "part":
            self.fractions[number] = value[1]
        elif kind == "done":
            row = self.writer.keep(values, value)
            self.complete += 1
            self.fractions.pop(number, None)
            if self.refinement is not None:
                self.ask_more()
        elif kind in ("sorry", "bug", LOST):
            self.failed.append((values, why := _why(kind, value)))
            self.writer.note(values, None, {"outcome": "failed", "status": why, "findings": {}})
            if len(self.failed) >= HOPELESS and not self.complete:
                raise AttnscopeError(
                    f"the first {HOPELESS} points could not be done; {said(values)}: {why} "
                    "Nothing was lost; the same command tries again."
                )
        if self.listener is not None:
            done = self.complete + sum(self.fractions.values())
            self.listener(done, self.total, self.complete, row)


def _why(kind: str, value: str) -> str:
    if kind == LOST:
        return f"it took its process with it ({value})."
    return value if kind == "sorry" else f"{value.strip().splitlines()[-1]}."


def is_done(row: Mapping[str, Any], seeds: int) -> bool:
    """Return whether a point is there, with so many seeds or more."""
    return row["outcome"] != "failed" and int(row.get("seeds", 0)) >= seeds


def _share(points: list[dict[str, Any]], part: tuple[int, int] | None) -> list[dict[str, Any]]:
    """Return the points of one part; neighbours go to different parts, so that all take alike."""
    return points if part is None else points[part[0] - 1 :: part[1]]


def _status(writer: Writer, turn: _Turn) -> str:
    rows = writer.known.values()
    broken = sum(row["outcome"] not in ("finished", "failed") for row in rows)
    failed = sum(row["outcome"] == "failed" for row in rows)
    done = len(writer.known) - failed
    more = f"; {broken} diverged" if broken else ""
    if turn.complete >= turn.total:
        return f"finished: {done} points{more}"
    lost = f"; {failed} could not be done" if failed else ""
    return f"{turn.complete} of {turn.total} points are done{more}{lost}"
