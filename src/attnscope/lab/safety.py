"""Who may ask, and for what: hosts, origins, the token, and the walls of the runs folder.

A page elsewhere on the web can make a browser send requests to a server on loopback, and a name
elsewhere can be made to point at 127.0.0.1 (DNS rebinding). Two checks end both: the ``Host`` that
the browser asked for is one of ours, and the ``Origin`` of a request, where it has one, is that
same host. A server that other machines can reach asks for a token besides.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import ipaddress
import os
import secrets
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from attnscope.errors import AttnscopeError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
COOKIE = "attnscope-token"


class RefusedError(AttnscopeError):
    """A request that is not answered, and why, as a sentence."""


class Guard:
    """Decides which requests are answered.

    Args:
        host: what the server is bound to.
        token: what a visitor must show; made up if the server can be reached from elsewhere and
            none is given, and none is needed on loopback.
    """

    def __init__(self, host: str, token: str | None = None) -> None:
        self.loopback = is_loopback(host)
        self.token = token or (None if self.loopback else secrets.token_urlsafe(24))
        self.names = {*LOOPBACK, host.lower()}
        if not self.loopback:
            self.names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def check(self, headers: Mapping[str, str]) -> None:
        """Refuse a request for another host, or from a page of another origin.

        Raises:
            RefusedError: with a sentence that says what was expected.
        """
        host = headers.get("Host", "")
        if not self._ours(host_name(host)):
            raise RefusedError(
                f"The request is for the host '{host}', which is not this server. Expected "
                f"{' or '.join(LOOPBACK[:2]) if self.loopback else 'its name or its address'}."
            )
        origin = headers.get("Origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            raise RefusedError(
                f"The request comes from a page of '{origin}'. Expected a page of this server."
            )
        # Scripts and images asked for by a foreign page carry no Origin, yet browsers mark them.
        foreign = headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site")
        if foreign and headers.get("Sec-Fetch-Mode") != "navigate":
            raise RefusedError("The request comes from a page that is not of this server.")

    def _ours(self, name: str) -> bool:
        if name in self.names:
            return True
        if self.loopback:
            return False
        # Rebinding needs a name; a bare address cannot be made to point elsewhere.
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def knows(self, shown: str | None) -> bool:
        """Whether the token that was shown is the right one; time tells nothing about it."""
        if self.token is None:
            return True
        return hmac.compare_digest((shown or "").encode(), self.token.encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that is bound to ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """Return the name in a ``Host`` header, without its port; empty if it makes no sense.

    >>> host_name("LOCALHOST:5006"), host_name("[::1]:5006"), host_name("a b")
    ('localhost', '::1', '')
    """
    try:
        split = urlsplit(f"http://{host}")
        _ = split.port
    except ValueError:
        return ""
    if split.username is not None or split.path or split.query or split.fragment or " " in host:
        return ""
    return split.hostname or ""


def confined(root: Path, *parts: str) -> Path:
    """Return the real path of something below ``root``, wherever links lead, if it is below it.

    Args:
        root: the wall.
        parts: one name each, such as a run, ``figures`` and a file.

    Raises:
        AttnscopeError: a name is no plain name, nothing is there, or a link leads out.
    """
    for part in parts:
        if not plain_name(part):
            raise AttnscopeError(f"'{part}' is not the name of something in the runs folder.")
    wall = os.path.realpath(root)
    path = os.path.realpath(os.path.join(wall, *parts))
    if os.path.commonpath((wall, path)) != wall or path == wall:
        raise AttnscopeError(
            f"'{'/'.join(parts)}' leads out of the runs folder, so it is not read. Expected "
            "something that lies in it."
        )
    if not os.path.exists(path):
        raise AttnscopeError(f"There is no '{'/'.join(parts)}' in the runs folder.")
    return Path(path)


def plain_name(text: str) -> bool:
    """Whether a text can name something in a folder, and nothing hidden or outside it.

    >>> [plain_name(text) for text in ("demo", "..", "a/b", ".hidden", "")]
    [True, False, False, False, False]
    """
    return bool(text) and not text.startswith(".") and not set(text) & {"/", "\\", "\0"}


def written(text: str) -> str:
    r"""Return a text that can be sent: half a letter, as in a name that is no text, becomes ``?``.

    >>> written("a\udcffb")
    'a?b'
    """
    return text.encode("utf-8", "replace").decode()


def opened(root: Path, run: Path, *parts: str) -> int:
    """Open a file of a run for reading and return its descriptor.

    Args:
        root: the runs folder.
        run: the run's folder inside it, with all links followed.
        parts: names below it.

    Raises:
        AttnscopeError: it leads out of the runs folder, or is no ordinary file.
        OSError: it cannot be opened.
    """
    descriptor = _opened(root, run, *parts)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise AttnscopeError(f"'{'/'.join(parts)}' is not an ordinary file: expected one.")
    return descriptor


def _opened(root: Path, run: Path, *parts: str) -> int:
    # Without O_NONBLOCK, opening a pipe would wait for somebody who writes to it.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    if len(parts) == 1:
        # The usual case takes one call of the system: a file that is no link, in a real folder.
        try:
            return os.open(run / parts[0], flags)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
    wall = Path(os.path.realpath(root))
    return os.open(confined(wall, *run.relative_to(wall).parts, *parts), flags)


def no_way_out(root: Path, run: Path) -> None:
    """Check what is in a run's folder before a library reads files of it by itself.

    Raises:
        AttnscopeError: a link leads out of the runs folder, or something is no ordinary file.
    """
    wall = os.path.realpath(root)
    for folder, folders, names in os.walk(run):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                target = os.path.realpath(path)
                if os.path.commonpath((wall, target)) != wall:
                    raise AttnscopeError(
                        f"'{os.path.relpath(path, run)}' in the run '{run.name}' leads out of the "
                        "runs folder, so the run is not read."
                    )
                with contextlib.suppress(OSError):  # A link to nothing is nothing to read.
                    mode = os.stat(path).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and not stat.S_ISLNK(mode):
                raise AttnscopeError(
                    f"'{os.path.relpath(path, run)}' in the run '{run.name}' is not an ordinary "
                    "file, so the run is not read."
                )
