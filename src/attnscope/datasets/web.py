"""One request to a publisher, over http or https alone, with a sentence for every failure."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import urlsplit

from attnscope import __version__
from attnscope.errors import AttnscopeError

TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as dead."""


@dataclass(frozen=True)
class Answer:
    """The publisher's answer.

    Args:
        start: where in the file its bytes begin; None if the file has none beyond those asked for.
        total: the length of the whole file, if the publisher says it.
    """

    url: str
    headers: Message
    start: int | None
    total: int | None
    _stream: Any

    @property
    def html(self) -> bool:
        """Whether it calls itself an HTML page."""
        return self.headers.get_content_type() == "text/html"

    def read(self, size: int) -> bytes:
        """Return some bytes; none at the end.

        Raises:
            AttnscopeError: the connection broke. The bytes read before are good.
        """
        try:
            return bytes(self._stream.read(size))
        except (OSError, http.client.HTTPException) as error:
            raise AttnscopeError(
                f"the connection for {self.url} broke off ({_reason(error)}). What arrived is "
                "kept: run the same command again to go on from there."
            ) from error


@contextmanager
def connect(url: str, start: int = 0, condition: str = "") -> Iterator[Answer]:
    """Ask for a file from byte ``start`` on, if it is still the version of ``condition``.

    Raises:
        AttnscopeError: the address cannot be asked, or answers with an error.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise AttnscopeError(f"'{url}' is not fetched. Expected an address with http or https.")
    headers = {"User-Agent": f"attnscope/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if condition:
            headers["If-Range"] = condition
    try:
        response = _opener().open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and start:
                yield Answer(url, error.headers, None, _total(error.headers), error)
                return
            raise AttnscopeError(_refusal(url, error)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise AttnscopeError(
            f"{url} cannot be reached ({_reason(error)}). Is there a network, and may this machine "
            "use it? A file fetched by other means can be put into the data folder by hand."
        ) from error
    with response:
        ranged = response.status == 206
        if ranged:
            match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
            yield Answer(
                url,
                response.headers,
                int(match[1]) if match else None,
                _total(response.headers),
                response,
            )
        else:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            yield Answer(url, response.headers, 0, total, response)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to http and https, but never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        secure = urlsplit(req.full_url).scheme == "https"
        if urlsplit(newurl).scheme not in (("https",) if secure else ("http", "https")):
            raise urllib.error.HTTPError(newurl, code, f"sent on to '{newurl}'", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener without the handlers for files, data and FTP that urllib adds by itself."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _total(headers: Message) -> int | None:
    match = re.match(r"bytes [^/]*/(\d+)$", headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _refusal(url: str, error: urllib.error.HTTPError) -> str:
    if 300 <= error.code < 400:
        return f"{url} was {error.msg}, which is not followed. Expected a file over http or https."
    hint = {
        401: "It asks for a login.",
        403: "It may not serve this network, or asks for its terms to be accepted first.",
        404: "The file may have moved: look at the publisher's page.",
        410: "The file is gone: look at the publisher's page.",
        429: "Too many requests: wait a while.",
    }.get(error.code, "Try again later." if error.code >= 500 else "")
    return f"{url} answered {error.code} ({error.msg}). {hint}".rstrip()


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT:.0f} s"
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
