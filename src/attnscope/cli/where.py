"""Flags that say where runs are done: on which computers, and on what of them."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from attnscope.cli.arguments import real, whole


def add_where(group: Any) -> None:
    """Add ``--on``, ``--cpus``, ``--gpus``, ``--memory`` and ``--device``."""
    group.add_argument(
        "--on",
        metavar="WHERE",
        default="local",
        help="local (default); ray: a Ray cluster, started here and stopped again; auto: the one "
        "this computer belongs to; ray://HOST:PORT: one elsewhere",
    )
    group.add_argument(
        "--cpus", type=whole, metavar="N", default=1, help="processors a run takes of a node"
    )
    group.add_argument(
        "--gpus", type=real, metavar="X", default=0.0, help="GPUs a run takes of a node"
    )
    group.add_argument(
        "--memory",
        type=real,
        metavar="GB",
        default=0.0,
        help="gigabytes of a node that are kept free for a run",
    )
    add_device(group)


def add_device(group: Any) -> None:
    """Add ``--device``."""
    group.add_argument(
        "--device",
        metavar="DEVICE",
        help="where models are: cpu, cuda, cuda:1, mps, or auto for what is there; "
        "ATTNSCOPE_DEVICE or the CPU unless given",
    )


def place_of(options: Namespace) -> dict[str, Any]:
    """Return what those flags say, for :func:`attnscope.run`."""
    return {name: getattr(options, name) for name in ("on", "cpus", "gpus", "memory", "device")}
