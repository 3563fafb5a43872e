"""``attnscope show RUN``: what a run is, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from attnscope.claims import Finding
from attnscope.report.terminal import claims_table
from attnscope.trajectory import RunFolder, open_run


def show(path: str) -> int:
    """Print status, spec, groups and claims of a run, finished or not."""
    tree = open_run(path)
    folder = RunFolder(Path(path))
    console = Console()
    console.print(f"[bold]{tree.attrs['study']}[/bold]  {tree.attrs['status']}", soft_wrap=True)
    console.print(f"made by: {tree.attrs['command'] or 'Python'}", soft_wrap=True, highlight=False)
    spec = json.loads(tree.attrs["spec"])
    console.print("spec: " + ", ".join(f"{k} = {v}" for k, v in spec.items()), highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("variable", "dimensions", "meaning"):
        table.add_column(heading)
    for name, node in tree.children.items():
        for variable, array in node.to_dataset().data_vars.items():
            sizes = " × ".join(f"{d} {n}" for d, n in array.sizes.items())
            table.add_row(f"{name}/{variable}", sizes, str(array.attrs.get("meaning", "")))
    console.print(table)
    if folder.findings_path.exists():
        entries = json.loads(folder.findings_path.read_text())
        console.print(claims_table([Finding(**entry) for entry in entries]))
    if folder.report_path.exists():
        console.print(f"report: {folder.report_path}", soft_wrap=True, highlight=False)
    return 0
