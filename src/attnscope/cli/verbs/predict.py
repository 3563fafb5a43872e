"""``attnscope predict DATA``: what attention will look at, before anything is trained."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli.arguments import Parser, add_limits, add_quiet, apply_limits, whole
from attnscope.cli.verbs.report import add_figures, beside
from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS

if TYPE_CHECKING:
    from attnscope.prediction.asked import Tell
    from attnscope.report.section import Section

SAYS = "what attention will look at in your data, before training: attnscope predict mine.csv"
FOLDER = Path("predictions")


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.description = (
        "Say what attention will look at in your data, whether words suffice, and what it may "
        "latch on to. Nothing is trained, unless --verify is given."
    )
    parser.add_argument(
        "data",
        nargs="?",
        metavar="DATA",
        help="a set that `attnscope data` lists; a table of text and label (.csv, .tsv; .gz, .xz "
        "may follow) or a folder with train, dev and test tables; two line-aligned files "
        "SOURCE:TARGET; or a file of running text",
    )
    parser.add_argument(
        "--without", nargs="+", default=(), metavar="WORD", help="predict again without these words"
    )
    parser.add_argument(
        "--sentence", nargs="+", default=(), metavar="TEXT", help="sentences of your own to shade"
    )
    parser.add_argument(
        "--classes", nargs="+", default=(), metavar="CLASS", help="only texts of these classes"
    )
    parser.add_argument(
        "--text", metavar="COLUMN", help="the column of a table that holds the text"
    )
    parser.add_argument("--label", metavar="COLUMN", help="the column that holds the label")
    parser.add_argument(
        "--gold",
        metavar="FILES",
        help="parallel text: word alignments by people, as LINKS (of the first lines), TEXTS:LINKS "
        "with 'source ||| target' in the texts, or SOURCE:TARGET:LINKS; links as '0-0 1?2' a line "
        "or as '1 1 2 S'",
    )
    parser.add_argument(
        "--batch", type=whole, metavar="N", help="running text: sequences in an update (say 64)"
    )
    parser.add_argument(
        "--context", type=whole, metavar="N", help="running text: tokens in a sequence (say 512)"
    )
    parser.add_argument(
        "--most",
        type=whole,
        default=200_000,
        metavar="N",
        help="texts that are counted at most, drawn at random from a larger table "
        "(default: 200,000)",
    )
    parser.add_argument("--seed", type=whole, default=0, help="of what is drawn (default: 0)")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="train the models of Snell 2021 and Lu 2021 on the data, and put what they learn "
        "beside what was predicted; a run like any other, which goes on where it was stopped",
    )
    parser.add_argument(
        "--seeds", type=whole, default=3, metavar="N", help="trainings of --verify (default: 3)"
    )
    parser.add_argument(
        "--calibration",
        action="store_true",
        help="how well predictions have held over all sets that were tried",
    )
    parser.add_argument(
        "--out", metavar="DIR", help="the report's folder; predictions/DATA unless given"
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="of the published data sets; ATTNSCOPE_DATA or the cache unless given",
    )
    add_figures(parser)
    add_quiet(parser)
    add_limits(parser, ROWS, BYTES)


def call(options: Namespace) -> int:
    """Print a prediction and write its report; or how well predictions have held."""
    apply_limits(options, ROWS, BYTES)
    if options.calibration:
        return _calibration(options)
    if options.data is None:
        raise AttnscopeError(
            "`attnscope predict` needs DATA, such as sst2 or mine.csv, or --calibration. "
            "`attnscope predict --help` says what it takes."
        )
    if options.verify:
        return _verify(options)
    from attnscope.prediction import predict

    with _progress(options.quiet) as tell:
        said = predict(
            options.data,
            without=options.without,
            sentences=options.sentence,
            classes=options.classes,
            text=options.text,
            label=options.label,
            gold=options.gold,
            batch=options.batch,
            context=options.context,
            most=options.most,
            tell=tell,
            seed=options.seed,
            data_dir=options.data_dir,
        )
        folder = Path(options.out) if options.out else FOLDER / _folder_name(options.data)
        path = said.write_report(folder, figures=options.figures)
    if not options.quiet:
        _print(said.sections)
    from attnscope.cli.terminal import say

    say(f"report: {path}{beside(path, options.figures)}")
    return 0


def _print(sections: Sequence[Section]) -> None:
    from attnscope.cli.terminal import console, show
    from attnscope.report.terminal import told

    where = console()
    color = where.is_terminal and not where.no_color
    show(*(told(section, color=color) for section in sections))


def _calibration(options: Namespace) -> int:
    from attnscope.cli.terminal import say, show
    from attnscope.prediction.calibration import calibration_table, how_well
    from attnscope.prediction.when import how_timely, timing_table
    from attnscope.report.terminal import plain_table

    if options.data is not None:
        raise AttnscopeError(
            f"--calibration with '{options.data}': expected one of them. --calibration is about "
            "the sets that were tried; `attnscope predict DATA --verify` tries yours."
        )
    if not options.quiet:
        show(plain_table(calibration_table()), plain_table(timing_table()))
    say(how_well())
    say(how_timely())
    return 0


def _verify(options: Namespace) -> int:
    from attnscope.cli.verbs import run
    from attnscope.studies.predict.labelled import Labelled

    names = ("without", "sentence", "gold", "batch", "context")
    given = [name for name in names if getattr(options, name)]
    if given or options.text or options.label:
        raise AttnscopeError(
            f"--verify with --{given[0] if given else 'text or --label'}: expected DATA alone, for "
            "models are trained on the table as it is. Write a table without the words first."
        )
    chosen = f"{options.data}[{','.join(options.classes)}]" if options.classes else options.data
    flags = ["--sets", chosen, "--seeds", str(options.seeds)]
    for flag, value in (("--out", options.out), ("--data-dir", options.data_dir)):
        flags += [flag, value] if value else []
    flags += ["--figures", *options.figures] if options.figures else []
    flags += ["--quiet"] if options.quiet else []
    parsed, _ = run.parse(Labelled, flags)
    parsed.said = [Labelled.name(), *flags]
    return run.call(parsed)


def _folder_name(data: str) -> str:
    """Return a plain name for the folder of a report."""
    stem = Path(data.rstrip("/")).name.split(":")[-1]
    for ending in (".gz", ".xz", ".csv", ".tsv", ".txt"):
        stem = stem.removesuffix(ending)
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in stem) or "data"


@contextmanager
def _progress(quiet: bool) -> Iterator[Tell]:
    from attnscope.cli.terminal import status

    with status("reading", quiet=quiet) as update:

        def tell(what: str, done: int, total: int) -> None:
            share = (
                f": {done:,} of {total:,} texts" if total else f": {done:,} rows" if done else ""
            )
            update(f"{what}{share}")

        yield tell
