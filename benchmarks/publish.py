"""Make a table that ``run.py`` wrote the published one, here and in the docs.

python benchmarks/publish.py runs/bench.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from run import PUBLISHED, number, ratio

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def when(rows: list[dict[str, Any]]) -> str:
    """Say when rows were measured, how busy the machine was, and how long they took."""
    days = sorted({row["day"] for row in rows if "day" in row}) or ["an unknown day"]
    loads = [row["load"] for row in rows if row.get("load") is not None] or [0.0]
    minutes = sum(row.get("took", 0.0) for row in rows) / 60
    left = sum(row["ratio"] is None for row in rows)
    return (
        f"{len(rows) - left} of {len(rows)} rows, measured on {' and '.join(days)} with a load of "
        f"{min(loads):g} to {max(loads):g}; together they take {minutes:.1f} minutes of the "
        "processor."
    )


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the table as it stands in the docs."""
    lines = [
        when(rows),
        "",
        "| what | reference | reference / ours | ratio | limit |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if row["ratio"] is None:
            cells = [row["what"], row["reference"], row["how"], "-", row["limit"]]
        else:
            both = (number(row[key], row["unit"]) for key in ("reference_value", "our_value"))
            cells = [row["what"], row["reference"], " / ".join(both)]
            cells += [ratio(row["ratio"]), row["limit"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    table = json.loads(Path(sys.argv[1]).read_text())
    PUBLISHED.write_text(json.dumps(table, indent=1) + "\n")
    page = DOCS.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    DOCS.write_text(before + BEGIN + markdown(table["rows"]) + END + after)


if __name__ == "__main__":
    main()
