from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from attnscope.datasets.readers.imdb import UNLABELLED, read_imdb
from attnscope.datasets.readers.newsgroups import NO_BODY, read_newsgroups
from attnscope.errors import AttnscopeError

GROUPS = ("rec.autos", "sci.med")


def _pack(path: Path, files: dict[str, bytes], mode: str) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def _unpack(path: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def _forms(folder: Path, files: dict[str, bytes]) -> list[Path]:
    return [
        _pack(folder / "set.tar.gz", files, "w:gz"),
        _pack(folder / "set.tar.xz", files, "w:xz"),
        _unpack(folder / "set", files),
    ]


def test_imdb_is_the_same_from_every_form(tmp_path: Path) -> None:
    files = {
        "aclImdb/README": b"Large Movie Review",
        "aclImdb/train/urls_pos.txt": b"http://example.org",
        "aclImdb/test/pos/0_10.txt": b"great",
        "aclImdb/train/pos/10_9.txt": "très bien<br /><br />yes".encode(),
        "aclImdb/train/pos/9_7.txt": b"good",
        "aclImdb/train/neg/3_1.txt": b"bad",
        "aclImdb/train/neg/4_1.txt": b" \n",
        "aclImdb/train/unsup/0_0.txt": b"who knows",
        "aclImdb/test/neg/1_2.txt": b"awful",
    }
    for path in _forms(tmp_path, files):
        splits = read_imdb(path)
        assert list(splits) == ["train", "test"]
        assert splits["train"].texts == ["bad", "good", "très bien<br /><br />yes"]
        assert splits["train"].labels.tolist() == [0, 1, 1]
        assert splits["train"].skipped == {UNLABELLED: 1, "empty text": 1}
        assert splits["test"].texts == ["awful", "great"]
        assert splits["test"].labels.tolist() == [0, 1]
    # The inner folder serves as well as the one that holds it.
    assert read_imdb(tmp_path / "set" / "aclImdb")["test"].texts == ["awful", "great"]


def test_imdb_without_reviews(tmp_path: Path) -> None:
    path = _pack(tmp_path / "a.tar.gz", {"aclImdb/train/pos/0_9.txt": b"good"}, "w:gz")
    with pytest.raises(AttnscopeError, match="holds no review of the split test"):
        read_imdb(path)


def test_imdb_as_published(real_data: Path) -> None:
    path = real_data / "imdb" / "aclImdb_labeled.tar.xz"
    if not path.exists():
        pytest.skip("IMDB is not here: set ATTNSCOPE_DATA or run `attnscope data get imdb`")
    for split in read_imdb(path).values():
        assert len(split) == 25000
        assert split.labels.sum() == 12500
        assert sum("<br />" in text for text in split.texts) > 10000


def test_newsgroups_is_the_same_from_every_form(tmp_path: Path) -> None:
    header = b"From: a@b\r\nSubject: Re: cars\r\nNewsgroups: rec.autos\r\n\r\n"
    files = {
        "20news-bydate-train/sci.med/2": header + b"a caf\xe9\n\n>quoted",
        "20news-bydate-train/rec.autos/100": b"From: x\n\ncars\n-- \nme",
        "20news-bydate-train/rec.autos/99": b"From: x\n\nbikes",
        "20news-bydate-train/sci.med/3": b"From: x\nSubject: nothing\n",
        "20news-bydate-test/sci.med/7": b"From: x\n\npills",
    }
    for path in _forms(tmp_path, files):
        splits = read_newsgroups(path, GROUPS)
        assert splits["train"].texts == ["bikes", "cars\n-- \nme", "a café\n\n>quoted"]
        assert splits["train"].labels.tolist() == [0, 0, 1]
        assert splits["train"].skipped == {NO_BODY: 1}
        assert splits["test"].texts == ["pills"]
        assert splits["test"].skipped == {}


def test_newsgroups_of_another_kind(tmp_path: Path) -> None:
    path = _unpack(tmp_path / "a", {"20news-bydate-train/sci.med/1": b"From: x\n\nhello"})
    with pytest.raises(AttnscopeError, match="holds no message of the split test"):
        read_newsgroups(path, GROUPS)
    _unpack(path, {"20news-bydate-test/alt.other/1": b"From: x\n\nhello"})
    with pytest.raises(AttnscopeError, match=r"alt\.other/1'.*the label 'alt.other'"):
        read_newsgroups(path, GROUPS)
