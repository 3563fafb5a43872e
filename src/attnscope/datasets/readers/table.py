"""A user's own table of text and label: CSV or TSV, plain or packed."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from attnscope.datasets.kinds import EMPTY_TEXT, Rows, Split
from attnscope.datasets.meter import Meter, Metered
from attnscope.datasets.readers.delimited import csv_records, tsv_records
from attnscope.datasets.text import Place, lines, stream_lines
from attnscope.errors import AttnscopeError
from attnscope.limits import STREAMED_BYTES, STREAMED_ROWS

TEXT_NAMES = ("text", "sentence", "review", "message", "document", "content")
LABEL_NAMES = ("label", "class", "category", "sentiment", "stars", "rating", "target")

_RULE = (
    "Expected a header that names a text column and a label column, such as 'label,text', or no "
    "header and two columns: first the label, then the text."
)


NOT_DRAWN = "not among those drawn at random"
STRIDE = 20_000
"""Rows between two reports of progress."""
MOST_LABELS = 100_000
"""Different labels that a table may have; each is held in memory, and more are no classes."""


@dataclass(frozen=True)
class Reading:
    """How a table is read.

    Args:
        text: name of the column of texts; one of :data:`TEXT_NAMES` unless given.
        label: name of the column of labels; one of :data:`LABEL_NAMES` unless given.
        most: rows that are held at most, drawn at random, each as likely as any other; 0 for all.
        seed: draws them.
        tell: hears the number of rows read so far.
    """

    text: str = ""
    label: str = ""
    most: int = 0
    seed: int = 0
    tell: Callable[[int], None] | None = None


def table_format(path: Path) -> str | None:
    """Return ``"csv"`` or ``"tsv"`` by the name of the file, packed or not, or None."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    return next((kind for kind in ("csv", "tsv") if name.endswith(f".{kind}")), None)


def read_tables(
    paths: dict[str, Path], reading: Reading = Reading()
) -> tuple[tuple[str, ...], dict[str, Split]]:
    """Read a table for each split; return the classes and the splits.

    A header is recognised by its names (any case): a text column is one of
    ``text, sentence, review, message, document, content``, a label column one of
    ``label, class, category, sentiment, stars, rating, target``; other columns are left alone.
    Without a header there are two columns: first the label, then the text. In CSV, fields are
    quoted by ``"``; in TSV quotes are plain text and one line is one record. UTF-8.

    The classes are the labels of the split ``train``, as numbers in their order if all are whole
    numbers, else in the order of the alphabet.

    Raises:
        AttnscopeError: with file and line, for a record of another form, and for a label that the
            training table does not have.
    """
    tables = {split: _Table(path, reading) for split, path in paths.items()}
    classes = _ordered(tables["train"].known)
    splits = {}
    for split, table in tables.items():
        rows = Rows(classes)
        rows.skipped.update(table.skipped)
        for label, text, line in zip(table.labels, table.texts, table.lines, strict=True):
            rows.add(text, label, Place(str(table.path), line))
        splits[split] = rows.split()
    return classes, splits


def read_pasted(
    table: str, reading: Reading = Reading(), name: str = "the pasted table"
) -> tuple[tuple[str, ...], dict[str, Split]]:
    """Read a table that was pasted, as :func:`read_tables` reads a file.

    Columns are told apart by tabs if the first line that is not blank has one, else by commas.

    Args:
        table: the text.
        reading: its columns, and how many rows at most.
        name: how it is called in errors.

    Raises:
        AttnscopeError: as for :func:`read_tables`.
    """
    read = _Table(Path(name), reading, table)
    classes = _ordered(read.known)
    rows = Rows(classes)
    rows.skipped.update(read.skipped)
    for label, text, line in zip(read.labels, read.texts, read.lines, strict=True):
        rows.add(text, label, Place(name, line))
    return classes, {"train": rows.split()}


class _Table:
    """The records of one file: label, text and line, a row a few dozen bytes beside its text.

    Args:
        path: the file; its name alone for a table that was pasted.
        reading: how it is read.
        pasted: what was pasted.
    """

    def __init__(self, path: Path, reading: Reading, pasted: str | None = None) -> None:
        self.path, self.reading, self.pasted = path, reading, pasted
        self.skipped: Counter[str] = Counter()
        self.labels: list[str] = []
        self.texts: list[str] = []
        self.lines = array("q")
        self.dice = random.Random(reading.seed)
        known: dict[str, str] = {}
        self.known = known.keys()
        seen, empty = 0, ""
        columns: tuple[int, int, int] | None = None  # label, text, and how many there are
        header = False
        for number, fields in self._rows():
            place = Place(str(path), number)
            if columns is None:
                named = _header(fields, reading, place)
                header = named is not None
                columns = named or (0, 1, 2)
                if header:
                    continue
            if len(fields) != columns[2]:
                raise place.error(
                    f"there are {len(fields)} columns where {columns[2]} were expected. "
                    + ("The header has that many." if header else _RULE)
                )
            label, text = fields[columns[0]].strip(), fields[columns[1]]
            if not label:
                raise place.error("the label is empty. Expected a label for every text.")
            if len(known) >= MOST_LABELS and label not in known:
                raise place.error(
                    f"there are more than {MOST_LABELS:,} different labels up to here, the last "
                    f"one {label[:40]!r} for the text {text.strip()[:60]!r}. Expected classes, "
                    "not a number to regress or a label for each text."
                )
            if text.strip():
                seen += 1
                self._keep(seen, known.setdefault(label, label), text, number)
            else:
                # The first one is quoted, so that it can be found.
                empty = empty or f"{EMPTY_TEXT}, the first in line {number}"
                self.skipped[empty] += 1
        if seen > len(self.texts):
            self.skipped[NOT_DRAWN] = seen - len(self.texts)
        if not self.texts:
            raise AttnscopeError(f"'{path}' holds no text with a label. {_RULE}")
        if not header:
            self._doubt()

    def _keep(self, seen: int, label: str, text: str, number: int) -> None:
        """Keep a row, or let it take the place of another one (Vitter 1985, algorithm R)."""
        if self.reading.tell is not None and seen % STRIDE == 0:
            self.reading.tell(seen)
        if not self.reading.most or len(self.texts) < self.reading.most:
            self.labels.append(label)
            self.texts.append(text)
            self.lines.append(number)
            return
        place = self.dice.randrange(seen)
        if place < self.reading.most:
            self.labels[place], self.texts[place], self.lines[place] = label, text, number

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        # Where a sample is held, the table itself is a stream and may be longer than memory.
        name, most = str(self.path), self.reading.most
        meter = Meter(name, STREAMED_ROWS, STREAMED_BYTES) if most else Meter(name)
        if self.pasted is not None:
            # Half a letter, which a browser may send, is no text in any encoding.
            data = self.pasted.encode("utf-8", "replace")
            read = stream_lines(Metered(BytesIO(data), meter), name, meter)
            first = next((line for line in self.pasted.splitlines() if line.strip()), "")
            tabbed = "\t" in first
        else:
            read, tabbed = lines(self.path, meter=meter), table_format(self.path) == "tsv"
        if tabbed:
            return tsv_records(read, self.skipped)
        return csv_records(read, name, self.skipped)

    def _doubt(self) -> None:
        """Refuse a table without header whose first column cannot be the label."""
        labels, texts = Counter(self.labels), set(self.texts)
        first, place = self.labels[0], Place(str(self.path), self.lines[0])
        if len(self.texts) > 2 and len(labels) > len(texts):
            raise place.error(
                f"from here on there are {len(labels)} different labels and {len(texts)} different "
                f"texts, so the columns seem to be text and label. {_RULE}"
            )
        if len(labels) > 2 and labels[first] == 1 and min(_without(labels, first)) > 1:
            raise place.error(
                f"{first[:40]!r} is the label of this row alone: the line looks like a header "
                f"without known names. {_RULE} Known names are {', '.join(TEXT_NAMES)} and "
                f"{', '.join(LABEL_NAMES)}."
            )


def _header(fields: Sequence[str], reading: Reading, place: Place) -> tuple[int, int, int] | None:
    names = [name.strip().lower() for name in fields]
    shown = ", ".join(repr(name.strip()[:40]) for name in fields[:20])
    found = []
    for asked, known, flag in (
        (reading.label, LABEL_NAMES, "--label"),
        (reading.text, TEXT_NAMES, "--text"),
    ):
        if asked and asked.strip().lower() not in names:
            raise place.error(f"there is no column '{asked}' ({flag}): expected one of {shown}.")
        wanted = (asked.strip().lower(),) if asked else known
        found.append(next((names.index(name) for name in wanted if name in names), None))
    label, text = found
    if label is not None and text is not None:
        return label, text, len(fields)
    if (label is None) != (text is None):
        what, flag, known = (
            ("label", "--label", LABEL_NAMES) if label is None else ("text", "--text", TEXT_NAMES)
        )
        # A label such as "review" may stand in a table without a header, beside a text.
        if all(name.replace("_", "").isalnum() for name in names):
            raise place.error(
                f"the header {shown} names no {what} column: expected one of {', '.join(known)}. "
                f"`attnscope predict` takes the name of another by {flag} COLUMN."
            )
    return None


def _without(labels: Counter[str], one: str) -> list[int]:
    return [count for label, count in labels.items() if label != one]


def _ordered(labels: Iterable[str]) -> tuple[str, ...]:
    try:
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(labels))
