"""What is printed of data sets: all of them, one, whether it is whole, how it is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from attnscope.cli.terminal import console, print_json, say, show
from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.check import FileReport, Report, SplitReport, check
from attnscope.datasets.fetch import Listener, get
from attnscope.datasets.first_seen import noted
from attnscope.datasets.place import at, locate
from attnscope.datasets.record import DataFile, DataSet
from attnscope.errors import AttnscopeError

STYLES = {"complete": "green", "partial": "yellow", "uncounted": "green", "wrong": "bold red"}


def draw_sheet(words: list[str], path: Path) -> int:
    """Draw samples of what is generated."""
    if words != ["pathfinder"]:
        raise AttnscopeError(
            f"--sheet with `attnscope data {' '.join(words)}`: expected `attnscope data pathfinder "
            "--sheet FILE.png`; only its images are drawn here."
        )
    if path.suffix != ".png":
        raise AttnscopeError(f"--sheet {path}: expected a file name that ends with .png.")
    from attnscope.tasks.pathfinder import sample_sheet

    try:
        sample_sheet(path)
    except OSError as error:
        raise AttnscopeError(
            f"'{path}' cannot be written ({error.strerror}): expected a folder that exists."
        ) from error
    say(f"{path}: 32 images a label, not connected on the left, connected on the right")
    return 0


def print_list(folder: Path, *, as_json: bool = False) -> int:
    """Print the data sets, and which are here."""
    if as_json:
        print_json([_told(dataset, folder) for dataset in CATALOGUE.values()])
        return 0
    rows = [
        (dataset.key, dataset.title, _rows(dataset), _files(dataset))
        for dataset in CATALOGUE.values()
    ]
    headings = ("name", "data set", "train / dev / test", "files")
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]

    def line(cells: tuple[str, ...]) -> str:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        return "  ".join(padded) + "  "

    say(line(headings) + "here", "bold")
    for dataset, cells in zip(CATALOGUE.values(), rows, strict=True):
        name, rest = line(cells)[: widths[0]], line(cells)[widths[0] :]
        show(Text.assemble((name, "cyan"), rest, _here(dataset, folder)))
        terms = f"    {dataset.licence}"
        where = f"  {dataset.published}"
        if len(terms) + len(where) > console().width:
            where = f"\n    {dataset.published}"
        show(Text(terms + where, style="dim"))
    say("")
    say("Below each: the licence as stated by the publisher, and the publisher's page.")
    say("Rows as published; ? where no count is. More: attnscope data NAME.")
    say(f"Data folder: {folder}")
    return 0


def describe(dataset: DataSet, folder: Path, *, as_json: bool = False) -> int:
    """Print everything about one."""
    if as_json:
        print_json({**_told(dataset, folder), "files": [_file(f, folder) for f in dataset.files]})
        return 0
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    say(f"{dataset.title} ({dataset.key})", "bold")
    table.add_row("kind", dataset.kind)
    if dataset.classes:
        table.add_row("classes", ", ".join(dataset.classes))
    table.add_row("published", Text(dataset.published))
    table.add_row("licence", Text(dataset.licence))
    table.add_row("cite", Text(dataset.citation))
    if dataset.note:
        table.add_row("note", Text(dataset.note))
    table.add_row("folder", Text(str(folder)))
    table.add_row("here", _here(dataset, folder))
    show(table)
    for file in dataset.files:
        _print_file(file, folder)
    return 0


def _told(dataset: DataSet, folder: Path) -> dict[str, Any]:
    """Return what other programs may want to know of a data set."""
    return {
        "name": dataset.key,
        "title": dataset.title,
        "kind": dataset.kind,
        "classes": dataset.classes,
        "rows": dataset.expected,
        "published": dataset.published,
        "licence": dataset.licence,
        "citation": dataset.citation,
        "note": dataset.note,
        "folder": str(folder),
        "here": _here(dataset, folder).plain,
    }


def _file(file: DataFile, folder: Path) -> dict[str, Any]:
    found = locate(file, folder)
    return {**asdict(file), "here": None if found is None else str(found)}


def _print_file(file: DataFile, folder: Path) -> None:
    say("")
    say(file.path, "bold")
    rows = file.split_rows or ((file.split, file.rows),)
    counts = ", ".join(f"{split or 'all'} {_count(number)}" for split, number in rows)
    say(f"  rows: {counts}")
    if file.size:
        say(f"  size: {file.size:,} bytes")
    if file.sha256:
        say(f"  SHA-256: {file.sha256}")
    say(f"  from: {file.url or 'fetched by hand, see the note'}")
    found = locate(file, folder)
    if not file.sha256 and found and (digest := noted(found.parent, found.name)):
        say(f"  SHA-256 at the first download: {digest}")
    say(f"  here: {found}" if found else "  here: no")


def fetch(dataset: DataSet, folder: Path, quiet: bool) -> int:
    """Download a data set from its publisher, and check it."""
    say(f"{dataset.title}, from {dataset.published}")
    say(f"licence as stated there: {dataset.licence}. Cite: {dataset.citation}.")
    before = {file for file in dataset.files if at(file.path, folder)}
    with _progress(quiet) as listener:
        found = get(dataset, folder, listener)
    fetched = [path for file, path in found.items() if file not in before]
    for path in fetched:
        say(f"fetched: {path}")
    if not fetched:
        say("nothing to fetch: the files are here")
    say("")
    return print_report(check(dataset, folder))


@contextmanager
def _progress(quiet: bool) -> Iterator[Listener]:
    where = console(errors=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        DownloadColumn(binary_units=False),
        TransferSpeedColumn(),
        console=where,
        disable=quiet or not where.is_terminal,
    )
    tasks: dict[DataFile, TaskID] = {}
    with bar:

        def listen(file: DataFile, done: int, total: int | None) -> None:
            if file not in tasks:
                name = file.saved_as.rsplit("/", 1)[-1]
                # What an earlier call brought is no part of this one's speed.
                tasks[file] = bar.add_task(name, total=total, completed=done)
            bar.update(tasks[file], completed=done)

        yield listen


def print_report(report: Report) -> int:
    """Print what a check found."""
    dataset = report.dataset
    for item in report.files:
        show(Text.assemble(str(item.path), "  ", _remark(item)))
    say("")
    if report.splits:
        show(_splits(report.splits))
        say("")
    for split in report.splits:
        for reason, count in split.skipped.items():
            say(f"left out of {split.split}: {count:,} ({reason})")
    for reason, count in report.skipped.items():
        say(f"left out: {count:,} ({reason})")
    if report.problems:
        raise AttnscopeError(
            f"{dataset.title} is not as published: {'; '.join(report.problems)}. Expected the "
            f"publisher's files: delete what is wrong, then run `attnscope data get {dataset.key}`."
        )
    say(_conclusion(report), STYLES[report.verdict])
    return 0


def _remark(item: FileReport) -> Text:
    file = item.file
    if item.problem:
        return Text(item.problem, style="bold red")
    if not item.published:
        return Text(f"in place of {file.path}", style="yellow")
    known = [word for word, value in (("size", file.size), ("SHA-256", file.sha256)) if value]
    said = f"{' and '.join(known)} as published" if known else ""
    if not file.sha256 and noted(item.path.parent, item.path.name):
        said = "; ".join(filter(None, (said, "SHA-256 as at the first download")))
    return Text(said, style="green")


def _splits(splits: tuple[SplitReport, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("split", no_wrap=True)
    table.add_column("rows", justify="right")
    table.add_column("published", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("by class" if any(split.classes for split in splits) else "")
    for split in splits:
        table.add_row(
            split.split,
            f"{split.rows:,}",
            _count(split.expected),
            Text("" if split.verdict == "uncounted" else split.verdict, STYLES[split.verdict]),
            Text(", ".join(f"{name} {count:,}" for name, count in split.classes.items())),
        )
    return table


def _conclusion(report: Report) -> str:
    title = report.dataset.title
    if report.verdict == "complete":
        return f"{title} is complete."
    if report.verdict == "uncounted":
        return f"{title} can be read. No count of its rows is published to compare with."
    short = ", ".join(
        f"{split.split} {split.rows:,} of {_count(split.expected)}"
        for split in report.splits
        if split.verdict == "partial"
    )
    return (
        f"{title} is partial ({short}): it can be used, and results on it are not those on the "
        "whole set."
    )


def _here(dataset: DataSet, folder: Path) -> Text:
    if dataset.kind == "generated":
        return Text("generated", style="dim")
    found = [file for file in dataset.files if locate(file, folder)]
    published = [file for file in dataset.files if at(file.path, folder)]
    if len(published) == len(dataset.files):
        return Text("yes", style="green")
    if len(found) == len(dataset.files):
        return Text("other form", style="yellow")
    if found:
        return Text(f"{len(found)} of {len(dataset.files)}", style="yellow")
    return Text("no", style="dim")


def _rows(dataset: DataSet) -> str:
    if dataset.kind == "generated":
        return "-"
    expected = dataset.expected
    if not expected:
        return "?"
    return " / ".join(
        _count(expected[split]) if split in expected else "-" for split in ("train", "dev", "test")
    )


def _files(dataset: DataSet) -> str:
    return str(len(dataset.files) or "-")


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
