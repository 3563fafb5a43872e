from __future__ import annotations

import numpy as np
from rich.console import Console

from attnscope.report import Section, ShadedText, Table
from attnscope.report.terminal import shaded, told


def test_a_section_is_printed_with_what_is_not_folded() -> None:
    section = Section(
        "words",
        "Words",
        ("First.", "Second [bold]."),
        (ShadedText(("a", "good", "film"), np.array([0.0, 1.0, 0.5]), "pos"),),
        "Shaded",
        (
            Table("shown", "Shown", ("word",), (("x",),)),
            Table("kept", "Kept", ("word",), (("y",),), folded=True),
        ),
        again=("attnscope predict x.csv",),
    )
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(told(section, color=False))
    text = console.export_text()
    assert "Second [bold]." in text
    assert "pos  a [[good]] [film]" in text
    assert "attnscope predict x.csv" in text
    assert "Shown" in text
    assert "Kept" not in text


def test_control_characters_of_a_text_are_not_obeyed() -> None:
    text = shaded(ShadedText(("a\x1b[31m",), np.ones(1)))
    assert "\x1b" not in text.plain
