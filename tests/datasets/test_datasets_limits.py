"""Bombs and oddities: what would fill the memory, or is no file, ends in a sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from attnscope.datasets.archives import members
from attnscope.datasets.check import damage, file_problem
from attnscope.datasets.load import documents, labelled, parallel
from attnscope.datasets.readers.alignments import read_alignments
from attnscope.datasets.readers.imdb import read_imdb
from attnscope.datasets.readers.wikitext import read_wikitext
from attnscope.datasets.readers.yelp import read_yelp
from attnscope.datasets.record import DataFile
from attnscope.datasets.text import lines
from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS
from attnscope.topics.corpus import stream

MANY = b"1,good\n0,bad\n" * 50_000
PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROWS.variable, "1000")
    monkeypatch.setenv(BYTES.variable, "100000")


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_a_bomb_of_rows(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"t.csv.{packing}"
    path.write_bytes(PACKERS[packing](MANY))
    with pytest.raises(AttnscopeError, match=r"has more than 1,000 rows: expected .*--max-rows"):
        labelled(path)


@pytest.mark.parametrize("packing", ["gz", "xz", "bz2"])
def test_a_bomb_of_bytes(tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROWS.variable, "100000000")
    path = tmp_path / f"c.txt.{packing}"
    path.write_bytes(PACKERS[packing](b"a word or two\n" * 100_000))
    with pytest.raises(AttnscopeError, match=r"unpacks to more than 100,000 bytes.*--max-bytes"):
        list(stream(path))


def _zip_that_lies(path: Path) -> Path:
    """Write a zip whose directory says that a member of 800 kB has ten bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("wiki.train.tokens", b"a line of it\n" * 60_000)
    data = bytearray(made.getvalue())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    return path


def test_a_zip_that_lies_about_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROWS.variable, "100000000")
    with pytest.raises(AttnscopeError, match=r"unpacks to more than|is damaged"):
        read_wikitext(_zip_that_lies(tmp_path / "w.zip"), Counter())


def test_a_zip_is_counted_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(30):
            archive.writestr(f"{number}.txt", b"x" * 5000)
    with pytest.raises(AttnscopeError, match="unpacks to more than 100,000 bytes"):
        [member.text() for member in members(path, Counter())]


@pytest.mark.parametrize("form", ["zip", "tar", "folder"])
def test_too_many_members(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROWS.variable, "20")
    path = tmp_path / f"many.{form}"
    if form == "folder":
        path.mkdir()
        for number in range(21):
            (path / str(number)).write_bytes(b"")
    elif form == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for number in range(21):
                archive.writestr(str(number), b"")
    else:
        with tarfile.open(path, "w") as tar:
            for number in range(21):
                tar.addfile(tarfile.TarInfo(str(number)))
    with pytest.raises(AttnscopeError, match="has more than 20 rows"):
        list(members(path, Counter()))


def test_a_tar_with_a_header_that_fills_the_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**33
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(10_000)))
    with pytest.raises(AttnscopeError, match="a header of 8,589,934,592 bytes"):
        list(members(path, Counter()))


def test_checks_of_downloads_count_too(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(gzip.compress(MANY))
    for look in (
        lambda: damage(path, path.name),
        lambda: file_problem(DataFile("f", "", size=1), path, path.name),
    ):
        with pytest.raises(AttnscopeError, match="unpacks to more than 100,000 bytes"):
            look()


def test_a_zip_with_bad_offsets(tmp_path: Path) -> None:
    path = tmp_path / "w.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("wiki.train.tokens", b" = A = \n\nb\n")
    good = path.read_bytes()
    at = good.rindex(b"PK\x01\x02")
    for offset in (1, 0x7FFFFFFF, 0xFFFFFFFF):
        bad = bytearray(good)
        bad[at + 42 : at + 46] = struct.pack("<I", offset)
        path.write_bytes(bad)
        with pytest.raises(AttnscopeError, match="is damaged, cut short or not what its name says"):
            read_wikitext(path, Counter())
    end = good.rindex(b"PK\x05\x06")
    for offset in (0, 5, 0xFFFFFFF0):
        bad = bytearray(good)
        bad[end + 16 : end + 20] = struct.pack("<I", offset)
        path.write_bytes(bad)
        with pytest.raises(AttnscopeError):
            read_wikitext(path, Counter())


DIGITS = "9" * 5000


def test_numbers_of_thousands_of_digits(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(f"label,text\n{DIGITS},good\n1,bad\n")
    assert sorted(labelled(table).classes) == sorted(("1", DIGITS))
    yelp = tmp_path / "review.json"
    yelp.write_text(f'{{"text": "x", "stars": {DIGITS}}}')
    with pytest.raises(AttnscopeError, match="line 1: not JSON"):
        read_yelp(yelp)
    (tmp_path / "s").write_text("a ||| b\n")
    (tmp_path / "l").write_text(f"{DIGITS}-1\n")
    with pytest.raises(AttnscopeError, match="is no link"):
        read_alignments(tmp_path / "s", tmp_path / "l")


def test_a_review_with_a_number_of_thousands_of_digits(tmp_path: Path) -> None:
    path = tmp_path / "i.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for split in ("train", "test"):
            for label in ("pos", "neg"):
                for number in ("10", "9", DIGITS, "007"):
                    archive.writestr(f"a/{split}/{label}/{number}_7.txt", f"{label} {number}")
    texts = read_imdb(path)["train"].texts
    assert texts[:4] == ["neg 007", "neg 9", "neg 10", f"neg {DIGITS}"]


@pytest.mark.parametrize("read", [labelled, documents, parallel, lambda p: list(stream(p))])
@pytest.mark.parametrize("name", ["a" * 300, "b/" * 3000, "c:" + "d" * 300])
def test_names_that_are_too_long(name: str, read: Callable[[str], object]) -> None:
    with pytest.raises(AttnscopeError):
        read(name)


@pytest.mark.parametrize("read", [labelled, documents, lambda p: list(stream(p))])
def test_a_pipe_is_no_file(tmp_path: Path, read: Callable[[Path], object]) -> None:
    path = tmp_path / "t.csv"
    os.mkfifo(path)
    with pytest.raises(AttnscopeError, match="is a pipe, a socket or a device"):
        read(path)


def test_half_a_character_in_json(tmp_path: Path) -> None:
    path = tmp_path / "review.json"
    path.write_text('{"text": "\\ud800", "stars": 5}')
    with pytest.raises(AttnscopeError, match="half a character"):
        read_yelp(path)


def test_ordinary_data_do_not_meet_the_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ROWS.variable)
    monkeypatch.delenv(BYTES.variable)
    path = tmp_path / "c.txt.gz"
    path.write_bytes(gzip.compress(MANY))
    assert sum(1 for _ in lines(path)) == 100_000
