"""``snell2021.copying``: from runs to verdicts, and what the verdicts make of known curves."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from _copying_tree import jumps

import attnscope
from attnscope.claims import Finding, examine
from attnscope.errors import AttnscopeError
from attnscope.studies.snell2021._copying_study import UNIFORM
from attnscope.studies.snell2021.copying import (
    DRAWN,
    DRAWN_MIXED,
    DRAWN_UNION,
    LEARNERS,
    PERMUTED,
    PERMUTED_MIXED,
    CopyingStudy,
)
from attnscope.tasks.copying import Copying

pytestmark = pytest.mark.xdist_group("snell2021 copying")  # one fixture for all

SMALL = CopyingStudy().but(
    seeds=2, length=4, types=6, width=6, batch=8, held_out=4, steps=8, points=5, verdict=6
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("copying") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    assert np.isfinite(done["observables/reading"]).all()
    assert done["data/gold"].shape == (14, 5)


def test_tasks_are_those_of_the_paper() -> None:
    paper = CopyingStudy()
    assert [paper.task(case) for case in paper.cases] == [
        Copying(40, 40),
        Copying(40, 60),
        Copying(40, 40, sets=2),
        Copying(40, 80),
        Copying(40, 60, sets=2),
        Copying(40, 40),
        Copying(40, 60),
    ]
    assert (paper.width, paper.training.batch, paper.training.rate, paper.verdict) == (
        256,
        128,
        1e-3,
        200,
    )


def test_the_count_table_tells_places_of_draws_alone(done: xr.DataTree) -> None:
    told = dict(
        zip([case for case, _ in SMALL.runs()], done["theory/told"].to_numpy(), strict=True)
    )
    # Two words of a set stand in C with (L - 1)/(types - 1) of what a word has with itself.
    for case, types in ((DRAWN, 6), (DRAWN_UNION, 8), (DRAWN_MIXED, 6)):
        expected = 4 / (1 + 3 * 3 / (types - 1))
        assert told[case] == pytest.approx(expected, rel=1e-12), case
    for case in (PERMUTED, PERMUTED_MIXED):
        assert told[case] == pytest.approx(1, abs=1e-12), case


@pytest.mark.parametrize(("length", "types"), [(4, 6), (10, 11), (10, 12), (20, 30), (10, 40)])
def test_the_boundary_of_theory_is_that_of_the_exact_count_table(length: int, types: int) -> None:
    study = SMALL.but(length=length, types=types)
    margins = study.margins()
    assert margins["counts-tell"][0] == pytest.approx(study.told(DRAWN) - 1.1, abs=1e-12)
    assert margins["draws-learned"] == (types - length, "length = types")
    assert set(margins) <= {claim.key for claim in study.claims()}


def test_claims_on_counts_are_decided_at_any_size(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    for key in ("counts-tell", "mixed-counts"):
        assert found[key].verdict == "holds", (key, found[key].ours)
        assert found[key].control_fails, key


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    names = [figure.name for figure in SMALL.figures(SMALL.read(done))]
    assert names == ["fig3-copying", "knowledge-first", "where-attention-goes"]
    learned, counts, readings, seeds = SMALL.tables(SMALL.read(done))
    assert {row[0] for row in learned.rows} == set(LEARNERS)
    assert [row[0] for row in counts.rows] == [row[0] for row in readings.rows] == list(SMALL.cases)
    assert len(seeds.rows) == 2 * len(LEARNERS)


NEVER = 1e9
AS_PUBLISHED = {
    PERMUTED: (240.0, 250.0, 260.0),
    DRAWN: (20.0, 60.0, 70.0),
    PERMUTED_MIXED: (NEVER, NEVER, NEVER),
    DRAWN_UNION: (20.0, 65.0, 75.0),
    DRAWN_MIXED: (20.0, 60.0, 70.0),
    PERMUTED + UNIFORM: (NEVER, NEVER, NEVER),
    DRAWN + UNIFORM: (20.0, NEVER, NEVER),
}


def judge(learned: dict[str, tuple[float, float, float]]) -> dict[str, Finding]:
    study = CopyingStudy()
    run = jumps(study, learned)
    runs = run["stats"].coords
    told = [1.0 + str(case).startswith(DRAWN) for case in runs["case"].to_numpy()]
    run.tree["theory"] = xr.DataTree(xr.Dataset({"told": ("run", told)}, coords=runs))
    return {claim.key: examine(claim, run) for claim in study.claims()}


def test_every_claim_holds_on_curves_as_published() -> None:
    # Attention follows knowledge by one record point, so that half of it is never without.
    found = judge(AS_PUBLISHED | {PERMUTED: (250.0, 250.0, 260.0)})
    for key, finding in found.items():
        assert finding.verdict == "holds", (key, finding.ours)
        assert finding.control_fails, (key, finding.control)


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({DRAWN: (20.0, 60.0, 300.0)}, {"draws-learned"}),
        ({PERMUTED: (100.0, 100.0, 100.0)}, {"sometimes-fails"}),
        ({PERMUTED_MIXED: (20.0, 60.0, 70.0)}, {"mixed-sometimes-fails", "mixed-slower"}),
        ({DRAWN: (60.0, 60.0, 70.0)}, {"knowledge-first", "attention-later"}),
        ({DRAWN + UNIFORM: (300.0, NEVER, NEVER)}, {"known-under-uniform"}),
        ({PERMUTED + UNIFORM: (150.0, NEVER, NEVER)}, {"unknown-under-uniform"}),
        ({DRAWN_UNION: (90.0, 50.0, 95.0)}, {"attention-not-ahead"}),
        ({DRAWN_MIXED: (NEVER, NEVER, NEVER)}, {"counts-suffice"}),
    ],
)
def test_claims_can_fail(change: dict[str, tuple[float, float, float]], fails: set[str]) -> None:
    found = judge(AS_PUBLISHED | change)
    assert fails <= {key for key, finding in found.items() if finding.verdict == "fails"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": 4}, "expected points a whole number of steps apart"),
        ({"engine": "flow"}, "engine = 'flow': expected 'adam'"),
        ({"batch": None}, "batch = None: expected the number of fresh sequences in a step"),
        ({"batch": 0}, "batch = 0: expected 1 or more"),
        ({"types": 4}, "length = 4 and types = 4: expected two words or more"),
        ({"length": 1}, "length = 1: expected 2 or more"),
        ({"verdict": 7}, "verdict = 7: expected a step that is recorded, a multiple of 2 up to 8"),
        ({"verdict": 10}, "verdict = 10"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        SMALL.but(**change)


def test_specs_of_older_runs_are_understood() -> None:
    old = {
        "engine": "descent",
        "lr": 1.0,
        "epochs": 8,
        "correct": False,
        "rate": 0.002,
        "batch": 16,
    }
    study = CopyingStudy.from_json({**old, "points": 5, "verdict": 6})
    assert (study.training.steps, study.training.rate, study.training.batch) == (8, 0.002, 16)
