"""Downloads from a publisher on loopback."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import TEXT, Publisher, cut_after, dataset_of, file_of, names, publisher

from attnscope.datasets.check import file_problem
from attnscope.datasets.fetch import CHUNK, download, get
from attnscope.datasets.record import DataFile
from attnscope.errors import AttnscopeError, DiskFullError


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Publisher]:
    with publisher() as running:
        running.content = TEXT
        yield running


def test_a_fresh_download(server: Publisher, tmp_path: Path) -> None:
    known = {"size": len(TEXT), "sha256": hashlib.sha256(TEXT).hexdigest()}
    told: list[tuple[int, int | None]] = []
    file = file_of(server, **known)
    path = download(file, tmp_path, lambda _, done, total: told.append((done, total)))
    assert path == tmp_path / "set" / "file.txt"
    assert path.read_bytes() == TEXT
    assert names(tmp_path) == ["set/file.txt"]
    assert told[-1] == (len(TEXT), len(TEXT))
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_a_download_has_ordinary_permissions(server: Publisher, tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.write_bytes(b"")
    assert download(file_of(server), tmp_path).stat().st_mode == ordinary.stat().st_mode


def test_a_server_that_does_not_say_the_length(server: Publisher, tmp_path: Path) -> None:
    server.says_length = False
    assert download(file_of(server), tmp_path).read_bytes() == TEXT


def test_a_cut_connection_is_a_sentence_and_is_resumed(server: Publisher, tmp_path: Path) -> None:
    server.cut = 100_000
    with pytest.raises(AttnscopeError, match=r"cut after 100,000 of 196,625 bytes\. They are kept"):
        download(file_of(server), tmp_path)
    assert names(tmp_path) == ["set/file.txt.part", "set/file.txt.part.json"]
    server.cut = None
    told: list[int] = []
    path = download(file_of(server), tmp_path, lambda _, done, __: told.append(done))
    assert path.read_bytes() == TEXT
    assert server.asked == ["", "bytes=100000-"]
    assert told[0] > 100_000
    assert names(tmp_path) == ["set/file.txt", "set/file.txt.sha256"]


@pytest.mark.parametrize(
    ("etag", "modified"),
    [('"one"', ""), ("", "Mon, 01 Jan 2024 00:00:00 GMT"), ('W/"one"', ""), ("", "")],
)
def test_whatever_tells_versions_apart_is_enough_to_resume(
    server: Publisher, tmp_path: Path, etag: str, modified: str
) -> None:
    server.etag, server.modified = etag, modified
    cut_after(server, file_of(server), tmp_path, 1000)
    assert download(file_of(server), tmp_path).read_bytes() == TEXT
    assert server.asked == ["bytes=1000-"]


def test_a_server_that_ignores_range_starts_anew(server: Publisher, tmp_path: Path) -> None:
    cut_after(server, file_of(server), tmp_path, 1000)
    server.ranges = False
    assert download(file_of(server), tmp_path).read_bytes() == TEXT
    assert server.asked == ["bytes=1000-"]


@pytest.mark.parametrize("etag", ['"one"', 'W/"one"', ""])
def test_a_changed_file_starts_anew(server: Publisher, tmp_path: Path, etag: str) -> None:
    server.etag = etag
    cut_after(server, file_of(server), tmp_path, 1000)
    server.content = TEXT[::-1] + b"more"
    server.etag = etag.replace("one", "two")
    assert download(file_of(server), tmp_path).read_bytes() == TEXT[::-1] + b"more"


def test_a_file_that_became_shorter_than_what_is_here(server: Publisher, tmp_path: Path) -> None:
    server.etag = ""
    cut_after(server, file_of(server), tmp_path, 100_000)
    server.content = TEXT[:5000]
    assert download(file_of(server), tmp_path).read_bytes() == TEXT[:5000]
    assert server.asked == ["bytes=100000-", ""]


def test_all_is_here_but_the_name(server: Publisher, tmp_path: Path, monkeypatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            download(file_of(server), tmp_path)
    assert names(tmp_path) == ["set/file.txt.part", "set/file.txt.part.json"]
    assert download(file_of(server), tmp_path).read_bytes() == TEXT
    assert server.asked == ["", f"bytes={len(TEXT)}-"]


def test_ctrl_c_keeps_what_arrived(server: Publisher, tmp_path: Path) -> None:
    def interrupt(_: DataFile, done: int, __: int | None) -> None:
        if done > CHUNK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(file_of(server), tmp_path, interrupt)
    kept = (tmp_path / "set" / "file.txt.part").read_bytes()
    assert len(kept) > CHUNK
    assert TEXT.startswith(kept)
    assert download(file_of(server), tmp_path).read_bytes() == TEXT
    assert server.asked == ["", f"bytes={len(kept)}-"]


def test_a_part_of_another_address_is_not_gone_on_with(server: Publisher, tmp_path: Path) -> None:
    cut_after(server, file_of(server), tmp_path, 1000)
    moved = file_of(server, url=server.url("elsewhere.txt"))
    assert download(moved, tmp_path).read_bytes() == TEXT
    assert server.asked == [""]


@pytest.mark.parametrize("note", [None, "{", '{"colour": 1}', "[]"])
def test_a_part_without_a_note_is_not_gone_on_with(
    server: Publisher, tmp_path: Path, note: str | None
) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "file.txt.part").write_bytes(b"of unknown origin")
    if note is not None:
        (folder / "file.txt.part.json").write_text(note)
    assert download(file_of(server), tmp_path).read_bytes() == TEXT
    assert server.asked == [""]


def test_parts_of_two_files_are_kept_apart(server: Publisher, tmp_path: Path) -> None:
    one = file_of(server)
    two = file_of(server, path="set/file.txt.gz", url=server.url("file.txt.gz"))
    cut_after(server, one, tmp_path, 1000)
    cut_after(server, two, tmp_path, 2000)
    sizes = {p.name: p.stat().st_size for p in (tmp_path / "set").glob("*.part")}
    assert sizes == {"file.txt.part": 1000, "file.txt.gz.part": 2000}


def test_two_downloads_of_the_same_file_at_once(server: Publisher, tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    seen: list[str] = []

    def second(_: DataFile, done: int, __: int | None) -> None:
        if not seen:
            with pytest.raises(AttnscopeError, match="by another download") as caught:
                download(file_of(server), tmp_path)
            seen.append(str(caught.value))

    assert download(file_of(server), tmp_path, second).read_bytes() == TEXT
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, r"answered 404 \(Not Found\)\. The file may have moved"),
        (403, "answered 403"),
        (503, r"answered 503 .* Try again later\."),
    ],
)
def test_an_error_of_the_server(server: Publisher, tmp_path: Path, status: int, words: str) -> None:
    server.status = status
    with pytest.raises(AttnscopeError, match=words):
        download(file_of(server), tmp_path)
    assert names(tmp_path) == []


def test_an_error_of_the_server_does_not_cost_what_is_here(
    server: Publisher, tmp_path: Path
) -> None:
    cut_after(server, file_of(server), tmp_path, 1000)
    server.status = 404
    with pytest.raises(AttnscopeError, match="404"):
        download(file_of(server), tmp_path)
    server.status = 200
    assert download(file_of(server), tmp_path).read_bytes() == TEXT
    assert server.asked == ["bytes=1000-"] * 2


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"anything", "text/html; charset=utf-8"), (b"\n <!DOCTYPE html><p>", "text/plain")],
)
def test_an_html_page_instead_of_the_file(
    server: Publisher, tmp_path: Path, content: bytes, kind: str
) -> None:
    cut_after(server, file_of(server), tmp_path, 1000)
    server.content, server.content_type, server.ranges = content, kind, False
    with pytest.raises(AttnscopeError, match="an HTML page instead of the file"):
        download(file_of(server), tmp_path)
    # A login page must not cost what an earlier call brought.
    assert (tmp_path / "set" / "file.txt.part").read_bytes() == TEXT[:1000]


def test_a_wrong_checksum(server: Publisher, tmp_path: Path) -> None:
    with pytest.raises(
        AttnscopeError, match=r"is not the file: its SHA-256 is [0-9a-f]{64}, not 00"
    ):
        download(file_of(server, sha256="00"), tmp_path)
    assert names(tmp_path) == []


def test_an_empty_file(server: Publisher, tmp_path: Path) -> None:
    server.content = b""
    with pytest.raises(AttnscopeError, match="is not the file: it is empty"):
        download(file_of(server), tmp_path)
    assert names(tmp_path) == []


def test_a_wrong_size(server: Publisher, tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="it has 196,625 bytes, 5 were published"):
        download(file_of(server, size=5), tmp_path)
    assert names(tmp_path) == []


def test_the_checksum_is_of_what_is_inside_a_packed_file(server: Publisher, tmp_path: Path) -> None:
    server.content = gzip.compress(TEXT)
    known = {"size": len(TEXT), "sha256": hashlib.sha256(TEXT).hexdigest()}
    path = download(file_of(server, url=server.url("file.txt.gz"), **known), tmp_path)
    assert path.name == "file.txt.gz"
    assert gzip.decompress(path.read_bytes()) == TEXT


def tarred() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo("folder/member.txt")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    return stream.getvalue()


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("member.txt", TEXT)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("file.gz", lambda: gzip.compress(TEXT)),
        ("file.xz", lambda: lzma.compress(TEXT)),
        ("file.tar.gz", lambda: gzip.compress(tarred())),
        ("file.tgz", lambda: gzip.compress(tarred())),
        ("file.tar.xz", lambda: lzma.compress(tarred())),
        ("file.tar", tarred),
        ("file.zip", zipped),
    ],
)
def test_archives_are_read_through(
    server: Publisher, tmp_path: Path, name: str, make: Callable[[], bytes]
) -> None:
    whole = make()
    file = file_of(server, path=name)
    server.content = whole
    assert download(file, tmp_path / "whole").read_bytes() == whole
    server.content = whole[: len(whole) // 2]
    with pytest.raises(AttnscopeError, match=r"is not the file: it is damaged or cut short"):
        download(file, tmp_path / "half")
    assert names(tmp_path) == [f"whole/{name}", f"whole/{name}.sha256"]


def test_a_checksum_is_noted_at_the_first_download_and_compared_ever_after(
    server: Publisher, tmp_path: Path
) -> None:
    file = file_of(server)
    path = download(file, tmp_path)
    note = path.with_name("file.txt.sha256")
    assert note.read_text() == f"{hashlib.sha256(TEXT).hexdigest()}  file.txt\n"
    assert file_problem(file, path, path.name) == ""
    path.write_bytes(TEXT[:-1] + b"?")
    assert "when it was first downloaded" in file_problem(file, path, path.name)
    path.unlink()
    server.content = TEXT + b"a new line\n"
    with pytest.raises(AttnscopeError, match=r"purpose, delete 'file\.txt\.sha256'"):
        download(file, tmp_path)
    assert not path.exists()
    note.unlink()
    assert download(file, tmp_path).read_bytes() == TEXT + b"a new line\n"


@pytest.mark.parametrize("kept", [b"", b"0" * 64, b"\xff" * 9000])
def test_a_damaged_note_of_a_checksum_is_a_sentence(
    server: Publisher, tmp_path: Path, kept: bytes
) -> None:
    path = download(file_of(server), tmp_path)
    path.with_name("file.txt.sha256").write_bytes(kept)
    assert "keeps its checksum, cannot be read" in file_problem(file_of(server), path, path.name)


@pytest.mark.parametrize("name", ["file.gz", "file.tar.gz", "file.zip"])
def test_a_flipped_bit_in_an_archive(server: Publisher, tmp_path: Path, name: str) -> None:
    make = {"file.gz": lambda: gzip.compress(TEXT), "file.zip": zipped}
    whole = bytearray(make.get(name, lambda: gzip.compress(tarred()))())
    whole[len(whole) // 2] ^= 1
    server.content = bytes(whole)
    with pytest.raises(AttnscopeError, match="damaged"):
        download(file_of(server, path=name), tmp_path)


def test_a_full_disk(server: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DiskFullError, match="make room, then run the same command again"):
            download(file_of(server), tmp_path)
    assert not (tmp_path / "set" / "file.txt").exists()
    assert download(file_of(server), tmp_path).read_bytes() == TEXT


def test_a_folder_that_cannot_be_written(server: Publisher, tmp_path: Path) -> None:
    (tmp_path / "set").write_text("a file, not a folder")
    with pytest.raises(AttnscopeError, match="Expected a data folder that can be written to"):
        download(file_of(server), tmp_path)


def test_get_fetches_what_is_missing_and_no_more(server: Publisher, tmp_path: Path) -> None:
    here = file_of(server, path="here.txt")
    packed = file_of(server, path="packed.txt")
    missing = file_of(server, path="missing.txt")
    (tmp_path / "here.txt").write_text("as it was")
    (tmp_path / "packed.txt.gz").write_bytes(b"as it was")
    found = get(dataset_of(here, packed, missing), tmp_path)
    assert {file.path: path.name for file, path in found.items()} == {
        "here.txt": "here.txt",
        "packed.txt": "packed.txt.gz",
        "missing.txt": "missing.txt",
    }
    assert (tmp_path / "here.txt").read_text() == "as it was"
    assert len(server.asked) == 1


def test_an_alternative_does_not_keep_the_whole_from_being_fetched(
    server: Publisher, tmp_path: Path
) -> None:
    (tmp_path / "part.txt").write_text("some rows")
    file = file_of(server, alternatives=("part.txt",))
    assert get(dataset_of(file), tmp_path)[file].read_bytes() == TEXT


def test_get_of_what_cannot_be_fetched(tmp_path: Path) -> None:
    by_hand = dataset_of(DataFile("a.txt", "train"), note="Accept the terms.")
    with pytest.raises(AttnscopeError, match=r"Mine cannot be fetched\. Accept the terms\."):
        get(by_hand, tmp_path)
    (tmp_path / "a.txt").write_text("put there by hand")
    assert len(get(by_hand, tmp_path)) == 1
    with pytest.raises(AttnscopeError, match=r"Mine cannot be fetched\. It is generated\."):
        get(dataset_of(kind="generated", note="It is generated."), tmp_path)


def test_the_note_names_the_version(server: Publisher, tmp_path: Path) -> None:
    cut_after(server, file_of(server), tmp_path, 1000)
    note = json.loads((tmp_path / "set" / "file.txt.part.json").read_text())
    assert note == {"url": server.url(), "etag": '"one"', "modified": "", "total": len(TEXT)}
