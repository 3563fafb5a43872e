"""``attnscope show RUN``: what a run is, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnscope.cli.kept import kept_findings
from attnscope.report.terminal import claims_table
from attnscope.trajectory import RunFolder, open_run


def show(path: str) -> int:
    """Print status, spec, groups and claims of a run, finished or not."""
    tree = open_run(path)
    folder = RunFolder(Path(path))
    console = Console()

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, soft_wrap=True, highlight=False, markup=False)

    say(f"{tree.attrs['study']}  {tree.attrs['status']}", "bold")
    say(f"made by: {tree.attrs['command'] or 'Python'}")
    spec = json.loads(tree.attrs["spec"])
    say("spec: " + ", ".join(f"{k} = {v}" for k, v in spec.items()))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("variable", "dimensions", "meaning"):
        table.add_column(heading)
    for name, node in tree.children.items():
        for variable, array in node.to_dataset().data_vars.items():
            sizes = " × ".join(f"{d} {n}" for d, n in array.sizes.items())
            table.add_row(*map(escape, (f"{name}/{variable}", sizes, _meaning(array))))
    console.print(table)
    if folder.findings_path.exists():
        console.print(claims_table(kept_findings(folder.findings_path)))
    if folder.report_path.exists():
        say(f"report: {folder.report_path}")
    return 0


def _meaning(array: xr.DataArray) -> str:
    return str(array.attrs.get("meaning", ""))
