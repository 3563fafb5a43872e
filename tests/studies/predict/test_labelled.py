"""The study of predictions on a small table: it runs, resumes by spec, and says what came of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.studies.predict import Labelled
from attnscope.studies.predict.labelled.compared import agreed
from attnscope.studies.predict.labelled.sets import parts, role, short


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    dice = np.random.default_rng(0)
    lines = ["label,text"]
    for label in dice.integers(0, 2, 300):
        words = [f"w{i}" for i in dice.integers(0, 40, 6)]
        words.insert(int(dice.integers(0, 7)), ("poor", "fine")[label])
        lines.append(f"{('bad', 'good')[label]},{' '.join(words)}")
    path = tmp_path_factory.mktemp("sets") / "toy.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_models_come_to_look_where_it_was_said(data: str, tmp_path: Path) -> None:
    study = Labelled(
        sets=(data,), seeds=2, steps=150, hidden=16, embedding=16, evaluated=30, limit=9
    )
    run = attnscope.run(study, out=tmp_path / "run", workers=1)
    readings = study.read(run)
    top = readings.theory.agreement.sel(measure="first").mean("seed")
    for case in study.cases:
        assert float(top.sel(case=case, predictor="chosen")) > 90
        assert float(top.sel(case=case, predictor="chance")) < 20
    found = {finding.key: finding for finding in attnscope.findings(run)}
    assert found["beats-toy.csv, Snell 2021"].verdict == "holds"
    assert found["beats-toy.csv, Snell 2021"].control_fails
    assert found["second-seed-lu"].control_fails
    assert "report.html" in str(attnscope.write_report(run))
    words = study.tables(readings)[2].rows
    assert {row[2].split()[0] for row in words[:2]} == {"poor", "fine"}


def test_sets_are_named_with_their_classes() -> None:
    assert parts("ag_news[World, Sci/Tech]") == ("ag_news", ("World", "Sci/Tech"))
    assert short("x/y/tweets") == "tweets"
    assert role("some/where/tweets") == "chosen on"
    assert role("imdb") == "judged on"
    with pytest.raises(AttnscopeError, match="expected two classes"):
        parts("ag_news[World]")
    with pytest.raises(AttnscopeError, match="'sst2' is there twice"):
        Labelled(sets=("sst2", "sst2"))
    with pytest.raises(AttnscopeError, match="expected one or both of Snell 2021, Lu 2021"):
        Labelled(models=("Snell",))


def test_agreement_breaks_ties_at_random() -> None:
    mask = np.ones((1, 4), dtype=bool)
    u = np.array([[0.1, 0.6, 0.2, 0.1]])
    assert agreed(u, np.ones((1, 4)), mask) == pytest.approx([25.0, 25.0])
    assert agreed(u, np.array([[0.0, 1.0, 1.0, 0.0]]), mask) == pytest.approx([50.0, 50.0])


def test_nothing_is_claimed_of_times_that_no_factor_was_fitted_for() -> None:
    """Two claims had neither a value nor a control."""
    sets = ("ag_news[Sports,Sci/Tech]", "imdb")
    lstm = [claim.key for claim in Labelled(sets=sets, models=("Snell 2021",)).claims()]
    assert not [key for key in lstm if "half-way" in key or "nearer" in key]
    bag = [claim.key for claim in Labelled(sets=sets, models=("Lu 2021",)).claims()]
    assert "half-way-lu2021-adam" in bag
