"""One run of a study in this process."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.experiment import execute, runner, solve
from attnscope.trajectory import RunFolder, open_run
from toy_study import Bowl

STUDY = Bowl().but(engine="descent", seeds=1)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "run")
    runner._fill(folder, STUDY, "")
    return folder


def test_a_run_goes_on_from_its_checkpoint(folder: RunFolder, tmp_path: Path) -> None:
    left = iter([False] * 100)
    state = execute(folder, STUDY, 1, interrupted=lambda: next(left, True))
    assert (state["outcome"], state["steps"]) == ("interrupted", 100)
    state = execute(folder, STUDY, 1)
    assert (state["outcome"], state["steps"]) == ("finished", 300)
    whole = attnscope.run(STUDY, tmp_path / "whole", workers=1)
    x = open_run(folder.path)["observables/x"]
    assert np.array_equal(x.isel(run=1), whole["observables/x"].isel(run=1))
    assert np.isnan(x.isel(run=0)).all()


def test_a_complete_run_is_left_alone(folder: RunFolder) -> None:
    execute(folder, STUDY, 0)
    state = folder.state(0)
    broken = dataclasses.replace(STUDY, fault="bug")
    assert execute(folder, broken, 0) == state


def test_a_damaged_checkpoint_is_a_sentence(folder: RunFolder) -> None:
    execute(folder, STUDY, 0, interrupted=lambda: True)
    folder.checkpoint_path(0).write_bytes(b"?")
    with pytest.raises(AttnscopeError, match="Delete it to begin that run anew"):
        execute(folder, STUDY, 0)
    folder.checkpoint_path(0).unlink()
    assert execute(folder, STUDY, 0)["outcome"] == "finished"


def test_flow_and_descent_share_an_axis_in_memory() -> None:
    class Both(Bowl):
        def engine(self, case: str, seed: int) -> Flow | Descent:
            return Flow() if seed else Descent(lr=self.training.lr or 0.1)

    study = Both(seeds=2)
    tree = solve(study).tree
    steps = tree["stats/steps"].to_numpy()
    assert steps.max() > 3 * steps.min()
    assert np.isfinite(tree["observables/x"].to_numpy()).all()
    assert np.isnan(tree["stats/kinks"].to_numpy()).sum() == len(study.cases)
