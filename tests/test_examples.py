"""Examples that are programs run as they stand, without data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_flow_of_a_transformer_falls_back_on_its_own_text(tmp_path: Path) -> None:
    words = [sys.executable, str(EXAMPLES / "transformer_flow.py"), "--until", "0.4"]
    done = subprocess.run(
        [*words, "--points", "2", "--windows", "4", "--out", str(tmp_path / "figure.png")],
        env=os.environ | {"ATTNSCOPE_DATA": str(tmp_path / "none"), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "The text of this file is used instead." in done.stdout
    assert "4 windows of 32 characters" in done.stdout
    for name in ("flow", "descent at 0.2: 2 gradients", "descent at 0.05: 8 gradients"):
        assert name in done.stdout
    assert (tmp_path / "figure.png").stat().st_size > 10_000
