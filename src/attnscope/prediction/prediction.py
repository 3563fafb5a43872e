"""A prediction as a value, and its report."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnscope import __version__
from attnscope.errors import AttnscopeError
from attnscope.report import Page, publish
from attnscope.report.section import Section, ShadedText


@dataclass(frozen=True, eq=False)
class Prediction:
    """What was said of some data before training.

    Args:
        name: the set.
        kind: ``"labelled"``, ``"parallel"`` or ``"documents"``.
        verdict: the answer in one sentence or two.
        sections: in the order in which they are read.
        settings: what was asked for, JSON values by name.
        shade: predicts attention for any text, labelled sets only; see :meth:`attention`.
    """

    name: str
    kind: str
    verdict: str
    sections: tuple[Section, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    shade: Callable[[str], ShadedText] | None = None

    def section(self, name: str) -> Section:
        """Return the section of this name.

        Raises:
            KeyError: there is none.
        """
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(name)

    def attention(self, text: str) -> ShadedText:
        """Return the words of any text with the attention that is predicted for them.

        Raises:
            AttnscopeError: this is no prediction of labelled text.
        """
        if self.shade is None:
            raise AttnscopeError(
                f"'{self.name}' is {self.kind} text: expected a prediction of labelled text."
            )
        return self.shade(text)

    @property
    def command(self) -> str:
        """The command line that says the same."""
        words = ["attnscope", "predict", self.name]
        for name, value in self.settings.items():
            if name != "data":
                words += [f"--{name}", *value]
        return shlex.join(words)

    @property
    def python(self) -> str:
        """Python that says the same."""
        spelled = {"sentence": "sentences"}
        more = "".join(
            f", {spelled.get(name, name)}={value!r}"
            for name, value in self.settings.items()
            if name != "data"
        )
        return f"import attnscope\n\nsaid = attnscope.predict({self.name!r}{more})"

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
            provenance={"attnscope": __version__},
        )

    def write_report(self, folder: str | Path, *, figures: Sequence[str] = ()) -> Path:
        """Write ``report.html`` and the numbers behind it as CSV.

        Args:
            folder: where to; it is made if it is not there.
            figures: image files of every figure as well: ``"png"``, ``"svg"``, ``"pdf"``.

        Returns:
            The path of the page.
        """
        return publish(Path(folder), replace(self.page(), images=tuple(figures)))
