"""Gold word alignments in the usual formats, for texts of their own or lines of a corpus.

*Pharaoh*: line n has the links of pair n, ``0-0 1-2 2?3``; ``i-j`` is sure, ``i?j`` (or ``ipj``) is
possible. Some files count words from 0, some from 1: a 0 tells the one, the number of the last word
the other. *NAACL 2003*: a line for each link, ``pair source target``, then perhaps ``S`` or ``P``
and perhaps a confidence; all of them from 1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

from attnscope.datasets.kinds import Alignments
from attnscope.datasets.text import Place, lines
from attnscope.errors import AttnscopeError

_LINK = re.compile(r"([0-9]{1,9})([-?pP])([0-9]{1,9})")
_NUMBERED = re.compile(r"[0-9]{1,9}\s+[0-9]{1,9}\s+[0-9]{1,9}(\s+.*)?")
PHARAOH, NAACL = "Pharaoh", "NAACL 2003"
Pair = tuple[Sequence[str], Sequence[str]]
Raw = tuple[int, int, bool, Place]
"""Source word, target word, whether it is sure, and where it stands."""


@dataclass(frozen=True, eq=False)
class Gold:
    """Links that people made, and how they were read.

    Args:
        alignments: words and links.
        form: :data:`PHARAOH` or :data:`NAACL`.
        base: 0 or 1, what the file counts words from.
        own_text: whether the sentences came with the links; else they are lines of the corpus.
    """

    alignments: Alignments
    form: str
    base: int
    own_text: bool


def read_gold(files: str, corpus: tuple[Sequence[str], Sequence[str]] | None = None) -> Gold:
    """Read gold alignments.

    Args:
        files: ``LINKS``, for the first lines of the corpus; ``TEXTS:LINKS``, with
            ``source ||| target`` in the texts; or ``SOURCE:TARGET:LINKS``.
        corpus: source and target sentences, for links without texts.

    Raises:
        AttnscopeError: there are no such files; with file and line for what is no link, or a link
            that leaves its pair; no link at all.
    """
    found = _files(files)
    if len(found) > 1:
        pairs = list(_texts(found[:-1]))
    elif corpus is not None:
        pairs = [(one.split(), other.split()) for one, other in zip(*corpus, strict=True)]
    else:
        raise AttnscopeError(
            f"--gold {files}: expected texts as well, as TEXTS:LINKS or SOURCE:TARGET:LINKS."
        )
    form, rows = _rows(found[-1])
    if len(rows) > len(pairs) or (len(found) > 1 and form == PHARAOH and len(rows) != len(pairs)):
        raise AttnscopeError(
            f"'{found[-1]}' has links of {len(rows):,} pairs, and there are {len(pairs):,}: "
            "expected as many, the links of pair n in line n."
        )
    pairs = pairs[: len(rows)]
    base = _base(form, rows, pairs, found[-1])
    made = Alignments([], [], [], [])
    for (source, target), links in zip(pairs, rows, strict=True):
        by_kind: dict[bool, set[tuple[int, int]]] = {True: set(), False: set()}
        for i, j, sure, place in links:
            if not (base <= i < len(source) + base and base <= j < len(target) + base):
                raise place.error(
                    f"the link of words {i} and {j} leaves the pair. Expected words {base} to "
                    f"{len(source) + base - 1} and {base} to {len(target) + base - 1}, of "
                    f"{' '.join(source)[:60]!r} and {' '.join(target)[:60]!r}."
                )
            by_kind[sure].add((i - base, j - base))
        made.source.append(list(source))
        made.target.append(list(target))
        made.sure.append(frozenset(by_kind[True]))
        made.possible.append(frozenset(by_kind[False] - by_kind[True]))
    if not any(made.sure):
        raise AttnscopeError(
            f"'{found[-1]}' holds no sure link: expected some, such as '1-2' or '1 1 2 S'."
        )
    return Gold(made, form, base, len(found) > 1)


def _files(said: str) -> list[Path]:
    """Split by colons; a path may hold some itself, so every way is tried."""
    colons = [at for at, letter in enumerate(said) if letter == ":"]
    for cuts in (0, 1, 2):
        for chosen in combinations(colons, cuts):
            ends = (-1, *chosen, len(said))
            parts = [said[a + 1 : b] for a, b in pairwise(ends)]
            if all(os.path.isfile(part) for part in parts):
                return [Path(part) for part in parts]
    raise AttnscopeError(
        f"--gold {said}: expected files that exist, as LINKS, TEXTS:LINKS or SOURCE:TARGET:LINKS."
    )


def _texts(paths: Sequence[Path]) -> Iterator[Pair]:
    if len(paths) == 1:
        for number, line in lines(paths[0]):
            sides = [side.split() for side in line.split("|||")]
            if len(sides) != 2 or not all(sides):
                raise Place(str(paths[0]), number).error(
                    f"{line[:60]!r} is no pair. Expected 'source ||| target'."
                )
            yield sides[0], sides[1]
        return
    one, other = ([line.split() for _, line in lines(path)] for path in paths)
    if len(one) != len(other):
        raise AttnscopeError(
            f"'{paths[0]}' has {len(one)} lines and '{paths[1]}' has {len(other)}: expected as "
            "many, one sentence a line."
        )
    yield from zip(one, other, strict=True)


def _rows(path: Path) -> tuple[str, list[list[Raw]]]:
    """Read links, pair by pair; the first line that is not blank tells the form."""
    read = list(lines(path))
    first = next((line.strip() for _, line in read if line.strip()), "")
    if not _NUMBERED.fullmatch(first):
        return PHARAOH, [_pharaoh(line, Place(str(path), number)) for number, line in read]
    rows: list[list[Raw]] = []
    for number, line in read:
        fields, place = line.split(), Place(str(path), number)
        if not fields:
            continue
        kind = fields[3].upper() if len(fields) > 3 and not _is_number(fields[3]) else "S"
        if not _NUMBERED.fullmatch(line.strip()) or len(fields) > 5 or kind not in ("S", "P"):
            raise place.error(
                f"{line.strip()[:60]!r} is no link. Expected 'pair source target', then perhaps S "
                "or P, as in '18 1 2 P'."
            )
        pair, i, j = (int(field) for field in fields[:3])
        if not 1 <= pair <= 10_000_000:
            raise place.error(f"pair {pair}: expected pairs from 1 on.")
        rows.extend([] for _ in range(pair - len(rows)))
        if i and j:  # 0 is the null word: no link
            rows[pair - 1].append((i, j, kind == "S", place))
    return NAACL, rows


def _pharaoh(line: str, place: Place) -> list[Raw]:
    links = []
    for link in line.split():
        match = _LINK.fullmatch(link)
        if match is None:
            raise place.error(
                f"'{link[:40]}' is no link. Expected 'i-j' for a sure one, 'i?j' or 'ipj' for a "
                "possible one."
            )
        links.append((int(match[1]), int(match[3]), match[2] == "-", place))
    return links


def _base(form: str, rows: list[list[Raw]], pairs: Sequence[Pair], path: Path) -> int:
    """Tell what words are counted from; 0 where both would fit."""
    if form == NAACL:
        return 1
    zero = one = None
    for (source, target), links in zip(pairs, rows, strict=True):
        for i, j, _, place in links:
            if min(i, j) == 0:
                zero = zero or place
            elif i == len(source) or j == len(target):
                one = one or place
    if zero and one:
        raise AttnscopeError(
            f"'{path}' counts words from 0 in line {zero.line} and has the number of words as a "
            f"word in line {one.line}: expected one of them."
        )
    return 1 if one else 0


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
