"""Which device: what is not there is a sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

import attnscope
from attnscope.engines.device import VARIABLE, choosing, find, wanted
from attnscope.errors import AttnscopeError
from toy_study import Bowl


def test_the_cpu_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert wanted() == torch.device("cpu")
    with choosing("auto"):
        assert os.environ[VARIABLE] == "auto"
        assert wanted().type in ("cpu", "cuda", "mps")
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cpu:1", "CUDA", "meta"])
def test_a_device_that_is_none_is_quoted(name: str) -> None:
    with pytest.raises(AttnscopeError, match=f"device = '{name}': expected 'cpu', 'cuda'"):
        find(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="device = 'cuda': this computer has none that"):
        attnscope.run(Bowl(), tmp_path / "run", device="cuda")
    assert not (tmp_path / "run").exists()
