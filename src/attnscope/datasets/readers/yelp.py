"""Yelp reviews: JSON lines, or CSV with a header, with ``text`` and ``stars``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from attnscope.datasets.archives import sources
from attnscope.datasets.kinds import Rows, Split
from attnscope.datasets.readers.delimited import csv_records
from attnscope.datasets.text import Place, filled

CLASSES = ("negative", "positive")
NEUTRAL = "three stars"

_WRITTEN = {"1": 0, "2": 0, "4": 1, "5": 1}


def read_yelp(path: Path) -> Split:
    """Read reviews of one or two stars (negative) and of four or five (positive).

    Reviews of three stars are left out and counted. There is one split.

    Args:
        path: ``yelp_academic_dataset_review.json`` (one object a line) or a CSV whose header names
            ``text`` and ``stars``; plain, packed, or in the tar as published.
    """
    rows = Rows(CLASSES)
    for name, source in sources(path, r"review\.(json|csv)$", rows.skipped):
        is_csv = Path(name.removesuffix(".gz").removesuffix(".xz")).suffix.lower() == ".csv"
        records = _from_csv if is_csv else _from_json
        for place, text, stars in records(source, name, rows):
            written = str(stars).removesuffix(".0")  # 4, 4.0, "4" and "4.0" are the same
            if written == "3":
                rows.skipped[NEUTRAL] += 1
            elif written in _WRITTEN:
                rows.add(text, CLASSES[_WRITTEN[written]], place)
            else:
                raise place.error(f"'stars' is {written[:40]!r}. Expected a whole number, 1 to 5.")
    return rows.split()


def _from_json(
    source: Iterator[tuple[int, str]], name: str, rows: Rows
) -> Iterator[tuple[Place, str, object]]:
    for number, line in filled(source, rows.skipped):
        place = Place(name, number)
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise place.error(f"not JSON ({error}). Expected one object a line.") from error
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise place.error("expected an object with 'text' (a string) and 'stars'.")
        text, stars = record["text"], record.get("stars")
        if isinstance(stars, list | dict):
            raise place.error("'stars' is a list or an object. Expected a whole number, 1 to 5.")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise place.error("'text' holds half a character (a surrogate). Expected Unicode.")
        yield place, text, stars


def _from_csv(
    source: Iterator[tuple[int, str]], name: str, rows: Rows
) -> Iterator[tuple[Place, str, object]]:
    header: list[str] = []
    for number, fields in csv_records(source, name, rows.skipped):
        place = Place(name, number)
        if not header:
            header = fields
            if not {"text", "stars"} <= set(header):
                raise place.error(
                    f"the header is {', '.join(header)[:200]!r}. Expected columns 'text' and "
                    "'stars'."
                )
        elif len(fields) != len(header):
            raise place.error(f"there are {len(fields)} fields. Expected {len(header)}.")
        else:
            yield place, fields[header.index("text")], fields[header.index("stars")]
