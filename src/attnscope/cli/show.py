"""``attnscope show RUN``: what a run is, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attnscope.catalogue import of_tree
from attnscope.cli.kept import kept_findings
from attnscope.report.terminal import claims_table, diagnosis_list
from attnscope.trajectory import RunFolder, is_watched, open_run

SPEC_WIDTH = 200
"""Longer settings, such as all words of a probe batch, are cut."""


def show(path: str) -> int:
    """Print status, spec, groups and claims of a run, finished or not."""
    tree = open_run(path)
    folder = RunFolder(Path(path))
    console = Console()
    watched = is_watched(folder.manifest())

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, soft_wrap=True, highlight=False, markup=False)

    say(f"{tree.attrs['study']}  {tree.attrs['status']}", "bold")
    say(f"made by: {tree.attrs['command'] or 'Python'}")
    spec = json.loads(tree.attrs["spec"])
    say("spec: " + ", ".join(f"{k} = {_short(v)}" for k, v in spec.items()))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("variable", "dimensions", "meaning"):
        table.add_column(heading)
    for name, node in tree.children.items():
        for variable, array in node.to_dataset().data_vars.items():
            sizes = " × ".join(f"{d} {n}" for d, n in array.sizes.items())
            table.add_row(*map(escape, (f"{name}/{variable}", sizes, _meaning(array))))
    console.print(table)
    if folder.findings_path.exists():
        findings = kept_findings(folder.findings_path)
        if findings or not watched:
            console.print(claims_table(findings))
    if watched:
        experiment = of_tree(tree)
        diagnoses, note = experiment.diagnose(experiment.read(tree))
        console.print(diagnosis_list(diagnoses, note))
    if folder.report_path.exists():
        say(f"report: {folder.report_path}")
    return 0


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= SPEC_WIDTH else f"{text[:SPEC_WIDTH]}…"


def _meaning(array: xr.DataArray) -> str:
    return str(array.attrs.get("meaning", ""))
