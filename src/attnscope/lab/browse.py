"""The runs of a folder, from their manifests alone: no trajectory is opened to list them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from attnscope.catalogue import current
from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.lab.safety import confined, opened, plain_name
from attnscope.report.wording import SYMBOLS
from attnscope.trajectory import FORMAT, RunFolder, run_status
from attnscope.trajectory.manifest import WATCHED

FRESH = 60.0
"""Seconds since a run last said how far it is, after which it is taken for dead. It speaks every
five seconds, or at every step if those are longer."""
LARGEST = 16 << 20
"""Bytes of the largest manifest or list of findings that is read."""

_VERDICT = re.compile(rb'"verdict": *"(holds|fails|undecided)"')

SHOWN = 100
"""Rows of the page itself; the others follow when it stands, hidden until they are asked for."""

Condition = Literal["going", "finished", "unfinished", "unreadable"]
WORDS: dict[Condition, str] = {
    "going": "still going",
    "finished": "finished",
    "unfinished": "not finished",
    "unreadable": "cannot be read",
}


@dataclass(frozen=True)
class Entry:
    """One run of the list.

    Args:
        name: of its folder.
        condition: in a word.
        status: in a sentence; what is the matter, if it cannot be read.
        study: what it is a run of.
        created: when, in ISO 8601.
        spec: its settings.
        verdicts: of its claims.
        report: whether it has one.
        path: its folder.
    """

    name: str
    condition: Condition
    status: str
    study: str = ""
    created: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    report: bool = False
    path: Path = Path()

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What its claims came to; nothing if they are of another version, which cannot be read."""
        if not self.verdicts:
            return ()
        try:
            decided = json.loads(_text(self.path.parent, self.path, "findings.json"))
            return tuple(Finding.from_json(each) for each in decided)
        except (AttnscopeError, OSError, ValueError, TypeError, AttributeError):
            return ()

    @property
    def address(self) -> str:
        """Where its page is."""
        return f"/runs/{quote(self.name, safe='')}/"

    @property
    def live(self) -> str:
        """Where it is drawn as it goes."""
        return f"/live/{quote(self.name, safe='')}"


Kept = dict[str, tuple[tuple[int, ...], "Entry"]]
"""Finished runs that were read before, with the times of their files."""


def entries(root: Path, kept: Kept | None = None) -> tuple[list[Entry], list[str]]:
    """Return the runs in a folder, the newest first, and the names of folders that are none.

    Args:
        root: the folder.
        kept: what an earlier call has read, which is read again only if its files have changed.

    Raises:
        AttnscopeError: the folder is not there or cannot be read.
    """
    try:
        with os.scandir(root) as found:
            folders = [(e.name, e.is_symlink()) for e in found if plain_name(e.name) and e.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        raise AttnscopeError(
            f"There is no folder '{root}' yet. It appears with the first run: try "
            "`attnscope run lu2021.sen --scale quick`."
        ) from None
    except OSError as error:
        raise AttnscopeError(
            f"The folder '{root}' cannot be read ({error.strerror}). Expected one that you may "
            "read."
        ) from None
    if os.path.lexists(os.path.join(root, "run.json")):
        raise AttnscopeError(
            f"'{root}' is a run itself. Expected the folder that it lies in: try "
            f"`attnscope lab {Path(root).resolve().parent}`."
        )
    wall = Path(os.path.realpath(root))
    kept = {} if kept is None else kept
    runs, others = [], []
    for name, link in folders:
        times = _times(f"{wall}/{name}")
        if name in kept and kept[name][0] == times:
            runs.append(kept[name][1])
            continue
        try:
            known = entry(wall, name) if link else _read(wall, wall / name)
        except NotARunError:
            others.append(name)
            continue
        runs.append(known)
        if known.condition == "finished":
            kept[name] = times, known
    for gone in kept.keys() - {name for name, _ in folders}:
        del kept[gone]
    runs.sort(key=lambda run: (run.created, run.name), reverse=True)
    return runs, sorted(others)


def _times(folder: str) -> tuple[int, ...]:
    times = []
    for name in ("run.json", "findings.json", "report.html"):
        try:
            times.append(os.lstat(f"{folder}/{name}").st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


class NotARunError(AttnscopeError):
    """A folder without a manifest."""


def entry(root: Path, name: str) -> Entry:
    """Read what a run says about itself; what cannot be read is said in its status.

    Raises:
        NotARunError: there is no manifest.
        AttnscopeError: there is no folder of that name.
    """
    try:
        path = confined(root, name)
    except AttnscopeError as error:
        if plain_name(name) and os.path.islink(os.path.join(root, name)):
            return Entry(name, "unreadable", str(error))
        raise
    return dataclasses.replace(_read(Path(os.path.realpath(root)), path), name=name)


def _read(root: Path, path: Path) -> Entry:
    """Read what a run says about itself; both paths have their links followed."""
    name = path.name
    try:
        manifest = read_json(root, path, "run.json")
        if manifest["format"] > FORMAT:
            RunFolder(path).manifest()  # says what a person can do about a newer one
        status, condition = _status(root, RunFolder(path), manifest)
        return Entry(
            name,
            condition,
            status,
            current(str(manifest["study"])),
            str(manifest.get("created", "")),
            dict(manifest["spec"]),
            _verdicts(root, path),
            os.path.isfile(f"{path}/report.html"),
            path,
        )
    except FileNotFoundError:
        raise NotARunError(f"'{name}' is not a run: there is no run.json in it.") from None
    except AttnscopeError as error:
        return Entry(name, "unreadable", str(error))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OSError):
        return Entry(
            name,
            "unreadable",
            "its manifest run.json is damaged or half written: expected the study, its spec and "
            "its runs.",
        )


def _status(root: Path, folder: RunFolder, manifest: dict[str, Any]) -> tuple[str, Condition]:
    kept = str(manifest.get("status", ""))
    if kept.startswith("finished: "):
        return kept, "finished"
    states: list[dict[str, Any]] = []
    newest = folder.manifest_path.stat().st_mtime
    for index in range(len(manifest["runs"])):
        path = folder.state_path(index)
        try:
            newest = max(newest, path.stat().st_mtime)
        except FileNotFoundError:
            states.append({})
            continue
        states.append(read_json(root, folder.path, "runs", path.name))
    status = run_status(manifest, states)
    if status.startswith("finished"):
        return status, "finished"
    ended = all(state.get("outcome") not in (None, "running") for state in states)
    going = not ended and time.time() - newest < FRESH
    return status, "going" if going else "unfinished"


def _verdicts(root: Path, path: Path) -> tuple[str, ...]:
    """Find the verdicts of a run; a thousand lists of findings take too long to parse.

    In JSON a quotation mark inside a sentence has a backslash, so no sentence is taken for one.
    """
    try:
        text = _text(root, path, "findings.json")
    except FileNotFoundError:
        return ()
    return tuple(each.decode() for each in _VERDICT.findall(text))


def read_json(root: Path, run: Path, *parts: str) -> Any:
    """Read a small JSON file of a run.

    Args:
        root: the runs folder.
        run: the run's folder, with all links followed.
        parts: names below it.

    Raises:
        AttnscopeError: it leads out or is too large.
        ValueError: it is no JSON.
        OSError: it is not there, or cannot be read.
    """
    return json.loads(_text(root, run, *parts))


def _text(root: Path, run: Path, *parts: str) -> bytes:
    with open(opened(root, run, *parts), "rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise AttnscopeError(f"'{'/'.join((run.name, *parts))}' is larger than {LARGEST >> 20} MB.")
    return text


def settings(runs: Sequence[Entry]) -> dict[str, str]:
    """Say for each run in which fields it differs from others of its study.

    >>> a = Entry("a", "finished", "", "lu2021.sen", spec={"m": 5, "dim": 15})
    >>> b = Entry("b", "finished", "", "lu2021.sen", spec={"m": 20, "dim": 15})
    >>> settings([a, b])
    {'a': 'm = 5', 'b': 'm = 20'}
    """
    groups: dict[str, list[Entry]] = defaultdict(list)
    for run in runs:
        groups[run.study].append(run)
    said = {}
    for group in groups.values():
        values: dict[str, set[str]] = defaultdict(set)
        for run in group:
            for name, value in run.spec.items():
                values[name].add(json.dumps(value))
        differ = [name for name, seen in values.items() if len(seen) > 1]
        for run in group:
            parts = [f"{name} = {_short(run.spec[name])}" for name in differ if name in run.spec]
            said[run.name] = ", ".join(parts)
    return said


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def runs_page(
    root: Path, runs: Sequence[Entry], others: Sequence[str], *, whole: bool = False
) -> str:
    """Return the markup of the list: its first rows, or all of them."""
    rest = ""
    if others:
        names = ", ".join(others[:20]) + (
            f" and {len(others) - 20} more" if len(others) > 20 else ""
        )
        rest = (
            f'<p class="soft small">Folders without a run.json, which are no runs: '
            f"{escape(names)}.</p>"
        )
    if not runs:
        return (
            f"<h1>Runs</h1><div class='card'><p>There is no run in '{escape(str(root))}' yet.</p>"
            "<p>Make one: <code>attnscope run lu2021.sen --scale quick</code></p></div>" + rest
        )
    first = runs if whole else runs[:SHOWN]
    rows = run_rows(runs, first)
    more = ""
    if len(first) < len(runs):
        more = (
            f'<p><a class="button" id="more" href="/runs?part=all">Show all {len(runs):,}</a></p>'
        )
    heads = ("Run", "Study", "Status", "Claims", "Created (UTC)")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    going = sum(run.condition == "going" for run in runs)
    plural = "" if len(runs) == 1 else "s"
    told = f"{len(runs):,} run{plural} in '{root}'" + (f", {going} still going" if going else "")
    return f"""<h1>Runs</h1>
<p class="lead">{escape(told)}. Tick several to draw them over each other.</p>
<form action="/compare" method="get">
<div class="row tools">
<label class="hidden-words" for="filter">Filter the runs</label>
<input type="search" class="grow" id="filter" placeholder="Filter: name, study, setting, status"
 autocomplete="off">
<button type="submit" class="primary" id="compare">Draw over each other</button>
<span class="soft small" id="shown" role="status"></span>
</div>
<div class="card scroll"><table class="cards runs">
<thead><tr><th scope="col"><span class="hidden-words">Compare</span></th>{head}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
{more}
</form>
{rest}"""


def run_rows(runs: Sequence[Entry], shown: Sequence[Entry], *, hidden: bool = False) -> str:
    """Return the rows of some of the runs; what all of them share is not said."""
    said = settings(runs)
    return "\n".join(_row(run, said[run.name], hidden) for run in shown)


def _row(run: Entry, said: str, hidden: bool) -> str:
    name, row = escape(run.name), "<tr hidden>" if hidden else "<tr>"
    if run.condition == "unreadable":
        return (
            f"{row}<td></td><td><strong>{name}</strong></td><td data-label='Study'></td>"
            f'<td colspan="3" data-label="Status"><span class="badge fails">cannot be read</span> '
            f"{escape(run.status)}</td></tr>"
        )
    tick = f'<input type="checkbox" name="run" value="{name}" aria-label="Compare {name}">'
    kind = {"going": "holds", "finished": "", "unfinished": "undecided"}[run.condition]
    badge = f'<span class="badge {kind}">{WORDS[run.condition]}</span> ' if kind else ""
    live = "" if run.condition == "finished" else f' <a href="{run.live}">live</a>'
    more = f'<p class="soft small">{escape(said)}</p>' if said else ""
    study = "a watched model" if run.study == WATCHED else run.study
    created = escape(run.created[:16].replace("T", " "))
    return (
        f"{row}<td>{tick}</td><td><a href='{run.address}'><strong>{name}</strong></a>{more}</td>"
        f'<td data-label="Study">{escape(study)}</td>'
        f'<td data-label="Status">{badge}<span class="small">{escape(run.status)}</span>{live}</td>'
        f'<td data-label="Claims">{counts(run.verdicts)}</td>'
        f'<td data-label="Created" class="when">{created}</td></tr>'
    )


def counts(verdicts: Sequence[str]) -> str:
    """Return how many claims hold, fail and are undecided, as badges with words."""
    parts = []
    for verdict, symbol in SYMBOLS.items():
        count = verdicts.count(verdict)
        if count:
            parts.append(
                f'<span class="badge {verdict}" title="{count} {verdict}">{symbol} {count}'
                f'<span class="hidden-words"> {verdict}</span></span>'
            )
    return " ".join(parts) or '<span class="soft small">none</span>'
