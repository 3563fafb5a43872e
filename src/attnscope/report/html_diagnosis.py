"""The section that says in words what is the matter with a watched model."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from attnscope.report.page import Page
from attnscope.report.wording import number

if TYPE_CHECKING:
    from attnscope.claims.diagnosis import Diagnosis


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
