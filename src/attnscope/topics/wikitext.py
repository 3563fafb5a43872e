"""WikiText: articles under `` = Title = `` headings, or CSV with one quoted field a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from attnscope.datasets.readers.delimited import csv_records
from attnscope.datasets.readers.wikitext import TITLE, article_lines

Rows = Iterator[tuple[int, str]]

_JOINED = re.compile(r" @([-,.])@ ")


def articles(rows: Rows, name: str) -> Iterator[str]:
    """Yield the articles of a WikiText file, one at a time.

    The marks ``@-@``, ``@,@`` and ``@.@`` inside a word or number are undone (``well @-@ known``
    is ``well-known``); other words stay as published, ``<unk>`` too. In the CSV variant each record
    is a document.
    """
    first = next(rows, (1, ""))
    rows = chain([first], rows)
    if first[1].startswith('"'):
        records = csv_records(rows, name, Counter())
        found = ("\n".join(fields) for _, fields in records)
    else:
        found = ("\n".join(lines) for _, lines in article_lines(rows))
    for text in found:
        if text.strip():
            yield _JOINED.sub(r"\1", text).strip()


def looks_like_wikitext(head: str) -> bool:
    """Return whether a file that begins so is WikiText: a title with blank lines around it."""
    rows = head.removeprefix('"').split("\n", 3)
    while rows and not rows[0].strip():
        rows.pop(0)
    return len(rows) > 1 and TITLE.match(rows[0]) is not None and not rows[1].strip()
