"""Amazon reviews of many domains: pseudo-XML ``*.review`` files, or ``label<TAB>text``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from attnscope.datasets.archives import sources
from attnscope.datasets.kinds import Rows, Split
from attnscope.datasets.readers.delimited import tsv_records
from attnscope.datasets.text import Place

CLASSES = ("negative", "positive")
NEUTRAL = "rating of 3"

_WANTED = r"(^|/)(positive|negative)\.review$|\.task\.(train|test)$"
_FIELDS = {"<rating>": "</rating>", "<review_text>": "</review_text>"}


def read_amazon(path: Path) -> dict[str, Split]:
    """Read either release. Bytes are Latin-1.

    ``DOMAIN/positive.review`` and ``DOMAIN/negative.review`` of all domains make one split,
    ``train``. They look like XML but are not: ``&`` and ``<`` stand bare in the text. A tag is a
    line of its own. The label comes from the rating: above 3 positive, below negative; a rating of
    3 is left out and counted. ``unlabeled.review`` and ``all.review`` are not read.

    ``DOMAIN.task.train`` and ``DOMAIN.task.test`` hold lines ``label<TAB>text`` with the labels 0
    (negative) and 1 (positive). ``DOMAIN.task.unlabel`` is not read.

    Args:
        path: a tar or zip as published, its unpacked folder, or a single file.
    """
    splits = {"train": Rows(CLASSES), "test": Rows(CLASSES)}
    unsafe: Counter[str] = Counter()
    for name, source in sources(path, _WANTED, unsafe, "latin-1"):
        rows = splits["test" if ".task.test" in name else "train"]
        records = _reviews if ".review" in Path(name).name else _tabbed
        for place, rating, text in records(source, name, rows):
            if rating == 3:
                rows.skipped[NEUTRAL] += 1
            else:
                rows.add(text, CLASSES[rating > 3], place)
    splits["train"].skipped.update(unsafe)
    return {name: rows.split() for name, rows in splits.items() if rows.texts}


def _tabbed(
    source: Iterator[tuple[int, str]], name: str, rows: Rows
) -> Iterator[tuple[Place, float, str]]:
    for number, fields in tsv_records(source, rows.skipped):
        place = Place(name, number)
        if len(fields) != 2 or fields[0].strip() not in ("0", "1"):
            raise place.error(
                f"found {' | '.join(fields)[:60]!r}. Expected the label 0 or 1, a tab and the text."
            )
        yield place, 5.0 if fields[0].strip() == "1" else 1.0, fields[1]


def _reviews(
    source: Iterator[tuple[int, str]], name: str, _: Rows
) -> Iterator[tuple[Place, float, str]]:
    start = Place(name)
    found: dict[str, str] = {}
    is_open = False
    for number, line in source:
        tag = line.strip()
        if tag == "<review>":
            if is_open:
                raise start.error("the review that begins here has no '</review>'.")
            start, found, is_open = Place(name, number), {}, True
        elif tag == "</review>":
            if not is_open:
                raise Place(name, number).error("there is '</review>' without '<review>'.")
            yield start, _rating(found, start), found["<review_text>"]
            is_open = False
        elif tag in _FIELDS and is_open:
            found[tag] = _until(_FIELDS[tag], source, Place(name, number))
    if is_open:
        raise start.error("the review that begins here has no '</review>'.")


def _until(end: str, source: Iterator[tuple[int, str]], start: Place) -> str:
    held: list[str] = []
    for _, line in source:
        if line.strip() == end:
            return "\n".join(held).strip()
        held.append(line)
    raise start.error(f"the field that begins here has no '{end}'.")


def _rating(found: dict[str, str], start: Place) -> float:
    missing = [tag for tag in _FIELDS if tag not in found]
    if missing:
        raise start.error(f"the review that begins here has no {' and no '.join(missing)}.")
    try:
        rating = float(found["<rating>"])
    except ValueError:
        rating = 0.0
    if not 1 <= rating <= 5:
        raise start.error(f"the rating is {found['<rating>']!r}. Expected a number from 1 to 5.")
    return rating
