"""``snell2021.multihead`` on a small task: pools of heads, rounds, verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq
from attnscope.report.wording import control_passes
from attnscope.studies.snell2021.multihead import Multihead
from attnscope.studies.snell2021.multihead.heads import (
    ALL_BAD,
    CANDIDATE,
    ONE_GOOD,
    RANDOM,
    SCENARIOS,
    Pools,
    candidate_head,
    chosen,
    judged,
    pools,
)
from attnscope.studies.snell2021.multihead.study import observables
from attnscope.trajectory import Readings

pytestmark = pytest.mark.xdist_group("snell2021 multihead")  # one fixture for all

SMALL = Multihead().but(
    seeds=2,
    steps=10,
    points=6,
    length=4,
    width=16,
    batch=16,
    held_out=20,
    heads=3,
    candidates=3,
    streams=2,
    cell="gru",
    pooled="mean",
    head_projections=True,
    separate_embeddings=True,
)
# Candidates 0 to 3 on two streams: good, bad, one of each, and good for a while.
TRIALS = xr.DataArray(
    [
        [[0.1, 0.7, 0.97], [0.1, 0.8, 0.99]],
        [[0.1, 0.3, 0.5], [0.1, 0.2, 0.59]],
        [[0.1, 0.3, 0.5], [0.1, 0.5, 0.99]],
        [[0.1, 0.96, 0.9], [0.1, 0.5, 0.96]],
    ],
    dims=("candidate", "stream", "step"),
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("multi") / "run", workers=1)


def made_up(curves: dict[str, np.ndarray], **more: tuple[tuple[str, ...], np.ndarray]) -> Readings:
    """Return a trajectory with the given accuracy of each run, by case, and no theory."""
    cases = [case for case, runs in curves.items() for _ in runs]
    seeds = [seed for runs in curves.values() for seed in range(len(runs))]
    runs = {"case": ("run", cases), "seed": ("run", seeds)}
    accuracy = np.concatenate(list(curves.values()))
    steps = 5 * np.arange(accuracy.shape[1])
    data = xr.Dataset(
        {"accuracy": (("run", "step"), accuracy), **more},
        coords={"step": steps, "time": ("step", steps.astype(float)), **runs},
    )
    groups = {"/observables": data, "/stats": xr.Dataset(coords=runs)}
    return SMALL.read(xr.DataTree.from_dict(groups))


def fake(accuracy: xr.DataArray) -> Readings:
    """Return the trajectory of trials alone."""
    return made_up({CANDIDATE: accuracy.to_numpy().reshape(-1, accuracy.sizes["step"])})


def test_heads_are_judged_on_all_streams() -> None:
    found = judged(TRIALS)
    assert found["good"].values.tolist() == [True, False, False, True]
    assert found["bad"].values.tolist() == [False, True, False, False]
    assert found["discarded"].values.tolist() == [False, False, True, False]
    assert pools(TRIALS) == Pools((0, 3), (1,), "2 good and 1 bad heads among 4 candidates")
    trials = SMALL.trials(fake(TRIALS))
    assert trials.dims == TRIALS.dims
    assert np.array_equal(trials, TRIALS)


def test_an_empty_pool_is_said_and_filled() -> None:
    only_bad = pools(TRIALS[1:3])
    assert only_bad.good == (1,)
    assert only_bad.status.startswith("0 good and 1 bad heads")
    assert "the best candidate stands in" in only_bad.status
    only_good = pools(TRIALS[[0, 2, 3]])
    assert only_good.bad == (1,)
    assert "stands in for bad ones" in only_good.status
    all_good = pools(TRIALS[[0]])
    assert (all_good.good, all_good.bad) == ((0,), (0,))


def test_no_head_is_used_twice_before_all_are() -> None:
    known = Pools((0, 1), (2, 3, 4, 5), "")
    for seed in range(5):
        bad = chosen(known, ALL_BAD, seed, 4)
        assert sorted(bad) == [2, 3, 4, 5]
        first, *rest = chosen(known, ONE_GOOD, seed, 4)
        assert first in known.good
        assert len(set(rest)) == 3
        assert set(rest) <= set(known.bad)
        assert np.bincount(chosen(known, ALL_BAD, seed, 8))[2:].tolist() == [2, 2, 2, 2]
    assert len({tuple(chosen(known, ALL_BAD, seed, 4)) for seed in range(9)}) > 1


def test_later_runs_are_put_together_from_earlier_ones() -> None:
    for case in (ALL_BAD, ONE_GOOD):
        model = SMALL.build_after(case, 1, fake(TRIALS)).model
        assert isinstance(model, Seq2Seq)
        numbers = chosen(pools(TRIALS), case, 1, SMALL.heads)
        for head, number in enumerate(numbers):
            W, b, P, p = candidate_head(number, SMALL.width)
            assert torch.equal(model.head_W[head], W)
            assert torch.equal(model.head_b[head], b)
            assert model.head_projections is not None
            assert torch.equal(model.head_projections.weight[head], P)
            assert torch.equal(model.head_projections.bias[head], p)


def test_the_model_is_the_one_of_the_released_code_or_of_the_text() -> None:
    released = SMALL.build(RANDOM, 0).model
    assert isinstance(released, Seq2Seq)
    assert isinstance(released.encoder, torch.nn.GRU)
    assert released.heads_pooled == "mean"
    assert released.target_embedding is not None
    text = Multihead(length=SMALL.length, width=SMALL.width, heads=SMALL.heads)
    printed = text.build(RANDOM, 0).model
    assert isinstance(printed, Seq2Seq)
    assert isinstance(printed.encoder, torch.nn.LSTM)
    assert printed.heads_pooled == "sum"
    assert printed.target_embedding is None
    assert printed.head_projections is None
    assert torch.equal(printed.head_W, released.head_W)


def test_all_runs_share_what_is_not_a_head() -> None:
    single = SMALL.build(CANDIDATE, 3).model.state_dict()
    several = SMALL.build_after(ONE_GOOD, 0, fake(TRIALS)).model.state_dict()
    assert single.keys() == several.keys()
    for name, value in single.items():
        if not name.startswith("head_"):
            assert torch.equal(value, several[name]), name


def test_candidates_are_tried_on_the_same_streams() -> None:
    seeds = [SMALL.build(CANDIDATE, run).seed for run in range(6)]
    assert seeds == [0, 1, 0, 1, 0, 1]
    fresh = {SMALL.build(case, 0).seed for case in SCENARIOS}
    assert len(fresh) == 1
    assert not fresh & set(seeds)


def test_attention_of_a_single_head_is_read_in_the_first_place() -> None:
    task = SMALL.task()
    pairs = task.sample(5, 1)
    model = SMALL.build(CANDIDATE, 0).model
    assert isinstance(model, Seq2Seq)
    read = {item.name: item.read(model) for item in observables(pairs, task.gold, 3)}
    weights = model.attention_weights(model.states(pairs))[:, 0, : SMALL.length]
    expected = (weights.argmax(dim=2) == torch.arange(SMALL.length)).double().mean()
    assert float(read["attention"][0]) == pytest.approx(float(expected))
    assert torch.isnan(read["attention"][1:]).all()
    right = model.log_probabilities(pairs).argmax(dim=2) == pairs.target
    assert float(read["accuracy"]) == pytest.approx(float(right[:, :-1].double().mean()))


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    assert np.isfinite(done["observables/accuracy"]).all()
    q = float(judged(SMALL.trials(SMALL.read(done)))["good"].mean())
    assert float(done["theory/share_learned"]) == pytest.approx(1 - (1 - q) ** SMALL.heads)


def test_claims_figures_and_tables(done: xr.DataTree) -> None:
    found = attnscope.findings(done)
    assert [finding.key for finding in found] == [claim.key for claim in SMALL.claims()]
    assert found[0].verdict == "fails"  # nothing is learned in ten steps
    names = [figure.name for figure in SMALL.figures(SMALL.read(done))]
    assert names == ["fig6-multihead", "single-heads", "attending-heads"]
    scenarios, candidates = SMALL.tables(SMALL.read(done))
    assert [row[0] for row in scenarios.rows] == [CANDIDATE, *SCENARIOS]
    assert [row[1] for row in scenarios.rows] == [6, 2, 2, 2]
    assert "stands in" in scenarios.title
    assert len(candidates.rows) == SMALL.candidates


def test_claims_at_the_outcome_of_the_paper() -> None:
    """All bad fails, one good and random learn: every claim holds and every control fails."""
    rise = np.array([0.05, 0.3, 0.99])
    stay = np.array([0.05, 0.2, 0.3])
    curves = {
        CANDIDATE: np.stack([rise, rise, stay, stay + 0.01, stay, stay + 0.02]),
        ALL_BAD: np.stack([stay, stay + 0.001]),
        ONE_GOOD: np.stack([rise, rise - 0.001]),
        RANDOM: np.stack([rise, rise - 0.001]),
    }
    attention = np.full((12, 3, 3), 0.2)
    attention[8:10, -1, 0] = (0.9, 0.8)
    run = made_up(curves, attention=(("run", "step", "head"), attention))
    study = SMALL.but(points=3, heads=8)  # 1 - (2/3)^8 = 0.96
    run.tree["theory"] = xr.DataTree(xr.Dataset(study.theory(run)))
    for claim in study.claims():
        finding = attnscope.claims.examine(claim, run)
        assert finding.verdict == "holds", (claim.key, finding.ours, finding.low)
        assert finding.control_fails, (claim.key, finding.control)


def test_nothing_is_said_of_bad_heads_where_there_are_none() -> None:
    """Single starts that all learn once made three controls pass."""
    rise = np.array([0.05, 0.3, 0.99])
    curves = {
        CANDIDATE: np.stack([rise] * 6),
        **{case: np.stack([rise, rise - 0.001]) for case in SCENARIOS},
    }
    run = made_up(curves, attention=(("run", "step", "head"), np.full((12, 3, 3), 0.2)))
    study = SMALL.but(points=3, heads=8)
    run.tree["theory"] = xr.DataTree(xr.Dataset(study.theory(run)))
    found = [attnscope.claims.examine(claim, run) for claim in study.claims()]
    assert [each.verdict for each in found] == ["fails", *["undecided"] * 6]
    assert not any(control_passes(each) for each in found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine": "flow"}, "engine = 'flow': expected 'adam'"),
        ({"points": 4}, "expected points a whole number of steps apart"),
        ({"heads": 1}, "heads = 1: expected 2 or more"),
        ({"candidates": 1}, "candidates = 1: expected 2 or more"),
        ({"streams": 0}, "streams = 0: expected 1 or more"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        SMALL.but(**change)
