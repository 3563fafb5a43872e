"""``attnscope report``: the page alone unless image files are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnscope.cli import main
from watched_toys import scope, train


def test_images_are_drawn_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    train(8, lambda model, _: scope(model, run))
    capsys.readouterr()
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"report: {run / 'report.html'}\n"
    assert {path.suffix for path in (run / "figures").iterdir()} == {".csv"}
    assert main(["report", str(run), "--figures", "png", "svg", "--out", str(tmp_path / "to")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1] == f"figures: {tmp_path / 'to' / 'figures'} (PNG, SVG)"
    drawn = {path.suffix for path in (tmp_path / "to" / "figures").iterdir()}
    assert drawn == {".csv", ".png", ".svg"}
    assert main(["report", str(run), "--figures", "gif"]) == 2
    assert "--figures gif: expected png, svg or pdf" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "gone")]) == 2
    assert "is not a run" in capsys.readouterr().err
