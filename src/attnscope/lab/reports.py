"""A run's static report inside the lab: the file as it is, with the lab's bar above it.

A report may come from anywhere, so it is served in a sandbox: its scripts run, as they do from
``file://``, but in an origin of their own, where they can neither read the lab nor ask it anything.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope import report
from attnscope.errors import AttnscopeError
from attnscope.lab.entries import Entry
from attnscope.lab.safety import confined
from attnscope.lab.shell import NAVIGATION
from attnscope.markup import fill

if TYPE_CHECKING:
    from markupsafe import Markup

POLICY = (
    "sandbox allow-scripts allow-popups allow-downloads; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FILE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TYPES = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv; charset=utf-8",
}
"""Endings of the files that a report links to."""
SHOWN = ("png", "svg")
"""Those that a browser shows; the others are saved."""

_STYLE = """
.lab-bar { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; align-items: center;
  padding: 0.5rem 1.25rem; background: var(--card); border-bottom: 1px solid var(--edge); }
.lab-bar strong { margin-right: 0.4rem; }
.lab-bar .here { color: var(--soft); margin-left: auto; overflow-wrap: anywhere; }
@media print { .lab-bar { display: none; } }
"""


def framed(report: str, run: Entry, theme: str) -> str:
    """Return a report with the lab's bar above it.

    Args:
        report: the file's text.
        run: what it is the report of.
        theme: ``light``, ``dark``, or anything else for the system's.
    """
    bar = str(fill("lab/bar", run=run, navigation=NAVIGATION))
    colours = (
        f"@media screen {{ :root {{ color-scheme: {theme}; {_variables(theme)} }} }}"
        if theme in _THEMES
        else ""
    )
    style = f"<style>{colours}{_STYLE}</style>\n</head>"
    report = report.replace("</head>", style, 1)
    return report.replace("<body>", f"<body>\n{bar}", 1)


_THEMES = ("light", "dark")


@cache
def _variables(theme: str) -> str:
    """Return the report's own colours of a theme, which its style sheet gives in this order."""
    sheet = files(report).joinpath("report.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    found = re.findall(r"--[\w-]+: *#\w+;", blocks[_THEMES.index(theme)])
    return " ".join(found)


def linked_file(root: Path, name: str, folder: str, file: str) -> tuple[Path, str]:
    """Return a file that a report links to, and its type.

    Raises:
        AttnscopeError: there is none, or it is of another kind.
    """
    path = confined(root, name, folder, file)
    ending = path.suffix.removeprefix(".")
    if ending not in TYPES or not path.is_file():
        raise AttnscopeError(
            f"'{file}' is no file of a report: expected one that ends in {', '.join(TYPES)}."
        )
    return path, TYPES[ending]


def without_report(run: Entry) -> Markup:
    """Return the markup of the page of a run that has no report."""
    return fill("lab/without_report", run=run)
