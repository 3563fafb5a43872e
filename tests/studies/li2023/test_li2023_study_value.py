"""``li2023.value`` on few words: theory holds, every control fails, and all is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Heat, Line
from attnscope.studies.li2023.value import Value
from attnscope.studies.li2023.value.cases import ENTROPY, NOISE, SGD, ZERO, penalised

pytestmark = pytest.mark.xdist_group("li2023 value")  # one fixture for all

STUDY = Value(
    seeds=1,
    topics=4,
    words=3,
    tau=2,
    other_tau=3,
    training=Flow(lr=3.0, epochs=800),
    points=31,
    penalties=(1e-1, 1e-2, 1e-3),
    small=1e-4,
    start=0.03,
    documents=100,
    shortest=20,
    longest=30,
    batch=20,
)
HOLDS = (
    "ridge-0.1",
    "ridge-0.01",
    "ridge-0.001",
    "ridge-0.0001",
    "limit",
    "gap",
    "mask-row",
    "tau",
    "least-norm",
    "clock",
    "cross-entropy",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(STUDY, tmp_path_factory.mktemp("value") / "run", workers=1)


def test_theorem_2_holds_and_every_control_fails(tree: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(tree)}
    assert list(found) == [claim.key for claim in STUDY.claims()]
    assert {key: found[key].ours for key in HOLDS if found[key].verdict != "holds"} == {}
    assert {key: f.control for key, f in found.items() if not f.control_fails} == {}
    for finding in found.values():
        assert finding.seeds == STUDY.seeds
        assert finding.sentence.endswith(".")
        assert finding.measure


def test_finite_documents_are_not_long(tree: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(tree)}
    assert found["long-documents"].verdict == "fails"
    assert "do not commute" in found["long-documents"].reason


def test_descent_on_fresh_documents_follows_the_solution_up_to_noise(tree: xr.DataTree) -> None:
    run = STUDY.read(tree).of(SGD)
    found, known = (
        group.blocks.isel(step=slice(-10, None), block=slice(4)).mean("step")
        for group in (run, run.theory)
    )
    assert found.to_numpy() == pytest.approx(known.to_numpy(), abs=0.03)


def test_theory_is_on_the_axes_of_the_runs(tree: xr.DataTree) -> None:
    theory = tree["theory"].to_dataset()
    assert np.array_equal(theory["time"], tree["observables/time"])
    run = STUDY.read(tree)
    own = run.of(penalised(1e-2))
    for name in ("blocks", "distance"):
        known = own.theory.get(name).to_numpy()
        assert known == pytest.approx(own.get(name).to_numpy(), abs=1e-4)
        assert np.isnan(run.of(ENTROPY).theory.get(name)).all()
    assert np.isfinite(tree["observables/blocks"]).all()


def test_figures_and_table_show_the_runs(tree: xr.DataTree) -> None:
    figures = {figure.name: figure for figure in STUDY.figures(STUDY.read(tree))}
    assert list(figures) == ["matrices", "over-time", "limit", "beyond"]
    heats = [mark for panel in figures["matrices"].panels for mark in panel.marks]
    assert all(isinstance(mark, Heat) and mark.values.shape == (13, 13) for mark in heats)
    for figure in figures.values():
        assert figure.caption.endswith(".")
        for panel in figure.panels:
            for mark in panel.marks:
                assert not isinstance(mark, Line) or np.isfinite(mark.y).any()
    (table,) = STUDY.tables(STUDY.read(tree))
    assert [row[0] for row in table.rows] == list(STUDY.cases)
    rows = {row[0]: row for row in table.rows}
    assert rows[ZERO][-1] == pytest.approx(0, abs=1e-3)
    assert rows[NOISE][-1] > 0.03  # type: ignore[operator]


def test_only_fresh_documents_are_descended() -> None:
    descent = STUDY.engine(SGD, 3)
    assert isinstance(descent, Descent)
    assert (descent.lr, descent.batch_size, descent.samples) == (3.0, 20, 16_000)
    assert descent.seed == 3
    assert STUDY.engine(ZERO, 0) == Flow(until=2400.0)
    assert STUDY.but(engine="descent").engine(ZERO, 0) == Descent(lr=3.0, epochs=800)
    corrected = STUDY.but(correct=True)
    assert corrected.engine(ZERO, 0) == corrected.training


def test_a_spec_of_an_older_run_is_understood() -> None:
    old = {"engine": "flow", "lr": 2.0, "epochs": 70, "correct": False, "penalties": [1e-2, 1e-3]}
    study = Value.from_json({**old, "batch": 5})
    training = Flow(lr=2.0, epochs=70)
    assert study == Value(training=training, penalties=(1e-2, 1e-3), batch=5)
    assert Value.from_json(study.to_json()) == study


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"words": 1}, "words = 1: expected 2 or more"),
        ({"penalties": (1e-2,)}, "expected two or more λ"),
        ({"penalties": (1e-4, 1e-2)}, "expected two or more λ, the largest first"),
        ({"penalties": (1e-2, 1e-2)}, "each once"),
        ({"small": 1e-4}, "and a smaller one above 0"),
        ({"other_tau": 3}, "other_tau = 3: expected another τ"),
        ({"tau": 11}, "tau = 11"),
        ({"shortest": 200}, "length"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Value(**fields)
