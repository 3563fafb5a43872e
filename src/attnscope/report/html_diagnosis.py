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
    if page.diagnosis_note:
        parts.append(f'<p class="soft small">{escape(page.diagnosis_note)}</p>')
    return "\n".join(parts)


def _diagnosis(diagnosis: Diagnosis) -> str:
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(number(value))}</dd>"
        for name, value in diagnosis.evidence.items()
    )
    advice = (
        f"<p><strong>What helps:</strong> {escape(diagnosis.advice)}</p>"
        if diagnosis.advice
        else ""
    )
    name = escape(diagnosis.name)
    return f"""<div class="card diagnosis {name}" id="diagnosis-{name}">
<p class="sentence">{escape(diagnosis.sentence)}</p>
<dl class="small"><dt>since step</dt><dd>{diagnosis.since_step:,}</dd>{rows}</dl>
{advice}
</div>"""
