"""``li2023.embedding`` on few words: theory holds, every control fails, and all is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Heat, Line
from attnscope.studies.li2023.embedding import FLOW, PRINTED, TRAININGS, Embedding
from attnscope.theory import li2023

pytestmark = pytest.mark.xdist_group("li2023 embedding")  # one fixture for all

STUDY = Embedding(
    seeds=1,
    topics=6,
    words=6,
    tau=2,
    training=Flow(lr=1.0, epochs=300),
    batch=10,
    points=11,
    shortest=40,
    longest=60,
)
HOLDS = (
    "theorem1",
    "gap",
    "corrected-example",
    "leaves-example",
    "larger-adam-cross-entropy",
    "larger-adam-squared",
    "sgd-squared-tiny",
    "start",
    "cross-entropy",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(STUDY, tmp_path_factory.mktemp("embedding") / "run", workers=1)


def test_theorem_1_holds_and_every_control_fails(tree: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(tree)}
    assert list(found) == [claim.key for claim in STUDY.claims()]
    assert {key: found[key].ours for key in HOLDS if found[key].verdict != "holds"} == {}
    assert {key: f.control for key, f in found.items() if not f.control_fails} == {}
    for finding in found.values():
        assert finding.seeds == STUDY.seeds
        assert finding.sentence.endswith(".")
        assert finding.measure


def test_what_is_misprinted_fails_with_its_exact_error(tree: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(tree)}
    known = li2023.constants(STUDY.population())
    for key, error in (
        ("printed-example", known.c3 * known.mask),
        ("printed-bias", known.c3 * known.absent),
    ):
        assert found[key].verdict == "fails"
        assert found[key].reason
        assert found[key].ours == pytest.approx(error, rel=1e-9)


def test_the_printed_example_is_a_start(tree: xr.DataTree) -> None:
    run = STUDY.read(tree)
    start = run.of(PRINTED).E.isel(snapshot=0, seed=0).to_numpy()
    assert start == pytest.approx(li2023.printed_example(STUDY.population()), abs=2e-3)
    gram = run.of(FLOW).E.isel(snapshot=-1, seed=0).to_numpy()
    assert np.linalg.eigvalsh(gram).min() > -1e-9


def test_theory_is_on_the_axes_of_the_runs(tree: xr.DataTree) -> None:
    theory = tree["theory"].to_dataset()
    assert np.array_equal(theory["time"], tree["observables/time"])
    assert np.array_equal(theory["time"], np.linspace(0, 300, 11))
    assert theory["gap"].to_numpy() == pytest.approx(li2023.topic_gap(STUDY.population()))
    assert np.isfinite(tree["observables/blocks"]).all()


def test_figures_and_tables_show_the_runs(tree: xr.DataTree) -> None:
    maps, over_time = STUDY.figures(STUDY.read(tree))
    assert [panel.title for panel in maps.panels] == ["start", FLOW, *TRAININGS]
    for panel in maps.panels:
        (mark,) = panel.marks
        assert isinstance(mark, Heat)
        assert mark.values.shape == (37, 37)
    for panel in over_time.panels:
        for drawn in panel.marks:
            assert not isinstance(drawn, Line) or np.isfinite(drawn.y).any()
    end, examples = STUDY.tables(STUDY.read(tree))
    assert [row[0] for row in end.rows] == list(STUDY.cases)
    # Only the row of [MASK] of the printed example is wrong.
    assert examples.rows[0][1] > 0.1  # type: ignore[operator]
    assert examples.rows[0][2] == pytest.approx(0, abs=1e-12)
    assert examples.rows[1][1:] == pytest.approx((0, 0), abs=1e-12)


def test_experiments_count_steps() -> None:
    for case in TRAININGS:
        engine, problem = STUDY.engine(case, 1), STUDY.build(case, 1)
        assert isinstance(engine, Descent)
        assert engine.optimizer == ("adam" if case.startswith("Adam") else "gd")
        assert (engine.lr, engine.batch_size, engine.samples) == (0.01, 10, 3000)
        assert (engine.seed, engine.grid) == (1, 1.0)
        assert problem.loss.kind == case.split(", ")[1]  # type: ignore[attr-defined]
        assert problem.model.get_parameter("b_pred").requires_grad
    assert STUDY.engine(FLOW, 0) == Flow(lr=1.0, epochs=300)
    descent = STUDY.but(engine="descent").engine(FLOW, 0)
    assert descent == Descent(lr=1.0, epochs=300)
    assert "b_pred" not in dict(STUDY.build(FLOW, 0).model.named_parameters())


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"words": 1}, "words = 1: expected 2 or more"),
        ({"start": 0.0}, "start = 0.0: expected a finite number above 0"),
        ({"rate": -1.0}, "rate = -1.0: expected a finite number above 0"),
        ({"alpha": 0.0}, "alpha = 0.0"),
        ({"tau": 11}, "tau = 11"),
        ({"shortest": 200}, "length"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Embedding(**fields)


def test_a_spec_of_an_older_run_is_understood() -> None:
    old = {"engine": "flow", "lr": 1.0, "epochs": 70, "correct": False, "step_size": 0.02}
    study = Embedding.from_json({**old, "batch": 5, "seeds": 2})
    assert study == Embedding(seeds=2, rate=0.02, batch=5, training=Flow(lr=1.0, epochs=70))
    assert Embedding.from_json(study.to_json()) == study
