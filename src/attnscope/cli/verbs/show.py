"""``attnscope show RUN``: what a run is, and what came of it."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.cli.arguments import Parser, add_json
from attnscope.cli.folders import is_sweep

if TYPE_CHECKING:
    import xarray as xr

    from attnscope.claims import Finding

SAYS = "what a run is, and what came of it"
SPEC_WIDTH = 200
"""Longer settings, such as all words of a probe batch, are cut."""


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    add_json(parser)


def call(options: Namespace) -> int:
    """Print status, spec, groups and claims of a run, finished or not."""
    from attnscope.catalogue import of_tree
    from attnscope.cli.kept import kept_findings
    from attnscope.cli.terminal import print_json
    from attnscope.trajectory import RunFolder, is_watched, open_run

    if is_sweep(options.run):
        return _show_sweep(options.run, as_json=options.json)
    tree = open_run(options.run)
    folder = RunFolder(Path(options.run))
    found = kept_findings(folder.findings_path) if folder.findings_path.exists() else None
    report = str(folder.report_path) if folder.report_path.exists() else None
    diagnosed: Any = None
    if is_watched(folder.manifest()):
        experiment = of_tree(tree)
        diagnosed = experiment.diagnose(experiment.read(tree))
    if options.json:
        print_json(_told(tree, found, diagnosed, report))
    else:
        _print(tree, found, diagnosed, report)
    return 0


def _show_sweep(path: str, *, as_json: bool) -> int:
    """Print what a sweep is, finished or not, and where its claims hold."""
    from attnscope.cli.terminal import print_json, say, show
    from attnscope.report.terminal import plain_table
    from attnscope.sweeps import SweepFolder, open_sweep
    from attnscope.sweeps.report import summary_table
    from attnscope.sweeps.values import spoken

    tree, folder = open_sweep(path), SweepFolder(Path(path))
    axes, table = folder.axes(), summary_table(tree)
    report = str(folder.report_path) if folder.report_path.exists() else None
    if as_json:
        print_json(
            {
                "study": tree.attrs["study"],
                "status": tree.attrs["status"],
                "command": tree.attrs["command"],
                "spec": json.loads(tree.attrs["base"]),
                "axes": [axis.to_json() for axis in axes],
                "claims": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
                "points": folder.rows(),
                "report": report,
            }
        )
        return 0
    say(f"sweep of {tree.attrs['study']}  {tree.attrs['status']}", "bold")
    say(f"made by: {tree.attrs['command'] or 'Python'}")
    for axis in axes:
        places = ", ".join("/".join(map(spoken, row)) for row in axis.rows)
        say(f"over {'/'.join(axis.fields)}: {_short(places)}")
    base = json.loads(tree.attrs["base"])
    say("the same at every point: " + ", ".join(f"{k} = {_short(v)}" for k, v in base.items()))
    show(plain_table(table))
    if report is not None:
        say(f"report: {report}")
    return 0


def _print(
    tree: xr.DataTree, found: list[Finding] | None, diagnosed: Any, report: str | None
) -> None:
    from rich.markup import escape
    from rich.table import Table

    from attnscope.cli.terminal import say, show
    from attnscope.report.terminal import claims_table, diagnosis_list

    say(f"{tree.attrs['study']}  {tree.attrs['status']}", "bold")
    say(f"made by: {tree.attrs['command'] or 'Python'}")
    spec = json.loads(tree.attrs["spec"])
    say("spec: " + ", ".join(f"{k} = {_short(v)}" for k, v in spec.items()))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("variable", "dimensions", "meaning"):
        table.add_column(heading)
    for name, array in _arrays(tree).items():
        sizes = " × ".join(f"{d} {n}" for d, n in array.sizes.items())
        table.add_row(*map(escape, (name, sizes, _meaning(array))))
    show(table)
    if found is not None and (found or diagnosed is None):
        show(claims_table(found))
    if diagnosed is not None:
        show(diagnosis_list(*diagnosed))
    if report is not None:
        say(f"report: {report}")


def _told(
    tree: xr.DataTree, found: list[Finding] | None, diagnosed: Any, report: str | None
) -> dict[str, Any]:
    """Return what other programs may want to know of a run."""
    from dataclasses import asdict

    told = {
        "study": tree.attrs["study"],
        "status": tree.attrs["status"],
        "command": tree.attrs["command"],
        "spec": json.loads(tree.attrs["spec"]),
        "arrays": {
            name: {"sizes": dict(array.sizes), "meaning": _meaning(array)}
            for name, array in _arrays(tree).items()
        },
        "findings": None if found is None else [finding.to_json() for finding in found],
        "report": report,
    }
    if diagnosed is not None:
        told["diagnoses"] = [asdict(each) for each in diagnosed[0]]
    return told


def _arrays(tree: xr.DataTree) -> dict[str, xr.DataArray]:
    return {
        f"{group}/{name}": array
        for group, node in tree.children.items()
        for name, array in node.to_dataset().data_vars.items()
    }


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= SPEC_WIDTH else f"{text[:SPEC_WIDTH]}…"


def _meaning(array: xr.DataArray) -> str:
    return str(array.attrs.get("meaning", ""))
