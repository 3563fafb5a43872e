r"""Is a word part of what a text says, or was it put in? Five tests of a word that decides.

*Reads on*: take the token out and look at the words around it, a and b. A word of the text holds
its neighbours together ("an utterly dull film": "an film" is seen nowhere), so that pairs (a, b)
around it are rarer than pairs that stand side by side. A token that was put in leaves the text as
it was: (a, b) *did* stand side by side, and such pairs are as frequent as others. With c the number
of times that a pair stands side by side elsewhere,

.. math::  s(a, b) = \log \frac{(c(a, b) + 1/2) \, T}{(c(a) + 1)(c(b) + 1)},

and z compares its mean over the token's occurrences with that over all neighbouring pairs of the
same texts. z near 0 or above: the text reads on.

*Side by side*: a rare word has rare neighbours, and s alone cannot tell a pair that was seen
nowhere from one that was torn apart. What tells them is where the pair stands elsewhere: side by
side, c, or with one token between them, d ("the ... of"),

.. math::  r(a, b) = \log \frac{c(a, b) + 1/2}{d(a, b) + 1/2},

the log-likelihood ratio of the two stories. Around a word of the text pairs are those with one
token between them, around one that was put in those that stand side by side. z as before;
occurrences of the token itself do not count in d.

*Bonds*: a word stands beside the same words again and again ("credit card"), a token that was put
in beside whatever is there. The log-likelihood ratio Σ o log(o/e) of its left and of its right
neighbours, o times seen and e expected from all neighbouring pairs, as a standardised excess over
pairs drawn at random.

*Beside*: bonds to rare words drown in what is rare anyway; "world's" stands behind "the". The same
ratio over the tokens that are one in a hundred or more, all others as one, expected from the gaps
between tokens of the same texts.

*Company*: among the texts of its own class, a content word keeps company with other words of its
topic, and a token that was put in stands with whatever the class has. χ² over the words of those
texts, as a standardised excess.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attnscope.probes.shortcuts.tokens import Tokens

SMOOTH = 0.5
FREQUENT = 100
"""A token is frequent if it is one of so many."""


class Pairs:
    """How often two tokens stand side by side, and who stands around what.

    Args:
        read: the texts.
    """

    def __init__(self, read: Tokens) -> None:
        self.read = read
        edge = len(read.names)
        self.size = edge + 1
        # One edge before every text, and one after the last: neighbours without wrapping around.
        self.line = np.full(len(read.ids) + len(read) + 1, edge, dtype=np.int64)
        self.place = np.arange(len(read.ids)) + read.text + 1
        self.line[self.place] = read.ids
        codes = self.line[:-1] * self.size + self.line[1:]
        self.codes, self.times = np.unique(codes, return_counts=True)
        self.single = np.bincount(self.line, minlength=self.size)
        self.order = np.argsort(read.ids, kind="stable")
        self.first = np.searchsorted(read.ids[self.order], np.arange(edge + 1))
        self.text = read.text

    def occurrences(self, token: int) -> NDArray[np.int64]:
        """Return where a token stands, as indices into the tokens of all texts."""
        return self.order[self.first[token] : self.first[token + 1]]

    def seen(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how often pairs stand side by side."""
        return _times(self.codes, self.times, left * self.size + right)

    def score(
        self, left: NDArray[np.int64], right: NDArray[np.int64], less: int
    ) -> NDArray[np.float64]:
        """Return s(a, b) of pairs, each seen ``less`` times fewer: elsewhere, that is."""
        together = np.maximum(self.seen(left, right) - less, 0) + SMOOTH
        alone = (self.single[left] + 1.0) * (self.single[right] + 1.0)
        return np.log(together * len(self.line) / alone)

    def reads_on(
        self,
        places: NDArray[np.int64],
        usual_at: NDArray[np.int64] | None = None,
        most: int = 2_000,
    ) -> float:
        """Return z of the pairs around some places, against neighbouring pairs.

        Args:
            places: where a token stands.
            usual_at: places whose pair with the one before is compared with; those of the same
                texts unless given.
            most: occurrences that are looked at.
        """
        at, here = self._looked_at(places, usual_at, most)
        around = self.score(self.line[at - 1], self.line[at + 1], 0)
        return _standardised(around, self.score(self.line[here - 1], self.line[here], 1))

    def side_by_side(
        self,
        places: NDArray[np.int64],
        usual_at: NDArray[np.int64] | None = None,
        most: int = 2_000,
    ) -> float:
        """Return z of r(a, b) around some places, against neighbouring pairs; see :meth:`reads_on`.

        Args:
            places: where a token stands.
            usual_at: as for :meth:`reads_on`.
            most: occurrences that are looked at.
        """
        at, here = self._looked_at(places, usual_at, most)
        left, right = self.line[at - 1], self.line[at + 1]
        _, pair, own = np.unique(left * self.size + right, return_inverse=True, return_counts=True)
        around = self._rather(left, right, 0, own[pair])
        return _standardised(around, self._rather(self.line[here - 1], self.line[here], 1, 0))

    def _looked_at(
        self, places: NDArray[np.int64], usual_at: NDArray[np.int64] | None, most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where on the line to look around, and where the pairs to compare with end."""
        at = self.place[places[:: max(1, len(places) // most)]]
        return at, self.place[self._within(places, most) if usual_at is None else usual_at]

    @cached_property
    def _apart(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs with one token between them, and how often each."""
        inside = self.line[1:-1] != self.size - 1
        codes = (self.line[:-2] * self.size + self.line[2:])[inside]
        return np.unique(codes, return_counts=True)

    def _rather(
        self,
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        less: int,
        less_apart: int | NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return r(a, b) of pairs, seen so many times fewer side by side and apart."""
        together = np.maximum(self.seen(left, right) - less, 0) + SMOOTH
        apart = np.maximum(_times(*self._apart, left * self.size + right) - less_apart, 0) + SMOOTH
        return np.log(together / apart)

    def bonds(self, places: NDArray[np.int64], draws: int = 60, most: int = 1_000) -> float:
        """Return the standardised excess of the ratio of a token's neighbours.

        Args:
            places: where the token stands.
            draws: random sets of pairs that it is compared with.
            most: occurrences that are looked at.
        """
        some = places[:: max(1, len(places) // most)]
        at, here = self.place[some], self.place[self._within(places, 4 * most)]
        if len(here) < 2 or len(at) < 2:
            return 0.0
        share = self.single / len(self.line)
        random = np.random.default_rng(0)
        rows = here[random.integers(0, len(here), (draws, len(at)))]
        usual = [_ratio(self.line[row - 1], share) + _ratio(self.line[row], share) for row in rows]
        own = _ratio(self.line[at - 1], share) + _ratio(self.line[at + 1], share)
        return float((own - np.mean(usual)) / max(float(np.std(usual)), 1e-9))

    def beside(self, places: NDArray[np.int64], draws: int = 100, most: int = 50) -> float:
        """Return the standardised excess of the ratio of a token's frequent neighbours.

        Args:
            places: where the token stands.
            draws: random sets of gaps that it is compared with.
            most: occurrences that are looked at. Nothing is put in quite at random (not before a
                full stop, say), and by enough of them that would show.
        """
        at = self.place[places[:: -(-len(places) // most)]] if len(places) else places
        starts = self.read.starts
        texts = np.unique(self.text[places])[:1000]
        # A gap is known by what is behind it; the last of a text has its end there.
        gaps = np.concatenate([np.arange(starts[m], starts[m + 1] + 1) + m + 1 for m in texts])
        own = self.place[places]
        gaps = gaps[np.isin(gaps, np.concatenate([own, own + 1]), invert=True)]
        if len(at) < 2 or len(gaps) < 2:
            return 0.0
        group = self._groups[self.line]
        shares = []
        for side in (group[gaps - 1], group[gaps]):
            count = np.bincount(side, minlength=int(self._groups.max()) + 1) + SMOOTH
            shares.append(count / count.sum())
        random = np.random.default_rng(0)
        rows = gaps[random.integers(0, len(gaps), (draws, len(at)))]
        drawn = [_ratio(group[r - 1], shares[0]) + _ratio(group[r], shares[1]) for r in rows]
        seen = _ratio(group[at - 1], shares[0]) + _ratio(group[at + 1], shares[1])
        return float((seen - np.mean(drawn)) / max(float(np.std(drawn)), 1e-9))

    @cached_property
    def _groups(self) -> NDArray[np.int64]:
        """A number for each token that is one in :data:`FREQUENT` or more, one for all others."""
        often = self.single * FREQUENT >= len(self.line)
        return np.where(often, np.cumsum(often), 0)

    def place_bonds(
        self,
        places: NDArray[np.int64],
        usual_at: NDArray[np.int64],
        side: int,
        draws: int = 60,
        most: int = 1_000,
    ) -> float:
        """Return the same for tokens at one place of a text, by the neighbour on one side.

        What stands behind a token that was put in first is what other texts begin with.

        Args:
            places: where the token stands.
            usual_at: the same place in texts without it.
            side: 1 for the neighbour behind, -1 for the one before.
            draws: random sets that it is compared with.
            most: occurrences that are looked at.
        """
        at = self.place[places[:: max(1, len(places) // most)]]
        random = np.random.default_rng(0)
        usual = random.permutation(self.line[self.place[usual_at]])
        half = len(usual) // 2
        if len(at) < 2 or half < 2:
            return 0.0
        # Drawn from one half and expected by the other: what is new to one is new to both.
        share = np.bincount(usual[:half], minlength=self.size) + SMOOTH
        share = share / share.sum()
        rows = usual[half:][random.integers(0, len(usual) - half, (draws, len(at)))]
        drawn = [_ratio(row, share) for row in rows]
        own = _ratio(self.line[at + side], share)
        return float((own - np.mean(drawn)) / max(float(np.std(drawn)), 1e-9))

    def _within(self, places: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the other places of the texts, but for those that follow the token."""
        starts = self.read.starts
        texts = np.unique(self.text[places])[: most // 4]
        inside = np.concatenate([np.arange(starts[m], starts[m + 1]) for m in texts])
        held = np.isin(inside, places, invert=True) & np.isin(inside - 1, places, invert=True)
        return inside[held]

    def company(
        self, token: int, texts: NDArray[np.int64], others: NDArray[np.int64], most: int = 4_000
    ) -> float:
        """Return the standardised excess of χ² between the words of texts with a token and others.

        The token itself does not count.
        """
        groups = [self._words(group[:: max(1, len(group) // most)]) for group in (texts, others)]
        one, other = (np.bincount(words, minlength=self.size).astype(float) for words in groups)
        one[token] = other[token] = 0.0
        both = one + other
        share = one.sum() / both.sum()
        expected = both * share
        enough = (expected >= 1) & (expected < len(texts) / 2)
        if enough.sum() < 10:
            return 0.0
        variance = expected[enough] * (1 - share)
        terms = (one[enough] - expected[enough]) ** 2 / variance
        # χ² of one degree has the variance 2, and 1/expected more where counts are small.
        spread = np.sqrt((2 + 1 / expected[enough]).sum())
        return float((terms - 1).sum() / spread)

    def _words(self, texts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tokens of some texts, each once a text."""
        rows = [
            np.unique(self.read.ids[self.read.starts[m] : self.read.starts[m + 1]]) for m in texts
        ]
        return np.concatenate(rows) if rows else np.zeros(0, np.int64)


def _times(
    known: NDArray[np.int64], times: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how often each code was seen; ``known`` is sorted."""
    if not len(known):
        return np.zeros(len(codes), np.int64)
    at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[at] == codes, times[at], 0)


def _standardised(own: NDArray[np.float64], usual: NDArray[np.float64]) -> float:
    """Return the difference of two means by the spread of the usual ones; 0 of fewer than two."""
    if len(own) < 2 or len(usual) < 2:
        return 0.0
    spread = np.sqrt(usual.var() / len(own) + usual.var() / len(usual))
    return float((own.mean() - usual.mean()) / max(float(spread), 1e-9))


def _ratio(neighbours: NDArray[np.int64], share: NDArray[np.float64]) -> float:
    """Return Σ o log(o/e) of neighbours, e by the share that each token has of all."""
    names, seen = np.unique(neighbours, return_counts=True)
    return float((seen * np.log(seen / (len(neighbours) * share[names]))).sum())
