"""Figures, tables and findings, written down: an HTML page, image files, CSV, the terminal.

Drawing libraries are imported when something is drawn, since the terminal needs none of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.lazy import attach
from attnscope.needs import need

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
    from attnscope.report.section import Section, ShadedText
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
        "section": ("Section", "ShadedText"),
        "terminal": ("claims_table",),
    },
)
__all__ += ["files_of", "publish"]


def publish(folder: Path, page: Page) -> Path:
    """Write the page and every file that it links to, and return the path of ``report.html``.

    The folder gets ``report.html``, ``figures/<name>.csv``, and ``tables/<name>.csv``; images of
    the figures, such as ``figures/<name>.png``, only if the page asks for them, since they take
    longer than everything else. The page comes last, so that its links are never dead.
    """
    from attnscope.report import html, tables

    folder = Path(folder)
    if page.images:
        need("matplotlib", "contourpy")
    for figure in page.all_figures:
        if page.images:
            from attnscope.report import static

            static.save(figure, folder / "figures", page.images)
        tables.write_marks(figure, folder / "figures")
    for table in page.all_tables:
        tables.write_table(table, folder / "tables")
    return html.write_report(folder / "report.html", page)


def files_of(folder: Path, page: Page) -> list[Path]:
    """Return the files that :func:`publish` writes, images of every kind included."""
    kinds = ("csv", "png", "svg", "pdf")
    figures = [
        folder / "figures" / f"{each.name}.{kind}" for each in page.all_figures for kind in kinds
    ]
    tables = [folder / "tables" / f"{each.name}.csv" for each in page.all_tables]
    return [folder / "report.html", *figures, *tables]
