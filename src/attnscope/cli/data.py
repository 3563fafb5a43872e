"""``attnscope data``: the data sets there are, whether they are here, and how to get them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
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

from attnscope.cli.arguments import Parser, add_limits, apply_limits
from attnscope.datasets.catalogue import CATALOGUE, entry
from attnscope.datasets.check import FileReport, Report, SplitReport, check
from attnscope.datasets.fetch import Listener, get
from attnscope.datasets.first_seen import noted
from attnscope.datasets.place import at, data_dir, locate
from attnscope.datasets.record import DataFile, DataSet
from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS

USAGE = """attnscope data [--data-dir DIR]             the data sets, and which are here
       attnscope data NAME [--data-dir DIR]        everything about one
       attnscope data check NAME [--data-dir DIR]  verify its files and count its rows
       attnscope data get NAME [--data-dir DIR]    download it from its publisher
       attnscope data pathfinder --sheet FILE.png  draw samples of what is generated"""

STYLES = {"complete": "green", "partial": "yellow", "uncounted": "green", "wrong": "bold red"}


def data(words: list[str]) -> int:
    """List, describe, check or fetch data sets."""
    parser = Parser(
        prog="attnscope data",
        usage=USAGE,
        description="The folder is --data-dir, then $ATTNSCOPE_DATA, then the user's cache.",
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--data-dir", metavar="DIR", help="the folder that holds the data")
    parser.add_argument("--sheet", metavar="FILE", help="a PNG of generated images to write")
    add_limits(parser, ROWS, BYTES)
    options = parser.parse_intermixed_args(words)
    apply_limits(options, ROWS, BYTES)
    folder = data_dir(options.data_dir)
    if options.sheet is not None:
        return _sheet(options.words, Path(options.sheet))
    match options.words:
        case []:
            return _list(folder)
        case ["check" | "get" as verb]:
            raise AttnscopeError(
                f"`attnscope data {verb}` needs a name. Expected one of: {', '.join(CATALOGUE)}."
            )
        case ["check", name]:
            return _report(check(entry(name), folder))
        case ["get", name]:
            return _get(entry(name), folder)
        case [name]:
            return _describe(entry(name), folder)
        case _:
            said = " ".join(options.words)
            raise AttnscopeError(
                f"`attnscope data {said}` is not understood. Expected a name, or `check` or `get` "
                "and a name."
            )


def _sheet(words: list[str], path: Path) -> int:
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
    _say(Console(), f"{path}: 32 images a label, not connected on the left, connected on the right")
    return 0


def _list(folder: Path) -> int:
    console = Console()
    rows = [
        (dataset.key, dataset.title, _rows(dataset), _files(dataset))
        for dataset in CATALOGUE.values()
    ]
    headings = ("name", "data set", "train / dev / test", "files")
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]

    def line(cells: tuple[str, ...]) -> str:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        return "  ".join(padded) + "  "

    _say(console, line(headings) + "here", "bold")
    for dataset, cells in zip(CATALOGUE.values(), rows, strict=True):
        name, rest = line(cells)[: widths[0]], line(cells)[widths[0] :]
        _print(console, Text.assemble((name, "cyan"), rest, _here(dataset, folder)))
        terms = f"    {dataset.licence}"
        where = f"  {dataset.published}"
        if len(terms) + len(where) > console.width:
            where = f"\n    {dataset.published}"
        _print(console, Text(terms + where, style="dim"))
    console.print()
    _say(console, "Below each: the licence as stated by the publisher, and the publisher's page.")
    _say(console, "Rows as published; ? where no count is. More: attnscope data NAME.")
    _say(console, f"Data folder: {folder}")
    return 0


def _describe(dataset: DataSet, folder: Path) -> int:
    console = Console()
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    _say(console, f"{dataset.title} ({dataset.key})", "bold")
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
    console.print(table)
    for file in dataset.files:
        _print_file(console, file, folder)
    return 0


def _print_file(console: Console, file: DataFile, folder: Path) -> None:
    console.print()
    _say(console, file.path, "bold")
    rows = file.split_rows or ((file.split, file.rows),)
    counts = ", ".join(f"{split or 'all'} {_count(number)}" for split, number in rows)
    _say(console, f"  rows: {counts}")
    if file.size:
        _say(console, f"  size: {file.size:,} bytes")
    if file.sha256:
        _say(console, f"  SHA-256: {file.sha256}")
    _say(console, f"  from: {file.url or 'fetched by hand, see the note'}")
    found = locate(file, folder)
    if not file.sha256 and found and (digest := noted(found.parent, found.name)):
        _say(console, f"  SHA-256 at the first download: {digest}")
    _say(console, f"  here: {found}" if found else "  here: no")


def _get(dataset: DataSet, folder: Path) -> int:
    console = Console()
    _say(console, f"{dataset.title}, from {dataset.published}")
    _say(console, f"licence as stated there: {dataset.licence}. Cite: {dataset.citation}.")
    before = {file for file in dataset.files if at(file.path, folder)}
    with _progress() as listener:
        found = get(dataset, folder, listener)
    fetched = [path for file, path in found.items() if file not in before]
    for path in fetched:
        _say(console, f"fetched: {path}")
    if not fetched:
        _say(console, "nothing to fetch: the files are here")
    console.print()
    return _report(check(dataset, folder))


@contextmanager
def _progress() -> Iterator[Listener]:
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        DownloadColumn(binary_units=False),
        TransferSpeedColumn(),
        console=console,
        disable=not console.is_terminal,
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


def _report(report: Report) -> int:
    console = Console()
    dataset = report.dataset
    for item in report.files:
        _print(console, Text.assemble(str(item.path), "  ", _remark(item)))
    console.print()
    if report.splits:
        console.print(_splits(report.splits))
        console.print()
    for split in report.splits:
        for reason, count in split.skipped.items():
            _say(console, f"left out of {split.split}: {count:,} ({reason})")
    for reason, count in report.skipped.items():
        _say(console, f"left out: {count:,} ({reason})")
    if report.problems:
        raise AttnscopeError(
            f"{dataset.title} is not as published: {'; '.join(report.problems)}. Expected the "
            f"publisher's files: delete what is wrong, then run `attnscope data get {dataset.key}`."
        )
    _say(console, _conclusion(report), STYLES[report.verdict])
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


def _say(console: Console, text: str, style: str = "") -> None:
    _print(console, Text(text, style=style))


def _print(console: Console, text: Text) -> None:
    # Addresses and paths are kept whole, for copying.
    console.print(text, soft_wrap=True, highlight=False)
