"""Where a run goes: a new folder, the one that holds it already, or one beside it.

A run is never destroyed unless somebody asks for that by name, and nothing else ever is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.experiment.base import Experiment
from attnscope.trajectory import RunFolder
from attnscope.trajectory.folder import beside, holds_something
from attnscope.trajectory.inventory import foreign, tidy
from attnscope.trajectory.lock import REPORT, Lock
from attnscope.trajectory.staging import clear, new_folder

LONGEST = 200
"""Bytes of a folder's name, so that there is room for a hidden name beside it."""
Fill = Callable[[RunFolder], None]


@contextmanager
def place_of(
    experiment: Experiment, path: Path, fill: Fill, *, again: bool, overwrite: bool
) -> Iterator[tuple[RunFolder, Lock]]:
    """Find or make the folder of a run, and hold its lock.

    Args:
        experiment: what is run.
        path: where it should go.
        fill: makes a run that has not begun.
        again: whether a run that is there is left alone, and a new one made beside it.
        overwrite: whether a run that is there is replaced.

    Raises:
        Busy: somebody else is writing there.
        AttnscopeError: what is there is another run, or no run.
    """
    _check_name(path)
    clear(path.parent)
    if again:
        path = beside(path)
    what = f"attnscope run {experiment.name()}"
    folder = RunFolder(path)

    def make(new: Path) -> None:
        fill(RunFolder(new))

    if not holds_something(path):
        with new_folder(path, what, make) as lock:
            yield folder, lock
        return
    if not folder.manifest_path.exists():
        raise AttnscopeError(
            f"'{path}' exists and is not a run: expected an empty or a new folder."
        )
    with contextlib.ExitStack() as held:
        lock = held.enter_context(Lock(path, what))
        if overwrite:
            # Whoever writes its report now would write it into the new one.
            held.enter_context(Lock(path, what, name=REPORT))
            _check_ours(folder)
            lock = held.enter_context(new_folder(path, what, make, old=lock))
        else:
            check_same(folder, experiment)
            tidy(folder)
        yield folder, lock


def _check_name(path: Path) -> None:
    if path.name in ("", ".."):
        raise AttnscopeError(f"out = '{path}': expected the name of a folder of its own.")
    try:
        long = len(path.name.encode()) > LONGEST
    except UnicodeEncodeError:
        long = False
    if long:
        raise AttnscopeError(
            f"out = '{path.name[:40]}…' has {len(path.name)} characters: expected a name of at "
            f"most {LONGEST} bytes."
        )
    if path.is_symlink():
        raise AttnscopeError(
            f"out = '{path}' is a link: expected a folder. Give the folder that it leads to."
        )


def _check_ours(folder: RunFolder) -> None:
    """Refuse to replace what is not provably a run, and nothing but a run."""
    folder.manifest()
    if not (folder.store / "zarr.json").is_file():
        raise AttnscopeError(
            f"'{folder.path}' has a run.json and no trajectory: expected a run of attnscope, to "
            "replace it. Nothing was touched."
        )
    others = list(foreign(folder))
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise AttnscopeError(
            f"'{folder.path}' holds '{others[0].relative_to(folder.path)}'{more}, which attnscope "
            "did not write or somebody changed: expected nothing but a run, to replace it. Move "
            "it elsewhere, or choose another --out. Nothing was touched."
        )


def check_same(folder: RunFolder, experiment: Experiment) -> None:
    """Refuse to go on with the run of another spec."""
    manifest = folder.manifest()
    ours: dict[str, Any] = {"study": experiment.name(), **experiment.to_json()}
    theirs: dict[str, Any] = {"study": manifest["study"], **manifest["spec"]}
    if theirs["study"] == ours["study"]:
        theirs = _respelled(theirs, ours, experiment, manifest)
    other = [k for k in {**theirs, **ours} if theirs.get(k) != ours.get(k)]
    if other:
        raise AttnscopeError(
            f"'{folder.path}' holds a run with another spec ("
            + ", ".join(f"{k} = {theirs.get(k)!r} there, {ours.get(k)!r} here" for k in other)
            + "): expected the same spec to resume it. Choose another --out, --again to make a new "
            "run beside it, or --overwrite to replace it."
        )


def _respelled(
    theirs: dict[str, Any],
    ours: Mapping[str, Any],
    experiment: Experiment,
    manifest: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a spec as this version spells it, since an older one may have done so otherwise."""
    known = {**theirs, **type(experiment).from_json(manifest["spec"]).to_json()}
    return {name: value for name, value in known.items() if name in ours}
