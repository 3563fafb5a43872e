"""Progress without a terminal: seldom lines, each with the time left."""

from __future__ import annotations

import pytest

from attnscope.cli.progress import Lines, progress


def test_lines_are_seldom_and_say_how_long_it_takes() -> None:
    now, lines = [0.0], []
    listen = Lines("mine", 4, clock=lambda: now[0], write=lines.append)
    for second in range(0, 1001):
        now[0] = float(second)
        listen(0, second / 1000)
    assert lines[0] == "mine:   0%, 0 of 4 runs, 10 s gone, about 1 h 6 min left"
    assert len(lines) < 40
    assert lines[-1].startswith("mine:  2")
    assert all("left" in line for line in lines)


def test_what_an_earlier_command_did_is_no_part_of_the_speed() -> None:
    now, lines = [0.0], []
    listen = Lines("mine", 2, "models", clock=lambda: now[0], write=lines.append)
    listen(0, 0.9)
    now[0] = 60.0
    listen(0, 1.0)
    assert lines == ["mine:  50%, 1 of 2 models, 1 min 0 s gone, about 10 min 0 s left"]


def test_runs_that_are_there_count_as_complete_and_not_as_speed() -> None:
    now, lines = [0.0], []
    listen = Lines("mine", 4, clock=lambda: now[0], write=lines.append)
    for run in (0, 1):
        listen(run, 1.0)
    listen(2, 0.0)
    now[0] = 60.0
    listen(2, 0.5)
    assert lines == ["mine:  62%, 2 of 4 runs, 1 min 0 s gone, about 3 min 0 s left"]


def test_a_short_run_and_a_quiet_one_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        with progress("mine", 3, quiet=quiet) as listen:
            listen(0, 1.0)
    assert capsys.readouterr() == ("", "")
