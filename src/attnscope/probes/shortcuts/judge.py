"""Is a feature that goes with a class a shortcut or content, and why?

By form, by place, or by its text: see :mod:`~attnscope.probes.shortcuts.find`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from attnscope.probes.shortcuts.content import Pairs
from attnscope.probes.shortcuts.dependence import LEVEL, Dependence
from attnscope.probes.shortcuts.features import (
    PLACES,
    Features,
    exact_length,
    placed,
    undressed,
)
from attnscope.probes.shortcuts.tokens import Tokens

READS_ON, BONDS, COMPANY = 0.2, 2.0, 3.0
"""What one unit of each test is: standard deviations by which pairs around a token are rarer than
others, or rather pairs with a token between them; standardised ratio of its neighbours, and of the
frequent ones among them; standardised χ² of its company."""
CONTENT = 4.5
"""Units, summed over the five tests, from which on a word is content; a test that speaks for being
put in counts nothing, so that it makes up for no other. A put-in token passes all at once; of the
hundreds of words that decide a set about topics some pass each narrowly by chance. On samples of
IMDB's training texts, SST-2 and three pairs of AG News, planted tokens in 26 to 150 texts had 4.04
at most but for one of 208 (5.6, in 26 texts), and words that decide 4.7 ("allegedly", in 25 texts)
or 5.6 at least."""
MARK_LIFT, MARK_SURE = 0.9, 0.7
"""How far towards certainty a mark must take the label by what was seen, and at the lower end of
the interval, to be a shortcut whatever its text says. Of many the one that goes best with a class
looks better than it is: `"` and "???" belong to how some texts are written, and on clean samples
had 0.91 of the first and 0.6 of the second at most. Any other must be put in by the tests above: on
samples of the same sets natural marks had 6.0 units at least, planted ones where texts have the
mark anyway 3.9 at most."""
LEAST_PUT_IN = 25
"""Texts below which a token that was put in cannot be told from one that was not."""
PLACE_READS_ON, PLACE_SIDE_BY_SIDE, PLACE_BONDS, PLACE_COMPANY = -0.4, -0.6, 6.0, 4.0
"""Bounds for a token at a place, whose neighbour is compared with what other texts of the class
have at that place: of clean samples "new" as the third token had bonds of 8.5, "says" as the last
but one read on at -0.57. Side by side, planted tokens had -0.33 or more."""
PLACE_CONTENT = 4.0
"""Units of them all together, from which on a token at a place is content: planted ones had 3.05 at
most, "new" as the third token of business and technology news 4.7 to 5.8, each bound kept."""
TAIL = 0.7
"""How far the longest or the shortest texts must take the label; classes differ a little anyway."""
SPIKE = 3.0
"""Times by which one exact length must stick out of its neighbours in the class."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Tells shortcuts from content.

    Args:
        read: the texts.
        labels: the class of each.
        totals: texts of each class.
        pairs: of the same texts.
    """

    read: Tokens
    labels: NDArray[np.int64]
    totals: NDArray[np.int64]
    pairs: Pairs

    def why(self, own: Features, depends: Dependence, index: int) -> str:
        """Say why a feature is a shortcut; nothing if it is content."""
        key, kind = int(own.keys[index]), own.kind
        if kind == "word":
            return self._put_in(key, own.of(index), int(depends.best[index]))
        if kind == "length":
            return self._by_length(own, depends, index, key)
        if kind == "position":
            why = self._by_place(own, depends, index, key)
            return why and why + self._excess(own.of(index), int(depends.best[index]))
        if kind == "mark":
            why = self._by_mark(own, depends, index, key)
            return why and why + self._excess(own.of(index), int(depends.best[index]))
        return {
            "markup": "markup is no content",
            "source": "where a text is from is not what it says",
            "rating": "a rating is the label itself",
            "boiler-plate": "the same words word for word in many texts",
        }[kind]

    def explains(self, part: NDArray[np.int64], whole: NDArray[np.int64], label: int) -> bool:
        """Say whether one way of writing a token is all that goes with a class.

        It is if the n texts that have the token otherwise, k of the class, may come from the class
        as often as texts do: P(X ≥ k) = I_b(k, n - k + 1) above the level.
        """
        rest = np.setdiff1d(whole, part)
        hits = int((self.labels[rest] == label).sum())
        base = self.totals[label] / self.totals.sum()
        return not hits or float(betainc(hits, len(rest) - hits + 1, base)) > LEVEL

    def _excess(self, texts: NDArray[np.int64], label: int) -> str:
        """Say how many texts of the class are more than the other classes let expect.

        With k of n texts of the class, which has N_c of N: k - (n - k) N_c/(N - N_c).
        """
        hits = int((self.labels[texts] == label).sum())
        others = int(self.totals.sum() - self.totals[label])
        if hits == len(texts):
            return ""
        more = round(hits - (len(texts) - hits) * float(self.totals[label]) / others)
        return f"; about {more:,} of these {len(texts):,} texts are more than in other classes"

    def _put_in(self, token: int, texts: NDArray[np.int64], label: int) -> str:
        places = self.pairs.occurrences(token)
        if self._units(token, places, places[:0], texts, label) > CONTENT:
            return ""
        return "texts read on as if it were not there, and it keeps no company of its own"

    def _units(
        self,
        token: int,
        own: NDArray[np.int64],
        other: NDArray[np.int64],
        texts: NDArray[np.int64],
        label: int,
    ) -> float:
        """Return the units of content of a token: the sum of five tests, none below 0.

        Args:
            token: which one.
            own: where it stands.
            other: places at which it stands anyway, of other classes.
            texts: those that have it.
            label: the class that it goes with.

        What stands beside it is not asked where it stands anyway: that test knows no excess, and
        the frequent neighbours are those of what was there before.
        """
        reads_on = self._of_excess(self.pairs.reads_on, own, other, label)
        side = self._of_excess(self.pairs.side_by_side, own, other, label)
        units = max(-reads_on / READS_ON, 0.0) + max(-side / READS_ON, 0.0)
        # The quickest first: most words are content by these two, and the others need not be asked.
        if units <= CONTENT:
            units += max(self.pairs.bonds(own) / BONDS, 0.0)
        if units <= CONTENT and not len(other):
            units += max(self.pairs.beside(own) / BONDS, 0.0)
        if units <= CONTENT:
            units += max(self._company(token, texts, label) / COMPANY, 0.0)
        return units

    def _by_mark(self, own: Features, depends: Dependence, index: int, key: int) -> str:
        texts, label = own.of(index), int(depends.best[index])
        way = undressed("mark", key, len(self.read.names)) is not None
        base = float(self.totals[label] / self.totals.sum())
        sure = (float(depends.low[index]) - base) / (1 - base)
        if not way and depends.lift[index] >= MARK_LIFT and sure >= MARK_SURE:
            return "a mark is no content"
        if len(texts) < LEAST_PUT_IN:
            return ""
        token = key % len(self.read.names)
        places = self.pairs.occurrences(token)
        places = places[np.isin(self.pairs.text[places], texts)]
        held = self.labels[self.pairs.text[places]] == label
        if self._units(token, places[held], places[~held], texts, label) > CONTENT:
            return ""
        once = "where it stands once in a text, by itself between spaces, " if way else ""
        return f"a mark, and {once}texts read on as if it were not there"

    def _of_excess(
        self,
        test: Callable[[NDArray[np.int64]], float],
        own: NDArray[np.int64],
        other: NDArray[np.int64],
        label: int,
    ) -> float:
        r"""Return a test's mean over what a class has beyond the others.

        A token that texts have anyway stands m = n' N_c/(N - N_c) times in the class without more
        ado, n' its times in other classes. With e and e' the means of its n and n' places,
        (n e - m e')/(n - m) is that of the rest.
        """
        here = test(own) / np.sqrt(max(len(own), 1))
        there = test(other) / np.sqrt(len(other)) if len(other) else 0.0
        rest = float(self.totals.sum() - self.totals[label])
        anyway = len(other) * float(self.totals[label]) / rest
        if anyway >= len(own):
            return -np.inf
        return float((len(own) * here - anyway * there) / (len(own) - anyway))

    def _company(self, token: int, texts: NDArray[np.int64], label: int) -> float:
        own = texts[self.labels[texts] == label]
        others = np.setdiff1d(np.flatnonzero(self.labels == label), own)
        return self.pairs.company(token, own, others) if len(others) else 0.0

    def _by_place(self, own: Features, depends: Dependence, index: int, key: int) -> str:
        place, token = placed(key, len(self.read.names))
        texts, label = own.of(index), int(depends.best[index])
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
        behind = usual_at if place != -1 else None
        others = np.setdiff1d(texts, held)
        there = starts[others] + place if place >= 0 else starts[others + 1] + place
        reads_on = self._of_excess(partial(self.pairs.reads_on, usual_at=behind), at, there, label)
        side = self._of_excess(partial(self.pairs.side_by_side, usual_at=behind), at, there, label)
        if reads_on < PLACE_READS_ON or side < PLACE_SIDE_BY_SIDE:
            return ""
        bonds = self.pairs.place_bonds(at, same_at, 1 if place >= 0 else -1)
        company = self._company(token, texts, label)
        if bonds > PLACE_BONDS or company > PLACE_COMPANY:
            return ""
        units = max(-reads_on, 0.0) / READS_ON + max(-side, 0.0) / READS_ON
        units += max(bonds, 0.0) / BONDS + max(company, 0.0) / COMPANY
        if units > PLACE_CONTENT:
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
