"""Parts that are told in words, in the HTML page: sections, and what is the matter with a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attnscope.markup import fill
from attnscope.report.figure import Figure
from attnscope.report.page import Page, Table
from attnscope.report.section import Section, ShadedText
from attnscope.report.wording import number

if TYPE_CHECKING:
    from markupsafe import Markup


def told(
    section: Section, table: Callable[[Table], Markup], figure: Callable[[Figure], Markup]
) -> Markup:
    """Return the body of a section.

    Args:
        section: what is told.
        table: writes a table.
        figure: writes a figure.
    """
    shaded = [shaded_texts(section.shaded, section.shaded_title)] if section.shaded else []
    parts = [*shaded, *map(table, section.tables), *map(figure, section.figures)]
    return fill("report/told", section=section, parts=parts)


def shaded_texts(texts: tuple[ShadedText, ...], title: str = "") -> Markup:
    """Return texts with shaded words; the weight of a word is said when the pointer is on it."""
    shown = [
        (text.note, list(zip(text.words, text.shades, text.weights, strict=True))) for text in texts
    ]
    return fill("report/shaded", texts=shown, title=title)


def diagnosis_section(page: Page) -> Markup | str:
    """Return the section; empty for a run that is no watched one."""
    if not page.diagnoses and not page.diagnosis_note:
        return ""
    return fill(
        "report/diagnosis", diagnoses=page.diagnoses, note=page.diagnosis_note, number=number
    )
