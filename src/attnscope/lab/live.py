"""A run, or a watched model, drawn while it is still going.

A study's own figures need whole runs, so they are drawn over the seeds that are complete: runs go
seed by seed, and the first k seeds of a study are the same study with k seeds. Beside them stand
the curves of all runs as far as they have come. A watched model's figures draw whatever is there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from bokeh.core.json_encoder import serialize_json
from bokeh.embed import json_item

from attnscope.catalogue import names, of_tree
from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment
from attnscope.experiment.executor import name_runs, theory_of
from attnscope.lab.curves import case_names, courses, line
from attnscope.lab.entries import Entry, entry
from attnscope.lab.safety import confined, no_way_out
from attnscope.markup import fill
from attnscope.report.figure import Figure, Panel
from attnscope.report.interactive import layout
from attnscope.report.wording import summary
from attnscope.results import findings
from attnscope.trajectory import RunFolder, open_run
from attnscope.trajectory.manifest import WATCHED

if TYPE_CHECKING:
    from markupsafe import Markup

MOST = 6
"""Panels of the figure that shows how far runs are."""
MANY = 16
"""Runs above which lines are drawn thin."""


def stamp(root: Path, name: str) -> str:
    """Return a text that changes whenever a run says something new; only file times are read."""
    folder = RunFolder(confined(root, name))
    times = []
    for path in (folder.manifest_path, *sorted((folder.path / "runs").glob("*.json"))):
        try:
            times.append(path.stat().st_mtime_ns)
        except OSError:
            continue
    return f"{len(times)}-{max(times, default=0):x}"


def scene(root: Path, name: str, have: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yield what the live page shows of a run, as JSON values: first the words, then each figure.

    Args:
        root: the runs folder.
        name: of the run.
        have: fingerprints of figures that the page shows already; these are not drawn again.

    Raises:
        AttnscopeError: it cannot be read.
    """
    about = entry(root, name)
    if about.condition == "unreadable":
        raise AttnscopeError(f"'{name}' cannot be read: {about.status}")
    seen = stamp(root, name)
    path = confined(root, name)
    no_way_out(root, path)
    tree = open_run(path)
    own = own_part(tree, about)
    so_far = [] if about.study == WATCHED else [progress_figure(tree)]
    figures = [*so_far, *own.figures] if about.condition == "going" else [*own.figures, *so_far]
    figures = [figure for figure in figures if figure.panels]
    said = summary(own.found) if own.found else ""
    yield {
        "stamp": seen,
        "going": about.condition == "going",
        "notes": own.notes,
        "diagnosis": own.diagnosis,
        "claims": said,
        "words": ". ".join(part for part in (about.status, said, *_last_values(tree)) if part),
        "verdicts": [[finding.verdict, finding.sentence] for finding in own.found],
        "figures": [figure.name for figure in figures],
    }
    for figure in figures:
        yield drawn(figure, have)


def drawn(figure: Figure, have: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return a figure as the page draws it: words, and the Bokeh document as JSON text.

    If the page has it already, the document is left out: making one takes a second.
    """
    known = fingerprint(figure)
    value = {"figure": figure.name, "print": known}
    if known in have:
        return value
    item = serialize_json(json_item(layout(figure)))
    return {**value, "title": figure.title, "caption": figure.caption, "item": item}


def fingerprint(figure: Figure) -> str:
    """Return a short text that is the same for the same picture."""
    digest = hashlib.sha256()
    for value in _leaves(figure):
        digest.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return digest.hexdigest()[:12]


def _leaves(value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(value):
        yield type(value).__name__
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


@dataclass(frozen=True)
class Own:
    """What a study makes of as much of a run as is there."""

    figures: Sequence[Figure] = ()
    found: Sequence[Finding] = ()
    notes: Sequence[str] = ()
    diagnosis: Sequence[str] = ()


def own_part(tree: xr.DataTree, about: Entry) -> Own:
    """Return the figures, verdicts and diagnoses that a run can have now."""
    if about.study == WATCHED:
        watched = of_tree(tree)
        run = watched.read(tree)
        diagnoses, note = watched.diagnose(run)
        return Own(watched.figures(run), (), [note], [each.sentence for each in diagnoses])
    if about.study not in names():
        # A manifest from elsewhere must not decide which modules are imported here.
        note = "The study is not one of attnscope's own, so its own figures are not drawn here."
        return Own(notes=[note])
    study = of_tree(tree)
    try:
        whole = prefix(study, tree)
        if whole is None:
            note = "The study's own figures appear as soon as the first seed is complete."
            return Own(notes=[note])
        part, first = whole
        own = Own(part.figures(part.read(first)), about.findings or findings(first))
    except Exception as error:  # A study may need more seeds than there are by now.
        note = f"The study's own figures cannot be drawn from what is there ({error})."
        return Own(notes=[note])
    if part.seeds == study.seeds:
        return own
    return dataclasses.replace(
        own,
        notes=[f"Its figures are over the {part.seeds} of {study.seeds} seeds that are complete."],
    )


def prefix(study: Experiment, tree: xr.DataTree) -> tuple[Experiment, xr.DataTree] | None:
    """Return the study with as many seeds as are complete, and its trajectory; None if none is."""
    outcomes = tree["stats"].to_dataset()["outcome"].values
    done = np.isin(outcomes, ("finished", "stopped"))
    cases = len(study.cases)
    whole = int(np.argmin(done)) if not done.all() else len(done)
    seeds = whole // cases
    if seeds == 0:
        return None
    if seeds == study.seeds and "theory" in tree.children:
        return study, tree
    part = dataclasses.replace(study, seeds=seeds)
    runs = part.runs()
    if runs != study.runs()[: len(runs)]:
        return None
    groups = {
        name: data.isel(run=slice(len(runs))) if "run" in data.dims else data
        for name, node in tree.children.items()
        for data in [node.to_dataset()]
    }
    attrs = {**tree.attrs, "spec": json.dumps(part.to_json())}
    first = xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **groups})
    first["theory"] = xr.DataTree(theory_of(part, first))
    return part, name_runs(part, first)


def progress_figure(tree: xr.DataTree) -> Figure:
    """Draw what every run has recorded so far, a colour for each case."""
    found = courses(tree)
    case_of = case_names(tree)
    cases = list(dict.fromkeys(case_of))
    of_run = [cases.index(case) for case in case_of]
    panels = []
    for course in list(found.values())[:MOST]:
        marks = tuple(
            line(course, run, cases[case], case, thin=len(of_run) > MANY)
            for run, case in enumerate(of_run)
        )
        panels.append(Panel(course.name.replace("_", " "), course.axis, course.label, marks))
    left = list(found)[MOST:]
    more = f" Not shown: {', '.join(left)}." if left else ""
    return Figure(
        "so-far",
        "So far",
        "What was recorded, as far as each run has come; a line is one run, a colour one case."
        + more,
        tuple(panels),
    )


def _last_values(tree: xr.DataTree) -> list[str]:
    """Say where the loss is, for those who do not see the curves."""
    said = []
    for name, course in courses(tree).items():
        if "loss" in name and not course.averaged:
            known = [row[np.isfinite(row)] for row in course.values]
            last = [float(row[-1]) for row in known if row.size]
            if last:
                said.append(f"{name.replace('_', ' ')} {np.mean(last):.4g} on average at the end")
    return said[:1]


def live_page(about: Entry) -> Markup:
    """Return the markup of the live page; ``live.js`` fills it."""
    study = "a watched model" if about.study == WATCHED else about.study
    return fill("lab/live", run=about, study=study)
