"""Trajectories come back as labelled arrays, from disk and from memory alike."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from bowl import LR, STEPS, descend, interrupted_sink, make_folder, records

from attnscope.engines import Memory
from attnscope.errors import AttnscopeError
from attnscope.trajectory import ZarrSink, memory_tree, open_run, run_status

POINTS = 9


@pytest.fixture
def written(tmp_path: Path) -> Path:
    folder = make_folder(tmp_path / "run", POINTS)
    sink = ZarrSink(folder, 0)
    sink.finish(descend(sink, POINTS))
    return folder.path


def test_dimensions_and_coordinates(written: Path) -> None:
    tree = open_run(written)
    assert set(tree.children) == {"data", "observables", "params", "stats"}
    x = tree["observables/x"]
    assert x.dims == ("run", "step", "coordinate")
    assert x["case"].to_numpy().tolist() == ["case 0", "case 1"]
    assert x["seed"].to_numpy().tolist() == [10, 11]
    epochs = np.linspace(0, STEPS, POINTS)
    assert np.array_equal(x["epoch"], epochs)
    assert np.allclose(x["time"], epochs * LR, rtol=1e-15)
    rare = tree["observables/count"]
    assert rare.dims == ("run", "rare", "coordinate")
    assert np.array_equal(rare["epoch_rare"], np.linspace(0, STEPS, 5))
    assert tree["params/x"].dims == ("run", "snapshot", "coordinate")
    assert np.array_equal(tree["params/x"]["epoch_snapshot"], [0, 200, 400])
    assert x.attrs["meaning"] == "where it is"
    assert tree["observables/loss"].attrs["unit"] == "nats"


def test_the_order_of_variables_is_theirs_and_not_the_file_systems(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = open_run(written)
    plain = xr.open_datatree

    def turned(*args: Any, **kwargs: Any) -> xr.DataTree:
        tree = plain(*args, **kwargs)
        return tree.map_over_datasets(lambda data: data[list(data.variables)[::-1]])

    monkeypatch.setattr(xr, "open_datatree", turned)
    again = open_run(written)
    assert list(again.children) == list(once.children)
    for name, node in once.children.items():
        assert list(node.data_vars) == list(again[name].data_vars)
        xr.testing.assert_identical(node.to_dataset(), again[name].to_dataset())


def test_attributes_say_what_the_run_is(written: Path) -> None:
    attrs = open_run(written).attrs
    assert attrs["study"] == "bowl"
    assert json.loads(attrs["spec"]) == {"points": POINTS, "pair": [1, 2]}
    assert attrs["status"] == "1 of 2 runs are complete"
    assert attrs["path"] == str(written)


def test_stats_are_per_run(written: Path) -> None:
    stats = open_run(written)["stats"]
    assert stats["outcome"].to_numpy().tolist() == ["finished", "not begun"]
    assert stats["steps"].to_numpy()[0] == STEPS
    assert np.isnan(stats["steps"].to_numpy()[1])


def test_xarray_alone_reads_the_store_without_a_warning(written: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = xr.open_datatree(
            str(written / "trajectory.zarr"), engine="zarr", consolidated=False
        ).load()
    ours = open_run(written)
    for name in ("observables/x", "observables/loss", "observables/flag", "params/x"):
        assert np.array_equal(tree[name], ours[name], equal_nan=True)
        assert tree[name].dims == ours[name].dims
    assert "time" in tree["observables/x"].coords
    assert tree.attrs["study"] == "bowl"
    tree.close()


def test_an_observable_whose_name_begins_with_time_stays_an_observable(tmp_path: Path) -> None:
    from bowl import Point, bowl

    from attnscope.engines import Descent, Linear, Observable, Record

    memory = Memory()
    timely = Observable("timeliness", bowl)
    solution = Descent(lr=LR).run(
        Point(), bowl, time=1.0, record=[Record((timely,), Linear(3))], sink=memory
    )
    tree = memory_tree(memory, solution, LR)
    assert set(tree["observables"].data_vars) == {"timeliness"}
    assert set(tree["observables"].coords) == {"time", "epoch", "step", "case", "seed"}


def test_a_manifest_whose_store_is_gone_is_a_sentence(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", POINTS)
    folder.store.rename(tmp_path / "elsewhere")
    with pytest.raises(AttnscopeError, match=r"trajectory\.zarr' is gone.*attnscope check"):
        open_run(folder.path)


def test_status_names_the_runs_that_broke() -> None:
    manifest = {"runs": [{"case": c, "seed": s} for s in (0, 1) for c in ("FC", "TC")]}
    done, stopped = {"outcome": "finished"}, {"outcome": "stopped"}
    broke = {"outcome": "diverged", "status": "diverged at step 7"}
    assert run_status(manifest, [done, stopped, done, done]) == (
        "finished: all 4 runs are complete"
    )
    assert run_status(manifest, [done, {}, stopped, broke]) == (
        "2 of 4 runs are complete; TC, seed 1: diverged at step 7"
    )


def test_memory_and_disk_give_the_same_tree(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", POINTS, runs=1)
    sink = ZarrSink(folder, 0)
    sink.finish(descend(sink, POINTS))
    disk = open_run(folder.path)
    memory = Memory()
    solution = descend(memory, POINTS)
    tree = memory_tree(memory, solution, LR)
    assert tree.attrs["status"] == solution.status == f"finished at step {STEPS}"
    for record in records(POINTS):
        for observable in record.observables:
            path = f"{record.group}/{observable.name}"
            ours, theirs = tree[path], disk[path]
            assert ours.dims == theirs.dims
            assert np.array_equal(ours, theirs)
            assert set(ours.coords) == set(theirs.coords)
            for name in set(ours.coords) - {"case", "seed"}:
                assert np.array_equal(ours[name], theirs[name])
    for name in ("time", "loss", "steps", "evaluations"):
        assert np.array_equal(tree[f"stats/{name}"], disk[f"stats/{name}"])


def test_an_interrupted_run_is_not_complete(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", POINTS, runs=1)
    sink = interrupted_sink(folder, 200)
    sink.finish(descend(sink, POINTS))
    tree = open_run(folder.path)
    assert tree.attrs["status"] == "0 of 1 runs are complete"
    reached = ~np.isnan(tree["observables/loss"].to_numpy()[0])
    # Step 200 is a record point and is read before the interruption is asked for.
    assert reached.tolist() == [True] * 5 + [False] * 4
