"""What ``song2024.pathfinder`` tabulates of its images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from attnscope.report.page import Cell, Table

if TYPE_CHECKING:
    from attnscope.studies.song2024.pathfinder import Pathfinder


def images(study: Pathfinder, tree: xr.DataTree) -> Table:
    """Tabulate the check of the labels, and what the discs alone tell."""
    data = tree["data"].to_dataset()
    label, gap = data["label"].to_numpy(), data["disc_distance"].to_numpy()
    rows: list[tuple[Cell, ...]] = [
        ("images checked", len(label)),
        ("flood fill from disc to disc agrees with the label", int(data["agrees"].sum())),
        ("of label 1 (%)", round(100 * float((label == 1).mean()), 1)),
        ("distance of the discs, label 0 (pixels)", round(float(gap[label == 0].mean()), 2)),
        ("distance of the discs, label 1 (pixels)", round(float(gap[label == 1].mean()), 2)),
        ("distractors that found room", round(float(data["distractors"].mean()), 2)),
    ]
    return Table(
        "images",
        f"Images of {study.window} x {study.window} pixels, contours of {study.contour_length} "
        "paddles",
        ("what", "value"),
        tuple(rows),
    )
