"""What goes wrong on the way to a server, and where redirects may lead."""

from __future__ import annotations

import io
import socket
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError

import pytest
from loopback import TEXT, Publisher, cut_after, file_of, publisher

from attnscope.datasets import web
from attnscope.datasets.fetch import download
from attnscope.datasets.record import DataFile
from attnscope.errors import AttnscopeError


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Publisher]:
    with publisher() as running:
        running.content = TEXT
        yield running


def test_no_network(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    file = DataFile("file.txt", "train", f"http://127.0.0.1:{port}/file.txt")
    with pytest.raises(AttnscopeError, match=r"cannot be reached \(Connection refused\)"):
        download(file, tmp_path)


def test_a_server_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "TIMEOUT", 0.1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file.txt"
        with pytest.raises(AttnscopeError, match=r"cannot be reached \(no answer for"):
            download(DataFile("file.txt", "train", url), tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://host/file", "data:,x", "file.txt"])
def test_other_schemes_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(AttnscopeError, match="Expected an address with http or https"):
        download(DataFile("file.txt", "train", url), tmp_path)


@pytest.mark.parametrize("location", ["file:///etc/hostname", "ftp://127.0.0.1/file"])
def test_redirects_to_other_schemes_are_refused(
    server: Publisher, tmp_path: Path, location: str
) -> None:
    server.status, server.location = 302, location
    with pytest.raises(AttnscopeError, match="Expected a file over http or https"):
        download(file_of(server), tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "followed"),
    [
        ("https://host/a", "https://other/b", True),
        ("http://host/a", "https://host/a", True),
        ("https://host/a", "http://host/a", False),
    ],
)
def test_redirects_never_lose_the_encryption(old: str, new: str, followed: bool) -> None:
    redirects = web._Redirects()
    request = urllib.request.Request(old, headers={"Range": "bytes=5-"})
    with io.BytesIO() as body:
        if followed:
            answer = redirects.redirect_request(request, body, 302, "Found", Message(), new)
            assert answer is not None
            assert answer.get_header("Range") == "bytes=5-"
        else:
            with pytest.raises(HTTPError, match="sent on to 'http://host/a'") as caught:
                redirects.redirect_request(request, body, 302, "Found", Message(), new)
            caught.value.close()


def test_redirects_over_http_are_followed_and_resumed(server: Publisher, tmp_path: Path) -> None:
    with publisher() as front:
        front.status, front.location = 302, server.url("moved.txt")
        file = file_of(server, url=front.url())
        cut_after(server, file, tmp_path, 1000)
        assert download(file, tmp_path).read_bytes() == TEXT
        assert server.asked == ["bytes=1000-"]
