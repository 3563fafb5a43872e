"""``attnscope run STUDY``: every setting of a study is a flag."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.cli.arguments import (
    Parser,
    add_choice,
    add_limits,
    add_quiet,
    apply_limits,
    whole,
)
from attnscope.cli.verbs.claims import add_strict, faults
from attnscope.cli.verbs.report import add_figures, beside
from attnscope.cli.where import add_where, place_of
from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS, RUNS

if TYPE_CHECKING:
    from attnscope.experiment import Experiment

SAYS = "run a study: attnscope run lu2021.sen, attnscope run mine.py"
LIMITS = (ROWS, BYTES, RUNS)


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags; those of the study that the first word names are among them."""
    study = None
    if words and not words[0].startswith("-") and not _is_paper(words):
        from attnscope.catalogue import load

        study = load(words[0])
    elif words and words[0] not in ("-h", "--help") and not _is_paper(words):
        raise AttnscopeError(
            f"`attnscope run {words[0][:80]}`: expected the study first, as in `attnscope run "
            "lu2021.sen --scale quick`. `attnscope list` lists them."
        )
    _arguments(parser, study, words[1:])


def parse(study: type[Experiment], flags: list[str]) -> tuple[Namespace, Experiment]:
    """Turn flags into options and a spec.

    Raises:
        AttnscopeError: a flag is unknown or its value is of the wrong kind.
    """
    parser = Parser(prog="attnscope run")
    _arguments(parser, study, flags)
    options = parser.parse([study.name(), *flags])
    return options, spec_of(options)


def spec_of(options: Namespace) -> Experiment:
    """Return the spec that options say.

    Raises:
        AttnscopeError: a value is out of its bounds.
    """
    from attnscope.cli.settings import with_settings

    return with_settings(options.default, options)


def _arguments(parser: Parser, study: type[Experiment] | None, flags: list[str]) -> None:
    from attnscope.scales import SCALES

    if study is None:
        parser.usage = "attnscope run STUDY [--scale quick] [--seeds N] [--SETTING VALUE ...]"
        parser.epilog = (
            "attnscope run STUDY --help lists every setting of a study with the paper's value; "
            "attnscope list lists the studies."
        )
    else:
        parser.prog = f"{parser.prog} {study.name()}"
        parser.usage = f"{parser.prog} [--scale {{{','.join(SCALES)}}}] [--SETTING VALUE ...]"
        parser.description = (study.__doc__ or "").split("\n")[0]
    parser.add_argument(
        "study", nargs="?", metavar="STUDY", help="lu2021.sen, sen, mine.py or module:Class"
    )
    add_running(parser)
    if study is None:
        return

    from attnscope.cli.settings import add_settings
    from attnscope.experiment.spec import ENGINE, settings

    scale = _value(flags, "scale")
    default = study.at(scale if scale in SCALES else "paper")  # type: ignore[arg-type]
    engine = _value(flags, ENGINE)
    known = settings(default).get(ENGINE)
    if engine is not None and known is not None and engine in getattr(known.kind, "__args__", ()):
        default = default.but(engine=engine)
    parser.set_defaults(default=default)
    add_settings(parser, default)


def add_running(parser: Parser) -> None:
    """Add the flags that say how to run, as opposed to what."""
    from attnscope.scales import SCALES

    group: Any = parser.add_argument_group("how to run")
    add_choice(group, "--scale", list(SCALES), default="paper", help=_scales(SCALES))
    group.add_argument(
        "--out", metavar="DIR", help="the run's folder; runs/STUDY-HASH unless given"
    )
    group.add_argument(
        "--workers", type=whole, metavar="N", help="processes side by side; one per core"
    )
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="say what it would cost, by a few measured steps, and run nothing",
    )
    add_where(group)
    there = group.add_argument
    there("--resume", action="store_true", help="go on with the run in the folder")
    there("--again", action="store_true", help="a new run beside one that is there: OUT-2, OUT-3")
    there("--overwrite", action="store_true", help="replace the run in the folder, nothing else")
    there(
        "--report",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="write the HTML report (default)",
    )
    add_figures(group)
    group.add_argument(
        "--data-dir",
        metavar="DIR",
        help="of the published data sets; ATTNSCOPE_DATA or the cache unless given",
    )
    add_quiet(group)
    add_strict(group)
    add_limits(group, *LIMITS)


def call(options: Namespace) -> int:
    """Run a study, print the claims table, and say where the report lies."""
    if options.study is None:
        return _overview()
    if not hasattr(options, "default"):
        from attnscope.catalogue import of_paper
        from attnscope.cli.terminal import say
        from attnscope.cli.verbs.listing import print_studies

        studies = of_paper(options.study)
        print_studies(studies)
        say(f"attnscope run {studies[0]} runs one.")
        return 0
    study = spec_of(options)
    apply_limits(options, *LIMITS)
    set_data_dir(options)

    from attnscope.cli.progress import progress
    from attnscope.cli.terminal import say, show, status
    from attnscope.experiment import run as run_study
    from attnscope.report.terminal import claims_table, plain_table
    from attnscope.results import keep_findings, printed, write_report
    from attnscope.trajectory import RunFolder
    from attnscope.trajectory.inventory import is_reported

    if options.dry_run:
        from attnscope.engines.device import choosing
        from attnscope.experiment import estimate

        with status("measuring a few steps", quiet=options.quiet), choosing(options.device):
            cost = estimate(study, options.workers)
        if not options.quiet:
            show(plain_table(cost.table()))
        for sentence in (f"{study.name()} at {options.scale}:", *cost.sentences()):
            say(sentence)
        return 0
    known = _there(study, options)
    if known and not options.quiet:
        print(known, file=sys.stderr)
    with progress(study.name(), len(study.runs()), quiet=options.quiet) as listener:
        tree = run_study(
            study,
            options.out,
            workers=options.workers,
            resume=options.resume,
            again=options.again,
            overwrite=options.overwrite,
            listener=listener,
            command=_command(options.said),
            **place_of(options),
        )
    found = keep_findings(tree)
    if not options.quiet:
        show(*map(plain_table, printed(tree)), claims_table(found))
        if departures := study.departures():
            say(f"not the paper's setting: {departures}. The verdicts speak of this one.")
    path = Path(tree.attrs["path"]) / "report.html"
    where = f"run: {tree.attrs['path']}"
    if options.report:
        # A report that is there may have remarks in it by now.
        if not (known and is_reported(RunFolder(path.parent)) and not options.figures):
            with status("drawing the report", quiet=options.quiet):
                write_report(tree, found=found, figures=options.figures)
        where = f"report: {path}" + beside(path, options.figures)
    say(where)
    return faults(found) if options.strict else 0


def set_data_dir(options: Namespace) -> None:
    """Look for data sets where a flag says."""
    if options.data_dir is not None:
        from attnscope.datasets.place import VARIABLE

        # Worker processes inherit it, and the spec stays free of where things lie.
        os.environ[VARIABLE] = str(Path(options.data_dir).absolute())


def _there(study: Experiment, options: Namespace) -> str:
    """Say that the run has been made before, if it has."""
    from attnscope.experiment import RUNS, is_complete

    path = Path(options.out) if options.out else RUNS / study.identity()
    if options.again or options.overwrite or not path.is_dir():
        return ""
    try:
        if not is_complete(path):
            return ""
    except AttnscopeError:
        return ""  # It is no run, or a damaged one: whoever runs it says so.
    return (
        f"attnscope: this run is there already, in {path}: its results follow. --again makes a "
        "new one beside it, --overwrite replaces it."
    )


def _overview() -> int:
    from attnscope.catalogue import names

    print("usage: attnscope run STUDY [--scale quick] [--seeds N] [--SETTING VALUE ...]")
    print(f"\nstudies: {', '.join(names())}")
    print("\nattnscope list says what they show; attnscope run STUDY --help lists every setting.")
    return 0


def _is_paper(words: list[str]) -> bool:
    """Return whether a paper is named and nothing else: its studies are listed then."""
    from attnscope.catalogue import papers

    return len(words) == 1 and words[0] in papers()


def _scales(scales: dict[str, str]) -> str:
    return "; ".join(f"{name}: {meaning}" for name, meaning in scales.items())


def _command(words: list[str]) -> str:
    """Return the command line for the manifest, which is UTF-8; a word may hold other bytes."""
    return shlex.join(["attnscope", "run", *words]).encode(errors="replace").decode()


def _value(flags: list[str], name: str) -> str | None:
    """Return the value of a flag that has to be known before the others are."""
    for index, word in enumerate(flags):
        if word == f"--{name}" and index + 1 < len(flags):
            return flags[index + 1]
        if word.startswith(f"--{name}="):
            return word.split("=", 1)[1]
    return None
