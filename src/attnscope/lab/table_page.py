"""The page where a table is pasted or chosen: what attention will look at, and whether it does.

The page sends JSON; what is not of its shape is a sentence. A table that was pasted is handed to a
process of its own, which keeps it in memory: nothing is written, and nothing of it is run. Of files
only those can be read that were named when the lab was started.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tornado.web import HTTPError, stream_request_body

from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.place import data_dir, locate
from attnscope.errors import AttnscopeError
from attnscope.lab import table_work
from attnscope.lab.handler import Handler
from attnscope.lab.pages import SceneHandler
from attnscope.markup import fill, inert

LARGEST = 2_000_000
"""Bytes of what a page may send; some ten thousand short texts."""
BODY_WITHIN = 30.0
"""Seconds in which it must have come."""
SMOOTHINGS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
EPOCHS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
LONGEST = {"text": 200, "label": 200, "sentence": 2_000, "name": 4_000, "key": 64}
EXAMPLE = "\n".join(
    [
        "label,text",
        *(
            f"{label},{text}"
            for label, text in (
                ("good", "a moving film with a clever plot"),
                ("bad", "an awful film with a dull plot"),
                ("good", "the actor was charming and the music moving"),
                ("bad", "the actor was dull and the story awful"),
                ("good", "a clever story and a charming end"),
                ("bad", "an awful story and a dull end"),
            )
            for _ in range(5)
        ),
    ]
)
"""Stands in the box until something is pasted over it."""


def choices(tables: Sequence[str]) -> list[tuple[str, str]]:
    """Return what can be chosen, ``(name, how it is shown)``: named files, then published sets."""
    folder = data_dir()
    sets = [
        (key, f"{key} (published set)")
        for key, entry in CATALOGUE.items()
        if entry.kind == "labelled" and all(locate(file, folder) for file in entry.files)
    ]
    return [*((name, Path(name).name) for name in tables), *sets]


class TablePage(Handler):
    """The page."""

    current = "data"

    def get(self) -> None:
        """Show it."""
        chosen = choices(self.lab.tables)
        config = {
            "smoothings": SMOOTHINGS,
            "epochs": EPOCHS,
            "largest": LARGEST,
        }
        body = fill(
            "lab/table",
            choices=chosen,
            example=EXAMPLE,
            megabytes=LARGEST / 1e6,
            config=inert(json.dumps(config)),
        )
        self.show("Data", body, scripts=("plots.js", "table.js"), styles=("table.css",))


@stream_request_body
class TableScene(SceneHandler):
    """Says what attention will look at in a table, or trains on it."""

    def prepare(self) -> None:
        """Let this page send more than others, and not for ever."""
        connection: Any = self.request.connection
        connection.set_max_body_size(LARGEST)
        connection.set_body_timeout(BODY_WITHIN)
        self.body = bytearray()

    def data_received(self, chunk: bytes) -> None:
        """Take a piece of the body."""
        self.body += chunk

    async def post(self) -> None:
        """Answer with lines of JSON."""
        wish = wished(bytes(self.body), {name for name, _ in choices(self.lab.tables)})
        work = table_work.trained if wish["train"] else table_work.said
        await self.draw(work, wish, renderer=self.lab.reader)


def wished(body: bytes, names: set[str]) -> dict[str, Any]:
    """Return what a page asks for.

    Args:
        body: JSON.
        names: sets and files that may be read.

    Raises:
        AttnscopeError: it makes no sense, or asks for another file.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPError(400, reason="Not JSON") from None
    if not isinstance(found, dict):
        raise HTTPError(400, reason="Not a wish")
    wish: dict[str, Any] = {"train": found.get("train") is True}
    for name, longest in (*LONGEST.items(), ("table", LARGEST)):
        value = found.get(name)
        if value is not None and not (isinstance(value, str) and len(value) <= longest):
            raise AttnscopeError(
                f"'{name}' is {str(value)[:40]!r}: expected text of at most {longest:,} letters."
            )
        wish[name] = value
    for name, known in (("smoothing", SMOOTHINGS), ("epochs", EPOCHS)):
        value = found.get(name, known[len(known) // 2])
        if isinstance(value, bool) or value not in known:
            raise AttnscopeError(
                f"{name} = {str(value)[:40]}: expected one of {', '.join(map(str, known))}."
            )
        wish[name] = value
    if wish["name"] is not None and wish["name"] not in names:
        raise AttnscopeError(
            f"'{wish['name'][:80]}' is not one of the sets and files of this lab. Expected a set "
            "that is at hand, or a file that `attnscope lab --data FILE` named."
        )
    if wish["table"] is not None and not wish["table"].strip():
        raise AttnscopeError("The box is empty. Expected a table: a label and a text in each line.")
    return wish


def routes(own: dict[str, Any]) -> list[Any]:
    """Return the rules of this page; ``own`` is what every handler is given."""
    return [(r"/data/?", TablePage, own), (r"/data/scene", TableScene, own)]
