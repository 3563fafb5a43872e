"""What is known of a published data set: its files, its terms, its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DataKind = Literal["labelled", "parallel", "documents", "generated"]

PACKED = (".gz", ".xz")


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, as it lies in the data folder.

    ``size`` and ``sha256`` speak of the file named by ``path``: when it lies there packed, as
    ``path.gz`` or ``path.xz``, they speak of what is inside.
    """

    path: str
    """Relative to the data folder, with slashes."""
    split: str
    """``train``, ``dev``, ``test``, or empty when one archive holds them all."""
    url: str = ""
    """Where the publisher has it; empty when it cannot be fetched automatically."""
    rows: int | None = None
    """Rows after reading; None when no count is published."""
    size: int | None = None
    sha256: str | None = None
    language: str = ""
    """Of parallel text: ``de``, or ``en-nl`` when one file holds both sides."""
    alternatives: tuple[str, ...] = ()
    """Other names under which the reader takes it: another packing, or a part of it."""
    split_rows: tuple[tuple[str, int | None], ...] = ()
    """Rows of each split, when one archive holds them all; None when no count is published."""

    @property
    def saved_as(self) -> str:
        """The path under which a download is kept: packed if the publisher packs it."""
        for suffix in PACKED:
            if self.url.endswith(suffix) and not self.path.endswith(suffix):
                return self.path + suffix
        return self.path


@dataclass(frozen=True)
class DataSet:
    """A data set that the studies know."""

    key: str
    title: str
    kind: DataKind
    classes: tuple[str, ...]
    """Names of the classes, for labelled sets."""
    published: str
    """The publisher's page."""
    licence: str
    """As stated there, or ``none stated``."""
    citation: str
    files: tuple[DataFile, ...]
    note: str = ""

    @property
    def expected(self) -> dict[str, int | None]:
        """Rows that each split has as published; None where no count is published."""
        rows: dict[str, int | None] = {}
        for file in self.files:
            if file.split:
                rows[file.split] = file.rows
            rows.update(file.split_rows)
        return rows
