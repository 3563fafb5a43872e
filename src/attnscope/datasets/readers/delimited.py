"""Comma- and tab-separated records with their line numbers."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator

from attnscope.datasets.text import BLANK, LINE_LIMIT, Place


def csv_records(
    rows: Iterator[tuple[int, str]], name: str, skipped: Counter[str]
) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(line, fields)`` of comma-separated text; the line is where the record begins.

    Fields are quoted by RFC 4180: ``"`` around, ``""`` inside, line ends allowed inside. Blank
    lines between records are counted, save at the end of the file.

    Raises:
        AttnscopeError: for a quote that is not closed, or text after a closing quote.
    """
    # The limit belongs to the process; it is only ever raised, for others may have raised it.
    csv.field_size_limit(max(csv.field_size_limit(), LINE_LIMIT))
    reader = csv.reader((line + "\n" for _, line in rows), strict=True)
    place = Place(name)
    blank = 0
    while True:
        place.line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise place.error(
                f"the record that begins here is not CSV ({error}). Expected fields with commas "
                'between, quoted by " where they hold a comma, a quote ("" inside) or a line end.'
            ) from error
        if not fields or (len(fields) == 1 and not fields[0].strip()):
            blank += 1
            continue
        if blank:
            skipped[BLANK] += blank
            blank = 0
        yield place.line, fields


def tsv_records(
    rows: Iterator[tuple[int, str]], skipped: Counter[str]
) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(line, fields)`` of tab-separated text: one record a line, quotes are plain text."""
    blank = 0
    for number, line in rows:
        # Not by isspace: a line of tabs is a record of empty fields.
        if not line.strip(" "):
            blank += 1
            continue
        if blank:
            skipped[BLANK] += blank
            blank = 0
        yield number, line.split("\t")
