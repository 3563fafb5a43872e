"""Documents from folders, lines, WikiText and archives."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from attnscope.errors import AttnscopeError
from attnscope.topics.corpus import CorpusKind, stream

LINES = "one ship\n\ntwo ships\nthree naïve ships\n"
ARTICLES = (
    " \n = Du Fu = \n \n A well @-@ known <unk> of 1 @,@ 000 poems . \n = x = \n Formula . \n \n"
    " = = Life = = \n \n Long . \n \n = Ise = \n \n Ships . \n \n"
)
READ = [
    "= Du Fu = \n \n A well-known <unk> of 1,000 poems . \n = x = \n Formula . \n \n"
    " = = Life = = \n \n Long .",
    "= Ise = \n \n Ships .",
]
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    # Level 1 packs blocks of 100 kB, so that a short file has several.
    ".bz2": partial(bz2.compress, compresslevel=1),
    ".xz": partial(lzma.compress, preset=0),
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_one_document_a_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"corpus.txt{suffix}"
    path.write_bytes(PACKERS[suffix](LINES.encode()))
    assert list(stream(path)) == ["one ship", "two ships", "three naïve ships"]


@pytest.mark.parametrize("suffix", PACKERS)
def test_wikitext_articles(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"any-name{suffix}"
    path.write_bytes(PACKERS[suffix](ARTICLES.encode()))
    assert list(stream(str(path))) == READ


def test_quoted_wikitext_in_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "wikitext-2-v1.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w/wiki.test.tokens", '" \n = A = \n \n ""B"" \n"\n" \n = C = \n \n"\n')
        archive.writestr("w/wiki.train.tokens", ARTICLES)
    assert list(stream(path)) == ['= A = \n \n "B"', "= C =", *READ]


def test_a_folder_has_one_document_a_file(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("second\ndocument\n")
    (tmp_path / "a.txt").write_text("first\n")
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"third"))
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / ".hidden").write_bytes(b"\0")
    (tmp_path / "z.tokens").write_text(ARTICLES)
    assert [text.strip() for text in stream(tmp_path)] == [
        "first",
        "second\ndocument",
        "third",
        *READ,
    ]


def test_a_tar_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("first\nstill first")
    (tmp_path / "b.txt").write_text("second")
    with tarfile.open(tmp_path / "c.tar.xz", "w:xz") as archive:
        for name in ("a.txt", "b.txt"):
            archive.add(tmp_path / name, name)
    assert list(stream(tmp_path / "c.tar.xz")) == ["first\nstill first", "second"]


def test_a_tar_that_is_packed_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.tar.bz2").touch()
    with pytest.raises(AttnscopeError, match="is a tar packed by bzip2: expected a zip"):
        list(stream(tmp_path / "a.tar.bz2"))


def test_the_kind_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(LINES)
    assert list(stream(path, "files")) == [LINES.removesuffix("\n")]
    with pytest.raises(AttnscopeError, match=r"no kind of corpus 'line'\. Did you mean 'lines'"):
        list(stream(path, "line"))  # type: ignore[arg-type]


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"'.*none' is not there: expected a folder"):
        list(stream(tmp_path / "none"))


def test_a_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(AttnscopeError, match=r"picture.png', line 1: byte 0x89 .* is not UTF-8"):
        list(stream(path))
    path.write_bytes(b"text\n\0\0\n")
    with pytest.raises(AttnscopeError, match=r"line 2: there is a NUL byte. Expected text"):
        list(stream(path))


def test_an_error_page_in_the_place_of_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "enwiki.xml"
    path.write_text("<!DOCTYPE html>\n<html><body>404</body></html>")
    with pytest.raises(AttnscopeError, match="is a web page: expected the corpus itself"):
        list(stream(path))


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_packed_text_cut_short_says_how_far_it_was_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"corpus{suffix}"
    # Random letters: packed they are still long, so that a part of them can be unpacked.
    text = "\n".join(os.urandom(30).hex() for _ in range(10_000))
    packed = PACKERS[suffix](text.encode())
    path.write_bytes(packed[: len(packed) * 3 // 4])
    read = []
    with pytest.raises(AttnscopeError, match=r"is damaged or cut short: it was read up to line"):
        read.extend(stream(path))
    path.write_bytes(packed[:12])
    with pytest.raises(AttnscopeError, match=r"is damaged or cut short: nothing was read"):
        list(stream(path))


def test_a_damaged_member_of_a_zip(tmp_path: Path) -> None:
    path = tmp_path / "corpus.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "ships at sea")
    path.write_bytes(path.read_bytes().replace(b"ships", b"shipS", 1))
    with pytest.raises(AttnscopeError, match=r"a.txt' is damaged or cut short: .* \(Bad CRC-32"):
        list(stream(path))


def test_a_book_where_one_document_a_file_is_expected(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(("word " * 20 + "\n") * 105_000)
    with pytest.raises(AttnscopeError, match=r"longer than 10,485,760 characters"):
        list(stream(tmp_path))


@pytest.mark.parametrize("kind", ["lines", "wikitext", "wikipedia"])
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path, kind: CorpusKind) -> None:
    """Ten times as many documents need the same memory within a tenth."""
    text = "word " * 2_000
    one = {
        "lines": f"{text}\n",
        "wikitext": f" \n = Title = \n \n {text} \n \n",
        "wikipedia": f"<page><title>T</title><revision><text>{text}</text></revision></page>\n",
    }[kind]
    around = ("<mediawiki>", "</mediawiki>") if kind == "wikipedia" else ("", "")
    peaks = []
    for count in (20, 20, 200):  # the first reading fills caches
        path = tmp_path / f"{count}"
        path.write_text(around[0] + one * count + around[1])
        tracemalloc.start()
        assert sum(1 for _ in stream(path, kind)) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.1 * peaks[1]
