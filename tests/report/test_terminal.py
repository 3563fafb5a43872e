from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

from attnscope.report.terminal import claims_table
from findings import finding


def shown(findings, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(claims_table(findings))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_table_fits_and_says_everything(width: int) -> None:
    findings = [
        finding(),
        finding(verdict="fails", reason="Too few epochs.", measure="nats"),
        finding(verdict="undecided", low=float("nan"), high=float("nan"), seeds=1),
        finding(control_fails=False),
    ]
    text = shown(findings, width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(text.replace("│", " ").split())
    for part in ("✓ holds", "✗ fails", "? undecided", "Why: Too few epochs.", "0.0058"):
        assert part in words
    assert "CONTROL" in words
    assert lines[-1] == "2 of 4 claims hold, 1 fails, 1 undecided, 1 control does not fail."


def test_no_findings() -> None:
    assert shown([], 80) == "No claims were examined.\n"


def test_markup_and_control_characters_are_shown_as_text() -> None:
    text = shown([finding(sentence="[red]x[/red] \x1b[31m", source="[bold]")], 120)
    assert "[red]x[/red]" in text
    assert "[bold]" in text
    assert "\x1b" not in text


def test_the_terminal_needs_no_drawing_library() -> None:
    code = (
        "import sys, attnscope.report.terminal; "
        "print([m for m in ('bokeh', 'matplotlib', 'torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
