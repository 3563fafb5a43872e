"""A sweep in numbered parts: planned, done apart, put together, from the command line too."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import xarray as xr

import attnscope
from attnscope.cli import main
from attnscope.errors import AttnscopeError
from attnscope.studies.song2024 import RegressionRun
from attnscope.sweeps import shards
from attnscope.sweeps.check import check_sweep

STUDY = RegressionRun(until=0.5, points=4)
OVER = {"width": [2, 4, 8], ("sequences", "length"): [(1, 2), (2, 3)]}
SIZES = ["--until", "0.5", "--points", "4"]
FLAGS = [*SIZES, "--over", "width=2,4,8", "--zip", "sequences=1,2", "length=2,3"]


def test_parts_come_together_to_the_sweep_that_was_planned(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    assert shards.plan(STUDY, OVER, path).count == 6
    shards.shard(path, (1, 4))
    found = shards.gather(path)
    assert (found.there, found.new, len(found.missing)) == (2, 2, 4)
    for part in (2, 3, 4):
        shards.shard(path, (part, 4))
    found = shards.gather(path)
    assert (found.there, found.new, found.missing) == (6, 4, ())
    whole = attnscope.sweep(STUDY, OVER, tmp_path / "whole", workers=1)
    for group in ("findings", "final", "observables", "data"):
        xr.testing.assert_identical(found.tree[group].to_dataset(), whole[group].to_dataset())
    assert check_sweep(path).whole
    assert shards.gather(path).new == 0


@pytest.mark.parametrize("text", ["3", "0/4", "5/4", "a/b", "1/0"])
def test_what_is_no_part_is_a_sentence(text: str) -> None:
    with pytest.raises(AttnscopeError, match="expected a part of several"):
        shards.part_of(text)


def test_a_study_of_ones_own_has_to_be_named(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    assert main(["new", str(file)]) == 0
    out = str(tmp_path / "plan")
    assert main(["sweep", str(file), "--over", "seeds=1,2", "--plan", out, "--epochs", "20"]) == 0
    own = ["--study", str(file), "--workers", "1"]
    assert main(["sweep", out, "--shard", "1/1", *own]) == 0
    assert main(["sweep", out, "--gather", *own]) == 0
    assert attnscope.open_sweep(out).attrs["status"] == "finished: 2 points"


def test_the_device_reaches_a_sweep_and_its_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []

    def find(name: str) -> torch.device:
        asked.append(name)
        return torch.device("cpu")

    monkeypatch.setattr("attnscope.engines.device.find", find)
    words = ["sweep", "song2024.regression", *SIZES, "--over", "width=2,4", "--no-report"]
    assert main([*words, "--workers", "1", "--device", "cuda", "--out", "s"]) == 0
    # Once before anything starts, and once for every run.
    assert asked
    assert set(asked) == {"cuda"}
    assert main([*words, "--plan", "p"]) == 0
    asked.clear()
    assert main(["sweep", "p", "--shard", "1/2", "--device", "cuda"]) == 0
    assert asked
    assert set(asked) == {"cuda"}
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main(["sweep", "p", "--shard", "2/2", "--device", "tpu"]) == 2
    assert "device = 'tpu': expected 'cpu'" in capsys.readouterr().err


def test_the_command_line_says_what_there_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "song2024.regression", *FLAGS, "--workers", "1", "--out", "s"]
    assert main([*words, "--no-report"]) == 0
    assert "finished: 6 points" in capsys.readouterr().out
    assert main(["show", "s"]) == 0
    told = capsys.readouterr().out
    assert "over width: 2, 4, 8" in told
    assert "over sequences/length: 1/2, 2/3" in told
    assert main(["check", "s"]) == 0
    assert "whole, a sweep of 6 points" in capsys.readouterr().out
    assert main(["report", "s"]) == 0
    assert (tmp_path / "s" / "report.html").is_file()
    (tmp_path / "s" / "points" / "00000.zip").write_bytes(b"no")
    assert main(["check", "s"]) == 1
    assert main(["check", "s", "--repair"]) == 0
    capsys.readouterr()
    assert main(["sweep", "s", "-q", "--workers", "1"]) == 0
    assert main(["sweep", "s", "--width", "3"]) == 2
    assert "has no flag '--width'" in capsys.readouterr().err
    assert main([*words, "--gather"]) == 2
    assert "expected the folder that --plan wrote" in capsys.readouterr().err
    assert main(["sweep", "song2024.regression", "--over", "widht=2"]) == 2
    assert "Did you mean 'width'?" in capsys.readouterr().err
    assert main(["sweep", "song2024.regression"]) == 2
    assert "nothing is swept" in capsys.readouterr().err
    assert main(["sweep", "song2024.regression", "--over", "width=1:99999:99999"]) == 2
    assert "--max-points" in capsys.readouterr().err
