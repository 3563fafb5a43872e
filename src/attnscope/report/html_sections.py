"""Parts that are told in words, in the HTML page: sentences, shaded texts, tables, figures."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.report.section import Section, ShadedText


def told(section: Section, table: Callable[[Table], str], figure: Callable[[Figure], str]) -> str:
    """Return the body of a section.

    Args:
        section: what is told.
        table: writes a table.
        figure: writes a figure.
    """
    parts = [f'<p class="told">{escape(sentence)}</p>' for sentence in section.sentences]
    if section.again:
        commands = "".join(f"<pre>{escape(line)}</pre>" for line in section.again)
        parts.append(f'<div class="small">{commands}</div>')
    if section.shaded:
        parts.append(shaded_texts(section.shaded, section.shaded_title))
    parts += map(table, section.tables)
    parts += map(figure, section.figures)
    return "\n".join(parts)


def shaded_texts(texts: tuple[ShadedText, ...], title: str = "") -> str:
    """Return texts with shaded words; the weight of a word is said when the pointer is on it."""
    heading = f"<h3>{escape(title)}</h3>" if title else ""
    rows = "\n".join(
        '<p class="shaded">'
        + (f'<span class="soft small">{escape(text.note)}</span> ' if text.note else "")
        + " ".join(
            f'<span style="--shade:{shade:.2f}" title="{weight:.3g}">{escape(word)}</span>'
            for word, shade, weight in zip(text.words, text.shades, text.weights, strict=True)
        )
        + "</p>"
        for text in texts
    )
    return f'<div class="card">{heading}{rows}</div>'
