"""One point: the trajectory of an ordinary run, in one file, taken up where it was left."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import attnscope
from attnscope.experiment import Stopped
from attnscope.sweeps import point as points
from attnscope.sweeps.pack import damage_in, pack, read_array, unpack
from attnscope.sweeps.point import do_point
from attnscope.trajectory.documents import DamagedFile
from toy_study import Bowl, Relay


class Job:
    """A worker's voice, and somebody who may ask it to stop."""

    def __init__(self, stop_after: float = np.inf) -> None:
        self.said: list[tuple[str, Any]] = []
        self.asked, self.stop_after = 0, stop_after

    def say(self, value: Any) -> None:
        self.said.append(value)

    def stopped(self) -> bool:
        self.asked += 1
        return self.asked > self.stop_after


def opened(data: bytes) -> xr.DataTree:
    return unpack(io.BytesIO(data))


def assert_alike(one: xr.DataTree, other: xr.DataTree) -> None:
    assert set(one.children) == set(other.children)
    for name in one.children:
        left, right = (tree[name].to_dataset() for tree in (one, other))
        if name == "stats":
            left, right = left.drop_vars("seconds"), right.drop_vars("seconds")
        xr.testing.assert_identical(left, right)


@pytest.mark.parametrize("study", [Bowl(epochs=40), Relay(epochs=40, engine="descent")])
def test_a_point_is_the_run_of_its_settings(study: Bowl, tmp_path: Path) -> None:
    done = do_point(study, None, None, Job())
    tree = opened(done.data)
    run = attnscope.run(study, tmp_path / "run", workers=1)
    assert_alike(tree, run)
    assert [f.to_json() for f in attnscope.findings(run)] == tree.attrs["findings"]
    assert [f.verdict for f in attnscope.findings(tree)] == [
        f.verdict for f in attnscope.findings(run)
    ]
    assert attnscope.write_report(tree, tmp_path / "report").is_file()


def test_more_seeds_are_added_to_what_is_there() -> None:
    few = do_point(Bowl(epochs=40, seeds=1), None, None, Job())
    more = do_point(Bowl(epochs=40, seeds=3), few.data, None, Job())
    at_once = do_point(Bowl(epochs=40, seeds=3), None, None, Job())
    assert_alike(opened(more.data), opened(at_once.data))
    assert more.record["findings"] == at_once.record["findings"]
    # The first seed is as it was, to the time that it took.
    times = [opened(each.data)["stats"].seconds.values[:2] for each in (few, more)]
    np.testing.assert_array_equal(*times)


@pytest.mark.parametrize("after", [0, 7, 55, 130])
def test_a_point_that_was_stopped_goes_on_to_the_same_bits(after: int) -> None:
    study = Relay(epochs=40, engine="descent")
    job = Job(stop_after=after)
    with pytest.raises(Stopped):
        do_point(study, None, None, job)
    kind, state = job.said[-1]
    assert kind == "state"
    assert_alike(
        opened(do_point(study, None, state, Job()).data),
        opened(do_point(study, None, None, Job()).data),
    )


def test_a_point_says_now_and_then_all_that_has_been_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(points, "EVERY", 0.0)
    job = Job()
    study = Bowl(epochs=40, engine="descent")
    whole = do_point(study, None, None, job)
    states = [value for kind, value in job.said if kind == "state"]
    assert len(states) > 2
    for state in states[:: max(1, len(states) // 3)]:
        assert_alike(opened(do_point(study, None, state, Job()).data), opened(whole.data))


def test_a_point_that_diverges_is_a_result() -> None:
    done = do_point(Bowl(lr=1e9, epochs=40, engine="descent"), None, None, Job())
    assert done.record["outcome"] == "diverged"
    assert "broke down" in done.record["status"]
    assert done.record["findings"] == {}
    assert "observables" in opened(done.data).children


def test_any_zarr_reader_opens_a_point(tmp_path: Path) -> None:
    done = do_point(Bowl(epochs=40), None, None, Job())
    path = tmp_path / "point.zip"
    path.write_bytes(done.data)
    tree = opened(done.data)
    with zarr.storage.ZipStore(path, mode="r") as store:
        root = zarr.open_group(store, mode="r")
        for name, variable in tree["observables"].data_vars.items():
            array = root[f"observables/{name}"]
            assert isinstance(array, zarr.Array)
            np.testing.assert_array_equal(array[...], variable.values)
            np.testing.assert_array_equal(read_array(path, "observables", str(name)), variable)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "bool", "U3"])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_every_kind_of_array_comes_back(kind: str, shape: tuple[int, ...]) -> None:
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(kind)
    data = xr.Dataset({"x": (tuple("abc"[: len(shape)]), values, {"meaning": "ü"})})
    back = unpack(io.BytesIO(pack(xr.DataTree.from_dict({"group": data}))))["group"].to_dataset()
    assert back["x"].dims == data["x"].dims
    assert back["x"].attrs == {"meaning": "ü"}
    if values.size:
        np.testing.assert_array_equal(back["x"].values, values)


def test_two_packings_of_one_trajectory_are_equal() -> None:
    tree = opened(do_point(Bowl(epochs=40), None, None, Job()).data)
    assert pack(tree) == pack(tree)


def test_damage_is_seen_and_named(tmp_path: Path) -> None:
    data = bytearray(do_point(Bowl(epochs=40), None, None, Job()).data)
    path = tmp_path / "point.zip"
    path.write_bytes(data)
    assert damage_in(path) is None
    at = data.index(b"observables/x/c/0/0/0") + 60
    data[at] ^= 255
    path.write_bytes(data)
    assert damage_in(path) is not None
    with pytest.raises(DamagedFile, match=r"point\.zip"):
        read_array(path, "observables", "x")
    path.write_bytes(data[: len(data) // 2])
    assert damage_in(path) is not None
    with pytest.raises(DamagedFile, match="is gone"):
        read_array(tmp_path / "none.zip", "observables", "x")
