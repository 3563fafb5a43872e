"""``snell2021.copying``: from runs to verdicts, and what the verdicts make of known curves."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.claims import Finding
from attnscope.claims.claim import examine
from attnscope.errors import AttnscopeError
from attnscope.studies.snell2021._copying_cases import (
    CASES,
    DRAWN,
    DRAWN_MIXED,
    DRAWN_UNIFORM,
    DRAWN_UNION,
    LEARNERS,
    PERMUTED,
    PERMUTED_MIXED,
    PERMUTED_UNIFORM,
)
from attnscope.studies.snell2021._copying_readings import READINGS
from attnscope.studies.snell2021.copying import CopyPermutations
from attnscope.tasks.copying import Copying

pytestmark = pytest.mark.xdist_group("snell2021 copying")  # one fixture for all

SMALL = CopyPermutations(
    seeds=2, length=4, types=6, width=6, batch=8, held_out=4, epochs=8, points=5, verdict=6
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("copying") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    assert np.isfinite(done["observables/reading"]).all()
    assert done["data/gold"].shape == (14, 5)


def test_tasks_are_those_of_the_paper() -> None:
    paper = CopyPermutations()
    assert [paper.task(case) for case in CASES] == [
        Copying(40, 40),
        Copying(40, 60),
        Copying(40, 40, sets=2),
        Copying(40, 80),
        Copying(40, 60, sets=2),
        Copying(40, 40),
        Copying(40, 60),
    ]
    assert (paper.width, paper.batch, paper.rate, paper.verdict) == (256, 128, 1e-3, 200)


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


def test_claims_on_counts_are_decided_at_any_size(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    for key in ("counts-tell", "mixed-counts"):
        assert found[key].verdict == "holds", (key, found[key].ours)
        assert found[key].control_fails, key


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    names = [figure.name for figure in SMALL.figures(done)]
    assert names == ["fig3-copying", "knowledge-first", "where-attention-goes"]
    learned, counts, readings, seeds = SMALL.tables(done)
    assert {row[0] for row in learned.rows} == set(LEARNERS)
    assert [row[0] for row in counts.rows] == [row[0] for row in readings.rows] == list(CASES)
    assert len(seeds.rows) == 2 * len(LEARNERS)


def curves(learned: dict[str, tuple[float, float, float]]) -> xr.DataTree:
    """Return a trajectory whose knowledge, attention and accuracy jump to 1 at given steps."""
    spec = CopyPermutations()
    steps = np.linspace(0, spec.epochs, spec.points)
    runs = [(case, seed) for seed in range(3) for case in CASES]
    values = np.zeros((len(runs), len(steps), len(READINGS)))
    for run, (case, seed) in enumerate(runs):
        for name, at in zip(("knowledge", "attention", "accuracy"), learned[case], strict=True):
            values[run, :, list(READINGS).index(name)] = steps > at + 5 * seed
    data = xr.Dataset(
        {"reading": (("run", "step", "reading"), values)},
        coords={"time": ("step", steps), "case": ("run", [case for case, _ in runs])},
    )
    theory = xr.Dataset(
        {"told": ("run", [1.0 + case.startswith(DRAWN) for case, _ in runs])},
        coords={"case": data["case"]},
    )
    return xr.DataTree.from_dict({"/observables": data, "/theory": theory})


NEVER = 1e9
AS_PUBLISHED = {
    PERMUTED: (240.0, 250.0, 260.0),
    DRAWN: (20.0, 60.0, 70.0),
    PERMUTED_MIXED: (NEVER, NEVER, NEVER),
    DRAWN_UNION: (20.0, 65.0, 75.0),
    DRAWN_MIXED: (20.0, 60.0, 70.0),
    PERMUTED_UNIFORM: (NEVER, NEVER, NEVER),
    DRAWN_UNIFORM: (20.0, NEVER, NEVER),
}


def judge(learned: dict[str, tuple[float, float, float]]) -> dict[str, Finding]:
    tree = curves(learned)
    return {claim.key: examine(claim, tree) for claim in CopyPermutations().claims()}


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
        ({DRAWN_UNIFORM: (300.0, NEVER, NEVER)}, {"known-under-uniform"}),
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
        ({"engine": "flow"}, "time counts steps"),
        ({"lr": 0.5}, "time counts steps"),
        ({"batch": 0}, "batch = 0: expected 1 or more"),
        ({"types": 4}, "length = 4 and types = 4: expected two words or more"),
        ({"verdict": 7}, "verdict = 7: expected a step that is recorded, a multiple of 2 up to 8"),
        ({"verdict": 10}, "verdict = 10"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]
