"""The lab's server: one Tornado application on loopback, and nothing that leaves this machine.

Pages are HTML of our own, and BokehJS draws the figures of the static report on them. Panel would
bring several megabytes of scripts, its widgets live in shadow trees that a label cannot reach, and
it loads what it does not find from a CDN; native controls are labelled, quick and enough.

Every request passes :class:`attnscope.lab.safety.Guard` before any handler hears of it, WebSockets
and static files included.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tornado.httputil import HTTPServerRequest
from tornado.web import Application, StaticFileHandler

from attnscope.errors import AttnscopeError
from attnscope.lab import play, shell
from attnscope.lab.connections import SETTINGS, PlaySocket, Server
from attnscope.lab.entries import Kept
from attnscope.lab.handler import HEADERS, Handler
from attnscope.lab.pages import routes
from attnscope.lab.player import Player
from attnscope.lab.renderer import Renderer
from attnscope.lab.safety import COOKIE, Guard, RefusedError
from attnscope.lab.table_page import routes as table_routes

PORT = 5006
STATIC = Path(__file__).with_name("static")


class Lab(Application):
    """The routes, and what their handlers share.

    Args:
        runs: the folder of runs; nothing outside it is read. It need not be there yet.
        guard: who may ask.
        player: does the runs that the sliders ask for.
        tables: files that the page on data may read.
    """

    def __init__(
        self, runs: Path, guard: Guard, player: Player, tables: Sequence[str] = ()
    ) -> None:
        self.runs, self.guard, self.player, self.tables = runs, guard, player, tuple(tables)
        self.renderer, self.reader = Renderer(), Renderer()
        self.kept: Kept = {}
        self.pages: set[PlaySocket] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        own = {"lab": self}
        super().__init__(
            [
                (r"/", PlayPage, own),
                (r"/play/socket", PlaySocket, own),
                *routes(own),
                *table_routes(own),
                (r"/static/(bokeh\.min\.js)", BokehFile, {"path": _bokeh_folder()}),
                (r"/static/([\w.-]+)", OwnFile, {"path": str(STATIC)}),
            ],
            default_handler_class=Missing,
            default_handler_args=own,
            log_function=lambda handler: None,
            **SETTINGS,
        )

    def expect_drawing(self) -> None:
        """Let the process that draws trajectories get ready: somebody looks at the runs."""
        task = asyncio.create_task(self.renderer.warm_up())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> Any:
        """Turn away what may not be asked before any handler hears of it."""
        try:
            self.guard.check(request.headers)
            shown = dict(parse_qsl(request.query)).get("token")
            if self.guard.token is not None and shown is not None and self.guard.knows(shown):
                return self.get_handler_delegate(request, Welcome, {"lab": self})
            if not self.guard.knows(_cookie(request)):
                raise RefusedError(
                    "This lab can be reached from other machines, so it asks for its token. "
                    "Expected the address that `attnscope lab` printed, which ends in ?token=..."
                )
        except RefusedError as refusal:
            return self.get_handler_delegate(
                request, Refusal, {"lab": self, "sentence": str(refusal)}
            )
        return super().find_handler(request, **kwargs)


def _cookie(request: HTTPServerRequest) -> str | None:
    try:
        kept = request.cookies.get(COOKIE)
    except ValueError:
        return None
    return None if kept is None else kept.value


class Refusal(Handler):
    """Says why a request is not answered, whatever its method."""

    def initialize(self, lab: Lab, sentence: str) -> None:  # type: ignore[override]
        """Remember the sentence."""
        self.lab, self.sentence = lab, sentence

    def prepare(self) -> None:
        """Answer at once, with a page that links to nothing."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self.sentence}\n")


class Welcome(Handler):
    """Keeps the token in a cookie and takes it out of the address."""

    def get(self) -> None:
        """Go to the same page without the token."""
        # Lax, not strict: reports are sandboxed, and links from them count as from elsewhere.
        token = self.lab.guard.token or ""
        self.set_cookie(COOKIE, token, httponly=True, samesite="Lax", path="/")
        rest = urlencode([p for p in parse_qsl(self.request.query) if p[0] != "token"])
        path = "/" + self.request.path.lstrip("/")
        self.redirect(f"{path}?{rest}" if rest else path)


class Missing(Handler):
    """What is asked for is not there."""

    def prepare(self) -> None:
        """Say so."""
        self.send_error(404)


class PlayPage(Handler):
    """Sliders and the runs that answer them."""

    current = "play"

    def get(self) -> None:
        """Answer with the page at the setting that the address holds."""
        self.finish(play.document(self.request.query))


class OwnFile(StaticFileHandler):
    """A script or a style sheet of the lab."""

    def set_extra_headers(self, path: str) -> None:
        """Give files the headers of pages; a browser asks again whether they have changed."""
        for name, value in HEADERS.items():
            self.set_header(name, value)
        self.set_header("Cache-Control", "no-cache")

    def write_error(self, status_code: int, **_: Any) -> None:
        """Say in a sentence that there is no such file."""
        text = f"There is no page '{self.request.path}' in the lab."
        self.finish(shell.sentence("Nothing is here", text))


class BokehFile(OwnFile):
    """BokehJS as the installed library brings it."""


def _bokeh_folder() -> str:
    from bokeh.util.paths import bokehjs_path

    return str(bokehjs_path() / "js")


def serve(
    runs: str | Path = "runs",
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
    tables: Sequence[str] = (),
) -> None:
    """Serve the lab until it is interrupted.

    Args:
        runs: the folder of runs.
        host: the address to bind to; other machines reach the lab only if this is not loopback.
        port: to listen on; 0 takes a free one.
        token: what visitors from elsewhere must show; made up unless given.
        open_browser: show the page in the browser.
        ready: is told the address as soon as pages are answered.
        tables: files of your own that the page on data may read.

    Raises:
        AttnscopeError: a table is not there, the port is in use, or the host is not of this
            machine.
    """
    for name in tables:
        if not os.path.exists(name):
            raise AttnscopeError(f"--data {name}: there is no such file. Expected a table.")
    asyncio.run(_serve(Path(runs), host, port, token, open_browser, ready, tables))


async def _serve(
    runs: Path,
    host: str,
    port: int,
    token: str | None,
    open_browser: bool,
    ready: Callable[[str], None] | None,
    tables: Sequence[str],
) -> None:
    listening = listen(host, port)
    guard = Guard(host, token)
    player = Player()
    lab = Lab(runs, guard, player, tables)
    server = Server(lab)
    try:
        player.start()
        server.add_socket(listening)
        where = address(host, listening.getsockname()[1], guard.token)
        if ready is not None:
            ready(where)
        if open_browser:
            webbrowser.open(where)
        await asyncio.Event().wait()
    finally:
        server.stop()
        await player.stop()
        lab.renderer.close()
        lab.reader.close()


def listen(host: str, port: int) -> socket.socket:
    """Bind to the port.

    Raises:
        AttnscopeError: it is in use, not allowed, or the host is not of this machine.
    """
    if not 0 <= port <= 65535:
        raise AttnscopeError(f"port = {port}: expected a number from 0 to 65535.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, where = found[0]
        made = socket.create_server(where[:2], family=family)
    except (OSError, UnicodeError) as error:
        number, text = getattr(error, "errno", None), getattr(error, "strerror", None)
        if number == errno.EADDRINUSE:
            raise AttnscopeError(
                f"port {port} is in use, perhaps by another lab. Expected a free one: try "
                f"--port {port + 1 if port < 65535 else 0}, or --port 0 for any."
            ) from None
        raise AttnscopeError(
            f"the lab cannot listen on {host}, port {port} ({text or error}). Expected "
            "an address of this machine and a port that you may use."
        ) from None
    made.setblocking(False)
    return made


def address(host: str, port: int, token: str | None) -> str:
    """Return what to type into a browser."""
    name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")
