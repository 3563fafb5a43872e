"""The runs of a folder, from their manifests alone: no trajectory is opened to list them.

A folder may hold anything: pipes, links in circles, a manifest of a hundred thousand brackets. Each
is an entry that says what is wrong with it, and the others are listed beside it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from attnscope.catalogue import current
from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.lab.safety import confined, opened, plain_name, written
from attnscope.report.wording import interval, number
from attnscope.trajectory import FORMAT, RunFolder, run_status
from attnscope.trajectory.inventory import check_noted

FRESH = 60.0
"""Seconds since a run last said how far it is, after which it is taken for dead. It speaks every
five seconds, or at every step if those are longer."""
LARGEST = 16 << 20
"""Bytes of the largest file of a run that is read into a page."""
DEEPEST = 20
"""Levels of lists in a setting; no study has more than three."""
MOST_RUNS = 20_000
"""Runs of one folder whose states are looked for."""

_VERDICT = re.compile(rb'"verdict": *"(holds|fails|undecided)"')

Condition = Literal["going", "finished", "unfinished", "unreadable"]


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
        decided: whether it has a list of findings.
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
    decided: bool = False

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What its claims came to; nothing if they are of another version, which cannot be read."""
        return self._read_findings[0]

    @property
    def trouble(self) -> str:
        """What is wrong with its findings, in a sentence; empty if nothing is."""
        return self.status if self.condition == "unreadable" else self._read_findings[1]

    @cached_property
    def _read_findings(self) -> tuple[tuple[Finding, ...], str]:
        if not self.decided:
            return (), ""
        try:
            found = json.loads(read(self.path.parent, self.path, "findings.json"))
            if not isinstance(found, list):
                raise TypeError("no list")
            findings = tuple(Finding.from_json(each) for each in found)
            for each in findings:
                _ = number(each.ours), interval(each), number(each.control)
        except AttnscopeError as error:
            return (), str(error)
        except Exception:  # Whatever is in that file is no reason to lose the page.
            return (), (
                "its findings.json is damaged or of another version: expected a list of claims, "
                "each with a verdict that holds, fails or is undecided."
            )
        return findings, ""

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
            folders = [(e.name, e.is_symlink()) for e in found if _is_folder(e)]
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
            plain = not link and written(name) == name
            known = _read(wall, wall / name) if plain else entry(wall, name)
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


def _is_folder(found: os.DirEntry[str]) -> bool:
    try:
        return plain_name(found.name) and found.is_dir()
    except OSError:  # a link in a circle
        return True


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
    if written(name) != name:
        what = "the name of its folder is not text: expected one that can stand in an address."
        return Entry(written(name), "unreadable", what)
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
        spec = dict(manifest["spec"])
        if not _is_shallow(spec, DEEPEST):
            raise AttnscopeError("its settings are nested too deeply: expected numbers and words.")
        status, condition = _status(root, RunFolder(path), manifest)
        verdicts = _verdicts(root, path)
        return Entry(
            name,
            condition,
            status,
            current(str(manifest["study"])),
            str(manifest.get("created", "")),
            spec,
            verdicts or (),
            os.path.isfile(f"{path}/report.html"),
            path,
            verdicts is not None,
        )
    except FileNotFoundError:
        raise NotARunError(f"'{name}' is not a run: there is no run.json in it.") from None
    except AttnscopeError as error:
        return Entry(name, "unreadable", str(error))
    except PermissionError as error:
        what = f"it may not be read ({error.strerror}): expected a folder that you may read."
        return Entry(name, "unreadable", what)
    except Exception:  # Whatever is in there is no reason to lose the list.
        return Entry(
            name,
            "unreadable",
            "its manifest run.json is damaged or half written: expected the study, its spec and "
            "its runs.",
        )


def _is_shallow(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)


def _status(root: Path, folder: RunFolder, manifest: dict[str, Any]) -> tuple[str, Condition]:
    kept = str(manifest.get("status", ""))
    if kept.startswith("finished: "):
        return kept, "finished"
    if len(manifest["runs"]) > MOST_RUNS:
        raise AttnscopeError(f"it has more than {MOST_RUNS:,} runs: expected fewer.")
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


def _verdicts(root: Path, path: Path) -> tuple[str, ...] | None:
    """Find the verdicts of a run; a thousand lists of findings take too long to parse.

    None if it has no list of findings.

    In JSON a quotation mark inside a sentence has a backslash, so no sentence is taken for one.
    """
    try:
        text = read(root, path, "findings.json")
    except FileNotFoundError:
        return None
    check_noted(RunFolder(path), "findings.json", text)
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
    return json.loads(read(root, run, *parts))


def read(root: Path, run: Path, *parts: str) -> bytes:
    """Read a file of a run.

    Args:
        root: the runs folder.
        run: the run's folder, with all links followed.
        parts: names below it.

    Raises:
        AttnscopeError: it leads out, is too large, or is no ordinary file.
        OSError: it is not there, or cannot be read.
    """
    with open(opened(root, run, *parts), "rb") as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise AttnscopeError(f"'{'/'.join((run.name, *parts))}' is larger than {LARGEST >> 20} MB.")
    return text
