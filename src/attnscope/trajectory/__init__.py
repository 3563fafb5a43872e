"""Trajectories: labelled arrays on disk, and functions over them."""

from attnscope.trajectory.checkpoint import load_checkpoint, save_checkpoint
from attnscope.trajectory.documents import DamagedFile, read_json, read_sealed, write_json
from attnscope.trajectory.folder import FORMAT, RunFolder
from attnscope.trajectory.interpreter import check_interpreter
from attnscope.trajectory.lock import Busy, Lock
from attnscope.trajectory.readings import (
    Readings,
    by_run,
    carried,
    crossing,
    final,
    initial,
)
from attnscope.trajectory.store import ZarrSink, create_store
from attnscope.trajectory.tree import is_watched, memory_tree, open_run, run_status

__all__ = [
    "FORMAT",
    "Busy",
    "DamagedFile",
    "Lock",
    "Readings",
    "RunFolder",
    "ZarrSink",
    "by_run",
    "carried",
    "create_store",
    "crossing",
    "final",
    "initial",
    "is_watched",
    "load_checkpoint",
    "memory_tree",
    "open_run",
    "read_json",
    "read_sealed",
    "run_status",
    "save_checkpoint",
    "write_json",
]

check_interpreter()
