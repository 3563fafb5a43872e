"""One page a paper: every claim of its studies, and what it came to when it was last published.

Which claims there are is read from the code when the site is built (`docs/conf.py` calls
:func:`write_pages`). The verdict and the number are those that were kept in
`docs/results/verdicts.json`, with the command that makes them, and with the statement, the
criterion and the control as they were in that run: a smaller scale has other steps and sizes.

    attnscope run lu2021.sen --scale quick --out runs/sen
    python docs/ledger.py runs/sen                       # keeps what its claims came to
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import attnscope
from attnscope.catalogue import load, of_paper, of_tree, papers, summary
from attnscope.results import command_line

HERE = Path(__file__).parent
KEPT = HERE / "results" / "verdicts.json"
SYMBOLS = {"holds": "✓ holds", "fails": "✗ fails", "undecided": "? undecided"}
TITLES = {
    "aoyama2025": "Aoyama 2025: when induction heads appear",
    "boix2023": "Boix-Adsera 2023: incremental learning",
    "crossing": "Theories that meet",
    "edelman2024": "Edelman 2024: Markov chains in phases",
    "li2023": "Li 2023: topics in transformers",
    "lu2021": "Lu 2021: scores and embeddings",
    "predict": "Predictions from data alone",
    "snell2021": "Snell 2021: attention follows word knowledge",
    "song2024": "Song 2024: kernels and landscapes",
    "tarzanagh2023": "Tarzanagh 2023: attention as a support vector machine",
    "zhai2023": "Zhai 2023: entropy collapse",
}


def kept() -> dict[str, Any]:
    """Return what was kept of each study: its command, and a finding for each claim."""
    return json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def keep(folders: list[str]) -> None:
    """Keep what the claims of some runs came to, in the place of what was kept before."""
    found = kept()
    for folder in folders:
        run = attnscope.open_run(folder)
        told = attnscope.findings(run)
        # A name of a folder, or how many processes, is of that computer alone.
        words, command = (
            iter(str(run.attrs.get("command") or command_line(of_tree(run))).split()),
            [],
        )
        for word in words:
            if word in ("--out", "--workers", "--runs"):
                next(words, "")
            elif word not in ("-q", "--quiet", "--overwrite", "--no-report"):
                command.append(word)
        found[run.attrs["study"]] = {
            "command": " ".join(command),
            "version": attnscope.__version__,
            "claims": {each.key: each.to_json() for each in told},
        }
    KEPT.write_text(json.dumps(dict(sorted(found.items())), indent=1, sort_keys=True) + "\n")


def cell(text: object) -> str:
    """Return a text as a cell of a table: no bar ends it, and nothing in it is markup."""
    said = " ".join(str(text).split()).replace("\\", "\\\\")
    for mark in "|*_<>[]`$":
        said = said.replace(mark, f"\\{mark}")
    return said


def number(value: float | None) -> str:
    """Write a number with four digits."""
    return "n/a" if value is None else f"{value:.4g}"


def verdict(found: dict[str, Any] | None) -> str:
    """Say what a claim came to: the verdict, our number and its interval, and the control's."""
    if found is None:
        return "not published yet"
    ends = ""
    if found["seeds"] > 1 and found["low"] is not None and found["high"] is not None:
        ends = f" ({number(found['low'])} to {number(found['high'])}, {found['seeds']} seeds)"
    control = "fails, as it must" if found["control_fails"] else "does not fail"
    if found["control_undecided"]:
        control = "undecided"
    return (
        f"**{SYMBOLS[found['verdict']]}**: {number(found['ours'])}{ends}; "
        f"control {number(found['control'])}, {control}"
    )


def study_lines(name: str, told: dict[str, Any]) -> list[str]:
    """Return the part of a page about one study."""
    study, absent = load(name)(), ""
    try:
        claims = [claim for each in study.claims() for claim, _ in each.expanded()]
    except attnscope.AttnscopeError:
        claims, absent = [], "Its criteria depend on real data, which was not there for this page."
    command = told.get("command") or f"attnscope run {name} --scale quick"
    lines = [f"## {name}", "", cell(summary(name)), "", f"    {command}", ""]
    if not claims:
        return [*lines, absent or "It states no claims; its report has figures and tables.", ""]
    lines += ["| claim | in the paper | criterion | control, which must fail | last published |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for claim in claims:
        found = told.get("claims", {}).get(claim.key)
        sentence = found["sentence"] if found else claim.sentence
        sentence = sentence[:1].upper() + sentence[1:]
        why = f" Why: {cell(found['reason'])}" if found and found["reason"] else ""
        source = ": ".join(part for part in (claim.source, claim.paper) if part)
        criterion = found["criterion"] if found else claim.holds
        control = found["control_sentence"] if found else claim.control[1]
        cells = (cell(sentence), cell(source), cell(criterion), cell(control))
        lines.append(f"| {' | '.join(cells)} | {verdict(found)}{why} |")
    return [*lines, ""]


def page(paper: str) -> str:
    """Return the ledger of a paper as Markdown."""
    found, names = kept(), of_paper(paper)
    all_told = [claim for name in names for claim in found.get(name, {}).get("claims", {}).values()]
    counts = {v: sum(each["verdict"] == v for each in all_told) for v in SYMBOLS}
    said = ", ".join(f"{SYMBOLS[v]} {count}" for v, count in counts.items() if count)
    lines = [f"# {TITLES.get(paper, paper)}", ""]
    if (HERE / f"{paper}.md").exists():
        lines += [f"What the paper says, what was found and why: [{paper}](../{paper}.md). "]
    lines += [
        f"Of the claims below {len(all_told)} have a published verdict"
        + (f": {said}." if said else ".")
        + " A claim's criterion is fixed in code before the run. The command makes its verdicts"
        " again.",
        "",
    ]
    for name in names:
        lines += study_lines(name, found.get(name, {}))
    return "\n".join(lines)


def write_pages(folder: Path) -> list[Path]:
    """Write a page for each paper, and one that lists them."""
    folder.mkdir(exist_ok=True)
    pages = []
    for paper in papers():
        pages.append(folder / f"{paper}.md")
        pages[-1].write_text(page(paper), encoding="utf-8")
    index = ["# Ledgers: every claim of every paper", ""]
    index += ["Statement, the paper's value, criterion, control and verdict, a page a paper.", ""]
    index += ["```{toctree}", ":maxdepth: 1", "", *papers(), "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")
    return [*pages, folder / "index.md"]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    keep(sys.argv[1:])
