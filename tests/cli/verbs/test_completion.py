"""What a shell completes, asked as its script asks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attnscope.cli import main
from attnscope.cli.verbs import VERBS
from attnscope.cli.verbs.completion import complete


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", list(VERBS)),
        ("ch", ["checkpoints", "check"]),
        ("run lu2021.se", ["lu2021.sen"]),
        ("run lu2021.sen --scale q", ["quick"]),
        ("run lu2021.sen --sc", ["--scale"]),
        ("run lu2021.sen --words", ["--words-per-topic"]),
        ("claims lu", ["lu2021"]),
        ("data get ss", ["sst2", "sst5"]),
        ("models get mini", ["minilm"]),
        ("topics corpus --kind wiki", ["wikitext", "wikipedia"]),
        ("show ", []),
        ("nothing x", []),
    ],
)
def test_words(typed: str, found: list[str]) -> None:
    completed = complete(typed.split(" "))
    assert completed if typed == "" else completed == found
    assert set(found) <= set(completed)


def test_a_flag_that_is_said_is_not_offered_again() -> None:
    offered = complete(["claims", "--json", "--"])
    assert "--strict" in offered
    assert "--json" not in offered


def test_the_script_works_in_bash(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    (tmp_path / "attnscope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m attnscope "$@"\n')
    (tmp_path / "attnscope").chmod(0o755)
    line = (
        f'PATH="{tmp_path}:$PATH"; eval "$(attnscope completion bash)"; '
        "COMP_WORDS=(attnscope run song2024.re); COMP_CWORD=2; _attnscope; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.stdout == "song2024.regression\n", done.stderr


def test_an_unknown_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert capsys.readouterr().err == (
        "attnscope: SHELL csh: expected bash, zsh or fish. Did you mean 'zsh'?\n"
    )
