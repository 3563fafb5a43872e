"""Write the two reports that the site shows: a study, and a watched model.

python docs/make_reports.py docs/_reports
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import matplotlib

import attnscope

HERE = Path(__file__).parent


def cells(tutorial: str) -> str:
    """Return the Python of a tutorial."""
    text = (HERE / "tutorials" / f"{tutorial}.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```\{code-cell\}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def main(out: Path) -> None:
    """Write the reports below a folder."""
    matplotlib.use("Agg")
    os.chdir(tempfile.mkdtemp())
    study = attnscope.run("lu2021.sen", scale="quick", out="study")
    exec(cells("watch"), {"__name__": "tutorial"})
    for name, run in (("lu2021.sen", study), ("repeat", attnscope.open_run("runs/repeat"))):
        attnscope.write_report(run, out / "reports" / name)
        for left in (out / "reports" / name).glob("*.json"):
            left.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
