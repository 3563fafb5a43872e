"""20 Newsgroups "bydate": ``20news-bydate-{train,test}/GROUP/NUMBER``, one message a file."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from attnscope.datasets.archives import by_number, members
from attnscope.datasets.kinds import EMPTY_TEXT, Rows, Split
from attnscope.datasets.text import Place
from attnscope.errors import AttnscopeError

NO_BODY = "message without a body"

_MESSAGE = re.compile(r"(?:^|/)20news-bydate-(train|test)/([^/]+)/([0-9]+)$")


def read_newsgroups(path: Path, groups: tuple[str, ...]) -> dict[str, Split]:
    """Read the splits ``train`` and ``test``; the text is the body of the message.

    The header (all lines up to the first blank one, the subject too) is left out: it names the
    group and the writer. Quotes and signatures stay. A message that has nothing after its header
    is left out and counted. Bytes are Latin-1. Rows are ordered by group, then by number.

    Args:
        path: ``20news-bydate.tar.gz`` or the folder that holds ``20news-bydate-train`` and
            ``20news-bydate-test``.
        groups: the names of the groups, which are the classes.
    """
    found: dict[str, list[tuple[str, tuple[int, str], str, str]]] = {"train": [], "test": []}
    skipped: Counter[str] = Counter()
    for member in members(path, skipped):
        match = _MESSAGE.search(str(member.path))
        if match is not None:
            split, group, number = match.groups()
            text = member.text("latin-1")
            found[split].append((group, by_number(number), text, member.label))
    splits = {}
    for split, messages in found.items():
        if not messages:
            raise AttnscopeError(
                f"'{path}' holds no message of the split {split}. Expected files such as "
                f"'20news-bydate-{split}/sci.med/57110'."
            )
        rows = Rows(groups)
        if split == "train":
            rows.skipped.update(skipped)
        for group, _, message, name in sorted(messages):
            rows.add(message.partition("\n\n")[2], group, Place(name, 1))
        if EMPTY_TEXT in rows.skipped:
            rows.skipped[NO_BODY] = rows.skipped.pop(EMPTY_TEXT)
        splits[split] = rows.split()
    return splits
