"""Where the data lie."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from attnscope.datasets.catalogue import entry
from attnscope.datasets.place import at, data_dir, locate, require
from attnscope.datasets.record import DataFile
from attnscope.errors import AttnscopeError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ATTNSCOPE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


def test_the_folder_given_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNSCOPE_DATA", "/by/variable")
    assert data_dir("/by/flag") == Path("/by/flag")
    assert data_dir(Path("~/mine")) == home / "mine"
    assert data_dir() == Path("/by/variable")
    monkeypatch.setenv("ATTNSCOPE_DATA", "~/data")
    assert data_dir() == home / "data"


def test_an_empty_name_is_no_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("ATTNSCOPE_DATA", "")
    assert data_dir("") == home / ".cache" / "attnscope"


def test_the_cache_of_linux(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert data_dir() == home / ".cache" / "attnscope"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert data_dir() == Path("/caches/attnscope")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert data_dir() == home / ".cache" / "attnscope"


def test_the_cache_of_macos_and_windows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert data_dir() == home / "Library" / "Caches" / "attnscope"
    monkeypatch.setattr(sys, "platform", "win32")
    assert data_dir() == home / "AppData" / "Local" / "attnscope"
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert data_dir() == Path("/local/attnscope")


def test_a_file_is_found_plain_packed_or_under_another_name(tmp_path: Path) -> None:
    file = DataFile("set/all.csv", "train", alternatives=("set/part.csv", "set/folder"))
    assert locate(file, tmp_path) is None
    folder = tmp_path / "set"
    # From the last resort to the first choice, each wins over those before it.
    (folder / "folder").mkdir(parents=True)
    assert locate(file, tmp_path) == folder / "folder"
    for name in ("part.csv.xz", "part.csv.gz", "part.csv", "all.csv.xz", "all.csv.gz", "all.csv"):
        (folder / name).write_bytes(b"")
        assert locate(file, tmp_path) == folder / name


def test_at_looks_at_one_name_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(b"")
    assert at("a.txt", tmp_path) == tmp_path / "a.txt.gz"
    assert at("b.txt", tmp_path) is None


def test_require_says_what_is_missing_and_what_to_run(tmp_path: Path) -> None:
    dataset = entry("sst2")
    folder = tmp_path / "sst" / "stsa"
    folder.mkdir(parents=True)
    (folder / "stsa.binary.train.gz").write_bytes(b"")
    with pytest.raises(AttnscopeError) as caught:
        require(dataset, tmp_path)
    assert str(caught.value) == (
        f"SST-2 is not in '{tmp_path}' (missing: sst/stsa/stsa.binary.dev, "
        "sst/stsa/stsa.binary.test): run `attnscope data get sst2`, or name the folder that has "
        "it by --data-dir or ATTNSCOPE_DATA."
    )
    (folder / "stsa.binary.dev").write_bytes(b"")
    (folder / "stsa.binary.test.xz").write_bytes(b"")
    assert {file.split: path.name for file, path in require(dataset, tmp_path).items()} == {
        "train": "stsa.binary.train.gz",
        "dev": "stsa.binary.dev",
        "test": "stsa.binary.test.xz",
    }


def test_require_does_not_promise_a_download_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"by hand \(`attnscope data yelp` says how\)"):
        require(entry("yelp"), tmp_path)
    with pytest.raises(AttnscopeError, match="Pathfinder has no files"):
        require(entry("pathfinder"), tmp_path)
