"""One head that does all is told from two that share the work."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnosed_toys import scale_queries_and_keys, watched

from attnscope.watched.chart import chart_of
from attnscope.watched.diagnosis.one_head import SHARE, diagnose


@pytest.mark.parametrize("asleep", [0, 1])
def test_a_model_with_one_head_asleep(tmp_path: Path, asleep: int) -> None:
    tree = watched(
        tmp_path / "run",
        lambda model: scale_queries_and_keys(model, 1e-3, slice(asleep, asleep + 1)),
        plain=True,
        lr=0.5,
    )
    found = diagnose(chart_of(tree))
    assert found is not None
    assert (found.name, found.layer, found.head) == ("one_head", 0, 1 - asleep)
    assert found.evidence["share of the distance to uniform"] > SHARE
    distances = tree["observables/distance_to_uniform"].to_numpy()[0, :, 0]
    begun = tree["observables/time"].to_numpy()[distances[:, 1 - asleep] >= 0.2][0]
    assert found.since_step == begun
    assert f"head {1 - asleep} of 2" in found.sentence


def test_a_model_whose_heads_share_the_work(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run"))) is None
