"""WikiText-2: articles under `` = Title = `` headings, or CSV with one quoted field a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from attnscope.datasets.readers.delimited import csv_records
from attnscope.datasets.text import Place, sources
from attnscope.errors import AttnscopeError

BEFORE = "line before the first heading"

_HEADING = re.compile(r"^ = (?!=).*[^= ] = ?$")
_NAME = re.compile(r"wiki\.(train|valid|test)\.(tokens|raw)")
_SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def read_wikitext(path: Path, skipped: Counter[str]) -> dict[str, list[str]]:
    """Read the splits a file or archive holds: ``train``, ``dev`` (published as valid), ``test``.

    A document is the article with its headings, its lines kept; words are as published
    (``<unk>``, ``@-@``). A title is a line `` = Title = `` with a blank line before and after it,
    since such lines stand inside formulas too. The CSV variant has one quoted field a document; in
    it the file called ``wiki.test.tokens`` holds the validation text, so it gives ``dev``.

    Args:
        path: ``wiki.*.tokens`` or ``wiki.*.raw``, plain or packed, or a zip of them.
        skipped: counts the lines before the first heading that are not blank.
    """
    splits: dict[str, list[str]] = {}
    for name, source in sources(path, _NAME.pattern, skipped):
        match = _NAME.search(Path(name).name)
        if match is None:
            raise AttnscopeError(
                f"'{name}' does not say which split it is. Expected a name such as "
                "'wiki.train.tokens' or 'wiki.valid.raw'."
            )
        split = _SPLITS[match[1]]
        first = next(source, (1, ""))
        rows = chain([first], source)
        if first[1].startswith('"'):
            splits["dev" if split == "test" else split] = list(_fields(rows, name, skipped))
        else:
            splits[split] = list(_articles(rows, skipped))
    return splits


def _fields(rows: Iterator[tuple[int, str]], name: str, skipped: Counter[str]) -> Iterator[str]:
    for number, fields in csv_records(rows, name, skipped):
        if len(fields) != 1:
            raise Place(name, number).error(
                f"there are {len(fields)} fields. Expected one quoted field a document."
            )
        yield fields[0].strip()


def _articles(rows: Iterator[tuple[int, str]], skipped: Counter[str]) -> Iterator[str]:
    article: list[str] | None = None
    before = ""
    held = [line for _, line in rows]
    for line, after in zip(held, [*held[1:], ""], strict=True):
        if _HEADING.match(line) and not before.strip() and not after.strip():
            if article is not None:
                yield "\n".join(article).strip()
            article = []
        if article is not None:
            article.append(line)
        elif line.strip():
            skipped[BEFORE] += 1
        before = line
    if article is not None:
        yield "\n".join(article).strip()
