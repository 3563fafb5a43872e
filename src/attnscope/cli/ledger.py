"""``attnscope claims [PAPER]``: every claim that a run there is decides."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from attnscope.catalogue import names
from attnscope.claims import Finding
from attnscope.cli.kept import kept_findings
from attnscope.cli.terminal import complain
from attnscope.errors import AttnscopeError, nearest
from attnscope.report.terminal import claims_table
from attnscope.report.wording import control_passes
from attnscope.trajectory.folder import RunFolder


def ledger(paper: str, runs: str) -> int:
    """Print the findings of all runs below a folder, study by study.

    A run that is damaged is listed, and the others are read; the exit code is then 2.
    """
    papers = sorted({name.split(".")[0] for name in names()})
    if paper and paper not in papers:
        raise AttnscopeError(
            f"there are no studies of '{paper}'.{nearest(paper, papers)} "
            f"Expected one of: {', '.join(papers)}."
        )
    console = Console()
    found = sorted(Path(runs).glob("*/findings.json"))
    shown: list[Finding] = []
    damaged: list[str] = []
    for path in found:
        folder = RunFolder(path.parent)
        try:
            manifest = folder.manifest()
            if not manifest["study"].startswith(f"{paper}." if paper else ""):
                continue
            findings = kept_findings(path)
        except AttnscopeError as error:
            damaged.append(str(error))
            continue
        except OSError as error:
            damaged.append(f"'{path.parent}' cannot be read: {error.strerror or error}.")
            continue
        if not findings:
            continue  # A watched model: it has diagnoses, and nothing to be held against.
        console.rule(escape(f"{manifest['study']}  ({folder.path}, {manifest['status']})"))
        console.print(claims_table(findings))
        shown += findings
    if not shown:
        console.print(
            f"no run below '{runs}' has decided a claim yet: try `attnscope run lu2021.sen`",
            soft_wrap=True,
            markup=False,
        )
    else:
        passing = [finding.key for finding in shown if control_passes(finding)]
        holds = sum(finding.verdict == "holds" for finding in shown)
        console.rule(f"{holds} of {len(shown)} claims hold; {len(passing)} controls pass")
    for sentence in damaged:
        complain(f"left out: {sentence}")
    return 2 if damaged else 0
