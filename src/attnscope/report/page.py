"""A report as data: everything that stands on the page, before any of it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attnscope.errors import AttnscopeError
from attnscope.report.figure import Figure

if TYPE_CHECKING:
    from attnscope.claims import Finding
    from attnscope.claims.diagnosis import Diagnosis
    from attnscope.report.attention_maps import AttentionMaps
    from attnscope.report.overview import Overview
    from attnscope.report.section import Section

Cell = str | int | float | bool | None
IMAGES = ("png", "svg", "pdf")
"""What a figure can be drawn as beside the page."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows under named columns.

    Args:
        name: file name without ending.
        title: a short heading.
        columns: one heading per column, with its unit.
        rows: one cell per column.
        folded: whether the page shows its heading only until it is opened.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise AttnscopeError(
                    f"Table '{self.name}' has a row of {len(row)} cells, {row!r}; "
                    f"expected {len(self.columns)}, one per column."
                )


@dataclass(frozen=True, eq=False)
class Page:
    """One report.

    Args:
        title: the study's name in words.
        summary: what was done, in a sentence or a short paragraph.
        status: how the run ended, as a sentence.
        findings: what the claims came to.
        figures: drawn in this order.
        tables: printed in this order.
        spec: the study's settings, JSON values.
        command: the command line that made the report.
        python: Python code that makes the same.
        provenance: versions, seeds, seconds, date; JSON values.
        diagnoses: what is the matter with a watched model, the gravest first.
        diagnosis_note: what was looked for and could not be told; with it the section is there even
            if nothing is the matter.
        maps: attention over training, a layer each.
        overview: the first screen of a watched run. With it figures of curves are folded, and drawn
            by a small script in place of Bokeh's.
        sections: parts told in words, before everything else; they bring tables and figures of
            their own.
        images: what every figure is drawn as beside the page, of :data:`IMAGES`; none unless given.
    """

    title: str
    summary: str
    status: str
    findings: Sequence[Finding] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    python: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    diagnoses: Sequence[Diagnosis] = ()
    diagnosis_note: str = ""
    maps: Sequence[AttentionMaps] = ()
    overview: Overview | None = None
    sections: Sequence[Section] = ()
    images: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_images(self.images)
        check_names("figure", [figure.name for figure in self.all_figures])
        check_names("table", [table.name for table in self.all_tables])
        check_names("attention map", [maps.name for maps in self.maps])
        check_names("section", [section.name for section in self.sections])

    @property
    def all_figures(self) -> list[Figure]:
        """The figures of the sections, then the page's own."""
        return [*(each for part in self.sections for each in part.figures), *self.figures]

    @property
    def all_tables(self) -> list[Table]:
        """The tables of the sections, then the page's own."""
        return [*(each for part in self.sections for each in part.tables), *self.tables]


def check_images(images: Sequence[str]) -> None:
    """Say so if figures cannot be drawn as this.

    Raises:
        AttnscopeError: it is one string, or has an ending that is not in :data:`IMAGES`.
    """
    if isinstance(images, str) or not set(images) <= set(IMAGES):
        raise AttnscopeError(
            f"figures = {images!r}: expected a sequence of {', '.join(IMAGES)}, or none."
        )


def check_names(what: str, names: list[str]) -> None:
    """Names become file names and link targets, so they must be plain and unique."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
            raise AttnscopeError(
                f"The {what} name {name!r} is not a file name; "
                "expected letters, digits, '-' and '_'."
            )
        if [other.lower() for other in names].count(name.lower()) > 1:
            raise AttnscopeError(f"Two {what}s are named '{name}'; expected each name once.")
