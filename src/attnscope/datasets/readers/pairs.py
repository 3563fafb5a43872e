"""Parallel text: two line-aligned files, or one file of ``source<TAB>target``."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest
from pathlib import Path

from attnscope.datasets.readers.delimited import tsv_records
from attnscope.datasets.text import Place, lines
from attnscope.errors import AttnscopeError

ONE_EMPTY = "pair with an empty side"
BOTH_EMPTY = "pair with both sides empty"

Pairs = tuple[list[str], list[str]]


def read_aligned(source: Path, target: Path, skipped: Counter[str], *, bpe: bool = False) -> Pairs:
    """Read two files whose lines belong together.

    A pair with an empty line is left out on both sides and counted; blank lines at the end of
    both files are not.

    Args:
        source: the sentences to translate, one a line.
        target: their translations.
        skipped: counts the pairs left out, by reason.
        bpe: join byte-pair pieces again: ``"ka@@ p"`` becomes ``"kap"``.

    Raises:
        AttnscopeError: if one file has more lines than the other, blank ones at its end aside.
    """
    kept: Pairs = ([], [])
    blank = 0
    for one, other in zip_longest(lines(source), lines(target)):
        left, right = (row[1].strip() if row else "" for row in (one, other))
        if not (left or right):
            blank += 1
            continue
        if one is None or other is None:
            raise _uneven(source, target)
        if blank:
            skipped[BOTH_EMPTY] += blank
            blank = 0
        _keep(kept, left, right, skipped, bpe)
    return kept


def read_tabbed(path: Path, skipped: Counter[str], *, bpe: bool = False) -> Pairs:
    """Read ``source<TAB>target``, one pair a line; see :func:`read_aligned` for the rest."""
    kept: Pairs = ([], [])
    for number, fields in tsv_records(lines(path), skipped):
        if len(fields) != 2:
            raise Place(str(path), number).error(
                f"there are {len(fields) - 1} tabs. Expected one: source, a tab and target."
            )
        _keep(kept, fields[0].strip(), fields[1].strip(), skipped, bpe)
    return kept


def _keep(kept: Pairs, left: str, right: str, skipped: Counter[str], bpe: bool) -> None:
    if not left or not right:
        skipped[ONE_EMPTY if left or right else BOTH_EMPTY] += 1
        return
    for side, text in zip(kept, (left, right), strict=True):
        side.append(text.replace("@@ ", "").removesuffix("@@") if bpe else text)


def _uneven(source: Path, target: Path) -> AttnscopeError:
    counts = [sum(1 for _ in lines(path)) for path in (source, target)]
    return AttnscopeError(
        f"'{source}' has {counts[0]} lines and '{target}' has {counts[1]}: expected as many, one "
        "sentence a line, so that line i of one translates line i of the other."
    )
