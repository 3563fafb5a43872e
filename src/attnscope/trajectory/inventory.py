"""Which files belong to a run, by their names and by what they hold.

A folder may hold more than a run: notes, a repository, a thesis. Only what is provably ours is ever
deleted or replaced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attnscope.errors import AttnscopeError
from attnscope.files import HALF_WRITTEN, read_bytes, write_bytes
from attnscope.trajectory.documents import DamagedFile, read_sealed, write_json
from attnscope.trajectory.folder import CHECKED, RunFolder
from attnscope.trajectory.lock import NAME, REPORT, Busy, Lock

LIMIT = 2**32
"""Bytes that a file of a report may have."""
NAMED = re.compile(
    r"run\.json|written\.json"
    r"|runs/\d{4,}\.json|checkpoints/\d{4,}\.safetensors"
    r"|trajectory\.zarr/(?:[^/]+/){0,2}zarr\.json"
    r"|trajectory\.zarr/[^/]+/[^/]+/c(?:/\d+)*"
)
"""What a run consists of but for its report."""
REPORTED = re.compile(r"report\.html|figures/[^/]+\.(?:png|svg|pdf|csv)|tables/[^/]+\.csv")
"""What a report consists of."""
ABSENT = ""
"""Stands for the digest of a file that may not be there."""
HALF_WRITTEN_CHUNK = re.compile(r"[^/]+\.[0-9a-f]{32}\.partial")
"""Names that Zarr gives to files which it will move to their places."""


@contextmanager
def report_of(folder: RunFolder, files: Iterable[Path]) -> Iterator[None]:
    """Note the files of a report, so that they are known to be ours, while they are written.

    Files that were noted before and are there still stay noted.
    """
    noted = _noted(folder)
    write_json(folder.written_path, {"files": noted, "writing": True})
    yield
    fresh = {name: said for name, said in noted.items() if (folder.path / name).exists()}
    for file in files:
        if file.is_file() and folder.path in file.parents:
            fresh[str(file.relative_to(folder.path))] = [_digest(read_bytes(file, LIMIT))]
    write_json(folder.written_path, {"files": fresh, "writing": False})


def write_noted(folder: RunFolder, path: Path, data: bytes) -> None:
    """Write a file whose digest is kept elsewhere; a kill in between leaves one that fits."""
    noted, name, digest = _noted(folder), path.name, _digest(data)
    writing = _is_writing(folder)  # A report that was never finished stays so.
    try:
        before = _digest(read_bytes(path, LIMIT))
    except FileNotFoundError:
        before = ABSENT

    def note(*fitting: str) -> None:
        files = {**noted, name: list(fitting)}
        write_json(folder.written_path, {"files": files, "writing": writing})

    note(before, digest)
    write_bytes(path, data)
    note(digest)


def is_noted(folder: RunFolder, path: Path, data: bytes) -> bool:
    """Return whether a file holds that already, and its digest is kept."""
    try:
        return read_bytes(path, LIMIT) == data and _noted(folder).get(path.name) == [_digest(data)]
    except (FileNotFoundError, AttnscopeError):
        return False


def read_noted(folder: RunFolder, path: Path) -> bytes:
    """Read a file that :func:`write_noted` wrote.

    Raises:
        DamagedFile: it is not what was written.
        FileNotFoundError: there is none.
    """
    data = read_bytes(path)
    check_noted(folder, path.name, data)
    return data


def check_noted(folder: RunFolder, name: str, data: bytes) -> None:
    """Check that a file holds what was written.

    Raises:
        DamagedFile: it does not.
    """
    noted = _noted(folder, strict=True)
    if name in noted and _digest(data) not in noted[name]:
        raise DamagedFile(folder.path / name, "is damaged (it does not fit its digest)")


def foreign(folder: RunFolder) -> Iterator[Path]:
    """Yield what lies in the folder of a run and is not provably part of it."""
    noted, writing = _noted(folder), _is_writing(folder)
    for path in sorted(folder.path.rglob("*")):
        name = str(path.relative_to(folder.path))
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            yield path
        elif (
            path.is_dir()
            or _is_left(path)
            or name in (NAME, REPORT)
            or NAMED.fullmatch(name)
            or (writing and REPORTED.fullmatch(name))
        ):
            continue
        elif _digest(read_bytes(path, LIMIT)) not in noted.get(name, ()):
            yield path


def is_reported(folder: RunFolder) -> bool:
    """Return whether a report is there, and whoever wrote it came to the end."""
    return folder.report_path.exists() and not _is_writing(folder)


def image_endings(folder: RunFolder) -> tuple[str, ...]:
    """Return the kinds of image files that a report has figures as."""
    found = {Path(name).suffix[1:] for name in _noted(folder) if name.startswith("figures/")}
    return tuple(sorted(found - {"csv"}))


def half_written(folder: RunFolder) -> Iterator[Path]:
    """Yield what a killed process left of files that it was about to move to their places."""
    for path in folder.path.rglob("*"):
        if _is_left(path) and path.is_file() and not path.is_symlink():
            yield path


def tidy(folder: RunFolder) -> list[Path]:
    """Take away what killed processes left in a run; only for whoever holds its lock."""
    left = list(half_written(folder))
    for path in left:
        path.unlink(missing_ok=True)
    with suppress(Busy):  # Somebody alive writes the report.
        Lock(folder.path, "tidying", name=REPORT, patience=0.0).release()
    return left


def changed(folder: RunFolder) -> Iterator[DamagedFile]:
    """Yield the files of the report, and the findings, that are not what was written."""
    try:
        noted = _noted(folder, strict=True)
    except DamagedFile as damage:
        yield damage
        return
    reported = folder.findings_path.exists() or folder.report_path.exists()
    if reported and not noted and folder.manifest()["format"] >= CHECKED:
        yield DamagedFile(folder.written_path, "is gone")
    writing = _is_writing(folder)
    if writing:
        yield DamagedFile(folder.report_path, "was being written when its writer ended")
    for name, said in noted.items():
        if writing and REPORTED.fullmatch(name):
            continue
        file = folder.path / name
        try:
            if _digest(read_bytes(file, LIMIT)) not in said:
                yield DamagedFile(file, "is not what was written")
        except FileNotFoundError:
            if ABSENT not in said:
                yield DamagedFile(file, "is gone")
        except AttnscopeError as error:
            yield DamagedFile(file, str(error))


def _is_left(path: Path) -> bool:
    return bool(HALF_WRITTEN.fullmatch(path.name) or HALF_WRITTEN_CHUNK.fullmatch(path.name))


def _noted(folder: RunFolder, *, strict: bool = False) -> dict[str, list[str]]:
    try:
        files = read_sealed(folder.written_path).get("files")
    except FileNotFoundError:
        return {}
    except AttnscopeError:
        if strict:
            raise
        return {}
    return files if isinstance(files, dict) else {}


def _is_writing(folder: RunFolder) -> bool:
    try:
        return bool(read_sealed(folder.written_path).get("writing"))
    except (FileNotFoundError, AttnscopeError):
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
