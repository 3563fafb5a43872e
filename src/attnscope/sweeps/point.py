"""One point of a sweep: all its runs, theory and claims, done in memory by a worker.

What comes back is values, which one writer keeps: a worker needs no disk.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import platform
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import xarray as xr

from attnscope import __version__
from attnscope.claims import examine_all
from attnscope.engines import Checkpoint
from attnscope.experiment import Experiment, Stopped
from attnscope.experiment.executor import one_thread, theory_of, truth_of
from attnscope.sweeps.pack import pack, unpack
from attnscope.sweeps.piece import Piece, PieceSink, joined, pieces_of
from attnscope.sweeps.unfinished import Unfinished
from attnscope.trajectory.manifest import LIBRARIES
from attnscope.trajectory.readings import carried, final, record_dim
from attnscope.trajectory.tree import with_runs

EVERY = 5.0
"""Seconds between two states of a point that is under way, which are kept in case of a kill."""
NUMBERS = (
    "ours",
    "low",
    "high",
    "seeds",
    "verdict",
    "control",
    "control_low",
    "control_high",
    "control_fails",
    "criterion",
)
"""What the table of a sweep keeps of a finding; the words are in the point's own file."""
BROKEN = ("diverged", "exhausted")


@dataclass(frozen=True)
class Done:
    """A point that has been done.

    Args:
        data: its trajectory, packed.
        record: its row of the table, JSON values.
        layout: shapes and coordinates of its arrays, JSON values.
    """

    data: bytes
    record: dict[str, Any]
    layout: dict[str, Any]


def do_point(study: Experiment, known: bytes | None, kept: bytes | None, job: Any) -> Done:
    """Do all runs of a point; say how far it is, and now and then all that has been done.

    Args:
        study: the study at that point.
        known: what an earlier call returned for the same point with fewer seeds.
        kept: what was said of the point before its worker was killed.
        job: by which a worker speaks; it is told ``("far", fraction)`` and ``("state", bytes)``.

    Raises:
        Stopped: the job was asked to; what was done has been said.
    """
    begun, busy = clock.perf_counter(), clock.process_time()
    unfinished = Unfinished() if kept is None else Unfinished.from_bytes(kept)
    runs, pieces = study.runs(), dict(unfinished.pieces)
    if known is not None:
        pieces |= pieces_of(unpack(io.BytesIO(known)), runs)
    with one_thread():
        for numbers in study.rounds():
            for number in numbers:
                if number not in pieces:
                    pieces[number] = _one(study, number, pieces, unfinished, job)
                    unfinished = Unfinished(pieces)
            if any(pieces[number].state["outcome"] in BROKEN for number in numbers):
                break  # What comes after needs what broke down.
        training = sum(piece.state["seconds"] for piece in pieces.values())
        tree = joined(study, pieces)
        broken = [piece.state for piece in pieces.values() if piece.state["outcome"] in BROKEN]
        tree["data"] = xr.DataTree(_named(study, truth_of(study)))
        findings = []
        if not broken:
            tree["theory"] = xr.DataTree(_named(study, theory_of(study, tree)))
            findings = examine_all(study.claims(), study.read(tree))
    total = len(runs)
    status = f"finished: all {total} runs are complete"
    if broken:
        status = f"{len(broken)} of {total} runs broke down; the first: {broken[0]['status']}"
    tree.attrs = {
        "study": study.name(),
        "spec": json.dumps(study.to_json()),
        "attnscope": __version__,
        "versions": json.dumps(
            {"python": platform.python_version(), **{each: version(each) for each in LIBRARIES}}
        ),
        "command": "",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "status": status,
        "findings": [finding.to_json() for finding in findings],
        "states": [{"run": n, **piece.state} for n, piece in sorted(pieces.items())],
    }
    layout = layout_of(tree)
    data = pack(tree)
    record = {
        "outcome": broken[0]["outcome"] if broken else "finished",
        "status": status,
        "seeds": study.seeds,
        "runs": [list(run) for run in runs],
        "findings": {each.key: [each.to_json()[n] for n in NUMBERS] for each in findings},
        "numbers": _numbers(tree),
        "layout": digest(layout),
        "seconds": round(clock.perf_counter() - begun, 3),
        "processor_seconds": round(clock.process_time() - busy, 3),
        "training_seconds": round(training, 3),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return Done(data, record, layout)


def _one(
    study: Experiment,
    number: int,
    pieces: Mapping[int, Piece],
    unfinished: Unfinished,
    job: Any,
) -> Piece:
    """Do one run, or go on with it."""
    runs = study.runs()
    case, seed = runs[number]
    earlier = None
    if number not in study.rounds()[0]:
        earlier = study.read(joined(study, pieces))
    made = study.job(case, seed, earlier)
    resumed = unfinished.current == number
    every, spoken, heard = EVERY, clock.monotonic(), 0.0
    latest: list[Checkpoint] = []

    def say(checkpoint: Checkpoint) -> None:
        job.say(("state", Unfinished(dict(pieces), number, sink.piece(), checkpoint).to_bytes()))

    def step(time: float, checkpoint: Any) -> bool:
        nonlocal every, spoken, heard
        now = clock.monotonic()
        if now - heard > 0.2:
            heard = now
            job.say(("far", (len(pieces) + time / made.end) / len(runs)))
        if now - spoken > every:
            say(checkpoint())
            spoken = clock.monotonic()
            every = max(every, 20 * (spoken - now))
        if job.stopped():
            latest.append(checkpoint())
            return False
        return True

    sink = PieceSink(study.labels, step, unfinished.partial if resumed else None)
    solution = made.execute(sink, unfinished.checkpoint if resumed else None)
    if solution.outcome.value == "interrupted":
        for checkpoint in latest:
            say(checkpoint)
        raise Stopped(f"stopped at time {solution.time:g} of {made.end:g}.")
    return sink.ended(solution)


def _named(study: Experiment, data: xr.Dataset) -> xr.Dataset:
    cases, seeds = zip(*study.runs(), strict=True)
    return with_runs(data, list(cases), list(seeds), study.unit)


def _numbers(tree: xr.DataTree) -> dict[str, list[float | None]]:
    """Return where every reading of one number ends, and what theory says in one, run by run."""
    found: dict[str, list[float | None]] = {}
    for group in ("observables", "theory", "data"):
        data = tree[group].to_dataset() if group in tree.children else xr.Dataset()
        for name, reading in data.data_vars.items():
            if reading.dtype.kind not in "fiub":
                continue
            if group == "observables" and reading.ndim == 2:
                values = final(carried(reading)) if record_dim(reading) else reading
            elif group != "observables" and reading.dims == ("run",):
                values = reading
            else:
                continue
            numbers = np.asarray(values.to_numpy(), dtype=float)
            said = [float(n) if np.isfinite(n) else None for n in numbers]
            found[f"{group}/{name}"] = said
    return found


def layout_of(tree: xr.DataTree) -> dict[str, Any]:
    """Return dims, shape and kind of every array, and what tells its coordinates from others."""
    layout: dict[str, Any] = {}
    for group, node in tree.children.items():
        data = node.to_dataset()
        for name, variable in data.variables.items():
            about: dict[str, Any] = {
                "dims": list(map(str, variable.dims)),
                "shape": list(variable.shape),
                "kind": variable.dtype.str if variable.dtype.kind not in "OUS" else "text",
                "coordinate": name in data.coords,
            }
            if name in data.coords:
                values = np.asarray(variable.values)
                text = values.tobytes() if values.dtype.kind != "O" else repr(values.tolist())
                said = text if isinstance(text, bytes) else text.encode()
                about["digest"] = hashlib.sha256(said).hexdigest()[:16]
            else:
                attrs = {k: v for k, v in variable.attrs.items() if isinstance(v, str)}
                about["attrs"] = attrs
            layout[f"{group}/{name}"] = about
    return layout


def digest(layout: Mapping[str, Any]) -> str:
    """Return a short name of a layout."""
    text = json.dumps(layout, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
