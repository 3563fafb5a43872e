"""``snell2021.keyword`` on a small task, from runs to verdicts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.models.sequence_classifier import SequenceClassifier, classifier_loss
from attnscope.trajectory import select
from attnscope.studies.snell2021._keyword_cases import BOTH_WAYS, CASES, ONE_WAY
from attnscope.studies.snell2021._keyword_readings import (
    END,
    HALF,
    HYPOTHESIS_2,
    LAST,
    OBSERVATION_3,
    READINGS,
    TWICE,
    alike,
    apart,
    at,
    moments,
    observables,
    share_from,
)
from attnscope.studies.snell2021.keyword import KeywordDrift
from attnscope.tasks.keyword import LabelledSequences

pytestmark = pytest.mark.xdist_group("snell2021 keyword")  # one fixture for all

SMALL = KeywordDrift(
    seeds=1,
    epochs=80,
    points=31,
    length=10,
    types=10,
    embedding=32,
    hidden=32,
    held_out=200,
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("keyword") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    for name in ("reading", "gamma_around"):
        assert np.isfinite(done[f"observables/{name}"]).all()


def test_uniform_attention_is_uniform(done: xr.DataTree) -> None:
    for case, kind in CASES.items():
        alpha = at(done, "alpha", case, END)
        uniform = kind.attention == "uniform"
        assert bool(np.allclose(alpha, 1 / SMALL.length, rtol=1e-5)) == uniform


def test_claims_are_examined(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    for key in ("early-one-way", "end", "both-ways"):
        assert found[key].verdict == "holds", (key, found[key].ours)
        assert found[key].control_fails, (key, found[key].control)


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    drift, early, around = SMALL.figures(done)
    assert [panel.title for panel in drift.panels] == list(CASES)
    assert len(early.panels) == len(around.panels) == 2
    four, attention = SMALL.tables(done)
    assert [row[0] for row in four.rows] == [case for case in CASES for _ in range(3)]
    assert [row[0] for row in attention.rows] == list(CASES)


def test_readings_are_those_of_the_states() -> None:
    source = torch.tensor([[4, 3, 5, 4], [3, 4, 4, 5], [4, 5, 5, 4]])
    sequences = LabelledSequences(
        source, torch.tensor([1.0, 1.0, 0.0]), torch.tensor([1, 0, -1]), None
    )
    torch.manual_seed(0)
    model = SequenceClassifier(6, embedding=3, hidden=4, attention="uniform").double()
    gamma = model.log_odds(source).detach()
    read = {item.name: item.read(model).detach() for item in observables(sequences)}
    expected = [
        (gamma[0, 1] + gamma[1, 0]) / 2,
        (gamma[0, 2] + gamma[1, 1]) / 2,
        gamma[:2].mean(),
        gamma[:2, 3].mean(),
    ]
    numbers = read["reading"].numpy()
    assert numbers[READINGS["gamma"]] == pytest.approx([float(value) for value in expected])
    assert numbers[READINGS["negative"]] == pytest.approx(float(gamma[2].mean()))
    assert numbers[READINGS["alpha"]] == pytest.approx(np.full(4, 0.25))
    loss = classifier_loss(model, sequences).detach()
    assert numbers[READINGS["loss"]] == pytest.approx(float(loss))
    around = [gamma[0, 0], *((gamma[0, 1 + k] + gamma[1, k]) / 2 for k in (0, 1, 2))]
    # Two before: in none of these sequences.
    assert read["gamma_around"][1:].tolist() == pytest.approx([float(value) for value in around])
    right = (gamma.mean(dim=1) > 0) == (sequences.label > 0)
    assert numbers[READINGS["accuracy"]] == pytest.approx(float(right.double().mean()))


def fake(accuracy: list[float], gamma: np.ndarray) -> xr.DataTree:
    """Return a trajectory of one run at steps 0, 10, 20, ..."""
    steps = 10.0 * np.arange(len(accuracy))
    values = np.full((1, len(steps), 11), np.nan)
    values[..., READINGS["accuracy"]], values[..., READINGS["gamma"]] = accuracy, gamma
    data = xr.Dataset(
        {"reading": (("run", "step", "reading"), values)},
        coords={"time": ("step", steps), "case": ("run", [ONE_WAY])},
    )
    return xr.DataTree.from_dict({"/observables": data})


def test_moments_are_half_and_twice_the_steps_to_learn() -> None:
    tree = fake([0.5, 0.5, 0.8, 0.7, 0.9, 0.9], np.zeros((6, 4)))
    assert [int(moments(tree, ONE_WAY, when)[0]) for when in (HALF, TWICE, END)] == [1, 4, 5]


def test_what_was_not_reached_is_not_a_number() -> None:
    never = fake([0.5, 0.5, 0.6], np.zeros((3, 4)))
    assert np.isnan(at(never, "gamma", ONE_WAY, HALF)).all()
    late = fake([0.5, 0.5, 0.8], np.ones((3, 4)))
    assert np.isnan(at(late, "gamma", ONE_WAY, TWICE)).all()
    assert at(late, "gamma", ONE_WAY, HALF).tolist() == [[1, 1, 1, 1]]


def test_gaps_are_shares_of_the_range() -> None:
    gamma = np.array([[0, 0, 0, 0], [10.0, 4.0, 0.0, 0.5], [3.0, 6.0, 2.0, 12.0]])
    tree = fake([0.5, 0.6, 0.8], gamma)
    assert apart(tree, ONE_WAY, HALF, HYPOTHESIS_2) == pytest.approx([0.35])
    assert alike(tree, ONE_WAY, HALF, HYPOTHESIS_2) == pytest.approx([0.05])
    assert apart(tree, ONE_WAY, END, OBSERVATION_3) == pytest.approx([0.3])
    assert alike(tree, ONE_WAY, END, OBSERVATION_3) == pytest.approx([0.1])
    assert apart(tree, ONE_WAY, END, HYPOTHESIS_2)[0] < 0


def test_two_plateaus(done: xr.DataTree) -> None:
    assert share_from(np.array([0, 1, -1, 3]), 4) == pytest.approx((1 + 0.75 + 0.25) / 3)
    share = share_from(SMALL.read_sequences().position.numpy(), SMALL.length)
    last = at(done, "gamma", BOTH_WAYS, END)[:, LAST]
    expected = share * last + (1 - share) * at(done, "negative", BOTH_WAYS, END)
    ahead = select(done, "gamma_mean", BOTH_WAYS, "theory").isel(step=-1).to_numpy()
    assert ahead == pytest.approx(expected)


def test_no_keyword_stands_last() -> None:
    position = SMALL.read_sequences().position
    assert set(position[position >= 0].tolist()) == set(range(SMALL.length - 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine": "flow"}, "time counts steps"),
        ({"lr": 0.5}, "time counts steps"),
        ({"batch": 0}, "batch = 0: expected 1 or more"),
        ({"length": 3}, "length = 3: expected 4 or more"),
        ({"held_out": 99}, "held_out = 99: expected ten sequences or more"),
        ({"types": 1}, "types = 1: expected 2 or more"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]
