"""Find what gives a label away without being what the text says.

A feature that goes with a class (:mod:`~attnscope.probes.shortcuts.dependence`) is either content,
which attention ought to find, or a shortcut. Which one is told

- *by form*: marks, markup, addresses, bracketed names, ratings and boiler-plate are no content,
  whatever they stand with;
- *by place*: a token that decides at one place and not elsewhere; one exact length that sticks out
  of its neighbours;
- *by its text*: a word around which the text reads on as if it were not there, that has no bonds to
  its neighbours, and keeps no company of its own within its class
  (:mod:`~attnscope.probes.shortcuts.content`).

The bounds below were set on SST-2, IMDB and three pairs of classes of AG News with things planted
in them, and judged on other texts; ``benchmarks/shortcuts.py`` and docs/shortcuts.md have both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from attnscope.probes.shortcuts.content import Pairs
from attnscope.probes.shortcuts.dependence import LEVEL, Dependence, dependence
from attnscope.probes.shortcuts.features import (
    PLACES,
    Features,
    Kind,
    exact_length,
    from_tokens,
    placed,
)
from attnscope.probes.shortcuts.tokens import Tokens, tokens

LIFT: dict[Kind, float] = {
    "source": 0.25,
    "markup": 0.25,
    "rating": 0.5,
    "boiler-plate": 0.5,
    "position": 0.5,
    "mark": 0.9,
    "length": 0.5,
    "word": 0.75,
}
"""How far towards certainty a feature must take the label, by kind. What is no content by its form
is named early; a word or a mark must nearly decide. Of two that explain the same texts the first
is named."""
SURE_LIFT: dict[Kind, float] = {"mark": 0.4, "word": 0.5, "position": 0.05}
"""The same at the lower end of the interval for all features together. Of many the one that goes
best with a class looks better than it is: `"` and "..." belong to how some texts are written, and
on clean samples had 0.82 above at most, or few texts; a word ("buying") had 0.85 and 0.34 here, a
position 0.53 and 0.02. Planted marks had 0.94 or more above and 0.45 or more here; positions had
0.09 or more."""
PURE: dict[Kind, float] = {"word": 0.9}
"""From this lift on a feature need not be so sure: it is of one class alone, as planted ones."""
LEAST: dict[Kind, int] = {
    "word": 25,
    "position": 25,
    "length": 25,
    "boiler-plate": 10,
    "source": 15,
}
"""Texts below which a word cannot be told from content, or a phrase from a saying; 5 for others."""
MANY, LEAST_OF_MANY = 30, 40
"""Where so many words decide, as in sets about topics, some would look put in by chance: then they
must have so many texts."""
READS_ON, BONDS, COMPANY = 0.2, 2.0, 3.0
"""What one unit of each of the three tests is: standard deviations by which pairs around a token
are rarer than others, standardised ratio of its neighbours, standardised χ² of its company."""
CONTENT = 2.3
"""Units, summed over the tests, from which on a word is content. A put-in token passes all three at
once; of the hundreds of words that decide a set about topics some pass each test narrowly by
chance, and three bounds apart let one through now and then ("rookie": 1.7 + 0.9 + 0.4, "buying").
Planted tokens had -1.1 to 0.5, the nearest words of clean samples 2.5 to 3.9."""
MOST_BONDS, MOST_COMPANY = 4.0, 4.0
"""What a put-in token may have of one of them whatever the others say."""
PLACE_READS_ON, PLACE_BONDS = -0.4, 6.0
"""Bounds for a token at a place, whose neighbour is compared with what other texts of the class
have at that place: of clean samples "new" as the third token had bonds of 8.5, "says" as the last
but one read on at -0.57."""
TAIL = 0.7
"""How far the longest or the shortest texts must take the label; classes differ a little anyway."""
SPIKE = 3.0
"""Times by which one exact length must stick out of its neighbours in the class."""
SAME = 0.6
"""Overlap (Jaccard) of texts from which on two features are one shortcut."""
MOST = 200_000
"""Texts that are looked at; more are sampled."""


@dataclass(frozen=True, eq=False)
class Shortcut:
    """One thing that gives a label away.

    Args:
        kind: what it is.
        name: how it is shown.
        label: the class that it speaks for.
        count: texts that have it.
        share: of all texts.
        surely: share of them that are of the class.
        low: lower end of that, for everything that was looked at together (95 %).
        why: why it is taken for a shortcut and not for content.
        texts: numbers of the texts that have it.
        also: other features of nearly the same texts.
    """

    kind: Kind
    name: str
    label: int
    count: int
    share: float
    surely: float
    low: float
    why: str
    texts: NDArray[np.int64]
    also: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Search:
    """What was found, and what could have been.

    Args:
        shortcuts: the ones that decide most texts first.
        tested: how many features of each kind could be told from chance.
        least: share of texts that a pure feature of each kind must stand in to be found.
        texts: how many texts were looked at.
        content: words that decide and are content: word, class, texts, share of the class.
    """

    shortcuts: tuple[Shortcut, ...]
    tested: dict[Kind, int]
    least: dict[Kind, float]
    texts: int
    content: tuple[tuple[str, int, int, float], ...]


def find_shortcuts(
    texts: Sequence[str],
    labels: NDArray[np.int64],
    classes: int,
    *,
    seed: int = 0,
    tell: Callable[[int], None] = lambda done: None,
) -> Search:
    """Look for shortcuts in labelled texts.

    Args:
        texts: as published.
        labels: the class of each.
        classes: how many there are.
        seed: draws :data:`MOST` texts where there are more.
        tell: hears how many texts were read.
    """
    numbers = np.arange(len(texts))
    if len(texts) > MOST:
        numbers = np.sort(np.random.default_rng(seed).permutation(len(texts))[:MOST])
        texts, labels = [texts[int(i)] for i in numbers], labels[numbers]
    read = tokens(texts, tell)
    totals = np.bincount(labels, minlength=classes)
    looked = _Look(read, labels, totals, Pairs(read))
    found: list[Shortcut] = []
    tested: dict[Kind, int] = {}
    least: dict[Kind, float] = {}
    content: tuple[tuple[str, int, int, float], ...] = ()
    features = from_tokens(read)
    for kind, lift in LIFT.items():
        own = features[kind]
        depends = dependence(own.by_class(labels, classes), totals)
        tested[kind] = depends.tested
        enough = max(depends.least, LEAST.get(kind, 5))
        least[kind] = enough / len(texts)
        strong = depends.certain & (depends.lift >= lift) & (depends.count >= enough)
        if kind in ("word", "position") and strong.sum() > MANY:
            enough = max(enough, LEAST_OF_MANY)
            least[kind] = enough / len(texts)
            strong &= depends.count >= enough
        if kind in SURE_LIFT:
            base = (totals / totals.sum())[depends.best]
            surely = (depends.low - base) / (1 - base) >= SURE_LIFT[kind]
            strong &= surely | (depends.lift >= PURE.get(kind, np.inf))
        order = np.argsort(-depends.lift * depends.count, kind="stable")
        rejected = []
        for index in order[strong[order]]:
            why = looked.why(own, depends, int(index))
            if why:
                found.append(looked.shortcut(own, depends, int(index), why))
            elif kind == "word":
                rejected.append(int(index))
        if kind == "word":
            content = tuple(
                (
                    str(own.names[int(own.keys[i])]),
                    int(depends.best[i]),
                    int(depends.count[i]),
                    float(depends.share[i]),
                )
                for i in rejected[:20]
            )
    kept = [replace(one, texts=numbers[one.texts]) for one in _merged(found)]
    kept.sort(key=lambda one: -one.count * one.surely)
    return Search(tuple(kept), tested, least, len(texts), content)


@dataclass(frozen=True, eq=False)
class _Look:
    """What is needed to tell a shortcut from content."""

    read: Tokens
    labels: NDArray[np.int64]
    totals: NDArray[np.int64]
    pairs: Pairs

    def shortcut(self, own: Features, depends: Dependence, index: int, why: str) -> Shortcut:
        return Shortcut(
            own.kind,
            str(own.names[int(own.keys[index])]),
            int(depends.best[index]),
            int(depends.count[index]),
            float(depends.count[index] / len(self.read)),
            float(depends.share[index]),
            float(depends.low[index]),
            why,
            own.of(index),
        )

    def why(self, own: Features, depends: Dependence, index: int) -> str:
        """Say why a feature is a shortcut; nothing if it is content."""
        key, kind = int(own.keys[index]), own.kind
        if kind == "word":
            return self._put_in(key, self.pairs.occurrences(key), own.of(index), depends, index)
        if kind == "position":
            return self._by_place(own, depends, index, key)
        if kind == "length":
            return self._by_length(own, depends, index, key)
        return {
            "mark": "a mark is no content",
            "markup": "markup is no content",
            "source": "where a text is from is not what it says",
            "rating": "a rating is the label itself",
            "boiler-plate": "the same words word for word in many texts",
        }[kind]

    def _put_in(
        self,
        token: int,
        places: NDArray[np.int64],
        texts: NDArray[np.int64],
        depends: Dependence,
        index: int,
        usual_at: NDArray[np.int64] | None = None,
        bonds: float | None = None,
    ) -> str:
        effect = self.pairs.reads_on(places, usual_at) / np.sqrt(len(places))
        if bonds is not None:
            if effect < PLACE_READS_ON or bonds > PLACE_BONDS:
                return ""
            units = 0.0
        else:
            bonds = self.pairs.bonds(places)
            units = -effect / READS_ON + max(bonds / BONDS, 0)
            if units > CONTENT or bonds > MOST_BONDS:
                return ""
        label = depends.best[index]
        own = texts[self.labels[texts] == label]
        others = np.setdiff1d(np.flatnonzero(self.labels == label), own)
        company = self.pairs.company(token, own, others) if len(others) else 0.0
        if company > MOST_COMPANY:
            return ""
        if units and units + max(company / COMPANY, 0) > CONTENT:
            return ""
        return "texts read on as if it were not there, and it keeps no company of its own"

    def _by_place(self, own: Features, depends: Dependence, index: int, key: int) -> str:
        place, token = placed(key, len(self.read.names))
        texts, label = own.of(index), depends.best[index]
        elsewhere = np.setdiff1d(np.unique(self.pairs.text[self.pairs.occurrences(token)]), texts)
        of_class = int((self.labels[elsewhere] == label).sum())
        base = self.totals[label] / self.totals.sum()
        # The share elsewhere with one text's worth of what the class has anyway.
        usual = (of_class + base) / (len(elsewhere) + 1)
        hits = round(float(depends.share[index]) * len(texts))
        chance = betainc(hits, len(texts) - hits + 1, usual)
        if chance > LEVEL / depends.tested:
            return ""
        starts = self.read.starts
        # The other classes have it by chance; what counts is what its own class has besides.
        held = texts[self.labels[texts] == label]
        at = starts[held] + place if place >= 0 else starts[held + 1] + place
        rest = np.setdiff1d(np.flatnonzero(self.read.lengths > PLACES), texts)
        # Texts that do not have it: how they go on at this place. Behind the last there is nothing.
        usual_at = starts[rest] + place if place >= 0 else starts[rest + 1] + place + 1
        own_rest = rest[self.labels[rest] == label]
        same_at = starts[own_rest] + place if place >= 0 else starts[own_rest + 1] + place
        bonds = self.pairs.place_bonds(at, same_at, 1 if place >= 0 else -1)
        behind = usual_at if place != -1 else None
        if not self._put_in(token, at, texts, depends, index, behind, bonds):
            return ""
        if not len(elsewhere):
            return "it stands at this place and nowhere else, and texts read on without it"
        return (
            f"elsewhere the same token says little ({100 * usual:.0f} % of the class), and texts "
            "read on without it"
        )

    def _by_length(self, own: Features, depends: Dependence, index: int, key: int) -> str:
        length = exact_length(key)
        if length is None:
            return "a length is no content" if depends.lift[index] >= TAIL else ""
        mine = self.read.lengths[self.labels == depends.best[index]]
        near = np.bincount(mine, minlength=length + 4)[max(0, length - 3) : length + 4]
        around = (near.sum() - (mine == length).sum()) / max(len(near) - 1, 1)
        if (mine == length).sum() < SPIKE * max(around, 1.0):
            return ""
        return f"{(mine == length).sum() / max(around, 1.0):.0f} times its neighbouring lengths"


def _merged(found: Sequence[Shortcut]) -> list[Shortcut]:
    """Put features of nearly the same texts together, under the one that was found first."""
    kept: list[Shortcut] = []
    for one in found:
        for index, other in enumerate(kept):
            common = len(np.intersect1d(one.texts, other.texts, assume_unique=True))
            if other.label == one.label and common > SAME * (one.count + other.count - common):
                kept[index] = replace(other, also=(*other.also, f"{one.kind} {one.name}"))
                break
        else:
            kept.append(one)
    return kept
