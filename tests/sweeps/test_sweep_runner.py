"""A sweep in its folder: half-way, after a kill, with more values, with more seeds."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sweep_toys import Hill

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.sweeps import SweepFolder
from attnscope.sweeps import runner as runners
from attnscope.sweeps.check import check_sweep, repair_sweep
from attnscope.trajectory import Busy, Lock
from toy_study import Bowl


class Heard:
    """Which points were done, in their order."""

    def __init__(self) -> None:
        self.points: list[dict[str, Any]] = []

    def __call__(self, done: float, total: int, complete: int, row: Any) -> None:
        if row:
            self.points.append(row["values"])


def swept(over: Any, out: Path, study: Any = None, **more: Any) -> xr.DataTree:
    return attnscope.sweep(study or Hill(), over, out, **{"workers": 1, **more})


def test_one_tree_has_the_swept_fields_as_dimensions(tmp_path: Path) -> None:
    tree = swept({"a": [0.0, 0.4, 0.8], "b": [0.0, 0.5]}, tmp_path / "s")
    found = tree["findings"].to_dataset().sel(claim="low")
    assert dict(tree.sizes) == {"a": 3, "b": 2}
    np.testing.assert_allclose(found.ours, [[0.0, 0.25], [0.4, 0.65], [0.8, 1.05]])
    assert found.verdict.sel(a=0.4).values.tolist() == ["holds", "fails"]
    assert (found.control_fails == 1).all()
    np.testing.assert_allclose(tree["final"].height.mean(("case", "seed")), found.ours)
    np.testing.assert_allclose(tree["observables"].height.isel(run=1, step=0), found.ours)
    point = attnscope.open_point(tree, a=0.8, b=0.5)
    assert float(point["observables"].height[0, 0]) == pytest.approx(1.05)
    assert json.loads(point.attrs["spec"])["a"] == 0.8
    assert tree.attrs["status"] == "finished: 6 points"
    assert check_sweep(tmp_path / "s").whole


def test_processes_and_this_process_come_to_the_same(tmp_path: Path) -> None:
    over = {"lr": [0.1, 0.2], "epochs": [20, 40]}
    one = swept(over, tmp_path / "one", Bowl(points=3))
    two = swept(over, tmp_path / "two", Bowl(points=3), workers=2)
    for group in ("findings", "final", "observables", "theory", "data"):
        xr.testing.assert_identical(one[group].to_dataset(), two[group].to_dataset())


def test_more_values_and_more_seeds_do_only_what_is_new(tmp_path: Path) -> None:
    swept({"a": [0.0, 0.4]}, tmp_path / "s")
    heard = Heard()
    tree = swept({"a": [0.4, 0.2]}, tmp_path / "s", listener=heard)
    assert heard.points == [{"a": 0.2}]
    assert tree["findings"].a.values.tolist() == [0.0, 0.2, 0.4]
    assert (tree["findings"].verdict == "holds").all()
    heard = Heard()
    tree = swept({"a": [0.0, 0.2]}, tmp_path / "s", Hill(seeds=3), listener=heard)
    assert heard.points == [{"a": 0.0}, {"a": 0.2}]
    assert tree["findings"].seeds.values.ravel().tolist() == [3.0, 3.0, 2.0]
    assert tree["observables"].sizes["run"] == 3
    assert np.isnan(tree["observables"].height.sel(a=0.4).isel(run=2)).all()
    heard = Heard()
    swept({"a": [0.0, 0.2, 0.4]}, tmp_path / "s", listener=heard)
    assert heard.points == []


def test_fields_in_step_are_one_dimension(tmp_path: Path) -> None:
    tree = swept({("a", "b"): [(0.1, 0.5), (0.2, 0.6)]}, tmp_path / "s")
    assert dict(tree.sizes) == {"a": 2}
    assert tree["b"].dims == ("a",)
    np.testing.assert_allclose(tree["findings"].ours[:, 0], [0.35, 0.56])


def test_readings_of_other_shapes_are_left_to_their_points(tmp_path: Path) -> None:
    tree = swept({"n": [1, 3]}, tmp_path / "s")
    assert tree.attrs["by_point"] == ["observables/words"]
    assert "height" in tree["observables"]
    assert attnscope.open_point(tree, n=3)["observables"].words.sizes["word"] == 3


def test_a_point_that_diverges_has_its_cell_and_the_sweep_goes_on(tmp_path: Path) -> None:
    study = Bowl(engine="descent", epochs=40, points=3)
    tree = swept({"lr": [0.1, 1e9, 0.2]}, tmp_path / "s", study)
    assert tree["outcome"].values.tolist() == ["finished", "finished", "diverged"]
    assert tree["findings"].verdict.values.ravel().tolist() == ["holds", "holds", ""]
    assert tree.attrs["status"] == "finished: 3 points; 1 diverged"
    assert np.isfinite(tree["observables"].loss.isel(lr=2, step=0)).all()


def test_a_point_that_cannot_be_done_is_said_and_tried_again(tmp_path: Path) -> None:
    over = {"a": [0.1, 11.0, 0.2]}
    with pytest.raises(AttnscopeError, match=r"1 of 3 points could not be done; .*a = 11.*not to"):
        swept(over, tmp_path / "s")
    tree = attnscope.open_sweep(tmp_path / "s")
    assert tree["outcome"].values.tolist() == ["finished", "finished", "failed"]
    with pytest.raises(AttnscopeError, match="could not be done: a = 11"):
        attnscope.open_point(tree, a=11.0)
    heard = Heard()
    with pytest.raises(AttnscopeError, match="1 of 3"):
        swept(over, tmp_path / "s", listener=heard)
    assert heard.points == []


def test_a_point_that_takes_its_process_along_is_said_and_the_others_are_done(
    tmp_path: Path,
) -> None:
    over = {"a": [0.0, 3.0, 0.2, 4.0, 0.4]}
    with pytest.raises(AttnscopeError) as caught:
        swept(over, tmp_path / "s", Hill(deadly=1.0), workers=2)
    assert re.match(
        r"2 of 5 points could not be done; the first, a = [34]: it took its process with it "
        r"\(exit code -9: the system ended it, as it does when memory runs out\)\. The others are "
        r"kept in .*; the same command tries again\.",
        str(caught.value),
    )
    rows = {row["values"]["a"]: row for row in SweepFolder(tmp_path / "s").rows()}
    assert {a: row["outcome"] for a, row in rows.items()} == {
        **dict.fromkeys((0.0, 0.2, 0.4), "finished"),
        **dict.fromkeys((3.0, 4.0), "failed"),
    }
    assert "memory runs out" in rows[3.0]["status"]


def test_a_study_that_raises_at_every_point_is_given_up(tmp_path: Path) -> None:
    over = {"a": [float(a) for a in range(10, 30)]}
    with pytest.raises(AttnscopeError, match="the first 5 points could not be done"):
        swept(over, tmp_path / "s")
    assert len(SweepFolder(tmp_path / "s").rows()) == 5


@pytest.mark.parametrize(
    ("study", "over", "told"),
    [
        (Hill(noise=1.0), {"a": [0.1]}, "noise = 0.0 there, 1.0 here"),
        (Hill(), {"b": [0.1]}, "holds a sweep over a, this one is over b"),
        (Bowl(), {"lr": [0.1]}, "holds a sweep over a, this one is over lr"),
    ],
)
def test_another_sweep_in_the_folder_is_left_alone(
    study: Any, over: Any, told: str, tmp_path: Path
) -> None:
    swept({"a": [0.0]}, tmp_path / "s")
    before = (tmp_path / "s" / "points.jsonl").read_bytes()
    with pytest.raises(AttnscopeError, match=told):
        swept(over, tmp_path / "s", study)
    assert (tmp_path / "s" / "points.jsonl").read_bytes() == before


def test_a_changed_study_does_not_go_on_with_an_old_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept({"a": [0.0]}, tmp_path / "s")
    monkeypatch.setattr(runners, "source_of", lambda study: "another")
    with pytest.raises(AttnscopeError, match="has changed since the sweep in"):
        swept({"a": [0.0, 0.1]}, tmp_path / "s")
    tree = swept({"a": [0.1]}, tmp_path / "s", overwrite=True)
    assert tree["findings"].a.values.tolist() == [0.1]


def test_two_sweeps_into_one_folder_and_what_is_no_sweep_are_refused(tmp_path: Path) -> None:
    swept({"a": [0.0]}, tmp_path / "s")
    with Lock(tmp_path / "s", "another sweep"), pytest.raises(Busy, match="another sweep"):
        swept({"a": [0.1]}, tmp_path / "s")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("mine")
    with pytest.raises(AttnscopeError, match="is not a sweep: expected an empty or a new folder"):
        swept({"a": [0.0]}, tmp_path / "notes")
    (tmp_path / "s" / "thesis.txt").write_text("mine")
    with pytest.raises(AttnscopeError, match=r"holds 'thesis\.txt'"):
        swept({"a": [0.1]}, tmp_path / "s", overwrite=True)
    assert (tmp_path / "s" / "thesis.txt").read_text() == "mine"


def test_damage_is_found_and_only_that_point_is_done_anew(tmp_path: Path) -> None:
    path = tmp_path / "s"
    swept({"a": [0.0, 0.1, 0.2]}, path)
    file = SweepFolder(path).point_path(1)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 255
    file.write_bytes(data)
    health = check_sweep(path)
    assert [damage.path for damage in health.damage] == [file]
    assert any("1 points taken out" in told for told in repair_sweep(path))
    assert check_sweep(path).whole
    heard = Heard()
    swept({"a": [0.0, 0.1, 0.2]}, path, listener=heard)
    assert heard.points == [{"a": 0.1}]


def test_half_a_row_that_a_kill_left_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "s"
    swept({"a": [0.0, 0.1]}, path)
    table = path / "points.jsonl"
    whole = table.read_bytes()
    table.write_bytes(whole[:-40])
    assert len(SweepFolder(path).rows()) == 1
    assert attnscope.open_sweep(path)["outcome"].values.tolist() == ["finished", "not there"]
    tree = swept({"a": [0.0, 0.1]}, path)
    assert tree["outcome"].values.tolist() == ["finished", "finished"]
    table.write_bytes(b"x" + table.read_bytes()[1:])
    assert not check_sweep(path).whole


SCRIPT = """
import sys
sys.path[:0] = {path!r}
import attnscope
from toy_study import Bowl
attnscope.sweep(Bowl(engine="descent", epochs=1500, points=5), {{"lr": [0.01, 0.02, 0.03, 0.04]}},
                sys.argv[1], workers=2)
"""


def test_a_sweep_that_is_killed_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    study = Bowl(engine="descent", epochs=1500, points=5)
    over = {"lr": [0.01, 0.02, 0.03, 0.04]}
    path = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
    program = [sys.executable, "-c", SCRIPT.format(path=path), str(tmp_path / "s")]
    process = subprocess.Popen(program, start_new_session=True)
    table = tmp_path / "s" / "points.jsonl"
    for _ in range(3000):
        if table.exists() or process.poll() is not None:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(SweepFolder(tmp_path / "s").rows())
    heard = Heard()
    tree = swept(over, tmp_path / "s", study, listener=heard)
    assert len(heard.points) == 4 - done
    assert check_sweep(tmp_path / "s").whole
    shutil.rmtree(tmp_path / "other", ignore_errors=True)
    other = swept(over, tmp_path / "other", study)
    for group in ("findings", "final", "observables", "theory", "data"):
        xr.testing.assert_identical(tree[group].to_dataset(), other[group].to_dataset())


def test_what_there_is_not_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="is not a sweep: no such folder"):
        attnscope.open_sweep(tmp_path / "none")
    tree = swept({"a": [0.0, 0.1]}, tmp_path / "s")
    with pytest.raises(AttnscopeError, match=r"there is no point with a = 0\.7"):
        attnscope.open_point(tree, a=0.7)
    with pytest.raises(AttnscopeError, match="2 points have no values given"):
        attnscope.open_point(tree)
    with pytest.raises(AttnscopeError, match="'b' is not swept"):
        attnscope.open_point(tree, b=0.7)
    with pytest.raises(AttnscopeError, match="workers = 0"):
        swept({"a": [0.0]}, tmp_path / "s", workers=0)
