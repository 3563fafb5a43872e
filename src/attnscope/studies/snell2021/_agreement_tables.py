"""The tables of ``snell2021.agreement``: the row of each published table, and the paper's under it.

ξ is the performance of other normal runs where their attention first agrees better with α; an
asterisk says that it never does, and then the number is ξ*, the performance at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from attnscope.report.page import Cell, Table
from attnscope.studies.snell2021._agreement_details import (
    controls,
    conventions,
    data,
    each_run,
    lags,
    predicted,
    runs,
    symbols,
)
from attnscope.studies.snell2021._agreement_evidence import Evidence, Performance, evidence
from attnscope.studies.snell2021._agreement_paper import (
    ALPHA_FR,
    ALPHA_UF,
    FOUR,
    NAMES,
    PublishedRow,
    published,
    published_frozen,
)
from attnscope.studies.snell2021._agreement_table import Entry, Measure

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement

TITLES = {
    5: "A: the largest of the first in the top 5 % of the second; validation; ξ in accuracy (%)",
    3: "Kendall's τ × 100; validation; ξ in accuracy (%)",
    7: "A: the largest of the first in the top 5 % of the second; training data; ξ in accuracy (%)",
    6: "A: the largest of the first in the top 5 % of the second; validation; ξ in BLEU",
    4: "Kendall's τ × 100; validation; ξ in BLEU",
    8: "A: the largest of the first in the top 5 % of the second; training data; ξ in BLEU of "
    "training data, which is not read here",
}
"""What Tables 3 to 8 are; Table 2 is Table 5 in whole percent."""


def tables(study: Agreement, tree: xr.DataTree) -> list[Table]:
    """Return the rows of the published tables first, then what stands behind them."""
    seen = evidence(tree)
    variants: list[tuple[int, str, Measure, Performance]] = [
        (5, "dev", "top", "accuracy"),
        (3, "dev", "tau", "accuracy"),
        (7, "train", "top", "accuracy"),
    ]
    if tree["data"].attrs["kind"] == "parallel":
        variants += [
            (6, "dev", "top", "bleu"),
            (4, "dev", "tau", "bleu"),
            (8, "train", "top", "bleu"),
        ]
    return [
        *(row(study, seen, *variant) for variant in variants),
        frozen(study, seen),
        each_run(seen),
        symbols(study, seen),
        controls(seen),
        conventions(seen),
        lags(seen),
        predicted(seen),
        runs(seen),
        data(seen),
    ]


def row(
    study: Agreement,
    seen: Evidence,
    number: int,
    split: str,
    by: Measure,
    performance: Performance,
) -> Table:
    """Tabulate the row of one published table."""
    found = seen.table(split, by, performance, study.convention)
    # BLEU is read on validation alone, so there is no ξ for Table 8.
    known = (split, performance) != ("train", "bleu")
    final = round(seen.final(split, performance), 2) if known else None
    xi = [starred(found[name]) if known else None for name in FOUR]
    ours: list[Cell] = ["here", *(round(found[name].value, 2) for name in FOUR)]
    ours += [round(found[ALPHA_UF].baseline, 2), *xi, final]
    columns = (
        "",
        *(f"A{NAMES[name]}" for name in FOUR),
        "Â",
        *(f"ξ{NAMES[n]}" for n in FOUR),
        "ξ*",
    )
    rows = [tuple(ours)]
    paper = published(study.data, split, by, performance)
    if paper is not None:
        rows.append(_paper(paper))
    task = paper.task if paper is not None else study.data
    turned = "" if study.convention == "paper" else "; the released code's convention"
    title = f"Table {number}, {task}. {TITLES[number]}{turned}; {_size(seen)}"
    return Table(f"table-{number}", title, columns, tuple(rows))


def frozen(study: Agreement, seen: Evidence) -> Table:
    """Tabulate the row of Table 10."""
    found = seen.table()
    names = (ALPHA_FR, ALPHA_UF)
    rows: list[tuple[Cell, ...]] = [("here", *(round(found[n].value, 2) for n in names))]
    paper = published_frozen(study.data)
    if paper is not None:
        rows.append(("paper", *(paper.agreement[name] for name in names)))
    title = (
        "Table 10. Attention α^fr that is trained while all else is frozen agrees less with α than "
        f"β^uf does; validation (%); {_size(seen)}"
    )
    return Table("table-10", title, ("", *(f"A{NAMES[n]}" for n in names)), tuple(rows))


def starred(entry: Entry) -> str:
    """Return ξ with two decimals, and an asterisk where it is ξ* for want of anything better."""
    return f"{entry.xi:.2f}{'' if entry.reached else '*'}"


def _size(seen: Evidence) -> str:
    return f"here: {seen.runs.steps[-1]:,.0f} steps, {len(seen.runs.normal)} normal runs"


def _paper(published_row: PublishedRow) -> tuple[Cell, ...]:
    printed: list[Cell] = ["paper"]
    printed += [published_row.agreement.get(name) for name in FOUR]
    printed.append(published_row.baseline)
    for name in FOUR:
        xi = published_row.xi.get(name)
        printed.append(None if xi is None else f"{xi.value:.2f}{'' if xi.reached else '*'}")
    return (*printed, published_row.final)
