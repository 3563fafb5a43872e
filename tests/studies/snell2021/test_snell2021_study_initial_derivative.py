"""``snell2021.initial_derivative`` at small widths, from runs to verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Line
from attnscope.studies.snell2021 import InitialDerivative
from attnscope.studies.snell2021.initial_derivative.claims import (
    MIXTURE,
    PERMUTATIONS,
    slopes,
    width_case,
)
from attnscope.trajectory import initial

pytestmark = pytest.mark.xdist_group("snell2021 initial_derivative")  # one fixture for all

SMALL = InitialDerivative().but(
    seeds=2, widths=(100, 2_000, 20_000), length=3, types=6, pairs=60, until=0.2, points=21
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("derivative") / "run", workers=1)


def test_velocity_is_the_change_of_the_table_along_the_gradient() -> None:
    problem = SMALL.build(width_case(100), 0)
    model, loss = problem.model, problem.loss
    readings = {o.name: o.read(model) for record in problem.records for o in record.observables}
    e, w = model.embedding, model.W
    grads = torch.autograd.grad(loss(model), (e, w))
    step = 1e-6
    tables = []
    for sign in (1, -1):
        moved = (e - sign * step * grads[0]) @ (w - sign * step * grads[1]).T
        tables.append((moved, torch.softmax(moved, dim=1)))
    for at, name in enumerate(("logits_velocity", "theta_velocity")):
        central = (tables[0][at] - tables[1][at]) / (2 * step)
        assert torch.allclose(readings[name], central, atol=1e-7)


def test_slopes_are_one_for_logits_and_one_over_outputs_for_probabilities(
    done: xr.DataTree,
) -> None:
    run = SMALL.read(done).of(width_case(20_000))
    logits, theta = (slopes(run, name).to_numpy() for name in ("logits_velocity", "theta_velocity"))
    assert logits == pytest.approx(1, abs=0.03)
    assert theta == pytest.approx(1 / SMALL.vocabulary, rel=0.03)
    assert initial(run.logits_velocity).shape == (2, SMALL.vocabulary, SMALL.vocabulary)


def test_slopes_of_all_cases_are_those_of_each(done: xr.DataTree) -> None:
    run = SMALL.read(done)
    together = slopes(run, "theta_velocity", 0.5)
    assert together.dims == ("case", "seed")
    for case in SMALL.cases:
        assert (together.sel(case=case) == slopes(run.of(case), "theta_velocity", 0.5)).all()


def test_claims_are_decided_and_every_control_fails(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    assert found["printed"].verdict == "fails"
    assert f"1/{SMALL.vocabulary}" in found["printed"].reason
    for key in ("exact", "exact-flow", "falls", "gold", PERMUTATIONS, MIXTURE):
        assert found[key].verdict == "holds", (key, found[key].ours)
    assert {key for key, f in found.items() if f.verdict == "undecided"} == set()
    assert {key: f.control for key, f in found.items() if not f.control_fails} == {}


def test_counts_say_it_before_training() -> None:
    assert SMALL.knowledge(width_case(100)).learnable == "learnable"
    for case in (PERMUTATIONS, MIXTURE):
        assert SMALL.knowledge(case).learnable == "not learnable"


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    figures = {figure.name: figure for figure in SMALL.figures(SMALL.read(done))}
    assert list(figures) == ["derivative", "widths", "training"]
    dashed = [m for m in figures["training"].panels[0].marks if isinstance(m, Line) and m.theory]
    assert len(dashed) == 1
    widths, knowledge = SMALL.tables(SMALL.read(done))
    assert [row[0] for row in widths.rows] == list(SMALL.widths)
    assert [row[1] for row in knowledge.rows] == ["learnable", "not learnable", "not learnable"]
    errors = np.array([row[4] for row in widths.rows], dtype=float)
    assert (np.diff(errors) < 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"types": 3}, "types = 3: expected more than length"),
        ({"widths": (100,)}, "two or more widths"),
        ({"widths": (200, 100)}, "ascending"),
        ({"engine": "descent"}, "expected 'flow'"),
        ({"pairs": 0}, "pairs = 0"),
        ({"rtol": 2.0}, "rtol = 2"),
    ],
)
def test_bad_fields_are_quoted(change: dict, words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        SMALL.but(**change)


def test_an_older_run_ended_at_learning_rate_times_epochs() -> None:
    old = {name: SMALL.to_json()[name] for name in ("seeds", "points", "widths", "length", "types")}
    old |= {"engine": "flow", "lr": 1e-3, "epochs": 200, "correct": False, "rtol": 1e-4}
    assert InitialDerivative.from_json({**old, "pairs": 60}) == SMALL
    assert InitialDerivative.from_json(SMALL.to_json()) == SMALL


def test_tolerance_follows_the_size_of_the_start() -> None:
    assert SMALL.engine(width_case(100), 0).atol == pytest.approx(1e-5)
    assert SMALL.engine(PERMUTATIONS, 0).atol == pytest.approx(1e-4 * 2_000**-0.5)
