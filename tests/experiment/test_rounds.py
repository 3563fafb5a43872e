"""Runs that need what other runs came to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.experiment import runner
from toy_study import Relay

pytestmark = pytest.mark.xdist_group("runner")


def halves(tree: xr.DataTree) -> tuple[np.ndarray, np.ndarray]:
    x = tree["observables/x"].to_numpy()
    return x[0::2], x[1::2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_later_round_knows_the_earlier_one(tmp_path: Path, workers: int) -> None:
    tree = attnscope.run(Relay().but(engine="descent"), tmp_path / "run", workers=workers)
    steep, flat = halves(tree)
    assert np.array_equal(flat[:, 0], steep[:, -1])
    assert (flat[:, -1] != flat[:, 0]).all()
    assert tree.attrs["status"] == "finished: all 4 runs are complete"


def test_a_round_that_breaks_down_ends_it(tmp_path: Path) -> None:
    study = Relay().but(engine="descent", lr=2.5, epochs=300)
    with pytest.raises(runner.Broken, match="2 of 4 runs broke down; the first: steep, seed 0"):
        attnscope.run(study, tmp_path / "run", workers=1)
    outcomes = attnscope.open_run(tmp_path / "run")["stats/outcome"].to_numpy().tolist()
    assert outcomes == ["diverged", "not begun"] * 2


def test_resuming_repeats_no_round(tmp_path: Path) -> None:
    first = attnscope.run(Relay().but(engine="descent"), tmp_path / "run", workers=1)
    heard: list[int] = []
    again = attnscope.run(
        Relay().but(engine="descent"),
        tmp_path / "run",
        workers=1,
        resume=True,
        listener=lambda run, fraction: heard.append(run),
    )
    assert heard == []
    assert np.array_equal(halves(first)[1], halves(again)[1])
