"""WikiText: articles under `` = Title = `` headings, or CSV with one quoted field a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from attnscope.datasets.readers.delimited import csv_records

Rows = Iterator[tuple[int, str]]

_TITLE = re.compile(r"^ = (?!=).*[^= ] = ?$")
_JOINED = re.compile(r" @([-,.])@ ")


def articles(rows: Rows, name: str) -> Iterator[str]:
    """Yield the articles of a WikiText file, one at a time.

    The marks ``@-@``, ``@,@`` and ``@.@`` inside a word or number are undone (``well @-@ known``
    is ``well-known``); other words stay as published, ``<unk>`` too. A title has a blank line
    before and after it, since such lines stand inside formulas as well. In the CSV variant each
    record is a document.
    """
    first = next(rows, (1, ""))
    rows = chain([first], rows)
    found = _quoted(rows, name) if first[1].startswith('"') else _titled(rows)
    for text in found:
        yield _JOINED.sub(r"\1", text).strip()


def looks_like_wikitext(head: str) -> bool:
    """Return whether a file that begins so is WikiText: a title with blank lines around it."""
    rows = head.removeprefix('"').split("\n", 3)
    while rows and not rows[0].strip():
        rows.pop(0)
    return len(rows) > 1 and _TITLE.match(rows[0]) is not None and not rows[1].strip()


def _quoted(rows: Rows, name: str) -> Iterator[str]:
    skipped: Counter[str] = Counter()
    return ("\n".join(fields) for _, fields in csv_records(rows, name, skipped))


def _titled(rows: Rows) -> Iterator[str]:
    article: list[str] = []
    # The line in hand is settled when the one after it is known.
    before, line = "", next(rows, (1, ""))[1]
    for _, after in chain(rows, [(0, "")]):
        if _TITLE.match(line) and not before.strip() and not after.strip():
            if any(each.strip() for each in article):
                yield "\n".join(article)
            article = []
        article.append(line)
        before, line = line, after
    if any(each.strip() for each in article):
        yield "\n".join(article)
