"""The SMS Spam Collection: ``ham`` or ``spam``, a tab and the message, one a line."""

from __future__ import annotations

from pathlib import Path

from attnscope.datasets.archives import sources
from attnscope.datasets.kinds import Rows, Split
from attnscope.datasets.readers.delimited import tsv_records
from attnscope.datasets.text import Place

CLASSES = ("ham", "spam")


def read_sms_spam(path: Path) -> Split:
    """Read ``SMSSpamCollection``, plain or in the zip it is published in. There is one split."""
    rows = Rows(CLASSES)
    for name, source in sources(path, r"(^|/)SMSSpamCollection(\.txt)?$", rows.skipped):
        for number, fields in tsv_records(source, rows.skipped):
            place = Place(name, number)
            if len(fields) != 2:
                raise place.error(
                    f"there are {len(fields) - 1} tabs. Expected one: 'ham' or 'spam', a tab and "
                    "the message."
                )
            rows.add(fields[1], fields[0], place)
    return rows.split()
