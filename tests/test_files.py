from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnscope.files import write_bytes


def test_writes_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.txt"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


def test_a_failure_leaves_the_old_file_alone(tmp_path: Path, monkeypatch) -> None:
    path = write_bytes(tmp_path / "file.txt", b"old")

    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="no"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_permissions_are_those_of_ordinary_files(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.write_bytes(b"")
    ours = write_bytes(tmp_path / "ours", b"")
    assert ours.stat().st_mode == ordinary.stat().st_mode
