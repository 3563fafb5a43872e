"""Claims, diagnoses, tables and parts told in words, in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnscope.report.wording import (
    SYMBOLS,
    control_outcome,
    control_passes,
    ends,
    number,
    summary,
)

if TYPE_CHECKING:
    from attnscope.claims import Finding
    from attnscope.claims.diagnosis import Diagnosis
    from attnscope.report.page import Cell
    from attnscope.report.page import Table as Rows
    from attnscope.report.section import Section, ShadedText

SHADES = (
    (0.75, "bold black on bright_yellow"),
    (0.4, "black on yellow"),
    (0.15, "yellow"),
    (0.0, ""),
)
"""From how dark on a word is drawn in which style; without colours the darkest are in brackets."""
COLORS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def claims_table(findings: Sequence[Finding]) -> RenderableType:
    """Return the claims, a few full lines each, and their count."""
    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(width=11)
    table.add_column(ratio=1, overflow="fold")
    for finding in findings:
        word = f"{SYMBOLS[finding.verdict]} {finding.verdict}"
        table.add_row(Text(word, style=f"bold {COLORS[finding.verdict]}"), _told(finding))
    count = Text(summary(findings) + ".", style="bold")
    return Group(table, Text(), count) if findings else count


def plain_table(table: Rows) -> RenderableType:
    """Return a table of a report with its heading, a blank line after it."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in table.columns:
        drawn.add_column(printable(heading), overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(_cell(cell)) for cell in row))
    return Group(Text(printable(table.title), style="bold"), drawn, Text())


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return number(cell) if isinstance(cell, float) else printable(str(cell))


def diagnosis_list(diagnoses: Sequence[Diagnosis], note: str = "") -> RenderableType:
    """Return what is the matter with a watched model, a few lines each."""
    lines: list[RenderableType] = [Text("Diagnosis", style="bold")]
    for diagnosis in diagnoses:
        text = Text(printable(diagnosis.sentence), style="yellow")
        text.append(f"\nsince step {diagnosis.since_step:,}", style="bold")
        for name, value in diagnosis.evidence.items():
            text.append(f"; {printable(name)} {number(value)}", style="not bold default")
        text.append(f"\nWhat helps: {printable(diagnosis.advice)}", style="dim default")
        lines.append(Padding(text, (0, 0, 1, 2)))
    if note:
        lines.append(Text(printable(note)))
    return Group(*lines)


def _told(finding: Finding) -> Text:
    text = Text(printable(finding.sentence))
    text.append(f"  {printable(finding.source)}", style="dim")
    found = ends(finding)
    text.append(f"\n{number(finding.ours)}", style="bold")
    text.append(f" ({found})" if found else " (no interval)")
    text.append(f", must be {printable(finding.criterion)}")
    if finding.paper:
        text.append(f"; paper: {printable(finding.paper)}", style="dim")
    text.append(f"\ncontrol, {printable(finding.control_sentence)}: ", style="dim")
    text.append(f"{number(finding.control)}, ")
    loud = "green" if finding.control_fails else "yellow"
    if control_passes(finding) or math.isnan(finding.control):
        loud = "bold white on red"
    text.append(control_outcome(finding), style=loud)
    if finding.reason:
        text.append(f"\nWhy: {printable(finding.reason)}", style=COLORS[finding.verdict])
    return text


def told(section: Section, *, color: bool = True) -> RenderableType:
    """Return a section with its heading; figures and folded tables are for the report.

    Args:
        section: what is told.
        color: whether the terminal has colours; without them words are marked by brackets.
    """
    return Group(*_parts(section, color))


def shaded(text: ShadedText, *, color: bool = True) -> Text:
    """Return a text whose words are shaded by their weights."""
    line = Text()
    if text.note:
        line.append(f"{printable(text.note)}  ", style="dim")
    for place, (word, shade) in enumerate(zip(text.words, text.shades, strict=True)):
        style = next(style for least, style in SHADES if shade >= least)
        said = printable(word)
        if not color and shade >= SHADES[1][0]:
            said = f"[{said}]" if shade < SHADES[0][0] else f"[[{said}]]"
        line.append(" " if place else "")
        line.append(said, style=style if color else "")
    return line


def _parts(section: Section, color: bool) -> Iterator[RenderableType]:
    yield Text(printable(section.title), style="bold underline")
    for sentence in section.sentences:
        yield Padding(Text(printable(sentence)), (0, 0, 0, 2))
    for command in section.again:
        yield Padding(Text(printable(command), style="cyan"), (0, 0, 0, 4))
    yield Text()
    if section.shaded:
        if section.shaded_title:
            yield Text(printable(section.shaded_title), style="bold")
        for text in section.shaded:
            yield Padding(shaded(text, color=color), (0, 0, 0, 2))
        yield Text()
    for table in section.tables:
        if not table.folded:
            yield plain_table(table)


def printable(text: str) -> str:
    """Replace control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
