"""A prediction as a value, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnscope.report import Page, publish
from attnscope.report.section import Section


@dataclass(frozen=True, eq=False)
class Prediction:
    """What was said of some data before training.

    Args:
        name: the set.
        kind: ``"labelled"``, ``"parallel"`` or ``"documents"``.
        verdict: the answer in one sentence or two.
        facts: what was read, by name: numbers of texts, words, classes, what was left out.
        sections: in the order in which they are read.
        command: the command line that says the same.
        python: Python that says the same.
    """

    name: str
    kind: str
    verdict: str
    facts: Mapping[str, Any]
    sections: tuple[Section, ...]
    command: str = ""
    python: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def section(self, name: str) -> Section:
        """Return the section of this name.

        Raises:
            KeyError: there is none.
        """
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(name)

    def page(self) -> Page:
        """Return the report as data."""
        return Page(
            title=f"What attention will look at in {self.name}",
            summary=self.verdict,
            status="Predicted from the data alone; nothing was trained.",
            sections=self.sections,
            spec=dict(self.settings),
            command=self.command,
            python=self.python,
            provenance=dict(self.facts),
        )

    def write_report(self, folder: str | Path) -> Path:
        """Write ``report.html`` and the numbers behind it as CSV; return the path of the page."""
        return publish(Path(folder), self.page())
