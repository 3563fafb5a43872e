"""Parts that are told in words, in the HTML page: sections, and what is the matter with a model."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from attnscope.report.figure import Figure
from attnscope.report.page import Page, Table
from attnscope.report.section import Section, ShadedText
from attnscope.report.wording import number

if TYPE_CHECKING:
    from attnscope.claims.diagnosis import Diagnosis


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


def diagnosis_section(page: Page) -> str:
    """Return the section; empty for a run that is no watched one."""
    if not page.diagnoses and not page.diagnosis_note:
        return ""
    parts = [_diagnosis(diagnosis) for diagnosis in page.diagnoses]
    if not parts:
        parts.append("<p>Nothing of what was looked for is the case.</p>")
    if page.diagnosis_note:
        parts.append(
            '<details class="soft small"><summary>What was looked for</summary>'
            f"<p>{escape(page.diagnosis_note)}</p></details>"
        )
    return "\n".join(parts)


def _diagnosis(diagnosis: Diagnosis) -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(number(value))}</dd>"
        for name, value in diagnosis.evidence.items()
    )
    advice = (
        f"<details><summary>What helps</summary><p>{escape(diagnosis.advice)}</p></details>"
        if diagnosis.advice
        else ""
    )
    evidence = (
        f'<details><summary>The numbers</summary><dl class="small">{rows}</dl></details>'
        if rows
        else ""
    )
    name = escape(diagnosis.name)
    return f"""<div class="card diagnosis {escape(diagnosis.kind)}" id="diagnosis-{name}">
<p class="sentence">{escape(diagnosis.sentence)}</p>
<p class="small">Since step <span class="value">{diagnosis.since_step:,}</span>.</p>
{evidence}{advice}
</div>"""
