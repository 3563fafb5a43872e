"""What every page of the lab has in common: its headers, and errors as sentences."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tornado.web import HTTPError, RequestHandler

from attnscope.errors import AttnscopeError
from attnscope.lab import shell

if TYPE_CHECKING:
    from markupsafe import Markup

    from attnscope.lab.server import Lab

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Server": "attnscope",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Handler(RequestHandler):
    """Answers with pages of the lab; whatever goes wrong becomes a sentence."""

    lab: Lab
    current = ""

    def initialize(self, lab: Lab) -> None:
        """Remember the lab."""
        self.lab = lab

    def set_default_headers(self) -> None:
        """Let nothing be framed, sniffed, cached or loaded from elsewhere."""
        for name, value in HEADERS.items():
            self.set_header(name, value)
        self.set_header("Content-Security-Policy", POLICY)

    def write(self, chunk: str | bytes | dict[str, Any]) -> None:
        """Send words whatever is in them: a name on the disk need not be text."""
        super().write(chunk.encode("utf-8", "replace") if isinstance(chunk, str) else chunk)

    def show(
        self,
        title: str,
        body: Markup,
        *,
        scripts: Sequence[str] = (),
        styles: Sequence[str] = (),
    ) -> None:
        """Answer with a page."""
        self.finish(shell.page(title, body, self.current, scripts=scripts, styles=styles))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is the matter in a sentence; a stack trace goes to the terminal alone."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        if isinstance(error, AttnscopeError):
            self.set_status(404 if status_code == 500 else status_code)
            title, text = "That did not work", str(error)
        elif status_code == 404:
            title, text = "Nothing is here", f"There is no page '{self.request.path}' in the lab."
        elif status_code < 500:
            title = "That was not understood"
            text = f"The request could not be read: {self._reason.lower()}."
        else:
            title = "Something broke"
            text = (
                "The lab could not make this page and goes on working. The reason stands in the "
                "terminal where it was started."
            )
        self.finish(shell.sentence(title, text, self.current, hint=True))

    def log_exception(self, kind: Any, value: Any, trace: Any) -> None:
        """Print what only a programmer can mend; a sentence was for the page."""
        if not isinstance(value, AttnscopeError | HTTPError):
            traceback.print_exception(kind, value, trace)
