"""Findings together: a list that a notebook shows as a small table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnscope.claims.claim import Finding
from attnscope.markup import fill

if TYPE_CHECKING:
    import pandas as pd

COLORS = {"holds": "#1a7f37", "fails": "#c4391d", "undecided": "#9a6700"}
STYLE = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"
COLUMNS = ("key", "verdict", "sentence", "ours", "low", "high", "criterion", "control", "source")


class Findings(list[Finding]):
    """What the claims of a run came to; an ordinary list of :class:`Finding`.

    >>> Findings()
    Findings: no claims
    """

    def __repr__(self) -> str:
        return f"Findings: {self.counted()}"

    def counted(self) -> str:
        """Say how many claims hold, fail and are undecided."""
        if not self:
            return "no claims"
        counts = {verdict: sum(each.verdict == verdict for each in self) for verdict in COLORS}
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        return f"{len(self)} claims, {said}"

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row a claim, as a pandas table."""
        import pandas as pd

        return pd.DataFrame([{name: getattr(each, name) for name in COLUMNS} for each in self])

    def _repr_html_(self) -> str:
        shown = fill(
            "notebook/findings", findings=self, colors=COLORS, style=STYLE, counted=self.counted()
        )
        return str(shown)
