"""From a trajectory to its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.report import Page, publish
from attnscope.studies import of_tree, summary
from attnscope.studies.base import Study
from attnscope.studies.runner import command_line, findings, python_lines
from attnscope.trajectory import RunFolder, write_json


def page_of(tree: xr.DataTree, found: list[Finding] | None = None) -> Page:
    """Return everything that a run's report shows."""
    study = of_tree(tree)
    found = findings(tree) if found is None else found
    name = study.name()
    about = summary(name) if ":" not in name else (type(study).__doc__ or "").split("\n")[0]
    departures = study.departures()
    command, python = study.again() or (command_line(study), python_lines(study))
    diagnoses, note = study.diagnose(tree)
    caveat = f" Not the paper's setting: {departures}." if departures else ""
    return Page(
        title=study.title(),
        summary=f"{about} {study.introduction()}{caveat} {study.citation}".strip(),
        status=tree.attrs["status"],
        findings=found,
        figures=study.figures(tree),
        tables=study.tables(tree),
        spec=study.to_json(),
        command=command,
        python=python,
        provenance={
            "attnscope": tree.attrs["attnscope"],
            **json.loads(tree.attrs["versions"]),
            "created": tree.attrs["created"],
            **_effort(study, tree["stats"].to_dataset()),
        },
        diagnoses=diagnoses,
        diagnosis_note=note,
        maps=study.maps(tree),
    )


def _effort(study: Study, stats: xr.Dataset) -> dict[str, Any]:
    seconds = round(float(np.nansum(stats["seconds"])), 2)
    if np.isnan(stats["evaluations"]).all():
        return {"seconds from beginning to end": seconds}
    return {
        "seeds": study.seeds,
        "seconds of computation": seconds,
        "gradients computed": int(np.nansum(stats["evaluations"])),
    }


def keep_findings(tree: xr.DataTree, out: str | Path | None = None) -> list[Finding]:
    """Decide every claim of a run and write ``findings.json``, where the ledger looks for it."""
    found = findings(tree)
    write_json(_folder(tree, out).findings_path, [finding.to_json() for finding in found])
    return found


def write_report(
    tree: xr.DataTree, out: str | Path | None = None, found: list[Finding] | None = None
) -> Path:
    """Write the report of a run: HTML, figures as PNG, SVG and PDF, tables as CSV.

    Args:
        tree: the trajectory.
        out: the folder to write to; the run's own unless given.
        found: what :func:`keep_findings` returned, if it has been called already.

    Returns:
        The path of ``report.html``.
    """
    folder = _folder(tree, out)
    found = keep_findings(tree, out) if found is None else found
    return publish(folder.path, page_of(tree, found))


def _folder(tree: xr.DataTree, out: str | Path | None) -> RunFolder:
    if out is None and not tree.attrs.get("path"):
        raise AttnscopeError("this trajectory has no folder: expected out=FOLDER to write to.")
    return RunFolder(Path(out if out is not None else tree.attrs["path"]))
