"""Following a boundary: found as exactly as asked for, with few points and enough seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweep_toys import Hill

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.sweeps import Grid, SweepFolder, axes_of
from attnscope.sweeps.axes import key
from attnscope.sweeps.refine import Refinement


def row(study: Hill) -> dict[str, Any]:
    """Return the row of a point without running it."""
    height = study.a + study.b**2
    verdict = "holds" if height < 0.5 else "fails"
    numbers = [height, height, height, 2, verdict, 1e3, 1e3, 1e3, True, "< 0.5"]
    return {"outcome": "finished", "seeds": study.seeds, "findings": {"low": numbers}}


def followed(over: dict[str, Any], within: float = 0.01) -> tuple[Refinement, dict[str, Any]]:
    """Answer what refining asks for until it asks no more."""
    grid = Grid(Hill(), axes_of(Hill(), over))
    refinement, known = Refinement(grid, "low", within, 8), {}
    for _ in range(100):
        wanted = list(refinement.wants(known))
        if not wanted:
            return refinement, known
        for values, _ in wanted:
            known[key(values)] = row(grid.at(values))
    raise AssertionError("it asks for ever")


def test_one_field_is_bisected_to_a_hundredth_of_the_axis() -> None:
    refinement, known = followed({"a": [0.0, 1.03]})
    ((low, high),) = refinement.leaves(known)
    assert low["a"] < 0.5 <= high["a"]
    assert high["a"] - low["a"] <= 0.01 * 1.03 + 1e-9
    assert refinement.full() == 129
    assert 10 * len(known) <= refinement.full()


def test_two_fields_are_followed_along_the_curve_with_ten_times_fewer_points() -> None:
    refinement, known = followed({"a": [0.0, 0.25, 0.5, 0.75, 1.0], "b": [0.0, 0.3, 0.6, 0.9]})
    leaves = list(refinement.leaves(known))
    for low, high in leaves:
        assert low["a"] + low["b"] ** 2 < 0.5 <= high["a"] + high["b"] ** 2
        assert high["a"] - low["a"] <= 0.01 + 1e-9
        assert high["b"] - low["b"] <= 0.009 + 1e-9
    # The curve is unbroken: every column between its ends has a cell that it goes through.
    columns = {round(low["a"], 6) for low, _ in leaves}
    assert len(columns) == 64
    assert 10 * len(known) <= refinement.full()


def test_logarithmic_axes_and_whole_numbers_are_halved_as_they_are() -> None:
    grid = Grid(Hill(), axes_of(Hill(), {"n": "1:16:log5", "a": "0.01:1:log3"}))
    refinement = Refinement(grid, "low", 0.2, 8)
    (first, _), (second, places) = refinement.lattice
    assert [each[0] for each in first] == [1, 2, 3, 4, 6, 8, 11, 16]
    ratios = np.diff(np.log([each[0] for each in second]))
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)
    assert places == [0, 4, 8]


def test_a_sweep_is_refined_and_goes_on_from_what_is_there(tmp_path: Path) -> None:
    over, out = {"a": [0.0, 1.0], "b": [0.0]}, tmp_path / "s"
    with pytest.raises(AttnscopeError, match="refining between 1 value of 'b'"):
        attnscope.sweep(Hill(), over, out, workers=1, refine="low")
    tree = attnscope.sweep(Hill(), {"a": [0.0, 1.0]}, out, workers=1, refine="low", within=0.1)
    places = tree["findings"].a.values
    assert {0.5, 0.4375} <= set(places.tolist())
    assert len(places) == 6
    tree = attnscope.sweep(Hill(), {"a": [0.0, 1.0]}, out, workers=1, refine="low", within=0.01)
    assert len(tree["findings"].a) == 9
    assert len(SweepFolder(out).rows()) == 9


def test_where_a_verdict_stays_open_more_seeds_are_asked_for(tmp_path: Path) -> None:
    study = Hill(each=False, noise=0.05, seeds=2)
    tree = attnscope.sweep(
        study, {"a": [0.0, 1.0]}, tmp_path / "s", workers=1, refine="low", most_seeds=16
    )
    found = tree["findings"].to_dataset().sel(claim="low")
    open_ = found.verdict == "undecided"
    assert (found.seeds[open_] == 16).all()
    assert float(found.seeds.sel(a=1.0)) < 16
    assert float(found.seeds.max()) > 2


def test_a_claim_that_is_not_there_is_a_sentence() -> None:
    grid = Grid(Hill(), axes_of(Hill(), {"a": [0.0, 1.0]}))
    with pytest.raises(AttnscopeError, match=r"has no claim 'lwo'. Did you mean 'low'\?"):
        Refinement(grid, "lwo", 0.01, 8)
    with pytest.raises(AttnscopeError, match="within = 2"):
        Refinement(grid, "low", 2.0, 8)
