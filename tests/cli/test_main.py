"""The front door: help at once, names that are nearly right, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import attnscope
from attnscope import cli
from attnscope.cli import VERBS, main

Capture = pytest.CaptureFixture[str]
SCRIPT = Path(sys.executable).with_name("attnscope")


def test_without_a_word_it_says_what_there_is_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    out = capsys.readouterr().out
    for door in ("attnscope.watch(model", "attnscope new mine.py", "attnscope lab"):
        assert door in out
    (tmp_path / "runs/mine-1").mkdir(parents=True)
    (tmp_path / "runs/mine-1/run.json").write_text("{}")
    assert main([]) == 0
    assert "1 run in runs; the newest: attnscope show runs/mine-1" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_help(words: list[str], capsys: Capture) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: attnscope COMMAND")
    assert all(f"  {verb} " in out for verb in VERBS)


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, capsys: Capture) -> None:
    assert main([flag]) == 0
    assert capsys.readouterr().out == f"attnscope {attnscope.__version__}\n"


def test_an_unknown_command(capsys: Capture) -> None:
    assert main(["lsit"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "attnscope: there is no command 'lsit'. Did you mean 'list'? "
        f"Expected one of: {', '.join(VERBS)}.\n"
    )


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_command(verb: str, capsys: Capture) -> None:
    assert main([verb, "--help"]) == 0
    assert f"usage: attnscope {verb}" in capsys.readouterr().out


def test_a_command_with_a_word_too_many(capsys: Capture) -> None:
    assert main(["list", "lu2021", "everything"]) == 2
    assert capsys.readouterr().err.startswith(
        "attnscope: `attnscope list`: 'everything' is a word too many."
    )


def test_list(capsys: Capture) -> None:
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for name in ("capacity", "cnn", "query", "sen", "synergy"):
        assert f"lu2021.{name} " in out


def test_list_of_a_paper_and_as_json(capsys: Capture) -> None:
    assert main(["list", "song2024", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {each["paper"] for each in told} == {"song2024"}
    assert all(each["summary"] for each in told)
    assert main(["list", "song2042"]) == 2
    assert "no studies of 'song2042'. Did you mean 'song2024'?" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--help"], ["list"], ["run", "--help"], ["lsit"]])
def test_nothing_heavy_is_imported_to_answer(words: list[str]) -> None:
    code = (
        "import sys\nfrom attnscope.cli import main\n"
        f"main({words!r})\n"
        "heavy = ('torch', 'numpy', 'xarray', 'zarr', 'scipy', 'tyro', 'bokeh')\n"
        "print('HEAVY', [m for m in heavy if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_ctrl_c_anywhere_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("attnscope.cli._dispatch", interrupt)
    assert main(["list"]) == 130
    assert capsys.readouterr().err == "attnscope: interrupted. What was written is kept.\n"


def test_the_console_script() -> None:
    if not SCRIPT.exists():
        pytest.skip("attnscope is not installed beside this Python")
    done = subprocess.run(
        [SCRIPT, "run", "lu2021.senn"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "Did you mean 'lu2021.sen'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "attnscope.cli", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_warning_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warns(_: list[str]) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            for _ in range(3):
                warnings.warn("no topic structure to learn", stacklevel=1)
        return 0

    monkeypatch.setattr(cli, "_dispatch", warns)
    before = warnings.showwarning
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().err == "attnscope: warning: no topic structure to learn\n"
    assert warnings.showwarning is before


def test_the_package_runs_as_a_module() -> None:
    code = [sys.executable, "-m", "attnscope", "--version"]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"attnscope {attnscope.__version__}\n")
    assert done.stderr == ""
