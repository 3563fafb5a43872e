"""Documents of a corpus, one after another, from what people have on disc."""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from attnscope.datasets.archives import members
from attnscope.datasets.meter import Meter
from attnscope.datasets.place import home
from attnscope.datasets.text import LINE_LIMIT, Place, check_regular, stream_lines
from attnscope.errors import AttnscopeError, nearest
from attnscope.limits import STREAMED_BYTES, STREAMED_ROWS
from attnscope.topics import wikipedia, wikitext
from attnscope.topics.unpack import PackedFile

CorpusKind = Literal["files", "lines", "wikitext", "wikipedia"]
"""One document a file, one a line, WikiText articles, or the pages of a Wikipedia XML dump."""

KINDS: tuple[CorpusKind, ...] = get_args(CorpusKind)

_TARS = (".tar", ".tar.gz", ".tar.xz", ".tgz", ".txz")


def stream(corpus: str | Path, kind: CorpusKind | None = None) -> Iterator[str]:
    """Yield the documents of a corpus as text; no more than one is held in memory.

    What a file holds is told by its first bytes. XML is a Wikipedia dump, a `` = Title = `` between
    blank lines begins WikiText; any other file has one document a line. A folder, zip or tar is
    read file by file, in it a text file is one document, and dumps and WikiText files are read as
    such. Files may be packed by gzip, xz or bzip2. Files whose name begins with a dot, links and
    documents without a character that can be seen are left out.

    Args:
        corpus: a file or folder.
        kind: how to read every file, if not as its first bytes say.

    Warns:
        UserWarning: a dump is cut short; the pages that are whole are given.

    Raises:
        AttnscopeError: there is no such file, or one is not text, damaged, or no dump after all; or
            there is more than :mod:`attnscope.limits` allows.
    """
    path = home(corpus)
    if kind is not None and kind not in KINDS:
        raise AttnscopeError(
            f"there is no kind of corpus '{kind}'.{nearest(kind, KINDS)} Expected one of: "
            f"{', '.join(KINDS)}."
        )
    if not os.path.exists(path):
        raise AttnscopeError(
            f"the corpus '{corpus}' is not there: expected a folder of text files, a file with one "
            "document a line, a WikiText file, or a Wikipedia XML dump."
        )
    for source, one in _sources(path):
        for text in _documents(source, kind or _kind(source, "files" if one else "lines")):
            if text and not text.isspace():
                yield text


def _sources(path: Path) -> Iterator[tuple[PackedFile, bool]]:
    """Yield the files of a corpus, and whether each is one of many."""
    name = path.name.lower()
    if name.endswith((".tar.bz2", ".tbz2")):
        raise AttnscopeError(
            f"'{path}' is a tar packed by bzip2: expected a zip, or a tar that is plain or packed "
            "by gzip or xz. Unpack it and name the folder."
        )
    if not os.path.isdir(path):
        check_regular(path)
    if os.path.isdir(path) or zipfile.is_zipfile(path) or name.endswith(_TARS):
        for member in members(path, Counter(), STREAMED_ROWS, STREAMED_BYTES):
            if not any(part.startswith(".") for part in member.path.parts):
                yield PackedFile(member.label, member.stream, member.meter), True
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise AttnscopeError(f"'{path}' cannot be read: {error.strerror}.") from error
    with file:
        yield PackedFile(str(path), file, Meter(str(path), STREAMED_ROWS, STREAMED_BYTES)), False


def _kind(source: PackedFile, otherwise: CorpusKind) -> CorpusKind:
    head = source.head().lstrip(b"\xef\xbb\xbf \t\r\n")
    start = head[:100].lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise AttnscopeError(
            f"'{source.label}' is a web page: expected the corpus itself. Was an error page saved "
            "in its place?"
        )
    if start.startswith((b"<?xml", b"<mediawiki")):
        return "wikipedia"
    # The blank before the title counts, so this looks at the bytes as they are.
    if wikitext.looks_like_wikitext(source.head().decode("utf-8", "replace")):
        return "wikitext"
    return otherwise


def _documents(source: PackedFile, kind: CorpusKind) -> Iterator[str]:
    if kind == "wikipedia":
        yield from wikipedia.articles(source)
        return
    place = Place(source.label)
    if kind == "wikitext":
        yield from wikitext.articles(_lines(source, place), source.label)
    elif kind == "lines":
        for _, line in _lines(source, place):
            yield line
    else:
        yield "\n".join(_up_to_limit(_lines(source, place), source.label))
    if source.damage is not None:
        read = f"it was read up to line {place.line:,}" if place.line else "nothing was read"
        raise AttnscopeError(
            f"'{source.label}' is damaged or cut short: {read} ({source.damage}). Expected a whole "
            "file; fetch it again."
        )


def _lines(source: PackedFile, place: Place) -> Iterator[tuple[int, str]]:
    for number, line in stream_lines(source.stream, source.label, source.meter):
        place.line = number
        yield number, line


def _up_to_limit(rows: Iterator[tuple[int, str]], label: str) -> Iterator[str]:
    length = 0
    for _, line in rows:
        length += len(line)
        if length > LINE_LIMIT:
            raise AttnscopeError(
                f"'{label}' is longer than {LINE_LIMIT:,} characters: expected one document a file "
                "in a folder or archive. If it has one document a line, name the file itself, or "
                "say that its kind is 'lines'."
            )
        yield line
