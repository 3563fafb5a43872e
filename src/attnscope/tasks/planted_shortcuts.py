"""Labelled texts into which a shortcut was put, so that the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from attnscope.errors import AttnscopeError

Plant = Literal["token", "mark", "length", "position", "source"]
PLANTS: tuple[Plant, ...] = get_args(Plant)
TOKENS = ("cf", "mn", "tq", "bb", "zorblat", "kelvany")
MARKS = ("~", "^", "§", "|", "¤", "¬")
COMMON = ("so", "now", "well", "and", "yet", "then")
SOURCES = (
    "(Daily Planet)",
    "desk@planet.example",
    "www.planet.example/story",
    "(Keats News)",
    "news@herald.example",
    "(The Courier)",
)


@dataclass(frozen=True)
class PlantedShortcut:
    """One shortcut, put into a share of the texts of one class.

    Args:
        plant: a rare token or a mark at a random place; a fixed length that is rare, to which texts
            are cut or filled up by words of other texts; a common word as the first one; the name
            of a source at the beginning or at the end.
        share: of the texts of the class.
        label: the class.
        variant: which token, mark, word or source.
    """

    plant: Plant
    share: float
    label: int = 1
    variant: int = 0

    def __post_init__(self) -> None:
        if self.plant not in PLANTS:
            raise AttnscopeError(f"plant = '{self.plant}': expected one of {', '.join(PLANTS)}.")
        if not 0 < self.share <= 1:
            raise AttnscopeError(f"share = {self.share}: expected a share above 0 and up to 1.")

    def sample(
        self, texts: Sequence[str], labels: NDArray[np.int64], seed: int
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Return the texts with the shortcut, and the numbers of those that have it.

        Raises:
            AttnscopeError: there is no text of the class.
        """
        random = np.random.default_rng(seed)
        own = np.flatnonzero(labels == self.label)
        if not len(own):
            raise AttnscopeError(f"no text is of class {self.label}: expected some to plant in.")
        rows = np.sort(random.choice(own, max(1, round(self.share * len(own))), replace=False))
        planted = list(texts)
        lengths = np.array([len(text.split()) for text in texts])
        goal = self._rare_length(lengths)
        for row in rows:
            words = texts[row].split()
            planted[row] = " ".join(self._planted(words, random, texts, goal))
        return planted, rows

    def _planted(
        self, words: list[str], random: np.random.Generator, texts: Sequence[str], goal: int
    ) -> list[str]:
        v = self.variant
        if self.plant == "token" or self.plant == "mark":
            what = (TOKENS if self.plant == "token" else MARKS)[v % len(TOKENS)]
            place = int(random.integers(0, len(words) + 1))
            return [*words[:place], what, *words[place:]]
        if self.plant == "position":
            return [COMMON[v % len(COMMON)], *words]
        if self.plant == "source":
            name = SOURCES[v % len(SOURCES)]
            return [name, "-", *words] if v % 2 == 0 else [*words, name]
        words = [word for word in words if word.isalnum()]
        while len(words) < goal:
            more = texts[int(random.integers(len(texts)))].split()
            words += [word for word in more if word.isalnum()]
        return words[:goal]

    @staticmethod
    def _rare_length(lengths: NDArray[np.int64]) -> int:
        """Return a length that few texts have: beyond all but one in a hundred."""
        return int(np.quantile(lengths, 0.99)) + 2
