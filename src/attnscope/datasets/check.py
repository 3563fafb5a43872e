"""Whether the files of a data set are what was published."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, cast

from attnscope.datasets.first_seen import change
from attnscope.datasets.meter import Meter, Metered
from attnscope.datasets.place import require
from attnscope.datasets.record import PACKED, DataFile, DataSet
from attnscope.errors import AttnscopeError

Verdict = Literal["complete", "partial", "uncounted", "wrong"]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class FileReport:
    """Where a file lies and what is wrong with it, if anything."""

    file: DataFile
    path: Path
    problem: str = ""

    @property
    def published(self) -> bool:
        """Whether it lies there under its published name, plain or packed."""
        return packing(self.file, self.path.name) is not None


@dataclass(frozen=True)
class SplitReport:
    """What was read of a split, beside what was published."""

    split: str
    rows: int
    expected: int | None
    classes: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """``complete``, ``partial``, ``wrong`` (too many rows), or ``uncounted``.

        Rows that the reader leaves out on purpose are not missing.
        """
        if self.expected is None:
            return "uncounted" if self.rows else "partial"
        if self.expected in (self.rows, self.rows + sum(self.skipped.values())):
            return "complete"
        return "partial" if self.rows < self.expected else "wrong"


@dataclass(frozen=True)
class Report:
    """What `attnscope data check` found."""

    dataset: DataSet
    files: tuple[FileReport, ...]
    splits: tuple[SplitReport, ...]
    skipped: dict[str, int]
    """What was left out of the whole set on purpose, where it is not known of which split."""
    problems: tuple[str, ...]
    """Sentences; empty when the set can be used."""

    @property
    def verdict(self) -> Verdict:
        """``wrong`` if there are problems, else ``partial`` if rows are missing.

        A partial set can be used; what is read of it is right, and its numbers are its own.
        """
        verdicts = [split.verdict for split in self.splits]
        if self.problems:
            return "wrong"
        for verdict in ("partial", "uncounted"):
            if verdict in verdicts:
                return cast("Verdict", verdict)
        return "complete"


def check(dataset: DataSet, folder: Path) -> Report:
    """Look at every file, then read every split and count its rows.

    Raises:
        AttnscopeError: files are missing.
    """
    files = tuple(
        FileReport(file, path, file_problem(file, path, path.name))
        for file, path in require(dataset, folder).items()
    )
    problems = [f"'{report.path}': {report.problem}" for report in files if report.problem]
    splits: tuple[SplitReport, ...] = ()
    skipped: dict[str, int] = {}
    try:
        splits, skipped = _read(dataset, folder)
    except AttnscopeError as error:
        problems.append(str(error).rstrip("."))
    problems += [
        f"the split {split.split} has {split.rows:,} rows, {split.expected:,} were published"
        for split in splits
        if split.verdict == "wrong"
    ]
    return Report(dataset, files, splits, skipped, tuple(problems))


def file_problem(file: DataFile, path: Path, name: str) -> str:
    """Return what is wrong with a file's size or checksum, or an empty string.

    Nothing is known of alternatives, so nothing is wrong with them. Where no checksum is published,
    the one that was noted at the first download counts.

    Args:
        file: what is known of it.
        path: where its bytes lie.
        name: the name it has, or will have: it says whether the bytes are packed.
    """
    packed = packing(file, name)
    if packed is None or path.is_dir():
        return ""
    if file.sha256 is None and (changed := change(path, name)):
        return changed
    if file.size is None and file.sha256 is None:
        return ""
    digest, meter = hashlib.sha256(), Meter(str(path))
    try:
        with _opened(path, packed) as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
                meter.add_bytes(len(block))
    except AttnscopeError:
        raise
    except Exception as error:  # The libraries raise whatever damaged bytes lead them to.
        return f"it cannot be read ({error})"
    if file.size is not None and meter.size != file.size:
        return f"it has {meter.size:,} bytes, {file.size:,} were published"
    if file.sha256 is not None and digest.hexdigest() != file.sha256:
        return f"its SHA-256 is {digest.hexdigest()}, not {file.sha256}, which was published"
    return ""


def damage(path: Path, name: str) -> str:
    """Read a packed file or archive to its end; return what is wrong with it, or nothing.

    Args:
        path: where its bytes lie.
        name: the name it has, or will have: it says what kind of file it is.

    Raises:
        AttnscopeError: it unpacks to more than :mod:`attnscope.limits` allows.
    """
    try:
        _drain(path, name, Meter(str(path)))
    except AttnscopeError:
        raise
    except Exception as error:  # The libraries raise whatever damaged bytes lead them to.
        return f"it is damaged or cut short ({error})"
    return ""


def _drain(path: Path, name: str, meter: Meter) -> None:
    """Read all there is, to the very end, where checksums stand."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                with archive.open(info) as member:
                    while block := member.read(_BLOCK):
                        meter.add_bytes(len(block))
        return
    packed = ".gz" if name.endswith((".gz", ".tgz")) else ".xz" if name.endswith(".xz") else ""
    with _opened(path, packed) as stream:
        metered = cast("IO[bytes]", Metered(stream, meter))
        if name.endswith(".tgz") or ".tar" in Path(name).suffixes:
            with tarfile.open(fileobj=metered, mode="r|") as tar:
                for _ in tar:
                    pass
        while packed and metered.read(_BLOCK):
            pass


def packing(file: DataFile, name: str) -> str | None:
    """Return what packs the published file under this name: nothing, ``.gz`` or ``.xz``.

    None if it is another name: an alternative.
    """
    published = file.path.rsplit("/", 1)[-1]
    suffix = name.removeprefix(published)
    return suffix if name.startswith(published) and suffix in ("", *PACKED) else None


def _opened(path: Path, packed: str) -> IO[bytes]:
    if packed == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if packed == ".xz":
        return cast("IO[bytes]", lzma.open(path, "rb"))
    return path.open("rb")


def _read(dataset: DataSet, folder: Path) -> tuple[tuple[SplitReport, ...], dict[str, int]]:
    """Read all there is; return the splits, and what was left out of the set as a whole."""
    from attnscope.datasets.load import documents, labelled, parallel

    expected = dataset.expected
    skipped: dict[str, int] = {}
    found: dict[str, SplitReport] = {}
    if dataset.kind == "labelled":
        text = labelled(dataset.key, data_dir=folder)
        for name, split in text.splits.items():
            labels = split.labels.tolist()
            classes = {label: labels.count(i) for i, label in enumerate(text.classes)}
            rows = len(split.texts)
            found[name] = SplitReport(name, rows, expected.get(name), classes, split.skipped)
    elif dataset.kind == "parallel":
        pairs = parallel(dataset.key, data_dir=folder)
        skipped = pairs.skipped
        for name, (source, _) in pairs.splits.items():
            found[name] = SplitReport(name, len(source), expected.get(name))
    else:
        texts = documents(dataset.key, data_dir=folder)
        skipped = texts.skipped
        for name, documents_read in texts.splits.items():
            found[name] = SplitReport(name, len(documents_read), expected.get(name))
    for name, count in expected.items():
        found.setdefault(name, SplitReport(name, 0, count))
    order = ("train", "dev", "test")
    return tuple(sorted(found.values(), key=lambda report: order.index(report.split))), skipped
