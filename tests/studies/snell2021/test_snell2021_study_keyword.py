"""``snell2021.keyword`` on a small task, from runs to verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.models.sequence_classifier import SequenceClassifier, classifier_loss
from attnscope.studies.snell2021 import KeywordStudy
from attnscope.studies.snell2021.keyword.claims import (
    BOTH_WAYS,
    CASES,
    HYPOTHESIS_2,
    OBSERVATION_3,
    ONE_WAY,
    PLACES,
    UNIFORM,
    alike,
    apart,
    at,
    reading,
)
from attnscope.studies.snell2021.keyword.study import READINGS, observables
from attnscope.tasks.keyword import LabelledSequences
from attnscope.trajectory import Readings, final

pytestmark = pytest.mark.xdist_group("snell2021 keyword")  # one fixture for all

SMALL = KeywordStudy().but(
    seeds=1, steps=80, points=31, length=10, types=10, embedding=32, hidden=32, held_out=200
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("keyword") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    for name in ("reading", "gamma_around"):
        assert np.isfinite(done[f"observables/{name}"]).all()


def test_uniform_attention_is_uniform(done: xr.DataTree) -> None:
    for case in CASES:
        alpha = final(reading(SMALL.read(done).of(case), "α"))
        assert bool(np.allclose(alpha, 1 / SMALL.task.length, rtol=1e-5)) == (case in UNIFORM)


def test_claims_are_examined(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    for key in ("early-one-way", "end", "both-ways"):
        assert found[key].verdict == "holds", (key, found[key].ours)
        assert found[key].control_fails, (key, found[key].control)


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    drift, early, around = SMALL.figures(SMALL.read(done))
    assert [panel.title for panel in drift.panels] == list(CASES)
    assert len(early.panels) == len(around.panels) == 2
    four, attention = SMALL.tables(SMALL.read(done))
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
    numbers = dict(zip(READINGS, read["reading"].tolist(), strict=True))
    for place, value in zip(PLACES, expected, strict=True):
        assert numbers[f"γ {place}"] == pytest.approx(float(value))
        assert numbers[f"α {place}"] == pytest.approx(0.25)
    assert numbers["negative"] == pytest.approx(float(gamma[2].mean()))
    loss = classifier_loss(model, sequences).detach()
    assert numbers["loss"] == pytest.approx(float(loss))
    around = [gamma[0, 0], *((gamma[0, 1 + k] + gamma[1, k]) / 2 for k in (0, 1, 2))]
    # Two before: in none of these sequences.
    assert read["gamma_around"][1:].tolist() == pytest.approx([float(value) for value in around])
    right = (gamma.mean(dim=1) > 0) == (sequences.label > 0)
    assert numbers["accuracy"] == pytest.approx(float(right.double().mean()))


def fake(accuracy: list[float], gamma: np.ndarray) -> Readings:
    """Return the readings of one run at steps 0, 10, 20, ..."""
    steps = 10 * np.arange(len(accuracy))
    values = np.full((1, len(steps), len(READINGS)), np.nan)
    values[..., READINGS.index("accuracy")] = accuracy
    values[..., [READINGS.index(f"γ {place}") for place in PLACES]] = gamma
    runs = {"case": ("run", [ONE_WAY]), "seed": ("run", [0])}
    clock = {"time": ("step", 1.0 * steps), "step": steps}
    data = xr.Dataset({"reading": (("run", "step", "reading"), values)}, coords={**clock, **runs})
    stats = xr.Dataset(coords=runs)
    return SMALL.read(xr.DataTree.from_dict({"/observables": data, "/stats": stats}))


def gammas(run: Readings, when: str) -> xr.DataArray:
    return at(run.of(ONE_WAY), reading(run.of(ONE_WAY), "γ"), when)


def test_moments_are_half_and_twice_the_steps_to_learn() -> None:
    run = fake([0.5, 0.5, 0.8, 0.7, 0.9, 0.9], np.zeros((6, 4))).of(ONE_WAY)
    found = [int(at(run, run.reading["step"], when)[0]) for when in ("half", "twice", "end")]
    assert found == [10, 40, 50]


def test_of_two_record_points_as_near_the_earlier_one_counts() -> None:
    run = fake([0.5, 0.5, 0.5, 0.8], np.zeros((4, 4))).of(ONE_WAY)
    assert int(at(run, run.reading["step"], "half")[0]) == 10


def test_what_was_not_reached_is_not_a_number() -> None:
    never = fake([0.5, 0.5, 0.6], np.zeros((3, 4)))
    assert np.isnan(gammas(never, "half")).all()
    late = fake([0.5, 0.5, 0.8], np.ones((3, 4)))
    assert np.isnan(gammas(late, "twice")).all()
    assert gammas(late, "half").to_numpy().tolist() == [[1, 1, 1, 1]]


def test_gaps_are_shares_of_the_range() -> None:
    gamma = np.array([[0, 0, 0, 0], [10.0, 4.0, 0.0, 0.5], [3.0, 6.0, 2.0, 12.0]])
    run = fake([0.5, 0.6, 0.8], gamma)
    assert float(apart(run, (ONE_WAY, "half", HYPOTHESIS_2))[0]) == pytest.approx(0.35)
    assert float(alike(run, (ONE_WAY, "half", HYPOTHESIS_2))[0]) == pytest.approx(0.05)
    assert float(apart(run, (ONE_WAY, "end", OBSERVATION_3))[0]) == pytest.approx(0.3)
    assert float(alike(run, (ONE_WAY, "end", OBSERVATION_3))[0]) == pytest.approx(0.1)
    assert float(apart(run, (ONE_WAY, "end", HYPOTHESIS_2))[0]) < 0


def test_two_plateaus(done: xr.DataTree) -> None:
    position = SMALL.read_sequences().position.numpy()
    share = np.mean((SMALL.task.length - position[position >= 0]) / SMALL.task.length)
    run = SMALL.read(done).of(BOTH_WAYS)
    last, negative = (final(reading(run, name)) for name in ("γ last", "negative"))
    expected = share * last + (1 - share) * negative
    assert float(final(run.theory.gamma_mean)[0]) == pytest.approx(float(expected[0]))


def test_no_keyword_stands_last() -> None:
    position = SMALL.read_sequences().position
    assert set(position[position >= 0].tolist()) == set(range(SMALL.task.length - 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine": "flow"}, "engine = 'flow': expected 'adam'"),
        ({"lr": 0.5}, "lr = 0.5: snell2021.keyword has no such setting any more"),
        ({"rate": 0.0}, "rate = 0.0: expected a finite number above 0"),
        ({"batch": 0}, "batch = 0: expected 1 or more"),
        ({"length": 3}, "length = 3: expected 4 or more"),
        ({"held_out": 99}, "held_out = 99: expected ten sequences or more"),
        ({"types": 1}, "types = 1: expected 2 or more"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        SMALL.but(**change)


def test_every_step_needs_fresh_sequences() -> None:
    with pytest.raises(AttnscopeError, match="batch = None: expected the number of fresh"):
        SMALL.but(batch=None).build(ONE_WAY, 0)


def test_a_spec_of_an_older_run_still_opens() -> None:
    old = {"seeds": 1, "engine": "descent", "lr": 1.0, "epochs": 80, "points": 31, "correct": False}
    old |= {"rate": 1e-3, "length": 10, "types": 10, "embedding": 32, "hidden": 32}
    assert KeywordStudy.from_json({**old, "batch": 32, "held_out": 200}) == SMALL
