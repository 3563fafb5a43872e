from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from attnscope.datasets.archives import UNSAFE, members, sources
from attnscope.datasets.text import BLANK, filled, lines
from attnscope.errors import AttnscopeError


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _tar(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def _read_all(path: Path) -> list[tuple[str, str]]:
    return [(str(member.path), member.text()) for member in members(path, Counter())]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("suffix", ["txt", "own"])
def test_packing_is_told_by_the_first_bytes(tmp_path: Path, pack, suffix: str) -> None:
    path = _write(tmp_path / f"a.{suffix}", pack("eins\r\nzwei\u2028drei \x85\n\nü".encode()))
    assert list(lines(path)) == [(1, "eins"), (2, "zwei\u2028drei \x85"), (3, ""), (4, "ü")]


def test_a_byte_order_mark_is_taken_off(tmp_path: Path) -> None:
    assert list(lines(_write(tmp_path / "a", b"\xef\xbb\xbfone\n"))) == [(1, "one")]


def test_latin1_where_it_is_asked_for(tmp_path: Path) -> None:
    assert list(lines(_write(tmp_path / "a", b"caf\xe9\n"), "latin-1")) == [(1, "café")]


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (b"one\ncaf\xe9\n", r"line 2: byte 0xe9 at position 4 is not UTF-8.*may be Latin-1"),
        (b"one\n\x93so\x94\n", r"line 2: byte 0x93 at position 1.*may be Windows-1252"),
        ("é\n".encode() + b"\xe9\n", r"line 2: .*mixes encodings; this line may be Latin-1"),
        (b"one\na\0b\n", r"line 2: there is a NUL byte"),
        ("one\n".encode("utf-16"), r"line 1: there is a NUL byte.*UTF-16"),
    ],
)
def test_what_is_not_text_is_named_by_file_and_line(tmp_path: Path, data: bytes, hint: str) -> None:
    path = _write(tmp_path / "bad.txt", data)
    with pytest.raises(AttnscopeError, match=rf"bad\.txt', {hint}"):
        list(lines(path))


def test_the_encoding_of_a_member_is_checked_too(tmp_path: Path) -> None:
    path = _tar(tmp_path / "a.tar.gz", {"x/1.txt": b"one\ncaf\xe9"})
    with pytest.raises(AttnscopeError, match=r"a\.tar\.gz/x/1\.txt', line 2: byte 0xe9"):
        _read_all(path)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_of_the_limit_passes_and_one_more_does_not(tmp_path: Path, end: bytes) -> None:
    good = _write(tmp_path / "good", b"ab\n" + b"x" * 100 + end)
    assert list(lines(good, limit=100))[1] == (2, "x" * 100)
    bad = _write(tmp_path / "bad", b"ab\n" + b"x" * 101 + end)
    with pytest.raises(AttnscopeError, match="bad', line 2: the line is longer than 100 bytes"):
        list(lines(bad, limit=100))


def test_a_huge_line_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "huge.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(256):
            file.write(b"a" * 2**20)
    # In a process of its own, whose address space has no room for the line.
    room = 160 * 2**20
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from attnscope.datasets.text import lines\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (used + {room}, used + {room}))\n"
        "try: list(lines(Path(sys.argv[1])))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("the size of a process is read from /proc, which is not here")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.stdout.startswith("AttnscopeError"), done
    assert "huge.gz', line 1: the line is longer than 10485760 bytes" in done.stdout


def test_a_document_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = _tar(tmp_path / "a.tar.xz", {"1.txt": b"x" * 101}, "w:xz")
    found = members(path, Counter())
    with pytest.raises(AttnscopeError, match=r"1\.txt' is longer than 100 bytes"):
        next(found).text(limit=100)
    assert len(next(members(path, Counter())).text(limit=101)) == 101


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("cut", [0.2, 0.5, 0.99])
def test_a_truncated_file_says_how_far_it_was_read(tmp_path: Path, pack, cut: float) -> None:
    whole = pack(b"".join(b"%d %s\n" % (n, os.urandom(20).hex().encode()) for n in range(4000)))
    path = _write(tmp_path / "cut.txt", whole[: int(len(whole) * cut)])
    read = []
    with pytest.raises(AttnscopeError, match=r"cut\.txt' is damaged, cut short") as caught:
        read.extend(lines(path))
    far = f"read up to line {len(read)} " if read else "nothing was read"
    assert far in str(caught.value)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_truncated_tar_is_an_error(tmp_path: Path, mode: str) -> None:
    files = {f"{n}.txt": os.urandom(300).hex().encode() for n in range(50)}
    data = _tar(tmp_path / "whole.tar", files, mode).read_bytes()
    end = len(data.rstrip(b"\0")) if mode == "w" else len(data) - 1
    # Inside a header, inside a text, between two files, at the very end.
    for cut in (512 * 30 + 100, 512 * 31 + 100, 512 * 30, end):
        bad = _write(tmp_path / "cut.tar", data[:cut])
        with pytest.raises(AttnscopeError, match=r"cut\.tar.*cut short.*read"):
            _read_all(bad)
    assert dict(_read_all(tmp_path / "whole.tar")) == {k: v.decode() for k, v in files.items()}


def test_a_truncated_zip_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.txt", "one" * 100)
    data = path.read_bytes()
    with pytest.raises(AttnscopeError, match=r"b\.zip' is damaged or cut short"):
        _read_all(_write(tmp_path / "b.zip", data[:-30]))
    broken = bytearray(data)
    broken[60] ^= 1
    with pytest.raises(AttnscopeError, match=r"c\.zip/1\.txt' is damaged.*CRC"):
        _read_all(_write(tmp_path / "c.zip", bytes(broken)))


@pytest.mark.parametrize("name", ["a.gz", "a.xz", "a.tar.gz"])
def test_a_page_that_is_named_like_an_archive(tmp_path: Path, name: str) -> None:
    path = _write(tmp_path / name, b"<html>not found</html>")
    with pytest.raises(AttnscopeError, match="does not begin like one"):
        list(lines(path))


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"none' cannot be read: No such file"):
        list(lines(tmp_path / "none"))
    with pytest.raises(AttnscopeError, match=r"is a folder\. Expected a file"):
        list(lines(tmp_path))
    with pytest.raises(AttnscopeError, match=r"none\.tar' cannot be read"):
        _read_all(tmp_path / "none.tar")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_links_and_unsafe_names_are_left_out_and_counted(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, mode) as archive:
        for name in ("../out.txt", "/abs.txt", "in/ok.txt"):
            info = tarfile.TarInfo(name)
            info.size = 2
            archive.addfile(info, io.BytesIO(b"ok"))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            link = tarfile.TarInfo("in/link")
            link.type, link.linkname = kind, "../../etc/passwd"
            archive.addfile(link)
    skipped: Counter[str] = Counter()
    assert [(str(m.path), m.text()) for m in members(path, skipped)] == [("in/ok.txt", "ok")]
    assert skipped == {UNSAFE: 4}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.tar"]


def test_a_zip_and_a_folder_give_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "1.txt").write_text("one")
    (folder / "a.txt").write_text("two\r\nthree", newline="")
    (folder / "link.txt").symlink_to(folder / "a.txt")
    path = tmp_path / "set.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "two\r\nthree")
        archive.writestr("b/1.txt", "one")
        link = zipfile.ZipInfo("link.txt")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "a.txt")
    for found in (folder, path):
        skipped: Counter[str] = Counter()
        read = [(str(m.path), m.text()) for m in members(found, skipped)]
        assert read == [("a.txt", "two\nthree"), ("b/1.txt", "one")]
        assert skipped == {UNSAFE: 1}


def test_sources_are_a_file_or_the_members_wanted(tmp_path: Path) -> None:
    plain = _write(tmp_path / "plain", b"one\n")
    read = [(name, list(rows)) for name, rows in sources(plain, "never asked", Counter())]
    assert read == [(str(plain), [(1, "one")])]
    archive = _tar(tmp_path / "a.tgz", {"x/data": b"1\n2\n", "x/readme": b"no\n"})
    read = [(name, list(rows)) for name, rows in sources(archive, "data$", Counter())]
    assert read == [(f"{archive}/x/data", [(1, "1"), (2, "2")])]
    with pytest.raises(AttnscopeError, match=r"holds no file of the set.*'other'"):
        list(sources(archive, "other", Counter()))


def test_blank_lines_are_counted_inside_but_not_at_the_end() -> None:
    skipped: Counter[str] = Counter()
    rows = iter(enumerate(["a", "", " \t", "b", "", ""], 1))
    assert list(filled(rows, skipped)) == [(1, "a"), (4, "b")]
    assert skipped == {BLANK: 2}
