"""``attnscope sweep STUDY --over m=5,10,20``: a study over a grid of settings."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from attnscope.cli.arguments import Parser, add_limits, add_quiet, apply_limits, real, whole
from attnscope.cli.folders import is_sweep
from attnscope.cli.verbs import run
from attnscope.cli.verbs.report import add_figures, beside
from attnscope.cli.where import add_where, place_of
from attnscope.errors import AttnscopeError
from attnscope.limits import POINTS

if TYPE_CHECKING:
    import xarray as xr

    from attnscope.sweeps.runner import Listener

SAYS = "a study over a grid of settings: attnscope sweep lu2021.sen --over m=5,10,20"
USAGE = """attnscope sweep STUDY --over FIELD=VALUES [--over ...] [--zip FIELD=VALUES ...]
                       [--refine CLAIM] [--plan DIR] [--out DIR] [--SETTING VALUE ...]
       attnscope sweep DIR [--shard K/N | --gather | --refine CLAIM]"""
DESCRIPTION = (
    "A study at every point of a grid. Values are m=5,10,20 or a range: m=5:80:9, m=5:80:log9. "
    "Points that are in the folder are not done again, so the same command goes on after a kill, "
    "and one with more values or more seeds adds to it. DIR is the folder of a sweep."
)


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags; those of the study that the first word names are among them."""
    if words and not words[0].startswith("-") and not is_sweep(words[0]):
        run.arguments(parser, words)
        _add_axes(parser)
        parser.set_defaults(folder=False)
    else:
        parser.add_argument("study", nargs="?", metavar="DIR", help="the folder of a sweep")
        parser.add_argument("--workers", type=whole, metavar="N", help="processes side by side")
        add_where(parser)
        add_figures(parser)
        add_quiet(parser)
        parser.set_defaults(folder=True, report=True, strict=False)
    parser.usage, parser.description = USAGE, DESCRIPTION
    _add_parts(parser)


def _add_axes(parser: Parser) -> None:
    group: Any = parser.add_argument_group("what is swept")
    group.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="FIELD=VALUES",
        help="a field that is swept, crossed with all others",
    )
    group.add_argument(
        "--zip",
        action="append",
        default=[],
        nargs="+",
        metavar="FIELD=VALUES",
        help="fields that are swept in step: --zip m=5,10 dim=2,4",
    )
    group.add_argument("--plan", metavar="DIR", help="write the sweep to a folder, and do nothing")
    add_limits(group, POINTS)


def _add_parts(parser: Parser) -> None:
    group: Any = parser.add_argument_group("which points")
    group.add_argument(
        "--refine",
        metavar="CLAIM",
        help="follow the boundary: add points by bisection where the verdict of a claim turns",
    )
    group.add_argument(
        "--within",
        type=real,
        default=0.01,
        metavar="SHARE",
        help="how exactly, as a share of the axis (default: 0.01)",
    )
    group.add_argument(
        "--most-seeds",
        type=whole,
        metavar="N",
        help="seeds that refining may take where a verdict stays open (default: 4 × seeds)",
    )
    group.add_argument("--shard", metavar="K/N", help="part K of N of a sweep that was planned")
    group.add_argument("--gather", action="store_true", help="put together what the parts did")
    group.add_argument(
        "--study",
        dest="file",
        default="",
        metavar="FILE",
        help="where the study of a planned sweep is, if it is your own",
    )


def call(options: Namespace) -> int:
    """Run a sweep, print where its claims hold, and say where the report lies."""
    if options.study is None:
        print(f"usage: {USAGE}\n\n{DESCRIPTION}")
        return 0
    if options.folder:
        return _of_folder(options)
    if options.shard or options.gather:
        raise AttnscopeError(
            f"'{options.study}' is a study: expected the folder that --plan wrote, for "
            f"--{'shard' if options.shard else 'gather'}."
        )
    if options.again:
        raise AttnscopeError("--again is for runs: expected another --out for a new sweep.")

    from attnscope.sweeps import sweep
    from attnscope.sweeps.axes import parse

    study = run.spec_of(options)
    apply_limits(options, *run.LIMITS, POINTS)
    run.set_data_dir(options)
    over, command = parse(study, options.over, options.zip), _command(options.said)
    if options.plan:
        return _plan(study, over, options.plan, command)
    with _progress(study.name(), options.quiet) as listener:
        tree = sweep(
            study,
            over,
            options.out,
            workers=options.workers,
            overwrite=options.overwrite,
            refine=options.refine,
            within=options.within,
            most_seeds=options.most_seeds,
            listener=listener,
            command=command,
            **place_of(options),
        )
    return _end(tree, options)


def _of_folder(options: Namespace) -> int:
    """Go on with a sweep that is there: all of it, a part of it, or what its parts did."""
    from attnscope.cli.terminal import say
    from attnscope.sweeps import shards, sweep
    from attnscope.sweeps.axes import said

    path, command = options.study, _command(options.said)
    if options.shard and (options.gather or options.refine):
        raise AttnscopeError("expected one of --shard, --gather and --refine.")
    if options.gather:
        found = shards.gather(path, options.file)
        say(f"{found.there} points are there, {found.new} of them new.")
        if found.missing:
            some = "; ".join(map(said, found.missing[:5])) + " …" * (len(found.missing) > 5)
            say(f"{len(found.missing)} are missing: {some}")
        return _end(found.tree, options)
    grid = shards.planned(path, options.file)
    with _progress(grid.study.name(), options.quiet) as listener:
        if options.shard:
            tree = shards.shard(
                path,
                shards.part_of(options.shard),
                study=options.file,
                workers=options.workers or 1,
                listener=listener,
                command=command,
                device=options.device,
            )
        else:
            tree = sweep(
                grid.study,
                dict(map(shards.values_by_name, grid.axes)),
                path,
                workers=options.workers,
                refine=options.refine,
                within=options.within,
                most_seeds=options.most_seeds,
                listener=listener,
                **place_of(options),
            )
    if options.shard:
        say(f"part {options.shard}: {tree.attrs['status']}, in {tree.attrs['path']}")
        return 0
    return _end(tree, options)


def _plan(study: Any, over: Any, out: str, command: str) -> int:
    from attnscope.cli.terminal import say
    from attnscope.sweeps.shards import plan

    grid = plan(study, over, out, command=command)
    own = type(study).file()
    more = f" --study {own}" if own else ""
    say(
        f"{grid.count:,} points of {len(study.runs())} runs each are planned in {out}.\n"
        f"a part:        attnscope sweep {out} --shard 1/{min(40, grid.count)}{more}\n"
        f"all together:  attnscope sweep {out} --gather{more}"
    )
    return 0


def _end(tree: xr.DataTree, options: Namespace) -> int:
    from attnscope.cli.terminal import say, show, status
    from attnscope.report.terminal import plain_table
    from attnscope.sweeps.report import summary_table, write_report

    if not options.quiet:
        show(plain_table(summary_table(tree)))
        say(tree.attrs["status"])
    if options.report:
        with status("drawing the report", quiet=options.quiet):
            path = write_report(tree, figures=options.figures)
        say(f"report: {path}{beside(path, options.figures)}")
    else:
        say(f"sweep: {tree.attrs['path']}")
    return int(options.strict and _faulty(tree))


def _faulty(tree: xr.DataTree) -> bool:
    """Return whether a claim fails at some point, or its control passes."""
    found = tree["findings"].to_dataset()
    return bool((found["verdict"] == "fails").any() or (found["control_fails"] == 0).any())


@contextmanager
def _progress(name: str, quiet: bool) -> Iterator[Listener]:
    """Show how many points are done; refining adds some on the way."""
    from attnscope.cli.progress import growing

    with growing(f"sweep {name}", "points", quiet=quiet) as tell:
        yield lambda done, total, complete, row: tell(done, total, complete)


def _command(words: list[str]) -> str:
    return shlex.join(["attnscope", "sweep", *words]).encode(errors="replace").decode()
