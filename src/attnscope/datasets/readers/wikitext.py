"""WikiText-2: articles under `` = Title = `` headings, or CSV with one quoted field a document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from attnscope.datasets.archives import sources
from attnscope.datasets.readers.delimited import csv_records
from attnscope.datasets.text import Place
from attnscope.errors import AttnscopeError

BEFORE = "line before the first heading"
TITLE = re.compile(r"^ = (?!=).*[^= ] = ?$")
_NAME = re.compile(r"wiki\.(train|valid|test)\.(tokens|raw)")
_SPLITS = {"train": "train", "valid": "dev", "test": "test"}


def read_wikitext(path: Path, skipped: Counter[str]) -> dict[str, list[str]]:
    """Read the splits a file or archive holds: ``train``, ``dev`` (published as valid), ``test``.

    A document is the article with its headings, its lines kept; words are as published
    (``<unk>``, ``@-@``). The CSV variant has one quoted field a document; in it the file called
    ``wiki.test.tokens`` holds the validation text, so it gives ``dev``.

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


def article_lines(rows: Iterator[tuple[int, str]]) -> Iterator[tuple[bool, list[str]]]:
    """Yield whether an article has a title, and its lines, one article after another.

    What stands before the first title has none. A title is a line `` = Title = `` with a blank line
    before and after it, since such lines stand inside formulas too.
    """
    titled = False
    lines: list[str] = []
    # The line in hand is settled when the one after it is known.
    before, line = "", next(rows, (1, ""))[1]
    for _, after in chain(rows, [(0, "")]):
        if TITLE.match(line) and not before.strip() and not after.strip():
            if lines:
                yield titled, lines
            titled, lines = True, []
        lines.append(line)
        before, line = line, after
    yield titled, lines


def _articles(rows: Iterator[tuple[int, str]], skipped: Counter[str]) -> Iterator[str]:
    for titled, lines in article_lines(rows):
        if titled:
            yield "\n".join(lines).strip()
        elif stray := sum(bool(line.strip()) for line in lines):
            skipped[BEFORE] += stray
