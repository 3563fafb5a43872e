"""Softmax and Gaussian attention learn to tell film reviews apart (IMDb text)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import xarray as xr
from torch import nn

from attnscope.bounds import Count
from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.load import labelled
from attnscope.datasets.place import data_dir
from attnscope.errors import AttnscopeError
from attnscope.models.stems import Neighbours
from attnscope.studies.song2024._training import KernelTraining, Published
from attnscope.tasks.byte_text import VOCABULARY, ByteText, byte_text
from attnscope.tasks.sequence_rows import Sequences, TextRows


@dataclass(frozen=True)
class Text(KernelTraining):
    """A two-layer transformer on the bytes of IMDb reviews, with either kernel.

    Skyformer's configuration: 4,000 bytes, learning rate 1e-4, 80 steps of warm-up, batches of 32
    (16 in its paper). Padding is masked in attention and left out of the mean over tokens; the
    released code averages over it. At ``desk`` a convolution over five bytes comes before the
    first layer, and the largest entry over tokens in place of the mean: a pilot with them passed
    what counting bytes reaches within 1,000 steps, and nothing without them has.
    """

    data: str = "imdb"
    """A set with the splits train and test that `attnscope data` lists, or a folder of tables."""
    length: Count = 4000
    """Bytes at which a text is cut."""
    reach: Count | None = None
    """Bytes that a convolution before the first layer sees, an odd number; none unless given."""

    quick = {
        "seeds": 3,
        "steps": 360,
        "points": 7,
        "rate": 1e-3,
        "warmup": 36,
        "batch": 64,
        "dropout": 0.0,
        "held_out": 2000,
        "last": 5000,
        "probe": 128,
        "length": 64,
    }
    desk = {
        "seeds": 3,
        "steps": 1500,
        "points": 11,
        "rate": 1e-3,
        "warmup": 200,
        "cycle": False,
        "decay": 0.01,
        "batch": 32,
        "dropout": 0.0,
        "pooling": "max",
        "held_out": 2000,
        "last": 5000,
        "probe": 128,
        "length": 256,
        "reach": 5,
    }
    published = Published(
        softmax=0.6195,
        gaussian=0.6022,
        task="the sentiment of film reviews from their bytes",
        sequences="texts",
        bag="a bag of bytes",
        tokens="bytes",
        counting="at 4,000 bytes least squares on the counts of single bytes is above both of "
        "Skyformer's accuracies; what these transformers reach needs no order of the bytes.",
    )

    def check(self) -> None:
        """Check that the convolution fits into a text."""
        super().check()
        if self.reach is not None and not (self.reach % 2 and self.reach <= self.length):
            raise AttnscopeError(
                f"reach = {self.reach}: expected an odd number of bytes, {self.length:,} at most."
            )

    def stem(self) -> Callable[[int], nn.Module] | None:
        """Return the convolution over bytes, if there is one."""
        if self.reach is None:
            return None
        vocabulary, length = self.shape()
        return lambda width: Neighbours(vocabulary, length, width, self.reach or 1)

    def text(self) -> ByteText:
        """Return the texts as bytes."""
        return _texts(self.data, self.length, str(data_dir()))

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return the training texts and the test texts."""
        return TextRows(self.text().train), TextRows(self.text().test)

    def unseen(self, most: int) -> int:
        """Return how many test texts there are, at most so many.

        A set of the catalogue has so many as published, so that a run can be judged again where its
        texts are not at hand.
        """
        known = CATALOGUE[self.data].expected.get("test") if self.data in CATALOGUE else None
        return super().unseen(most) if known is None else min(most, known)

    def shape(self) -> tuple[int, int]:
        """Return the number of bytes and padding, and the length of a text."""
        return VOCABULARY, self.length

    def scale_words(self) -> str:
        """Say how long texts and runs are."""
        steps = self.training.steps
        return f"Texts are cut at {self.length:,} bytes, runs have {steps:,} steps."

    def truth(self) -> xr.Dataset:
        """Return the sizes of the set."""
        text = self.text()
        splits = (text.train, text.test)
        cut = [float((rows.lengths > self.length).float().mean()) for rows in splits]
        return xr.Dataset(
            {
                "texts": ("split", [len(rows) for rows in splits]),
                "median_length": ("split", [int(rows.lengths.median()) for rows in splits]),
                "cut": ("split", cut, {"meaning": "share of texts longer than they are read"}),
            },
            attrs={"set": text.name, "classes": list(text.classes)},
        )


@lru_cache(maxsize=2)
def _texts(data: str, length: int, folder: str) -> ByteText:
    text = byte_text(labelled(data, data_dir=folder), length)
    if len(text.classes) != 2:
        raise AttnscopeError(
            f"{data} has the classes {', '.join(text.classes)}: expected two of them."
        )
    return text
