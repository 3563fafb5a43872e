"""When matrices start, read off the trajectory of ``li2023.two_stage``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.studies.li2023._two_stage_settings import KEY, QUERY, VALUE
from attnscope.trajectory import select
from attnscope.theory import li2023


def reaches(tree: xr.DataTree, case: str, matrix: int, share: float = 0.1) -> np.ndarray:
    """Return the step where the change of a matrix reaches a share of its maximum, by seed.

    Interpolated between record points; NaN for a matrix that never moves.
    """
    change = select(tree, "change", case).isel(matrix=matrix).to_numpy()
    steps = tree["observables/time"].to_numpy()
    found = []
    for run in change:
        level = share * run.max()
        if not level > 0:
            found.append(np.nan)
            continue
        at = int(np.argmax(run >= level))
        part = (level - run[at - 1]) / (run[at] - run[at - 1])
        found.append(steps[at - 1] + part * (steps[at] - steps[at - 1]))
    return np.array(found)


def lag(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return how many times later than W^V the earlier of W^K and W^Q starts, by seed."""
    first = np.minimum(reaches(tree, case, KEY), reaches(tree, case, QUERY))
    return np.asarray(first / reaches(tree, case, VALUE))


def onset(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the step where ‖W^Kᵀ W^Q‖₂ reaches 1, by seed; NaN if it does not."""
    norms = select(tree, "score_norm", case)
    steps = norms["time"].to_numpy()
    return np.array([li2023.measured_onset(steps, run).time for run in norms.to_numpy()])


def predicted(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the step that the run without attention predicts for it, by seed."""
    return select(tree, "onset_ahead", case, "theory").to_numpy()
