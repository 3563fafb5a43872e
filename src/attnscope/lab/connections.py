"""Who may be connected, for how long and with how much: nobody keeps the lab from the others.

Tornado by itself waits an hour for the headers of a request and for ever for its body, and takes as
many connections as the system has.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.websocket import WebSocketHandler

from attnscope.lab import play, wishes

if TYPE_CHECKING:
    from asyncio import Future

    from attnscope.lab.server import Lab

HEADERS_WITHIN = 20.0
"""Seconds that the headers of a request may take, or that a connection may be silent before it."""
BODY_WITHIN = 5.0
"""Seconds for a body; no page of the lab has one."""
MOST_CONNECTIONS = 400
"""At a time, sockets of pages aside. Ordinary systems allow a process 1,024 open files."""
MOST_PAGES = 250
"""Pages with sliders that are open at a time."""
PING = 30.0
"""Seconds after which a page that does not answer is gone; a laptop that is closed says nothing."""
UNREAD = 32
"""Answers that a page may leave unread before its connection is closed."""
FULL = (
    f"{MOST_PAGES} pages with sliders are open, which is as many as this lab serves. Expected some "
    "to be closed: this page goes on by itself as soon as there is room."
)


class Server(HTTPServer):
    """A server with limits on time, size and number."""

    def initialize(self, lab: Lab) -> None:  # type: ignore[override]
        """Set the limits."""
        super().initialize(
            lab,
            idle_connection_timeout=HEADERS_WITHIN,
            body_timeout=BODY_WITHIN,
            max_body_size=1 << 16,
            max_header_size=1 << 15,
        )
        self.open = 0

    def handle_stream(self, stream: IOStream, address: tuple[str, int]) -> None:
        """Take a connection, unless there are too many."""
        if self.open >= MOST_CONNECTIONS:
            stream.close()
            return
        self.open += 1
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Count it no more."""
        self.open -= 1
        super().on_close(server_conn)


class PlaySocket(WebSocketHandler):
    """The other end of the play page."""

    def initialize(self, lab: Lab) -> None:
        """Remember the lab."""
        self.lab = lab
        self.session: play.Session | None = None
        self.unread = 0

    def check_origin(self, origin: str) -> bool:
        """Agree: the guard has compared it with the host already."""
        return True

    def open(self, *_: str) -> None:
        """Begin a session, if there is room."""
        if len(self.lab.pages) >= MOST_PAGES:
            self._send(json.dumps({"kind": "full", "sentence": FULL}))
            self.close(1013, "full")
            return
        self.lab.pages.add(self)
        self.session = play.Session(self.lab.player, self._send)

    def _send(self, text: str) -> None:
        if self.ws_connection is None:
            return
        if self.unread >= UNREAD:
            print(
                "attnscope lab: a page did not read its answers, and its connection was closed.",
                file=sys.stderr,
            )
            self.ws_connection.client_terminated = True  # It would not read a good-bye either.
            self.close()
            return
        self.unread += 1
        self.write_message(text).add_done_callback(self._read)

    def _read(self, sent: Future[None]) -> None:
        self.unread -= 1
        if not sent.cancelled():
            sent.exception()  # A page that has gone needs no answer.

    def on_message(self, message: str | bytes) -> None:
        """Hand on what the page says."""
        if self.session is not None and isinstance(message, str):
            self.session.receive(message)

    def on_close(self) -> None:
        """End the session, and the run that it waits for."""
        self.lab.pages.discard(self)
        if self.session is not None:
            self.session.close()


SETTINGS: dict[str, Any] = {
    "websocket_max_message_size": wishes.LONGEST,
    "websocket_ping_interval": PING,
    "websocket_ping_timeout": PING,
}
"""Of the application, for its sockets."""
