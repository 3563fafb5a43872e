"""Samples of ``song2024.pathfinder``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.figure import Figure, Heat, Line, Mark, Panel

if TYPE_CHECKING:
    from attnscope.studies.song2024.pathfinder import Pathfinder


def samples(study: Pathfinder, tree: xr.DataTree) -> Figure:
    """Draw images of both labels, with the two target contours over the last of each."""
    data = tree["data"].to_dataset()
    edges = np.arange(study.window + 1, dtype=float)
    labels = data["shown_label"].to_numpy()
    panels = []
    for label, title in ((0, "label 0, apart"), (1, "label 1, connected")):
        examples = np.flatnonzero(labels == label)
        for example in examples:
            # Rows of an image go down, those of a heat map up.
            image = data["shown"].to_numpy()[example, ::-1].astype(float)
            marks: list[Mark] = [Heat(edges, edges, image, "grey value")]
            if example == examples[-1]:
                marks += _contours(data["shown_snakes"].to_numpy()[example], study.window)
            panels.append(Panel(title, "x (pixels)", "y (pixels)", tuple(marks)))
    return Figure(
        "samples",
        "Pathfinder images",
        f"Images of {study.window} x {study.window} pixels with contours of "
        f"{study.contour_length} paddles: do the two discs sit on the same contour? The last image "
        "of each label shows the two target contours as they were drawn; what is left are "
        "distractors.",
        tuple(panels),
        columns=4,
    )


def _contours(snakes: np.ndarray, window: int) -> list[Mark]:
    marks: list[Mark] = []
    for number, snake in enumerate(snakes):
        x, y = snake.reshape(-1, 2).T
        marks.append(Line(x, window - y, f"target contour {number + 1}", number))
    return marks
