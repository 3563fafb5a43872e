"""A user's own table of text and label: CSV or TSV, plain or packed."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from attnscope.datasets.kinds import EMPTY_TEXT, Rows, Split
from attnscope.datasets.readers.delimited import csv_records, tsv_records
from attnscope.datasets.text import Place, lines
from attnscope.errors import AttnscopeError

TEXT_NAMES = ("text", "sentence", "review", "message", "document", "content")
LABEL_NAMES = ("label", "class", "category", "sentiment", "stars", "rating", "target")

_RULE = (
    "Expected a header that names a text column and a label column, such as 'label,text', or no "
    "header and two columns: first the label, then the text."
)


def table_format(path: Path) -> str | None:
    """Return ``"csv"`` or ``"tsv"`` by the name of the file, packed or not, or None."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    return next((kind for kind in ("csv", "tsv") if name.endswith(f".{kind}")), None)


def read_tables(paths: dict[str, Path]) -> tuple[tuple[str, ...], dict[str, Split]]:
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
    tables = {split: _Table(path) for split, path in paths.items()}
    classes = _ordered(set(tables["train"].labels))
    splits = {}
    for split, table in tables.items():
        rows = Rows(classes)
        rows.skipped.update(table.skipped)
        for label, text, line in zip(table.labels, table.texts, table.lines, strict=True):
            rows.add(text, label, Place(str(table.path), line))
        splits[split] = rows.split()
    return classes, splits


class _Table:
    """The records of one file: label, text and line, a row a few dozen bytes beside its text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped: Counter[str] = Counter()
        self.labels: list[str] = []
        self.texts: list[str] = []
        self.lines = array("q")
        known: dict[str, str] = {}
        columns: tuple[int, int, int] | None = None  # label, text, and how many there are
        header = False
        for number, fields in self._rows():
            place = Place(str(path), number)
            if columns is None:
                named = _header(fields)
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
            if text.strip():
                self.labels.append(known.setdefault(label, label))
                self.texts.append(text)
                self.lines.append(number)
            else:
                self.skipped[EMPTY_TEXT] += 1
        if not self.texts:
            raise AttnscopeError(f"'{path}' holds no text with a label. {_RULE}")
        if not header:
            self._doubt()

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        if table_format(self.path) == "tsv":
            return tsv_records(lines(self.path), self.skipped)
        return csv_records(lines(self.path), str(self.path), self.skipped)

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


def _header(fields: Sequence[str]) -> tuple[int, int, int] | None:
    names = [name.strip().lower() for name in fields]
    found = [
        next((names.index(name) for name in known if name in names), None)
        for known in (LABEL_NAMES, TEXT_NAMES)
    ]
    label, text = found
    return None if label is None or text is None else (label, text, len(fields))


def _without(labels: Counter[str], one: str) -> list[int]:
    return [count for label, count in labels.items() if label != one]


def _ordered(labels: set[str]) -> tuple[str, ...]:
    try:
        return tuple(sorted(labels, key=lambda label: (int(label), label)))
    except ValueError:
        return tuple(sorted(labels))
