"""When attention comes under SGD, on a small table: said, trained, judged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.studies.predict import When
from attnscope.studies.predict.when import concentration_of


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    dice = np.random.default_rng(0)
    lines = ["label,text"]
    for label in dice.integers(0, 2, 300):
        words = [f"w{i}" for i in dice.integers(0, 40, 6)]
        words.insert(int(dice.integers(0, 7)), ("poor", "fine")[label])
        lines.append(f"{('bad', 'good')[label]},{' '.join(words)}")
    path = tmp_path_factory.mktemp("sets") / "small.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_half_way_is_where_it_was_said(data: str, tmp_path: Path) -> None:
    study = When(sets=(data,), seeds=2, steps=400, lu_rate=4.0, models=("Lu 2021",), limit=9)
    run = attnscope.run(study, out=tmp_path / "run", workers=1)
    found = {finding.key: finding for finding in attnscope.findings(run)}
    claim = found["half-way-small.csv, Lu 2021"]
    assert claim.verdict == "holds"
    assert claim.control_fails
    assert "report.html" in str(attnscope.write_report(run))
    (row,) = study.tables(study.read(run))[0].rows
    assert row[2] < row[7]


def test_concentration_is_nothing_when_uniform_and_all_on_one_word() -> None:
    some = np.array([[0.5, 0.5, np.nan], [1.0, 0.0, 0.0], [np.nan] * 3])
    assert concentration_of(some[:1]) == pytest.approx(0.0)
    assert concentration_of(some[1:2]) == pytest.approx(1.0)
    assert concentration_of(some) == pytest.approx(0.5)


def test_bad_settings_are_quoted() -> None:
    with pytest.raises(AttnscopeError, match="'sst2' is there twice"):
        When(sets=("sst2", "sst2"))
    with pytest.raises(AttnscopeError, match="expected one or both of Snell 2021, Lu 2021"):
        When(models=("Snell",))
