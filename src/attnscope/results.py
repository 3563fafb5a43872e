"""From a trajectory to its verdicts and its report."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnscope.catalogue import of_tree, summary
from attnscope.claims import Finding, Findings, examine_all
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment
from attnscope.report import Page, Table, files_of, publish
from attnscope.report.page import check_images
from attnscope.trajectory import RunFolder
from attnscope.trajectory.documents import as_json
from attnscope.trajectory.inventory import is_noted, report_of, write_noted
from attnscope.trajectory.lock import REPORT, Lock
from attnscope.trajectory.manifest import WATCHED


def findings(tree: xr.DataTree) -> Findings:
    """Decide every claim of the experiment that a trajectory came from.

    Returns:
        A list of findings; a notebook shows it as a table, and it has ``to_dataframe()``.
    """
    experiment = of_tree(tree)
    return Findings(examine_all(experiment.claims(), experiment.read(tree)))


def printed(tree: xr.DataTree) -> list[Table]:
    """Return the tables that the command line prints beside the claims."""
    experiment = of_tree(tree)
    return list(experiment.printed(experiment.read(tree)))


def page_of(tree: xr.DataTree, found: list[Finding] | None = None) -> Page:
    """Return everything that a run's report shows."""
    experiment = of_tree(tree)
    run = experiment.read(tree)
    found = findings(tree) if found is None else found
    departures = experiment.departures()
    command, python = experiment.again() or (command_line(experiment), python_lines(experiment))
    diagnoses, note = experiment.diagnose(run)
    caveat = f" Not the paper's setting: {departures}." if departures else ""
    said = f"{about(experiment)} {experiment.introduction()}{caveat} {experiment.citation}"
    return Page(
        title=experiment.title(),
        summary=said.strip(),
        status=tree.attrs["status"],
        findings=found,
        figures=experiment.figures(run),
        tables=experiment.tables(run),
        spec=experiment.to_json(),
        command=command,
        python=python,
        provenance={
            "attnscope": tree.attrs["attnscope"],
            **json.loads(tree.attrs["versions"]),
            "created": tree.attrs["created"],
            **_effort(experiment, tree["stats"].to_dataset()),
        },
        diagnoses=diagnoses,
        diagnosis_note=note,
        maps=experiment.maps(run),
        overview=experiment.overview(run),
    )


def about(experiment: Experiment) -> str:
    """Return the line that an experiment is listed with."""
    name = experiment.name()
    if name == WATCHED:  # It is somebody's own model; what its class says is for programmers.
        return ""
    if "." in name and ":" not in name:
        return summary(name)
    file = inspect.getmodule(type(experiment))
    said = getattr(file, "__doc__", "") if getattr(file, "__name__", "") != "__main__" else ""
    return (said or type(experiment).__doc__ or "").strip().split("\n")[0]


def _effort(experiment: Experiment, stats: xr.Dataset) -> dict[str, Any]:
    seconds = round(float(np.nansum(stats["seconds"])), 2)
    if np.isnan(stats["evaluations"]).all():
        return {"seconds from beginning to end": seconds}
    return {
        "seeds": experiment.seeds,
        "seconds of computation": seconds,
        "gradients computed": int(np.nansum(stats["evaluations"])),
    }


def keep_findings(tree: xr.DataTree, out: str | Path | None = None) -> list[Finding]:
    """Decide every claim of a run and write ``findings.json``, where the ledger looks for it."""
    found = findings(tree)
    folder = _folder(tree, out)
    data = as_json([finding.to_json() for finding in found])
    if not is_noted(folder, folder.findings_path, data):
        with _reporting(folder, tree):
            write_noted(folder, folder.findings_path, data)
    return found


def write_report(
    tree: xr.DataTree,
    out: str | Path | None = None,
    found: list[Finding] | None = None,
    *,
    figures: Sequence[str] = (),
) -> Path:
    """Write the report of a run: one HTML file, and the numbers of figures and tables as CSV.

    Args:
        tree: the trajectory.
        out: the folder to write to; the run's own unless given.
        found: what :func:`keep_findings` returned, if it has been called already.
        figures: image files that are drawn of every figure as well: ``"png"``, ``"svg"``,
            ``"pdf"``.

    Returns:
        The path of ``report.html``.
    """
    check_images(figures)
    folder = _folder(tree, out)
    found = keep_findings(tree, out) if found is None else found
    page = replace(page_of(tree, found), images=tuple(figures))
    with _reporting(folder, tree), report_of(folder, files_of(folder.path, page)):
        return publish(folder.path, page)


@contextmanager
def _reporting(folder: RunFolder, tree: xr.DataTree) -> Iterator[None]:
    """Let nobody else write findings and report, nor replace the run meanwhile.

    Raises:
        Busy: somebody does.
        AttnscopeError: another run is there by now.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    with Lock(folder.path, "findings and report", name=REPORT):
        there = folder.manifest() if folder.manifest_path.exists() else None
        if there is not None and str(folder.path) == tree.attrs.get("path"):
            ours = (tree.attrs["study"], json.loads(tree.attrs["spec"]), tree.attrs["created"])
            if ours != (there["study"], there["spec"], there.get("created", "")):
                raise AttnscopeError(
                    f"'{folder.path}' has been replaced by another run meanwhile: expected the run "
                    "that the findings and the report are of. Nothing was written."
                )
        yield


def _folder(tree: xr.DataTree, out: str | Path | None) -> RunFolder:
    if out is None and not tree.attrs.get("path"):
        raise AttnscopeError("this trajectory has no folder: expected out=FOLDER to write to.")
    return RunFolder(Path(out if out is not None else tree.attrs["path"]))


def python_lines(experiment: Experiment) -> str:
    """Return the Python that makes exactly this run."""
    cls = type(experiment)
    changes = ", ".join(f"{name}={value!r}" for name, value in _changes(experiment).items())
    package = ".".join(cls.__module__.split(".")[:3])
    module = package if cls.__module__.startswith("attnscope.") else cls.__module__
    module = Path(cls.file()).stem if cls.file() else module
    return (
        "import attnscope\n"
        f"from {module} import {cls.__name__}\n\n"
        f"run = attnscope.run({cls.__name__}({changes}))   # an xarray.DataTree\n"
        "for finding in attnscope.findings(run):\n"
        "    print(finding.verdict, finding.sentence)\n"
        "attnscope.write_report(run)\n"
    )


def command_line(experiment: Experiment) -> str:
    """Return the command line that makes exactly this run."""
    words = ["attnscope", "run", type(experiment).file() or experiment.name()]
    for name, value in _changes(experiment).items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, tuple):
            words += [f"--{flag}", *map(str, value)]
        else:
            words += [f"--{flag}", str(value)]
    return shlex.join(words)


def _changes(experiment: Experiment) -> dict[str, Any]:
    """Return the settings that differ from the defaults."""
    default = type(experiment)().to_json()
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in experiment.to_json().items()
        if value != default.get(name)
    }
