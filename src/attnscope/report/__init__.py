"""Figures, tables and findings, written down: an HTML page, image files, CSV, the terminal.

Drawing libraries are imported when something is drawn, since the terminal needs none of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.report.charts import band, bands, curves, each_seed, ends
    from attnscope.report.figure import (
        Band,
        Contour,
        Dots,
        Figure,
        Heat,
        Histogram,
        Line,
        Mark,
        Panel,
        Rule,
        Surface,
    )
    from attnscope.report.html import write_report
    from attnscope.report.page import Cell, Page, Table
    from attnscope.report.terminal import claims_table

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "charts": ("band", "bands", "curves", "each_seed", "ends"),
        "figure": (
            "Band",
            "Contour",
            "Dots",
            "Figure",
            "Heat",
            "Histogram",
            "Line",
            "Mark",
            "Panel",
            "Rule",
            "Surface",
        ),
        "html": ("write_report",),
        "page": ("Cell", "Page", "Table"),
        "terminal": ("claims_table",),
    },
)
__all__ += ["publish"]


def publish(folder: Path, page: Page) -> Path:
    """Write the page and every file that it links to, and return the path of ``report.html``.

    The folder gets ``report.html``, ``figures/<name>.png``, ``.svg``, ``.pdf`` and ``.csv``, and
    ``tables/<name>.csv``. The page comes last, so that its links are never dead.
    """
    from attnscope.report import html, static, tables

    folder = Path(folder)
    for figure in page.figures:
        static.save(figure, folder / "figures")
        tables.write_marks(figure, folder / "figures")
    for table in page.tables:
        tables.write_table(table, folder / "tables")
    return html.write_report(folder / "report.html", page)
