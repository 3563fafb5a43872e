"""The claims on the rate where labels are few, which is where a control may be no control."""

from __future__ import annotations

from pathlib import Path

import pytest

import attnscope
from attnscope.claims import examine_all
from attnscope.studies.song2024.regression import RegressionRun


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_no_loss_falls_as_fast_as_the_control_however_few_labels(
    tmp_path: Path, kernel: str
) -> None:
    study = RegressionRun(kernel=kernel, width=16, sequences=1, seeds=3, until=100.0)  # type: ignore[arg-type]
    run = attnscope.run(study, tmp_path / "run", workers=1)
    found = {each.key: each for each in examine_all(study.claims(), study.read(run))}
    for key in ("rate", "path"):
        assert found[key].verdict == "holds"
        assert found[key].control_fails
        assert found[key].control_low > 0.01


def test_with_one_label_the_control_is_the_truth(tmp_path: Path) -> None:
    """One label has one rate: no start is slower than the fastest, so this control may pass."""
    study = RegressionRun(sequences=1, length=1, seeds=1, until=1e-3, points=3)
    run = attnscope.run(study, tmp_path / "run", workers=1)
    found = {each.key: each for each in examine_all(study.claims(), study.read(run))}
    assert abs(found["path"].control) < 1e-3
