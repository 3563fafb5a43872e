"""Narrow terminals, homes that cannot be written to, terminals without Unicode: sentences each."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnscope import needs
from attnscope.cli import main
from attnscope.cli.verbs import VERBS
from attnscope.errors import AttnscopeError
from attnscope.notebook import progress_bar


@pytest.mark.parametrize("columns", ["20", "1", "0", "-3", "wide"])
def test_a_narrow_terminal(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for words in ([], ["list"], ["--help"], ["data"], ["models"], *([v, "--help"] for v in VERBS)):
        assert main(words) == 0, words
        assert capsys.readouterr().out.strip()


def call(words: str, folder: Path, **places: str) -> subprocess.CompletedProcess[str]:
    """Call the command line in a process of its own, with another environment."""
    return subprocess.run(
        [sys.executable, "-m", "attnscope", *words.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **places},
        errors="replace",
    )


@pytest.mark.parametrize("words", ["list", "data", "new mine.py"])
def test_a_home_that_cannot_be_written_to(words: str, tmp_path: Path) -> None:
    done = call(words, tmp_path, HOME="/dev/null/nobody", XDG_CACHE_HOME="/dev/null/cache")
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    call("new mine.py", tmp_path, HOME="/dev/null/nobody")
    done = call("run mine.py --out /dev/null/run", tmp_path, HOME="/dev/null/nobody")
    assert done.returncode == 2
    assert done.stderr.startswith("attnscope: '/dev/null/run' cannot be made")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["", "list", "run lu2021.senn", "data"])
def test_a_terminal_without_unicode(words: str, tmp_path: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "COLUMNS": "20"}
    done = call(words, tmp_path, HOME=str(tmp_path), **plain)
    assert done.returncode == (2 if "senn" in words else 0), done.stderr
    assert "Traceback" not in done.stderr
    assert "senn" not in words or "Did you mean 'lu2021.sen'?" in done.stderr


def test_no_notebook_frontend(monkeypatch: pytest.MonkeyPatch) -> None:
    before = builtins.__import__

    def without(name: str, *rest, **more):
        if name.startswith("IPython"):
            raise ImportError(name)
        return before(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with (
        pytest.raises(AttnscopeError, match=r"IPython is not installed.*attnscope\[notebook\]"),
        progress_bar("mine", 2),
    ):
        pass


def test_what_is_missing_and_of_no_extra_stays_an_error() -> None:
    assert needs.missing(ModuleNotFoundError("no", name="mine_own")) is None
    assert needs.missing(ModuleNotFoundError("no")) is None
    said = needs.missing(ModuleNotFoundError("no", name="bokeh.plotting"))
    assert str(said).startswith("Bokeh is not installed")
