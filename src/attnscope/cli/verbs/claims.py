"""``attnscope claims [PAPER]``: every claim that a run there is decides."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.cli.arguments import Parser, add_json
from attnscope.errors import AttnscopeError

if TYPE_CHECKING:
    from attnscope.claims import Finding
    from attnscope.trajectory.folder import RunFolder

    Ledger = list[tuple[RunFolder, dict[str, Any], list[Finding]]]

SAYS = "the claims ledger over the runs there are: attnscope claims lu2021"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="only claims of this paper")
    parser.add_argument("--runs", default="runs", metavar="DIR", help="of runs (default: runs)")
    add_json(parser)
    add_strict(parser)


def add_strict(parser: Parser) -> None:
    """Add the flag that makes a claim that fails the exit code."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="end with 1 if a claim fails or its control passes, for a reviewer's CI",
    )


def faults(findings: Sequence[Finding]) -> int:
    """Return 1 if a claim fails or its control passes, else 0; an undecided one is no fault."""
    from attnscope.report.wording import control_passes

    return int(any(each.verdict == "fails" or control_passes(each) for each in findings))


def call(options: Namespace) -> int:
    """Print the findings of all runs below a folder, study by study.

    A run that is damaged is listed, and the others are read; the exit code is then 2.

    Raises:
        AttnscopeError: there is no such paper, or no such folder.
    """
    from attnscope.catalogue import of_paper
    from attnscope.cli.kept import kept_findings
    from attnscope.cli.terminal import complain, print_json
    from attnscope.trajectory.folder import RunFolder

    if options.paper is not None:
        of_paper(options.paper)
    if not Path(options.runs).is_dir():
        raise AttnscopeError(
            f"there is no folder '{options.runs}': expected one of runs, as `attnscope run` makes "
            "it, or --runs DIR."
        )
    begins = "" if options.paper is None else f"{options.paper}."
    ledger: Ledger = []
    damaged: list[str] = []
    for path in sorted(Path(options.runs).glob("*/findings.json")):
        folder = RunFolder(path.parent)
        try:
            manifest = folder.manifest()
            if manifest["study"].startswith(begins):
                ledger.append((folder, manifest, kept_findings(path)))
        except AttnscopeError as error:
            damaged.append(str(error))
        except OSError as error:
            damaged.append(f"'{path.parent}' cannot be read: {error.strerror or error}.")
    if options.json:
        print_json(
            [
                {
                    "run": str(folder.path),
                    "study": manifest["study"],
                    "status": manifest["status"],
                    "findings": [finding.to_json() for finding in findings],
                }
                for folder, manifest, findings in ledger
            ]
        )
    else:
        _print(ledger, options.runs)
    for sentence in damaged:
        complain(f"left out: {sentence}")
    if damaged:
        return 2
    return faults([each for *_, found in ledger for each in found]) if options.strict else 0


def _print(ledger: Ledger, runs: str) -> None:
    from attnscope.cli.terminal import heading, say, show
    from attnscope.report.terminal import claims_table
    from attnscope.report.wording import control_passes

    shown: list[Finding] = []
    for folder, manifest, findings in ledger:
        if not findings:
            continue  # A watched model: it has diagnoses, and nothing to be held against.
        heading(f"{manifest['study']}  ({folder.path}, {manifest['status']})")
        show(claims_table(findings))
        shown += findings
    if not shown:
        say(f"no run below '{runs}' has decided a claim yet: try `attnscope run lu2021.sen`")
        return
    passing = [finding.key for finding in shown if control_passes(finding)]
    holds = sum(finding.verdict == "holds" for finding in shown)
    heading(f"{holds} of {len(shown)} claims hold; {len(passing)} controls pass")
