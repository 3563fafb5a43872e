"""A folder says what it is, and its files appear whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from attnscope.errors import AttnscopeError, DiskFullError
from attnscope.files import write_bytes
from attnscope.trajectory import FORMAT, RunFolder, read_sealed, write_json


def manifest_error(path: Path) -> str:
    with pytest.raises(AttnscopeError) as caught:
        RunFolder(path).manifest()
    return str(caught.value)


def test_no_such_folder(tmp_path: Path) -> None:
    message = manifest_error(tmp_path / "nowhere")
    assert "nowhere' is not a run: no such folder." in message
    assert "Expected a folder that `attnscope run` wrote" in message


def test_a_file_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "file' is not a run" in manifest_error(tmp_path / "file")


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    assert "there is no run.json in it" in manifest_error(tmp_path)


@pytest.mark.parametrize(
    "text", ["{", "[]", "3", "{}", '{"format": "one"}', '{"format": null}', "\xff\xfe"]
)
def test_a_broken_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_bytes(text.encode("latin-1"))
    error = manifest_error(tmp_path)
    assert "is not a manifest of a run" in error
    assert "Expected JSON with a format" in error


def test_a_newer_format(tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {"format": FORMAT + 1, "attnscope": "9.9"})
    message = manifest_error(tmp_path)
    assert f"was written by attnscope 9.9 in format {FORMAT + 1}" in message
    assert "upgrade attnscope" in message


def test_this_format_and_older_ones_are_read(tmp_path: Path) -> None:
    for version in range(1, FORMAT + 1):
        said = {"format": version, "study": "x", "spec": {}, "runs": [{"case": "a", "seed": 0}]}
        write_json(tmp_path / "run.json", said)
        assert RunFolder(tmp_path).manifest() == said


def test_a_run_that_has_not_begun_has_no_state(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).state(3) == {}


def test_json_comes_back(tmp_path: Path) -> None:
    value = {"σ²": 0.1, "list": [1, None, "√"]}
    write_json(tmp_path / "deep" / "er" / "x.json", value)
    assert read_sealed(tmp_path / "deep" / "er" / "x.json") == value
    # Others see the same, and the digest.
    said = json.loads((tmp_path / "deep" / "er" / "x.json").read_text())
    assert {**value, "digest": said["digest"]} == said
    assert [p.name for p in (tmp_path / "deep" / "er").iterdir()] == ["x.json"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("where", ["write", "replace"])
def test_a_full_disk_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, where: str
) -> None:
    path = tmp_path / "run.json"
    write_bytes(path, b"old")

    def full(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        if where == "write":
            patch.setattr(Path, "open", full)
        else:
            patch.setattr(os, "replace", full)
        with pytest.raises(DiskFullError, match=r"the disk is full: .*run\.json.*--resume"):
            write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_other_errors_of_the_disk_stay_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        write_bytes(tmp_path / "x", b"new")
    assert list(tmp_path.iterdir()) == []
