"""The studies of Zhai 2023, smaller than quick."""

from __future__ import annotations

import pytest

from attnscope.claims import examine_all
from attnscope.errors import AttnscopeError
from attnscope.experiment import solve
from attnscope.studies.zhai2023 import Collapse, Floor


def test_no_row_is_below_its_floor() -> None:
    study = Floor.at("quick", seeds=1, steps=40, length=12, held_out=8, random_rows=6400, rate=0.03)
    run = study.read(solve(study).tree)
    found = {each.key: each for each in examine_all(study.claims(), run)}
    for key in ("trained", "random", "tight"):
        assert found[key].verdict == "holds", found[key]
        assert found[key].control_fails, found[key]
    assert study.figures(run)
    assert study.tables(run)


def test_a_large_rate_makes_logits_large_and_sigma_reparam_small_ones() -> None:
    study = Collapse.at("quick", seeds=1, steps=30, length=12, held_out=8, rates=(0.003, 0.3))
    run = study.read(solve(study).tree)
    scale = run.scale.isel(step=-1, layer=-1, seed=0)
    assert float(scale.sel(case="plain at 0.3")) > 10 * float(scale.sel(case="σReparam at 0.3"))
    assert float(scale.sel(case="plain at 0.3")) > 10 * float(scale.sel(case="plain at 0.003"))
    # Decay pulls at weights in proportion to the rate: at a small one it is hardly there.
    assert float(scale.sel(case="weight decay at 0.3")) < float(scale.sel(case="plain at 0.3"))
    calm = scale.sel(case="weight decay at 0.003") / scale.sel(case="plain at 0.003")
    assert abs(float(calm) - 1) < 0.05
    assert [each.key.split("-")[0] for each in examine_all(study.claims(), run)] == [
        "collapse",
        "useless",
        "cure",
        "clip",
        "decay",
    ]
    assert study.figures(run)
    assert study.tables(run)


def test_what_is_refused_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match=r"rates = \(0.3, 0.1\)"):
        Collapse(rates=(0.3, 0.1))
    with pytest.raises(AttnscopeError, match="decay = 0"):
        Collapse(decay=0.0)
    with pytest.raises(AttnscopeError, match="length = 1"):
        Floor(length=1)
