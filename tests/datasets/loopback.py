"""A publisher on loopback that can misbehave."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from attnscope.datasets.fetch import CHUNK, download
from attnscope.datasets.record import DataFile, DataSet
from attnscope.errors import AttnscopeError

TEXT = random.Random(1).randbytes(3 * CHUNK + 17)


class Publisher(ThreadingHTTPServer):
    """Serves one content at every address, the way its attributes say."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = b""
        self.etag = '"one"'
        self.modified = ""
        self.content_type = "application/octet-stream"
        self.ranges = True
        self.cut: int | None = None
        """After how many bytes of an answer the connection is closed."""
        self.says_length = True
        self.status = 200
        self.location = ""
        self.asked: list[str] = []
        """The Range of every request; empty where there was none."""

    def url(self, name: str = "file.txt") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class _Handler(BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        publisher = self.server
        wanted = self.headers.get("Range", "")
        publisher.asked.append(wanted)
        if publisher.status != 200:
            self.send_response(publisher.status)
            if publisher.location:
                self.send_header("Location", publisher.location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        total, start = len(publisher.content), 0
        condition = self.headers.get("If-Range")
        if wanted and publisher.ranges and condition in (None, publisher.etag, publisher.modified):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= total:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        else:
            self.send_response(200)
        body = publisher.content[start:]
        if publisher.says_length:
            self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", publisher.content_type)
        if publisher.etag:
            self.send_header("ETag", publisher.etag)
        if publisher.modified:
            self.send_header("Last-Modified", publisher.modified)
        self.end_headers()
        self.wfile.write(body[: publisher.cut])

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


@contextmanager
def publisher() -> Iterator[Publisher]:
    server = Publisher()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def file_of(server: Publisher, **known: object) -> DataFile:
    return replace(DataFile("set/file.txt", "train", server.url()), **known)  # type: ignore[arg-type]


def dataset_of(*files: DataFile, **known: object) -> DataSet:
    made = DataSet("mine", "Mine", "labelled", ("a", "b"), "http://page", "none", "cite", files)
    return replace(made, **known)  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def cut_after(server: Publisher, file: DataFile, folder: Path, bytes_sent: int) -> None:
    server.cut = bytes_sent
    with pytest.raises(AttnscopeError, match="cut after"):
        download(file, folder)
    server.cut = None
    server.asked.clear()
