"""``snell2021.permutation``: from runs to verdicts, and what the verdicts make of known curves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from _copying_tree import jumps

import attnscope
from attnscope.claims import Finding, examine
from attnscope.errors import AttnscopeError
from attnscope.studies.snell2021._copying_study import UNIFORM
from attnscope.studies.snell2021.permutation import COPIED, REORDERED, PermutationStudy

pytestmark = pytest.mark.xdist_group("snell2021 permutation")  # one fixture for all

SMALL = PermutationStudy().but(
    seeds=2, length=4, types=6, width=6, batch=8, held_out=4, steps=8, points=5, verdict=6
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("permutation") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    assert np.isfinite(done["observables/reading"]).all()


def test_gold_is_the_order_of_each_seed(done: xr.DataTree) -> None:
    gold = dict(zip(SMALL.runs(), done["data/gold"].to_numpy().tolist(), strict=True))
    for seed in range(2):
        assert gold[COPIED, seed] == [0, 1, 2, 3, 4]
        assert gold[REORDERED, seed] == gold[REORDERED + UNIFORM, seed] != gold[COPIED, seed]
        assert sorted(gold[REORDERED, seed]) == gold[COPIED, seed]
    assert gold[REORDERED, 0] != gold[REORDERED, 1]


def test_cases_of_a_seed_start_alike_and_read_the_same_words() -> None:
    models = [SMALL.build(case, 1).model for case in SMALL.cases]
    for other in models[1:]:
        pairs = zip(models[0].parameters(), other.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    rows = torch.arange(8)
    copied, reordered = (SMALL.task(case, 1).stream(1).batch(rows) for case in SMALL.cases[:2])
    assert torch.equal(copied.source, reordered.source)
    assert not torch.equal(copied.target, reordered.target)


def test_both_tasks_are_told_alike(done: xr.DataTree) -> None:
    told = done["theory/told"].to_numpy()
    # Two words stand in C with (L - 1)/(types - 1) of what a word has with itself.
    np.testing.assert_allclose(told, 4 / (1 + 3 * 3 / 5), rtol=1e-12)
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    assert found["same-counts"].verdict == "holds"
    assert found["same-counts"].control_fails


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    names = [figure.name for figure in SMALL.figures(SMALL.read(done))]
    assert names == ["fixed-permutation", "attention-cannot-follow"]
    learned, counts, readings, seeds = SMALL.tables(SMALL.read(done))
    assert {row[0] for row in learned.rows} == {COPIED, REORDERED}
    assert [row[0] for row in counts.rows] == [row[0] for row in readings.rows] == list(SMALL.cases)
    assert len(seeds.rows) == 4


NEVER = 1e9
AS_PUBLISHED = {
    COPIED: (20.0, 60.0, 70.0),
    REORDERED: (20.0, NEVER, NEVER),
    COPIED + UNIFORM: (20.0, NEVER, NEVER),
    REORDERED + UNIFORM: (20.0, NEVER, NEVER),
}


def judge(learned: dict[str, tuple[float, float, float]]) -> dict[str, Finding]:
    study = PermutationStudy()
    run = jumps(study, learned)
    return {claim.key: examine(claim, run) for claim in study.claims()}


def test_every_claim_holds_on_curves_as_published() -> None:
    for key, finding in judge(AS_PUBLISHED).items():
        assert finding.verdict == "holds", (key, finding.ours)
        assert finding.control_fails, (key, finding.control)


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({COPIED: (20.0, 60.0, 320.0)}, {"copying-perfect"}),
        ({REORDERED: (20.0, 90.0, 95.0)}, {"reordering-fails", "attention-lags"}),
        ({REORDERED + UNIFORM: (100.0, NEVER, NEVER)}, {"same-knowledge"}),
        ({REORDERED: (NEVER, NEVER, NEVER)}, {"known-unattended"}),
    ],
)
def test_claims_can_fail(change: dict[str, tuple[float, float, float]], fails: set[str]) -> None:
    found = judge(AS_PUBLISHED | change)
    assert fails <= {key for key, finding in found.items() if finding.verdict == "fails"}


def test_bad_input_gets_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="verdict = 7: expected a step that is recorded"):
        SMALL.but(verdict=7)
