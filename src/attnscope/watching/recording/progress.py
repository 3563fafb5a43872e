"""How far a recording is, as whoever looks on is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnscope.trajectory.channel import Channel
from attnscope.trajectory.folder import RunFolder


def tell(
    folder: RunFolder, state: dict[str, Any], channels: Sequence[Channel], *, sync: bool = False
) -> None:
    """Write how far it is, with the chunks that are on disk by now."""
    named = {f"{c.array.path.parent.name}/{c.array.path.name}": c for c in channels}
    chunks = {name: channel.written for name, channel in named.items()}
    ended = state["outcome"] != "running"
    sums = {name: channel.sums_of(ended) for name, channel in named.items()}
    folder.write_state(0, {**state, "chunks": chunks, "sums": sums}, sync=sync)
