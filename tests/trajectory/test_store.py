"""What is on disk is what was read, at every moment and across chunk boundaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import zarr
from bowl import STEPS, Point, descend, interrupted_sink, make_folder, records

from attnscope.engines import Linear, Memory, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.trajectory import ZarrSink, create_store, load_checkpoint, open_run
from attnscope.trajectory.folder import RunFolder
from attnscope.trajectory.pace import SHARE
from attnscope.trajectory.store import CHUNK

BOUNDARIES = (2, CHUNK - 1, CHUNK, CHUNK + 1, 300)


def in_memory(points: int) -> dict[str, np.ndarray]:
    """Return what the engine hands out, by path in the tree."""
    memory = Memory()
    descend(memory, points)
    return {
        f"{record.group}/{name}": array
        for record, arrays in zip(memory.records, memory.arrays, strict=True)
        for name, array in arrays.items()
    }


def assert_run_is(tree: Any, run: int, expected: dict[str, np.ndarray]) -> None:
    for path, array in expected.items():
        stored = tree[path].isel(run=run).to_numpy()
        assert stored.dtype == array.dtype, path
        assert np.array_equal(stored, array, equal_nan=True), path


@pytest.mark.parametrize("points", BOUNDARIES)
def test_the_disk_holds_what_memory_holds_bit_for_bit(tmp_path: Path, points: int) -> None:
    folder = make_folder(tmp_path / "run", points)
    sink = ZarrSink(folder, 1)
    sink.finish(descend(sink, points))
    expected = in_memory(points)
    tree = open_run(folder.path)
    assert expected["observables/x"].shape == (points, 3)
    assert expected["observables/count"].max() > 2**40
    assert_run_is(tree, 1, expected)
    assert all(np.isnan(tree[path].isel(run=0)).all() for path in expected)
    assert folder.state(1)["recorded"] == {"step": points, "rare": 5, "snapshot": 3}


@pytest.mark.parametrize("points", [CHUNK + 1, 300])
@pytest.mark.parametrize("after", [0, 1, 130, 171, 172, 399])
def test_going_on_from_a_checkpoint_leaves_no_trace(
    tmp_path: Path, points: int, after: int
) -> None:
    folder = make_folder(tmp_path / "run", points)
    sink = interrupted_sink(folder, after)
    state = sink.finish(descend(sink, points))
    assert (state["outcome"], state["steps"]) == ("interrupted", after)
    again = ZarrSink(folder, 0)
    saved = load_checkpoint(folder.checkpoint_path(0))
    state = again.finish(descend(again, points, resume=saved))
    assert state["outcome"] == "finished"
    assert not folder.checkpoint_path(0).exists()
    assert_run_is(open_run(folder.path), 0, in_memory(points))


def test_readings_after_the_checkpoint_are_written_again(tmp_path: Path) -> None:
    """A process that is killed has chunks on disk that its checkpoint knows nothing of."""
    points = 300
    folder = make_folder(tmp_path / "run", points)
    sink = interrupted_sink(folder, 60)
    descend(sink, points)
    early = folder.checkpoint_path(0).read_bytes()
    late = interrupted_sink(folder, 200)
    descend(late, points, resume=load_checkpoint(folder.checkpoint_path(0)))
    folder.checkpoint_path(0).write_bytes(early)
    last = ZarrSink(folder, 0)
    last.finish(descend(last, points, resume=load_checkpoint(folder.checkpoint_path(0))))
    assert_run_is(open_run(folder.path), 0, in_memory(points))


def test_a_half_written_run_is_readable(tmp_path: Path) -> None:
    points = 300
    folder = make_folder(tmp_path / "run", points, runs=1)
    expected = in_memory(points)
    seen: list[int] = []

    class Looking(ZarrSink):
        def step(self, time: float, loss: float, checkpoint: Any) -> bool:
            if self.counts[0] in (1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK):
                tree = open_run(folder.path)
                whole = self.counts[0] // CHUNK * CHUNK
                for name in ("loss", "x"):
                    array = tree[f"observables/{name}"].isel(run=0).to_numpy()
                    assert np.array_equal(array[:whole], expected[f"observables/{name}"][:whole])
                    assert np.isnan(array[whole:]).all()
                assert tree.attrs["status"] == "0 of 1 runs are complete"
                seen.append(whole)
            return super().step(time, loss, checkpoint)

    descend(Looking(folder, 0), points)
    assert set(seen) == {0, CHUNK, 2 * CHUNK}


def test_a_checkpoint_now_and_then_never_runs_ahead_of_the_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = 300
    folder = make_folder(tmp_path / "run", points)
    kept: list[int] = []

    class Checking(ZarrSink):
        def keep(self, checkpoint: Any) -> None:
            super().keep(checkpoint)
            saved = load_checkpoint(folder.checkpoint_path(0))
            assert saved is not None
            done = saved.values["cursors"][0]
            x = zarr.open_array(folder.store / "observables" / "x", mode="r")[0]
            assert not np.isnan(x[:done]).any()
            assert folder.state(0)["recorded"]["step"] == done
            kept.append(done)

    ticks = iter(range(10**6))
    monkeypatch.setattr("attnscope.trajectory.store.clock.monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr("attnscope.trajectory.pace.SHARE", 0)
    descend(Checking(folder, 0, every=20.0), points)
    assert len(kept) > 10
    assert kept == sorted(set(kept))


def test_checkpoints_that_take_long_are_kept_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder(tmp_path / "run", 300)
    now = [0.0]

    class Slow(ZarrSink):
        kept_times: ClassVar[list[float]] = []

        def step(self, *arguments: Any) -> bool:
            now[0] += 1.0
            return super().step(*arguments)

        def keep(self, checkpoint: Any) -> None:
            super().keep(checkpoint)
            self.kept_times.append(now[0])
            now[0] += 2.0

    monkeypatch.setattr("attnscope.trajectory.store.clock.monotonic", lambda: now[0])
    descend(Slow(folder, 0, every=3.0), 300)
    first, *others = Slow.kept_times
    assert first == 4.0
    assert np.diff(others).min() >= 2.0 * SHARE


def test_progress_is_told_where_the_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder(tmp_path / "run", 5)
    ticks = iter(range(10**6))
    monkeypatch.setattr("attnscope.trajectory.store.clock.monotonic", lambda: float(next(ticks)))
    told: list[float] = []
    descend(ZarrSink(folder, 0, every=1e9, progress=told.append), 5)
    assert told == pytest.approx(np.arange(STEPS) * 0.01)


def create(path: Path, *observables: Observable, **options: Any) -> Any:
    """Create a store of readings off a :class:`Point`; return its group of observables."""
    folder, record = RunFolder(path), Record(observables, Linear(2))
    create_store(folder, Point(), [record], runs=1, until=1.0, grid=None, attrs={}, **options)
    return zarr.open_group(folder.store, mode="r")["observables"]


def where(name: str, *dims: str, size: int = 3, **coords: Any) -> Observable:
    return Observable(name, lambda m: m.get_parameter("x")[:size], dims, coords=coords)


def test_dims_that_do_not_fit_the_reading_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"'x' has dims \('row', 'column'\).*shape \(3,\)"):
        create(tmp_path, where("x", "row", "column"))


def test_labels_are_the_observables_own_or_else_the_studys(tmp_path: Path) -> None:
    words = np.array(["good", "bad", "ugly"])
    group = create(
        tmp_path,
        where("own", "axis", axis=(np.int64(1), 2, 3)),
        where("theirs", "word"),
        where("none", "other"),
        labels={"word": words, "axis": ["a", "b", "c"], "nowhere": [1]},
    )
    assert group["own"].attrs["labels"] == {"axis": [1, 2, 3]}
    assert group["theirs"].attrs["labels"] == {"word": ["good", "bad", "ugly"]}
    assert "labels" not in group["none"].attrs


@pytest.mark.parametrize("given", [{"labels": {"word": ["one"]}}, {}])
def test_labels_that_do_not_fit_the_axis_are_refused(tmp_path: Path, given: Any) -> None:
    own = {} if given else {"word": ("one",)}
    sentence = r"'x' has dims \('word',\) .*shape \(3,\), and 1 labels for 'word'"
    with pytest.raises(AttnscopeError, match=sentence):
        create(tmp_path, where("x", "word", **own), **given)


@pytest.mark.parametrize("other", [{"size": 2}, {"word": (1, 2, 4)}])
def test_two_kinds_of_one_axis_are_refused_before_the_run(tmp_path: Path, other: Any) -> None:
    with pytest.raises(AttnscopeError, match=r"'y' has dims \('word',\).*another observable has"):
        create(tmp_path, where("x", "word", word=(1, 2, 3)), where("y", "word", **other))


def test_chunks_are_those_of_zarr(tmp_path: Path) -> None:
    """A run that zarr itself wrote, as older versions had it do, goes on like any other."""
    points = 300
    folder = make_folder(tmp_path / "run", points)
    sink = interrupted_sink(folder, 200)
    sink.finish(descend(sink, points))
    for path in folder.store.glob("*/*/zarr.json"):
        array: Any = zarr.open_array(path.parent, mode="r+")
        array[:] = array[:]
    last = ZarrSink(folder, 0)
    last.finish(descend(last, points, resume=load_checkpoint(folder.checkpoint_path(0))))
    assert_run_is(open_run(folder.path), 0, in_memory(points))


def test_every_array_says_what_it_is(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "run", 7)
    group = zarr.open_group(folder.store, mode="r")
    assert group.metadata.zarr_format == 3
    loss: Any = group["observables/loss"]
    assert loss.attrs["unit"] == "nats"
    assert loss.attrs["meaning"] == "½ Σ c x²"
    assert loss.metadata.dimension_names == ("run", "step")
    single: Any = group["observables/single"]
    assert single.metadata.dimension_names == ("run", "step", "i", "j")
    assert single.dtype == np.float32
    assert {o.name for r in records(7) for o in r.observables if r.group == "observables"} <= set(
        group["observables"].array_keys()  # type: ignore[union-attr]
    )
