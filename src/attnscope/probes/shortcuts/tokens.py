"""Texts as tokens with a form: words, marks, markup, addresses, names in brackets.

A shortcut is often told by its form, so nothing is thrown away here that a tokeniser for training
throws away: case of names, tags, addresses, runs of marks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FORMS = ("word", "mark", "markup", "source", "rating")
WORD, MARK, MARKUP, SOURCE, RATING = range(len(FORMS))
_TOKEN = re.compile(
    r"(?P<markup></?[A-Za-z][^<>]{0,60}>|&\#?\w{1,8};|\#\d{2,3};|\[/?(?:b|i|url|quote)\])"
    r"|(?P<source>[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?:https?://|www\.)[^\s<>()\"']+"
    r"|\((?=[^()]*[A-Z])[A-Za-z][\w.&' -]{0,38}\))"
    r"|(?P<rating>\d{1,3}(?:[.,]\d)?/(?:4|5|10|100)\b(?![/\d]))"
    r"|(?P<word>\d+(?:[.,/:]\d+)+|\w+(?:[-'’]\w+)*|[$£€%])"
    r"|(?P<mark>([^\w\s])\6*)"
)
_HOST = re.compile(r"^(?:https?://)?(?:www\.)?([^/:?#]+)", re.IGNORECASE)
CHUNK = 5_000
"""Texts between two reports of progress."""


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of texts, laid end to end.

    Args:
        ids: an index into ``names``, all texts one after the other.
        starts: text m is ``ids[starts[m]:starts[m + 1]]``.
        names: what each token looks like, in lower case but for sources.
        forms: its form, an index into :data:`FORMS`.
        marked: whether each one is written in its rarer way: a word with a capital, a mark by
            itself between spaces. The same token in another dress may be another thing.
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    names: tuple[str, ...]
    forms: NDArray[np.int8]
    marked: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text."""
        return np.diff(self.starts)

    @property
    def text(self) -> NDArray[np.int64]:
        """Which text each token stands in."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def row(self, number: int) -> tuple[str, ...]:
        """Return the tokens of one text."""
        ids = self.ids[self.starts[number] : self.starts[number + 1]]
        return tuple(self.names[i] for i in ids)


def tokens(texts: Sequence[str], tell: Callable[[int], None] = lambda done: None) -> Tokens:
    """Split texts into tokens with a form.

    An address of the web is its host, so that pages of one site are one source; a bracketed name
    such as "(Reuters)" is one token; a run of one mark ("!!!") is one mark; a rating such as "8/10"
    is one token.

    Args:
        texts: as published.
        tell: hears how many texts are done, now and then.

    >>> read = tokens(["By Ann (Reuters) 8/10!!! <br /> a@b.org"])
    >>> [f"{FORMS[form]} {name}" for name, form in zip(read.names, read.forms)][2:]
    ['source (Reuters)', 'rating 8/10', 'mark !!!', 'markup <br>', 'source a@b.org']
    """
    numbers: dict[str, int] = {}
    forms: list[int] = []
    ids: list[NDArray[np.int32]] = []
    ways: list[NDArray[np.bool_]] = []
    lengths = np.zeros(len(texts), np.int64)
    for index, text in enumerate(texts):
        row, way = [], []
        for match in _TOKEN.finditer(text):
            form, name = _named(match)
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = len(forms)
                forms.append(form)
            row.append(number)
            way.append(_alone(match) if form == MARK else match.group() != name)
        ids.append(np.array(row, dtype=np.int32))
        ways.append(np.array(way, dtype=np.bool_))
        lengths[index] = len(row)
        if index % CHUNK == CHUNK - 1:
            ids, ways = [np.concatenate(ids)], [np.concatenate(ways)]
            tell(index + 1)
    flat = np.concatenate(ids).astype(np.int64) if ids else np.zeros(0, np.int64)
    marked = np.concatenate(ways) if ways else np.zeros(0, np.bool_)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Tokens(flat, starts, tuple(numbers), np.array(forms, dtype=np.int8), marked)


def _alone(match: re.Match[str]) -> bool:
    """Say whether a mark stands by itself between spaces, or a text's beginning or end."""
    text, start, end = match.string, match.start(), match.end()
    return (not start or text[start - 1].isspace()) and (end == len(text) or text[end].isspace())


def _named(match: re.Match[str]) -> tuple[int, str]:
    text = match.group()
    if match.group("word") is not None:
        return WORD, text.lower()
    if match.group("rating") is not None:
        return RATING, text
    if match.group("markup") is not None:
        tag = re.match(r"</?\w+", text)
        return MARKUP, f"{tag.group().lower()}>" if tag else text.lower()
    if match.group("source") is not None:
        if text[0] == "(" or "@" in text:
            return SOURCE, text
        host = _HOST.match(text)
        return SOURCE, host.group(1).lower() if host else text
    return MARK, text
