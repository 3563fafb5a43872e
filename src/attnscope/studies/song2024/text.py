"""Softmax and Gaussian attention learn to tell film reviews apart (IMDb text)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import xarray as xr

from attnscope.datasets.load import labelled
from attnscope.datasets.place import data_dir
from attnscope.errors import AttnscopeError
from attnscope.studies.song2024._bag_of_tokens import bag_accuracy
from attnscope.studies.song2024._training import KernelTraining
from attnscope.studies.song2024._training_data import Sequences, TextRows, fixed_rows
from attnscope.studies.song2024._training_names import Published
from attnscope.tasks.byte_text import VOCABULARY, ByteText, byte_text


@dataclass(frozen=True)
class Text(KernelTraining):
    """A two-layer transformer on the bytes of IMDb reviews, with either kernel.

    Skyformer's configuration: 4,000 bytes, learning rate 1e-4, 80 steps of warm-up, batches of 32
    (16 in its paper). Padding is masked in attention and left out of the mean over tokens; the
    released code averages over it.
    """

    data: str = "imdb"
    """A set with the splits train and test that `attnscope data` lists, or a folder of tables."""
    length: int = 4000
    """Bytes at which a text is cut."""

    quick: ClassVar[dict[str, Any]] = {
        "seeds": 3,
        "epochs": 360,
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
    published: ClassVar[Published] = Published(
        0.6195,
        0.6022,
        "the sentiment of film reviews from their bytes",
        "texts",
        "a bag of bytes",
    )
    counting: ClassVar[str] = (
        "at 4,000 bytes least squares on the counts of single bytes is above both of Skyformer's "
        "accuracies; what these transformers reach needs no order of the bytes."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 1:
            raise AttnscopeError(f"length = {self.length}: expected 1 byte or more.")

    def text(self) -> ByteText:
        """Return the texts as bytes."""
        return _texts(self.data, self.length, str(data_dir()))

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return the training texts and the test texts."""
        text = self.text()
        return TextRows(text.train), TextRows(text.test)

    def shape(self) -> tuple[int, int]:
        """Return the number of bytes and padding, and the length of a text."""
        return VOCABULARY, self.length

    def scale_words(self) -> str:
        """Say how long texts and runs are."""
        return f"Texts are cut at {self.length:,} bytes, runs have {self.epochs:,} steps."

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

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Return what counting bytes alone reaches on the same texts."""
        train, test = self.sequences()
        reached = bag_accuracy(
            train, test, fixed_rows(train, len(train)), fixed_rows(test, self.last), VOCABULARY
        )
        meaning = "test accuracy of least squares on counts of bytes"
        return xr.Dataset({"bag_accuracy": ((), reached, {"meaning": meaning})})


@lru_cache(maxsize=2)
def _texts(data: str, length: int, folder: str) -> ByteText:
    text = byte_text(labelled(data, data_dir=folder), length)
    if len(text.classes) != 2:
        raise AttnscopeError(
            f"{data} has the classes {', '.join(text.classes)}: expected two of them."
        )
    return text
