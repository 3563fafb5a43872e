"""Readings by case, seed and step, and one convention for each question that curves are asked."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnscope.errors import AttnscopeError
from attnscope.trajectory import Readings, by_run, carried, crossing, final, initial


def tree(seeds: tuple[int, ...] = (0, 1), ragged: bool = False) -> xr.DataTree:
    runs = [(case, seed) for seed in seeds for case in ("a", "b")]
    runs = runs[:-1] if ragged else runs
    cases, numbers = [case for case, _ in runs], [seed for _, seed in runs]
    names = {"case": ("run", cases), "seed": ("run", numbers)}
    steps = {"step": [0, 2, 4], "time": ("step", [0.0, 0.2, 0.4])}
    values = np.arange(len(runs) * 6.0).reshape(len(runs), 3, 2)
    return xr.DataTree.from_dict(
        {
            "observables": xr.Dataset({"x": (("run", "step", "part"), values)}, {**names, **steps}),
            "data": xr.Dataset({"truth": ("part", [1.0, 2.0])}),
            "stats": xr.Dataset({"seconds": ("run", np.arange(len(runs)))}, names),
        }
    )


def test_readings_have_cases_and_seeds_as_dimensions() -> None:
    run = Readings(tree())
    assert run.cases == ("a", "b")
    assert run.x.dims == ("case", "seed", "step", "part")
    own = run.of("b").x
    assert own.dims == ("seed", "step", "part")
    assert own.identical(run.x.sel(case="b", drop=True).rename("x")) or np.array_equal(
        own, run.x.sel(case="b")
    )
    assert float(own.sel(seed=1, step=2)[0]) == 20.0
    assert run.stats.seconds.dims == ("case", "seed")
    assert run.data.truth.dims == ("part",)
    assert run.time.dims == ("step",)


def test_a_step_is_a_step_of_training() -> None:
    x = Readings(tree()).x
    assert np.array_equal(x.sel(step=2), x.isel(step=1))
    with pytest.raises(KeyError):
        x.sel(step=1)


def test_labels_of_the_experiment_name_axes_that_the_store_does_not() -> None:
    run = Readings(tree(), {"part": ("left", "right"), "other": ("one",)})
    assert np.array_equal(run.x.sel(part="right"), run.x.isel(part=1))
    assert "part" not in Readings(tree(), {"part": ("one",)}).x.coords


def test_cases_with_different_seeds_are_read_one_by_one() -> None:
    run = Readings(tree(ragged=True))
    assert run.of("a").x.sizes["seed"] == 2
    assert run.of("b").x.sizes["seed"] == 1
    with pytest.raises(AttnscopeError, match=r"different seeds.*run\.of\(case\)"):
        _ = run.x


def test_what_is_not_there_is_named() -> None:
    run = Readings(tree())
    with pytest.raises(AttnscopeError, match=r"'xx' is not in the group 'observables'.*mean 'x'"):
        _ = run.xx
    with pytest.raises(AttnscopeError, match="no case 'c' in this run"):
        run.of("c")
    assert "x" in run
    assert "y" not in run


def test_by_run_is_the_way_back() -> None:
    given = tree()
    run = Readings(given)
    runs = [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    back = by_run(xr.Dataset({"x": run.x, "rate": ("case", [1.0, 2.0])}), runs)
    assert np.array_equal(back["x"].transpose("run", ...), given["observables/x"])
    assert back["rate"].to_numpy().tolist() == [1.0, 2.0, 1.0, 2.0]


def curve(*values: float) -> xr.DataArray:
    steps = np.arange(len(values)) * 10
    return xr.DataArray(list(values), {"step": steps}, name="x").assign_coords(
        time=("step", steps / 10)
    )


def test_ends() -> None:
    assert float(initial(curve(3, 2, 1))) == 3
    assert float(final(curve(3, 2, 1))) == 1
    assert "step" not in final(curve(3, 2, 1)).coords
    with pytest.raises(AttnscopeError, match="no clock"):
        final(xr.DataArray([1.0], dims="word", name="x"))


@pytest.mark.parametrize(
    ("values", "level", "step"),
    [
        ((0.0, 0.2, 0.6), 0.4, 15.0),
        ((0.0, 0.2, 0.6), 0.6, np.nan),  # it must rise above the level
        ((0.5, 0.2, 0.6), 0.4, 0.0),  # it begins above
        ((0.0, 0.5, 0.0, 0.5), 0.25, 5.0),  # the first time
        ((np.nan, 0.0, 1.0), 0.5, 15.0),
    ],
)
def test_a_crossing(values: tuple[float, ...], level: float, step: float) -> None:
    assert float(crossing(curve(*values), level)) == pytest.approx(step, nan_ok=True)


def test_a_level_for_each_curve() -> None:
    both = xr.concat([curve(0, 1, 2), curve(0, 2, 4)], xr.DataArray([0, 1], dims="seed"))
    levels = both.max("step") / 2
    assert crossing(both, levels).to_numpy().tolist() == [10.0, 10.0]


def test_a_run_that_ended_early_keeps_its_last_values() -> None:
    assert carried(curve(3, 2, np.nan, np.nan)).to_numpy().tolist() == [3, 2, 2, 2]
