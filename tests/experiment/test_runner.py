"""A run is the same whoever does it, however often it stops, and breaks with a sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.experiment import runner
from attnscope.studies.lu2021 import Sen
from attnscope.trajectory import RunFolder, open_run
from toy_study import Bowl

pytestmark = pytest.mark.xdist_group("runner")  # one fixture for all

SEN = {"dictionary": 60, "train": 40, "test": 20, "m": 4, "points": 151}


def assert_same(ours: xr.DataTree, theirs: xr.DataTree, theory: bool = True) -> None:
    """Compare everything that was read, and what theory says of it, bit for bit."""
    groups = ["observables", "data", *(["theory"] if theory else [])]
    for group in groups:
        assert set(ours[group].data_vars) == set(theirs[group].data_vars)
        for name in ours[group].variables:
            a, b = ours[group][name].to_numpy(), theirs[group][name].to_numpy()
            assert a.dtype == b.dtype
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{group}/{name}"
    for name in ("steps", "loss", "time", "evaluations", "outcome"):
        assert np.array_equal(ours[f"stats/{name}"], theirs[f"stats/{name}"]), name


@pytest.fixture(scope="module", params=["flow", "descent"])
def reference(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Sen, xr.DataTree]:
    study = Sen().but(seeds=1, epochs=300, engine=request.param, **SEN)
    return study, attnscope.run(study, tmp_path_factory.mktemp("ref") / "run", workers=1)


def stop_after(monkeypatch: pytest.MonkeyPatch, questions: int) -> None:
    """Let Ctrl-C come when the engines have asked so many times."""

    class Countdown:
        left = questions
        signal = 2

        def is_set(self) -> bool:
            self.left -= 1
            return self.left < 0

    @contextlib.contextmanager
    def countdown() -> Iterator[Countdown]:
        yield Countdown()

    monkeypatch.setattr(runner, "stopping", countdown)


def test_interruptions_leave_no_trace(
    reference: tuple[Sen, xr.DataTree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, expected = reference
    steps = int(expected["stats/steps"].sum())
    rounds = 0
    for share in (0.0, 0.1, 0.3, 0.45, 1.0):
        with monkeypatch.context() as patch:
            stop_after(patch, round(share * steps) if share < 1 else 10**9)
            if share == 1:
                tree = attnscope.run(study, tmp_path / "run", workers=1, resume=True)
                break
            with pytest.raises(runner.Interrupted, match=r"of 4 runs are complete.*--resume"):
                attnscope.run(study, tmp_path / "run", workers=1, resume=rounds > 0)
            rounds += 1
        half = open_run(tmp_path / "run")
        loss, whole = (t["observables/loss"].to_numpy() for t in (half, expected))
        known = ~np.isnan(loss)
        assert np.array_equal(loss[known], whole[known])
        assert not known.all()
        # What is known is a beginning: no gap, and run after run.
        flat = known.reshape(-1)
        ends = np.flatnonzero(np.diff(flat.astype(int)))
        assert len(ends) <= 1
    assert rounds == 4
    assert_same(tree, expected)


def test_processes_side_by_side_change_nothing(tmp_path: Path) -> None:
    study = Sen().but(seeds=1, epochs=300, **SEN)
    expected = attnscope.run(study, tmp_path / "one", workers=1)
    heard: dict[int, list[float]] = {}

    def listen(run: int, fraction: float) -> None:
        heard.setdefault(run, []).append(fraction)

    tree = attnscope.run(study, tmp_path / "two", workers=2, listener=listen)
    assert_same(tree, expected)
    assert sorted(heard) == [0, 1, 2, 3]
    assert all(fractions[-1] == 1.0 for fractions in heard.values())
    assert all(fractions == sorted(fractions) for fractions in heard.values())


def test_runs_that_are_there_are_told_before_others_begin(tmp_path: Path) -> None:
    study = Bowl().but(engine="descent", seeds=2)
    heard: list[tuple[int, float]] = []

    def stop_at_two(run: int, fraction: float) -> None:
        if run == 2:
            raise KeyboardInterrupt

    with pytest.raises(runner.Interrupted, match="2 of 4 runs are complete"):
        attnscope.run(study, tmp_path / "run", workers=1, listener=stop_at_two)
    attnscope.run(
        study,
        tmp_path / "run",
        workers=1,
        resume=True,
        listener=lambda run, fraction: heard.append((run, fraction)),
    )
    assert heard[:3] == [(0, 1.0), (1, 1.0), (2, 0.0)]
    assert heard[-1] == (3, 1.0)


def test_theory_is_written_and_findings_count_seeds(tmp_path: Path) -> None:
    study = Bowl().but(engine="descent", seeds=3)
    tree = attnscope.run(study, tmp_path / "run", workers=1)
    assert tree["theory/x"].dims == ("run", "step", "coordinate")
    assert tree["theory/x"]["case"].to_numpy().tolist() == ["steep", "flat"] * 3
    assert tree["theory/x"]["seed"].to_numpy().tolist() == [0, 0, 1, 1, 2, 2]
    again = open_run(tmp_path / "run")
    assert np.array_equal(again["theory/x"], tree["theory/x"])
    # Gradient descent is x₀ (1 - c lr)^k exactly.
    x = tree["observables/x"].isel(run=1)
    power = (1 - 0.25 * 0.1) ** x["epoch"].to_numpy()
    assert np.allclose(x, power[:, None] * np.array([1.0, -2.0]), rtol=1e-12)
    (finding,) = attnscope.findings(tree)
    assert (finding.key, finding.verdict, finding.seeds) == ("decay", "holds", 3)
    assert finding.control_fails
    assert tree.attrs["status"] == "finished: all 6 runs are complete"


def test_a_diverging_run_is_broken_with_case_seed_step_and_loss(tmp_path: Path) -> None:
    study = Bowl().but(engine="descent", lr=3.0, seeds=1)  # steep: |1 - 3| = 2 a step; flat: 1/4
    with pytest.raises(runner.Broken) as caught:
        attnscope.run(study, tmp_path / "run", workers=1)
    message = str(caught.value)
    assert message.startswith("1 of 2 runs broke down; the first: steep, seed 0: diverged at step")
    assert "the loss was" in message
    assert "lr = 3" in message
    assert f"kept in {tmp_path / 'run'}" in message
    tree = open_run(tmp_path / "run")
    assert tree["stats/outcome"].to_numpy().tolist() == ["diverged", "finished"]
    assert "steep, seed 0: diverged" in tree.attrs["status"]
    x = tree["observables/x"].isel(run=0, coordinate=0)
    assert x.to_numpy()[:2].tolist() == [1.0, 2.0**10]
    # The loss is 2.5 · 4^k and counts as diverged from 2.5 · 10^8, so k is 14.
    assert "at step 14 " in message
    assert "theory" not in tree.children


def test_a_diverged_run_is_not_complete_and_diverges_again(tmp_path: Path) -> None:
    study = Bowl().but(engine="descent", lr=3.0, seeds=1)
    with pytest.raises(runner.Broken) as first:
        attnscope.run(study, tmp_path / "run", workers=1)
    with pytest.raises(runner.Broken) as second:
        attnscope.run(study, tmp_path / "run", workers=1, resume=True)
    assert str(first.value) == str(second.value)


def test_an_error_in_a_study_passes_through_and_the_rest_is_kept(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="seed 1 is not to be"):
        attnscope.run(Bowl().but(fault="sentence"), tmp_path / "run", workers=1)
    folder = RunFolder(tmp_path / "run")
    assert [folder.state(i).get("outcome") for i in range(4)] == ["finished"] * 2 + [None] * 2
    assert folder.manifest()["status"] == "2 of 4 runs are complete"


@pytest.mark.parametrize("workers", [0, -3])
def test_at_least_one_worker(tmp_path: Path, workers: int) -> None:
    with pytest.raises(AttnscopeError, match=f"workers = {workers}: expected 1 or more"):
        attnscope.run(Bowl(), tmp_path / "run", workers=workers)
    assert list(tmp_path.iterdir()) == []


def test_threads_of_torch_are_left_as_they_were(tmp_path: Path) -> None:
    import signal

    import torch

    threads, handler = torch.get_num_threads(), signal.getsignal(signal.SIGINT)
    torch.set_num_threads(2)
    try:
        attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
        assert torch.get_num_threads() == 2
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        torch.set_num_threads(threads)
