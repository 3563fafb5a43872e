"""Trajectories: labelled arrays on disk, and functions over them."""

from attnscope.trajectory.checkpoint import load_checkpoint, save_checkpoint
from attnscope.trajectory.folder import FORMAT, RunFolder, write_json
from attnscope.trajectory.store import ZarrSink, create_store
from attnscope.trajectory.tree import memory_tree, open_run, run_status

__all__ = [
    "FORMAT",
    "RunFolder",
    "ZarrSink",
    "create_store",
    "load_checkpoint",
    "memory_tree",
    "open_run",
    "run_status",
    "save_checkpoint",
    "write_json",
]
