"""Toy tasks, told and trained: copying against permutations, keyword against XOR."""

from __future__ import annotations

from pathlib import Path

import attnscope
from attnscope.studies.predict import Toys


def test_training_shows_what_was_told(tmp_path: Path) -> None:
    study = Toys(seeds=1, texts=500, held_out=60, points=3)
    run = attnscope.run(study, out=tmp_path / "run", workers=1)
    found = attnscope.findings(run)
    assert len(found) == 7
    assert [one.key for one in found if one.verdict != "holds"] == []
    assert all(one.control_fails for one in found)
    assert "report.html" in str(attnscope.write_report(run))
