"""A diagnosis that begins is said in the console."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

import attnscope
from attnscope.watched import announcing
from attnscope.watched.announcing import Announcer, watch


def diverged(path: Path) -> None:
    with attnscope.watching.watch(nn.Linear(2, 2), path, [], attention=lambda _: []) as scope:
        for step in range(60):
            scope.step(1.0 if step < 30 else 2.0**step)


def test_what_has_begun_is_said_once(tmp_path: Path) -> None:
    diverged(tmp_path / "run")
    said: list[str] = []
    announcer = Announcer(tmp_path / "run", said.append)
    announcer.look()
    first = list(said)
    announcer.look()
    assert said == first
    assert len(first) >= 1
    assert all(line.startswith("attnscope: since step ") for line in first)


def test_a_look_is_taken_beside_the_training_and_never_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcing, "APART", 0.0)
    looks: list[Path] = []
    monkeypatch.setattr(Announcer, "look", lambda self: looks.append(self.folder))
    model = nn.Linear(2, 2)
    record = ["block_gradient_norm"]
    scope = watch(model, tmp_path / "run", record, every=1, attention=lambda _: [])
    (announcer,) = scope._loggers
    assert isinstance(announcer, Announcer)
    assert announcer.thread is not None
    announcer.thread.join()
    scope.close()
    assert looks == [tmp_path / "run"]


def test_it_is_watched_as_without(tmp_path: Path) -> None:
    assert watch.__doc__ == attnscope.watching.watch.__doc__
    scope = watch(nn.Linear(2, 2), tmp_path / "run", [], attention=lambda _: [], begin=False)
    assert not scope.recording
