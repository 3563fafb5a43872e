"""Whether a sweep is whole: every file of it, and which points are not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.files import HALF_WRITTEN, read_bytes, write_bytes
from attnscope.sweeps.folder import DIGITS, TABLE_LIMIT, SweepFolder
from attnscope.sweeps.pack import damage_in
from attnscope.sweeps.unfinished import Unfinished
from attnscope.trajectory.documents import DamagedFile
from attnscope.trajectory.lock import NAME, REPORT, Lock

OURS = re.compile(
    r"sweep\.json|points\.jsonl|plan\.json|points/\d{5,}\.zip|layouts/[0-9a-f]{12}\.json"
    r"|going/[0-9a-f]{16}\.state|report\.html|shards/[0-9-]+(/.*)?"
    r"|figures/[^/]+\.(?:png|svg|pdf|csv)|tables/[^/]+\.csv"
)
"""What a sweep consists of."""


@dataclass(frozen=True)
class SweepHealth:
    """What a look at every file of a sweep came to.

    Args:
        path: the sweep's folder.
        points: how many points have a row.
        damage: what is wrong.
        left: half-written files of a killed process, which do no harm.
    """

    path: Path
    points: int
    damage: tuple[DamagedFile, ...]
    left: tuple[Path, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damage


def check_sweep(path: str | Path) -> SweepHealth:
    """Look at every file of a sweep; nothing is written.

    Raises:
        AttnscopeError: the folder is not a sweep at all.
    """
    folder = SweepFolder(Path(path))
    left = tuple(_left(folder))
    try:
        folder.manifest()
        rows = folder.rows()
    except DamagedFile as damage:
        return SweepHealth(folder.path, 0, (damage,), left)
    return SweepHealth(folder.path, len(rows), tuple(_damage(folder)), left)


def repair_sweep(path: str | Path) -> list[str]:
    """Take damaged points out, so that the same command does them anew; say what was done.

    Raises:
        AttnscopeError: the manifest or the table itself is damaged, or somebody writes there.
    """
    folder, told = SweepFolder(Path(path)), []
    with Lock(folder.path, "attnscope check --repair"):
        folder.manifest()
        rows = folder.rows()
        bad = {damage.path for damage in _damage(folder)}
        good: list[dict[str, Any]] = []
        lost: list[dict[str, Any]] = []
        for row in rows:
            files = {folder.point_path(int(row["point"]))}
            files |= {folder.layout_path(row["layout"])} if "layout" in row else set()
            (lost if files & bad else good).append(row)
        for file in [*_left(folder), *(f for f in bad if f.parent.name in ("points", "going"))]:
            if file.is_file():
                file.unlink()
                told.append(f"{file.relative_to(folder.path)} taken away")
        if lost:
            text = [json.dumps(row, separators=(",", ":")).encode() for row in good]
            lines = [hashlib.sha256(t).hexdigest()[:DIGITS].encode() + b" " + t for t in text]
            write_bytes(folder.table_path, b"".join(line + b"\n" for line in lines), sync=True)
            told.append(f"{len(lost)} points taken out: the same command does them anew")
    return told


def check_ours(folder: SweepFolder) -> None:
    """Refuse to replace what is not provably a sweep, and nothing but a sweep.

    Raises:
        AttnscopeError: there is something else in the folder.
    """
    folder.manifest()
    for path in sorted(folder.path.rglob("*")):
        name = str(path.relative_to(folder.path))
        fits = OURS.fullmatch(name) or HALF_WRITTEN.fullmatch(path.name) or name in (NAME, REPORT)
        if path.is_symlink() or (not path.is_dir() and not fits):
            raise AttnscopeError(
                f"'{folder.path}' holds '{name}', which attnscope did not write: expected nothing "
                "but a sweep, to replace it. Move it elsewhere, or choose another --out. Nothing "
                "was touched."
            )


def _left(folder: SweepFolder) -> Iterator[Path]:
    for path in folder.path.rglob("*"):
        if HALF_WRITTEN.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            yield path


def _damage(folder: SweepFolder) -> Iterator[DamagedFile]:
    layouts: set[str] = set()
    for row in folder.rows():
        if "sha256" not in row:
            continue
        path = folder.point_path(int(row["point"]))
        try:
            data = read_bytes(path, TABLE_LIMIT)
        except FileNotFoundError:
            yield DamagedFile(path, "is gone")
            continue
        except AttnscopeError as error:
            yield DamagedFile(path, str(error))
            continue
        if hashlib.sha256(data).hexdigest() != row["sha256"]:
            yield damage_in(path) or DamagedFile(path, "is not what was written there")
        layouts.add(str(row["layout"]))
    for name in sorted(layouts):
        try:
            folder.layout(name)
        except DamagedFile as damage:
            yield damage
    for path in sorted((folder.path / "going").glob("*.state")):
        try:
            Unfinished.from_bytes(read_bytes(path, TABLE_LIMIT))
        except AttnscopeError as error:
            yield DamagedFile(path, f"is damaged ({error})")
