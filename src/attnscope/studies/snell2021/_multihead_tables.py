"""The tables of ``snell2021.multihead``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes.shares import share_interval
from attnscope.report.page import Cell, Table
from attnscope.trajectory import select
from attnscope.studies.snell2021._multihead_pools import CANDIDATE, GOOD, judged, pools, trials
from attnscope.studies.snell2021._multihead_readings import best, final, learned

if TYPE_CHECKING:
    from attnscope.studies.snell2021.multihead import Multihead


def tables(study: Multihead, tree: xr.DataTree) -> list[Table]:
    """Return the scenarios, and the single heads."""
    return [scenarios(study, tree), candidates(study, tree)]


def scenarios(study: Multihead, tree: xr.DataTree) -> Table:
    """Tabulate who learns, with exact intervals of the share."""
    rows: list[tuple[Cell, ...]] = []
    for case in study.cases():
        known = learned(tree, case)
        share = share_interval(int(known.sum()), len(known))
        attention = np.nanmax(select(tree, "attention", case).isel(step=-1).to_numpy(), axis=1)
        rows.append(
            (
                case,
                len(known),
                int(known.sum()),
                share.share,
                share.low,
                share.high,
                float(final(tree, case).mean()),
                float(final(tree, case).min()),
                float(best(tree, case).mean()),
                float(attention.mean()),
            )
        )
    columns = (
        "heads",
        "runs",
        f"above {GOOD:g}",
        "share",
        "95 % interval from",
        "to",
        "accuracy at the end, mean",
        "least",
        "largest accuracy, mean",
        "attention of the best head at the end",
    )
    predicted = float(tree["theory/share_learned"])
    status = pools(trials(tree, study.streams)).status
    title = (
        f"Runs that learn within {study.epochs} steps. {status[0].upper()}{status[1:]}; if one "
        f"good head is enough, random heads learn with probability {predicted:.3g}"
    )
    return Table("scenarios", title, columns, tuple(rows))


def candidates(study: Multihead, tree: xr.DataTree) -> Table:
    """Tabulate every candidate."""
    accuracy = trials(tree, study.streams)
    good, bad = judged(accuracy)
    rows: list[tuple[Cell, ...]] = []
    for number, trial in enumerate(accuracy):
        verdict = "good" if good[number] else "bad" if bad[number] else "discarded"
        rows.append((number, verdict, *(float(value) for value in trial[:, -1])))
    columns = ("start", "verdict", *(f"data {stream}" for stream in range(study.streams)))
    title = f"Accuracy of single heads after {study.epochs} steps ({CANDIDATE})"
    return Table("candidates", title, columns, tuple(rows))
