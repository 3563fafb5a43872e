"""Figures, tables and findings, written down: an HTML page, image files, CSV, the terminal.

Drawing libraries are imported when something is drawn, since the terminal needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnscope.report.figure import (
        Band,
        Contour,
        Dots,
        Figure,
        Heat,
        Histogram,
        Line,
        Panel,
        Rule,
        Surface,
    )
    from attnscope.report.html import write_report
    from attnscope.report.page import Page, Table
    from attnscope.report.terminal import claims_table

__all__ = [
    "Band",
    "Contour",
    "Dots",
    "Figure",
    "Heat",
    "Histogram",
    "Line",
    "Page",
    "Panel",
    "Rule",
    "Surface",
    "Table",
    "claims_table",
    "publish",
    "write_report",
]

_HOMES = {
    **dict.fromkeys(
        (
            "Band",
            "Contour",
            "Dots",
            "Figure",
            "Heat",
            "Histogram",
            "Line",
            "Panel",
            "Rule",
            "Surface",
        ),
        "figure",
    ),
    **dict.fromkeys(("Page", "Table"), "page"),
    "claims_table": "terminal",
    "write_report": "html",
}


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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
