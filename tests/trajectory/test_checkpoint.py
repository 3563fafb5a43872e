"""A checkpoint comes back bit for bit, or a sentence says that it cannot."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save

from attnscope.engines.sink import Checkpoint
from attnscope.errors import AttnscopeError
from attnscope.trajectory import load_checkpoint, save_checkpoint

TENSORS = {
    "double": torch.tensor([0.1, -0.0, math.inf, math.nan, 5e-324], dtype=torch.float64),
    "single": torch.tensor([[1e-45, 3.4e38]], dtype=torch.float32),
    "order": torch.tensor([3, 1, 2**62]),
    "random": torch.get_rng_state(),
    "empty": torch.empty(0, dtype=torch.int64),
    "scalar": torch.tensor(2.5),
}


def bits(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().numpy().tobytes())


@given(st.floats(), st.integers(-(2**60), 2**60))
def test_a_round_trip_keeps_every_bit(tmp_path_factory: pytest.TempPathFactory, x: float, n: int):
    path = tmp_path_factory.mktemp("c") / "0000.safetensors"
    save_checkpoint(path, Checkpoint(TENSORS, {"x": x, "n": n, "marks": [[x, None]]}))
    back = load_checkpoint(path)
    assert back is not None
    assert set(back.tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert back.tensors[name].dtype == tensor.dtype
        assert back.tensors[name].shape == tensor.shape
        assert bits(back.tensors[name]) == bits(tensor)
    assert json.dumps(back.values) == json.dumps({"x": x, "n": n, "marks": [[x, None]]})


def test_tensors_that_share_memory_are_kept(tmp_path: Path) -> None:
    vector = torch.arange(6.0)
    parts = {"all": vector, "head": vector[:2], "again": vector}
    save_checkpoint(tmp_path / "c", Checkpoint(parts, {}))
    back = load_checkpoint(tmp_path / "c")
    assert back is not None
    assert all(torch.equal(back.tensors[k], v) for k, v in parts.items())


def test_none_where_there_is_none(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "0000.safetensors") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: data[:-1],
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: b"not a checkpoint at all",
        lambda data: save({"x": torch.ones(1)}),
        lambda data: save({"x": torch.ones(1)}, metadata={"values": "{"}),
    ],
    ids=["empty", "header", "last byte", "length", "text", "no values", "broken values"],
)
def test_a_damaged_checkpoint_is_a_sentence(tmp_path: Path, damage) -> None:
    path = tmp_path / "0003.safetensors"
    save_checkpoint(path, Checkpoint(TENSORS, {"step": 1}))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(AttnscopeError, match=r"0003\.safetensors' is not a checkpoint.*Delete it"):
        load_checkpoint(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "0000.safetensors")
    with pytest.raises(AttnscopeError, match="not an ordinary file"):
        load_checkpoint(tmp_path / "0000.safetensors")
