"""Every study of Lu 2021 on a task so small that it proves nothing, from run to tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.experiment import Study
from attnscope.report import Band, Dots, Histogram, Line, Rule
from attnscope.studies.lu2021 import Capacity, Cnn, Query, Sen, Synergy

pytestmark = pytest.mark.xdist_group("tiny studies")  # one fixture for all

TINY: dict[str, Any] = {
    "seeds": 2,
    "dictionary": 60,
    "train": 40,
    "test": 20,
    "m": 4,
    "points": 21,
}
STUDIES: tuple[Study, ...] = (
    Sen().but(epochs=3000, **TINY),
    Capacity().but(epochs=200, **TINY),
    Synergy().but(epochs=300, **TINY),
    Query().but(epochs=200, topics=2, query_variances=(0.5, 2.0), **TINY),
    Cnn().but(seeds=2, epochs=200, dictionary=12, train=60, test=20, points=21),
)


@pytest.fixture(scope="module", params=STUDIES, ids=lambda study: type(study).__name__)
def done(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Study, xr.DataTree]:
    study: Study = request.param
    return study, attnscope.run(study, tmp_path_factory.mktemp("tiny") / "run", workers=1)


def test_all_runs_are_complete_and_curves_have_no_gap(done: tuple[Study, xr.DataTree]) -> None:
    study, tree = done
    runs = len(study.runs())
    assert tree.attrs["status"] == f"finished: all {runs} runs are complete"
    for name, array in tree["observables"].data_vars.items():
        assert array.sizes["run"] == runs
        assert np.isfinite(array).all(), name
    cases = list(zip(tree["stats/case"].to_numpy(), tree["stats/seed"].to_numpy(), strict=True))
    assert cases == study.runs()


def test_training_lowers_the_loss(done: tuple[Study, xr.DataTree]) -> None:
    _, tree = done
    loss = tree["observables/loss"].to_numpy()
    assert (loss[:, -1] < loss[:, 0]).all()


def test_a_seed_fixes_everything(done: tuple[Study, xr.DataTree]) -> None:
    study, tree = done
    for run, (case, seed) in enumerate(study.runs()):
        problem = study.build(case, seed)
        with torch.no_grad():
            loss = problem.loss(problem.model).item()
        assert loss == pytest.approx(float(tree["observables/loss"][run, 0]), rel=1e-6)
    start = tree["observables/loss"].isel(step=0)
    first = start[start["case"] == study.cases[0]].to_numpy()
    assert first[0] != first[1]


def test_theory_lies_on_the_coordinates_of_the_run(done: tuple[Study, xr.DataTree]) -> None:
    _, tree = done
    theory = tree["theory"].to_dataset()
    assert theory.data_vars
    for name, array in theory.data_vars.items():
        measured = {frozenset(a.sizes.items()) for a in tree["observables"].data_vars.values()}
        sizes = dict(array.sizes)
        assert any(sizes.items() <= dict(other).items() for other in measured), name
        assert np.isfinite(array).any(), name
    assert np.array_equal(theory["time"], tree["observables/time"])


def keys(study: Study) -> list[str]:
    """Return the keys of all claims, once for each case that a claim is stated of."""
    return [each.key for claim in study.claims() for each, _ in claim.expanded()]


def test_all_claims_can_be_examined(done: tuple[Study, xr.DataTree]) -> None:
    study, tree = done
    found = attnscope.findings(tree)
    assert [finding.key for finding in found] == keys(study)
    assert len({finding.key for finding in found}) == len(found)
    for finding in found:
        assert finding.sentence.endswith(".")
        assert finding.source
        assert finding.paper
        assert finding.control_sentence
        assert finding.measure
        assert finding.verdict in ("holds", "fails", "undecided")


def test_findings_count_seeds(done: tuple[Study, xr.DataTree]) -> None:
    study, tree = done
    # Lemma 2 is integrated for seed 0 alone.
    expected = {key: 1 if key.startswith("lemma2") else study.seeds for key in keys(study)}
    assert {finding.key: finding.seeds for finding in attnscope.findings(tree)} == expected


def test_figures_have_something_to_show(done: tuple[Study, xr.DataTree]) -> None:
    study, tree = done
    figures = study.figures(study.read(tree))
    assert figures
    for figure in figures:
        assert figure.panels
        assert figure.caption.endswith(".")
        for panel in figure.panels:
            assert panel.xlabel
            assert panel.ylabel
            shown = [mark for mark in panel.marks if not isinstance(mark, Rule)]
            assert shown, f"{figure.name}: {panel.title}"
            for mark in shown:
                assert points(mark) > 0, f"{figure.name}: {panel.title}: {mark.label}"


def points(mark: Line | Band | Histogram | Dots) -> int:
    """Return how many points of a mark can be drawn; check that its arrays fit together."""
    if isinstance(mark, Histogram):
        assert len(mark.edges) == len(mark.heights) + 1
        return int(np.isfinite(mark.heights).sum())
    if isinstance(mark, Band):
        assert len(mark.x) == len(mark.low) == len(mark.high)
        return int((np.isfinite(mark.low) & np.isfinite(mark.high)).sum())
    assert len(mark.x) == len(mark.y)
    return int((np.isfinite(mark.x) & np.isfinite(mark.y)).sum())


def test_tables_have_a_row_for_every_case_or_seed(done: tuple[Study, xr.DataTree]) -> None:
    study, tree = done
    tables = study.tables(study.read(tree))
    assert tables
    for table in tables:
        heads = [row[0] for row in table.rows]
        # Lemma 2 cannot be integrated through the kinks of Attn-TL.
        expected = ["FC", "TC"] if table.name == "lemma2" else [*study.cases]
        assert heads in (expected, [*range(study.seeds)])
        assert all(np.isfinite(cell) for row in table.rows for cell in row[1:])  # type: ignore[arg-type]


def test_the_loss_column_is_the_mean_over_seeds(done: tuple[Study, xr.DataTree]) -> None:
    study, tree = done
    (table,) = [t for t in study.tables(study.read(tree)) if any("loss" in c for c in t.columns)]
    column = next(i for i, name in enumerate(table.columns) if "loss" in name)
    loss = tree["observables/loss"].isel(step=-1)
    for row in table.rows:
        key = "case" if isinstance(row[0], str) else "seed"
        mean = float(loss[loss[key] == row[0]].mean())
        assert row[column] == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize("study", [Sen, Capacity, Query])
def test_fewer_dimensions_than_topics_are_said_before_anything_starts(study: type[Study]) -> None:
    with pytest.raises(AttnscopeError, match="dim = 2 with topics = 4: expected 4 dimensions"):
        study(dim=2, topics=4)
