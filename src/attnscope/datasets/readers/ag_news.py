"""AG News: CSV of class, title and description."""

from __future__ import annotations

from pathlib import Path

from attnscope.datasets.kinds import Rows, Split
from attnscope.datasets.readers.delimited import csv_records
from attnscope.datasets.text import Place, lines

CLASSES = ("World", "Sports", "Business", "Sci/Tech")


def read_ag_news(path: Path) -> Split:
    """Read ``train.csv`` or ``test.csv``; the text is ``title description``.

    As published there is no header and each record is ``"class","title","description"`` with the
    class from 1 to 4. Files with the header ``class_index,title,text,source`` are read too; where
    the title is empty the text is the description alone. Backslashes and remains of HTML stay.
    """
    rows = Rows(("1", "2", "3", "4"))
    columns = 3
    for number, fields in csv_records(lines(path), str(path), rows.skipped):
        place = Place(str(path), number)
        if number == 1 and fields[:3] == ["class_index", "title", "text"]:
            columns = len(fields)
            continue
        if len(fields) != columns:
            raise place.error(
                f"there are {len(fields)} fields. Expected {columns}: class, title, description"
                f"{' and those of the header' if columns > 3 else ''}."
            )
        label, title, text = fields[:3]
        rows.add(f"{title.strip()} {text.strip()}", label, place)
    return rows.split()
