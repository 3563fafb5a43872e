"""Documents as word ids in a temporary file, to be read as often as there are passes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from attnscope.files import disk_full_as_sentence

Numbers = NDArray[np.int32]


class Spool:
    """Word ids of documents on disc, four bytes a word; memory holds one batch.

    Reading a dump costs more than a pass of LDA over a small model, so text is read twice, for the
    vocabulary and for the numbers, and the passes read this. Use it in a ``with`` block; the file
    goes when it ends.
    """

    def __init__(self) -> None:
        self.documents = 0
        self.tokens = 0
        self._file = tempfile.TemporaryFile(prefix="attnscope-topics-")  # noqa: SIM115

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, document: Iterable[int]) -> None:
        """Append a document."""
        numbers = np.fromiter(document, dtype=np.int32)
        with disk_full_as_sentence(Path(tempfile.gettempdir())):
            self._file.write(np.int64(len(numbers)).tobytes())
            self._file.write(numbers.tobytes())
        self.documents += 1
        self.tokens += len(numbers)

    def __iter__(self) -> Iterator[Numbers]:
        """Yield the documents in their order. Two readings at a time get in each other's way."""
        with disk_full_as_sentence(Path(tempfile.gettempdir())):
            self._file.seek(0)
        while head := self._file.read(8):
            count = int(np.frombuffer(head, dtype=np.int64)[0])
            yield np.frombuffer(self._file.read(4 * count), dtype=np.int32)

    def batches(self, size: int, vocabulary: int) -> Iterator[csr_matrix]:
        """Yield counts of words, one row a document, up to ``size`` documents at a time."""
        rows: list[Numbers] = []
        for document in self:
            rows.append(document)
            if len(rows) == size:
                yield _counts(rows, vocabulary)
                rows = []
        if rows:
            yield _counts(rows, vocabulary)


def _counts(rows: list[Numbers], vocabulary: int) -> csr_matrix:
    ends = np.cumsum([0, *(len(row) for row in rows)])
    words = np.concatenate(rows)
    counts = csr_matrix(
        (np.ones(len(words)), words, ends), shape=(len(rows), vocabulary), dtype=np.float64
    )
    counts.sum_duplicates()
    return counts
