"""Readings come back from their chunks, whoever writes them and whenever."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import zarr

from attnscope.trajectory.arrays import ChunkedArray, Store, Variable
from attnscope.trajectory.channel import Channel, WriterThread
from attnscope.trajectory.folder import ENDLESS

KINDS = (
    torch.tensor(1.5),
    torch.tensor(2.5, dtype=torch.float64),
    torch.tensor([True, False]),
    torch.tensor([3, 4], dtype=torch.int32),
    torch.arange(6, dtype=torch.bfloat16).view(2, 3),
    torch.rand(1, 40, 40),
    torch.zeros(2, 0),
)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("like", KINDS, ids=lambda like: f"{like.dtype}{tuple(like.shape)}")
def test_chunks_hold_what_was_put(tmp_path: Path, like: torch.Tensor, packed: bool) -> None:
    dims = tuple("abc"[: like.ndim])
    store = Store(tmp_path, {})
    store.create(Variable("x", dims), like, points=11, length=4, runs=3, packed=packed)
    array = ChunkedArray.open(tmp_path / "observables" / "x", 1)
    channel = Channel(array)
    full = [channel.put(like * n) for n in range(7)]
    assert full == [False, False, False, True, False, False, False]
    channel.flush()
    later = Channel(array)
    later.go_to(6)
    later.put(like * 60)
    later.flush()
    found = np.asarray(zarr.open_array(array.path, mode="r"), dtype=float)
    wanted = torch.stack([like * n for n in (0, 1, 2, 3, 4, 5, 60)]).double().numpy()
    assert np.array_equal(found[1, :7], wanted)
    assert np.isnan(found[1, 7:]).all()
    assert np.isnan(found[[0, 2]]).all()


def test_what_is_on_disk_is_not_written_again(tmp_path: Path) -> None:
    array = Store(tmp_path, {}).create(Variable("x"), torch.tensor(0.0), points=9, length=4)
    orders: list[object] = []
    channel = Channel(array, lambda order, done=None: orders.append(order))
    channel.flush()
    assert orders == []
    channel.put(1.0)
    channel.flush()
    channel.flush()
    assert len(orders) == 1


def test_axes_that_differ_are_called_after_their_variable(tmp_path: Path) -> None:
    store = Store(tmp_path, {})
    writer = WriterThread(store)
    channels = [
        writer.open(Variable(name, ("word",), labels=labels), torch.zeros(size))
        for name, size, labels in (
            ("plain", 2, {}),
            ("named", 2, {"word": ("a", "b")}),
            ("same", 2, {"word": ["a", "b"]}),
            ("longer", 3, {}),
            ("other", 2, {"word": ("c", "d")}),
        )
    ]
    for channel in channels:
        channel.put(torch.ones(channel.shape))
    assert zarr.open_array(channels[0].array.path, mode="r").shape[1] == ENDLESS
    writer.close(channels)
    dims = {}
    for channel in channels:
        array = zarr.open_array(channel.array.path, mode="r")
        dims[channel.array.path.name] = array.metadata.dimension_names[2], array.attrs.get("labels")
        assert array.shape == (1, 1, *channel.shape)
    assert dims == {
        "plain": ("word", None),
        "named": ("word", {"word": ["a", "b"]}),
        "same": ("word", {"word": ["a", "b"]}),
        "longer": ("longer[0]", None),
        "other": ("other[0]", {"other[0]": ["c", "d"]}),
    }


def test_nobody_waits_for_a_disk_that_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnscope.trajectory.channel.CHUNK_POINTS", 1)
    writer = WriterThread(Store(tmp_path, {}))
    channel = writer.open(Variable("x"), torch.tensor(0.0))

    def refuse(*_: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(ChunkedArray, "write", refuse)
    for n in range(20):
        channel.put(float(n))
    writer.close([])
    assert isinstance(writer.trouble, PermissionError)
