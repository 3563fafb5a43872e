"""Find what gives a label away without being what the text says.

A feature that goes with a class (:mod:`~attnscope.probes.shortcuts.dependence`) is either content,
which attention ought to find, or a shortcut. Which one is told

- *by form*: marks that nearly decide, markup, addresses, bracketed names, ratings and boiler-plate
  are no content, whatever they stand with;
- *by place*: a token that decides at one place and not elsewhere; one exact length that sticks out
  of its neighbours;
- *by its text*: a word or a mark around which the text reads on as if it were not there, that has
  no bonds to its neighbours, and keeps no company of its own within its class
  (:mod:`~attnscope.probes.shortcuts.content`).

Where texts have a token anyway, one way of writing it may be the shortcut: it is named in place of
the token if it explains all that the token says (:meth:`Judge.explains`).

The bounds were set on SST-2, IMDB and AG News with things planted in them, and judged on other
texts; ``benchmarks/shortcuts.py`` and docs/shortcuts.md have both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attnscope.probes.shortcuts.content import Pairs
from attnscope.probes.shortcuts.dependence import Dependence, dependence
from attnscope.probes.shortcuts.features import Features, Kind, from_tokens, undressed
from attnscope.probes.shortcuts.judge import Judge
from attnscope.probes.shortcuts.tokens import tokens

LIFT: dict[Kind, float] = {
    "source": 0.25,
    "markup": 0.25,
    "rating": 0.5,
    "boiler-plate": 0.5,
    "position": 0.5,
    "mark": 0.5,
    "length": 0.5,
    "word": 0.75,
}
"""How far towards certainty a feature must take the label, by kind. What is no content by its form
is named early; a word must nearly decide, and so must a mark that is not put in
(:data:`~attnscope.probes.shortcuts.judge.MARK_LIFT`). Of two that explain the same texts the first
is named."""
SURE_LIFT: dict[Kind, float] = {"mark": 0.05, "word": 0.5, "position": 0.05}
"""The same at the lower end of the interval for all features together. Of many the one that goes
best with a class looks better than it is: on clean samples a word ("buying") had 0.85 above and
0.34 here, a position 0.53 and 0.02. Planted positions had 0.09 or more."""
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
"""Where so many tokens at places decide, as in sets about topics, some would look put in by chance:
then they must have so many texts."""
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
    judge = Judge(read, labels, totals, Pairs(read))
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
        if kind == "position" and strong.sum() > MANY:
            enough = max(enough, LEAST_OF_MANY)
            least[kind] = enough / len(texts)
            strong &= depends.count >= enough
        if kind in SURE_LIFT:
            base = (totals / totals.sum())[depends.best]
            surely = (depends.low - base) / (1 - base) >= SURE_LIFT[kind]
            strong &= surely | (depends.lift >= PURE.get(kind, np.inf))
        order = np.argsort(-depends.lift * depends.count, kind="stable")
        rejected, named = [], {}
        for index in order[strong[order]]:
            why = judge.why(own, depends, int(index))
            if why:
                named[int(own.keys[index])] = _shortcut(own, depends, int(index), why, len(read))
            elif kind == "word":
                rejected.append(int(index))
        found += _one_way_each(kind, named, judge)
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


def _shortcut(own: Features, depends: Dependence, index: int, why: str, texts: int) -> Shortcut:
    return Shortcut(
        own.kind,
        str(own.names[int(own.keys[index])]),
        int(depends.best[index]),
        int(depends.count[index]),
        float(depends.count[index] / texts),
        float(depends.share[index]),
        float(depends.low[index]),
        why,
        own.of(index),
    )


def _one_way_each(kind: Kind, named: dict[int, Shortcut], judge: Judge) -> list[Shortcut]:
    """Of a token and a way of writing it, keep the way if it explains the token, or the token."""
    kept = dict(named)
    for key, one in named.items():
        whole = undressed(kind, key, len(judge.read.names))
        if whole is not None and whole in named and one.label == named[whole].label:
            explained = judge.explains(one.texts, named[whole].texts, one.label)
            kept.pop(whole if explained else key, None)
    return list(kept.values())


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
