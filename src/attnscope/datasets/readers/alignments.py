"""Gold word alignments: ``German ||| English`` beside a file of links such as ``9-8 25p22``."""

from __future__ import annotations

import re
from pathlib import Path

from attnscope.datasets.kinds import Alignments
from attnscope.datasets.text import Place, lines
from attnscope.errors import AttnscopeError

_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")


def read_alignments(sentences: Path, links: Path) -> Alignments:
    """Read sentence pairs and their links: ``i-j`` is sure, ``ipj`` possible, counted from 1.

    Args:
        sentences: ``source ||| target``, words with spaces between, one pair a line.
        links: the links of pair n in line n; may be none.

    Raises:
        AttnscopeError: with file and line, for a line of another form, a link to a word that is
            not there, or files of different length.
    """
    found = Alignments([], [], [], [])
    pairs, rows = list(lines(sentences)), list(lines(links))
    if len(pairs) != len(rows):
        raise AttnscopeError(
            f"'{sentences}' has {len(pairs)} lines and '{links}' has {len(rows)}: expected as "
            "many, the links of pair n in line n."
        )
    for (number, pair), (_, row) in zip(pairs, rows, strict=True):
        sides = [side.split() for side in pair.split("|||")]
        if len(sides) != 2 or not all(sides):
            raise Place(str(sentences), number).error("expected 'source ||| target'.")
        place = Place(str(links), number)
        by_kind: dict[str, set[tuple[int, int]]] = {"-": set(), "p": set()}
        for link in row.split():
            match = _LINK.fullmatch(link)
            if match is None:
                raise place.error(f"'{link[:40]}' is no link. Expected 'i-j' or 'ipj'.")
            i, j = int(match[1]), int(match[3])
            if not (1 <= i <= len(sides[0]) and 1 <= j <= len(sides[1])):
                raise place.error(
                    f"the link '{link}' leaves the pair. Expected words 1 to {len(sides[0])} and "
                    f"1 to {len(sides[1])}."
                )
            by_kind[match[2]].add((i - 1, j - 1))
        found.source.append(sides[0])
        found.target.append(sides[1])
        found.sure.append(frozenset(by_kind["-"]))
        found.possible.append(frozenset(by_kind["p"]))
    return found
