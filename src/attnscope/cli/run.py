"""``attnscope run STUDY``: every field of the study's spec is a flag."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from attnscope.catalogue import load, names
from attnscope.cli.arguments import apply_limits, refuse_repeated
from attnscope.cli.report import beside
from attnscope.datasets.place import VARIABLE
from attnscope.errors import AttnscopeError, nearest
from attnscope.limits import BYTES, ROWS, RUNS

if TYPE_CHECKING:
    from attnscope.experiment import Experiment

COMMON = (
    "scale",
    "out",
    "workers",
    "resume",
    "again",
    "overwrite",
    "report",
    "figures",
    "data_dir",
)
LIMITS = (ROWS, BYTES, RUNS)


@dataclasses.dataclass(frozen=True)
class Options:
    """How to run, as opposed to what."""

    scale: str = "paper"
    """paper: the paper's own values; quick: for a coffee break."""
    out: Path | None = None
    """The run's folder; runs/STUDY-HASH unless given."""
    workers: int | None = None
    """Processes side by side; one per core unless given."""
    resume: bool = False
    """Go on with the run in the folder."""
    again: bool = False
    """Make a new run beside one that is there: OUT-2, OUT-3."""
    overwrite: bool = False
    """Replace the run in the folder, and nothing else."""
    report: bool = True
    """Write the HTML report."""
    figures: tuple[Literal["png", "svg", "pdf"], ...] = ()
    """Draw every figure of the report as image files too: png, svg, pdf."""
    data_dir: Path | None = None
    """Folder of the published data sets; ATTNSCOPE_DATA or the cache unless given."""
    max_rows: int | None = None
    """Rows of a data set at most; 10,000,000 unless given."""
    max_bytes: int | None = None
    """Bytes of a data set at most, after unpacking; 16 GiB unless given."""
    max_runs: int | None = None
    """Runs at most, cases × seeds; 10,000 unless given."""


def run(words: list[str]) -> int:
    """Run a study, print the claims table, and say where the report lies."""
    if not words or words[0] in ("-h", "--help"):
        print(
            "usage: attnscope run STUDY [--scale quick|paper] [--seeds N] [--engine flow|descent]"
        )
        print("                           [--out DIR] [--resume | --again | --overwrite]")
        print("                           [--FIELD VALUE ...]")
        print(f"\nstudies: {', '.join(names())}")
        print("attnscope run STUDY --help lists every field with the paper's value.")
        return 0
    name, flags = words[0], words[1:]
    study_class = load(name)
    options, study = parse(study_class, flags)
    apply_limits(options, *LIMITS)
    if options.data_dir is not None:
        # Worker processes inherit it, and the spec stays free of where things lie.
        os.environ[VARIABLE] = str(options.data_dir.absolute())

    from rich.console import Console

    from attnscope.cli.progress import progress
    from attnscope.experiment import run as run_study
    from attnscope.report.terminal import claims_table, plain_table
    from attnscope.results import keep_findings, printed, write_report
    from attnscope.trajectory import RunFolder
    from attnscope.trajectory.inventory import is_reported

    known = _there(study, options)
    if known:
        print(known, file=sys.stderr)
    with progress(study) as listener:
        tree = run_study(
            study,
            options.out,
            workers=options.workers,
            resume=options.resume,
            again=options.again,
            overwrite=options.overwrite,
            listener=listener,
            # A word may hold bytes that are no text in this locale; a manifest is UTF-8.
            command=shlex.join(["attnscope", "run", *words]).encode(errors="replace").decode(),
        )
    console = Console()
    found = keep_findings(tree)
    for table in printed(tree):
        console.print(plain_table(table))
    console.print(claims_table(found))
    if departures := study.departures():
        text = f"not the paper's setting: {departures}. The verdicts speak of this one."
        console.print(text, highlight=False, markup=False)
    path = Path(tree.attrs["path"]) / "report.html"
    if options.report:
        # A report that is there may have remarks in it by now.
        if not (known and is_reported(RunFolder(path.parent)) and not options.figures):
            with Console(stderr=True).status("drawing the report"):
                write_report(tree, found=found, figures=options.figures)
        where = f"report: {path}" + beside(path, options.figures)
    else:
        where = f"run: {tree.attrs['path']}"
    console.print(where, soft_wrap=True, highlight=False, markup=False)
    return 0


def _there(study: Experiment, options: Options) -> str:
    """Say that the run has been made before, if it has."""
    from attnscope.experiment import RUNS, is_complete

    path = options.out or RUNS / study.identity()
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


def parse(study_class: type[Experiment], flags: list[str]) -> tuple[Options, Experiment]:
    """Turn flags into options and a spec.

    Raises:
        AttnscopeError: a flag is unknown or its value is of the wrong kind.
    """
    import tyro

    from attnscope.experiment.spec import settings

    refuse_repeated(flags, {word.split("=")[0]: _sets(word) for word in flags if _is_flag(word)})
    default = study_class.at(_value(flags, "scale") or "paper")  # type: ignore[arg-type]
    engine = _value(flags, "engine")
    if engine is not None:
        default = default.but(engine=engine)
    flags = _respelled(default, flags)
    fields = settings(default)
    limits = [f"max_{limit.what}" for limit in LIMITS]
    known = [f"--{name.replace('_', '-')}" for name in (*COMMON, *limits, *fields)]
    known += [f"--no-{name[2:]}" for name in known] + ["--help"]
    for word in flags:
        flag = word.split("=", 1)[0].replace("_", "-")
        if word.startswith("--") and flag not in known:
            raise AttnscopeError(
                f"{study_class.name()} has no field '{word}'.{nearest(flag, known)} Expected one "
                f"of the fields that `attnscope run {study_class.name()} --help` lists."
            )
    spec = dataclasses.make_dataclass(
        "Spec",
        [
            (
                name,
                Annotated[each.kind, tyro.conf.arg(help=each.meaning)],
                dataclasses.field(default=each.value),
            )
            for name, each in fields.items()
        ],
    )
    command = dataclasses.make_dataclass(
        "Command",
        [
            ("options", tyro.conf.OmitArgPrefixes[Options]),
            ("study", tyro.conf.OmitArgPrefixes[spec]),  # type: ignore[misc, valid-type]
        ],
    )
    # tyro quotes a value of the wrong kind, says which kind was expected, and exits with code 2.
    parsed = tyro.cli(
        command,
        prog=f"attnscope run {study_class.name()}",
        description=(study_class.__doc__ or "").split("\n")[0],
        default=command(Options(), spec()),
        args=flags,
    )
    wanted = {
        name: getattr(parsed.study, name)
        for name, each in fields.items()
        if getattr(parsed.study, name) != each.value
    }
    return parsed.options, default.but(**wanted)


def _is_flag(word: str) -> bool:
    return word.startswith("--") and len(word) > 2


def _sets(word: str) -> str:
    """Return what a flag sets: ``--no-report`` and ``--report`` set the same."""
    return word.split("=")[0].replace("_", "-").removeprefix("--").removeprefix("no-")


def _value(flags: list[str], name: str) -> str | None:
    """Return the value of a flag that has to be known before the others are."""
    for index, word in enumerate(flags):
        if word == f"--{name}" and index + 1 < len(flags):
            return flags[index + 1]
        if word.startswith(f"--{name}="):
            return word.split("=", 1)[1]
    return None


def _respelled(default: Experiment, flags: list[str]) -> list[str]:
    """Put the new spelling of a flag in the place of an old one, and say so."""
    from attnscope.experiment.spec import renamings, settings

    fields, old = settings(default), renamings(default)
    fresh = []
    for word in flags:
        flag, equals, value = word.partition("=")
        name = flag[2:].replace("-", "_")
        if word.startswith("--") and name in old and name not in fields:
            new = old[name]
            if new is None:
                raise AttnscopeError(
                    f"{flag} is not a field of {default.name()} any more: expected one of the "
                    f"fields that `attnscope run {default.name()} --help` lists."
                )
            spelled = f"--{new.replace('_', '-')}"
            print(f"attnscope: {flag} is now called {spelled}", file=sys.stderr)
            word = f"{spelled}{equals}{value}"
        fresh.append(word)
    return fresh
