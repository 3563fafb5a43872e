"""What is read while sequences are copied, on models and trajectories whose readings are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from _copying_tree import trajectory
from torch import Tensor

from attnscope.models.seq2seq import Seq2Seq, Seq2SeqReadings
from attnscope.studies.snell2021._copying_study import (
    OFFSETS,
    READINGS,
    CountTableStudy,
    curve,
    known_unattended,
    observables,
    reaches,
)
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import END, SequencePairs
from attnscope.trajectory import Readings

TASK = Copying(length=3, types=4, reorder_seed=1)


class Scripted(Seq2Seq):
    """A model that attends to and knows given positions, and says given words."""

    def __init__(self, attended: Tensor, known: Tensor, said: Tensor) -> None:
        super().__init__(TASK.vocabulary, embedding=2, hidden=2)
        self.attended, self.known, self.said = attended, known, said

    def attention_weights(self, states: object) -> Tensor:
        sharp = torch.nn.functional.one_hot(self.attended, 4).double()
        return (0.8 * sharp + 0.05)[None, None].expand(len(self.said), 1, 4, 4)

    def evaluate(self, pairs: SequencePairs) -> Seq2SeqReadings:
        known = torch.nn.functional.one_hot(self.known, 4).double()
        beta = (0.5 * known + 0.1).expand(len(self.said), 4, 4)
        right = torch.full(self.said.shape, 0.25).log()
        return Seq2SeqReadings(self.attention_weights(None), beta.log(), right, self.said)


def read(model: Seq2Seq, pairs: SequencePairs) -> tuple[dict[str, float], dict[int, float]]:
    values, offsets = (item.read(model) for item in observables(pairs, TASK.gold))
    return (
        dict(zip(READINGS, values.tolist(), strict=True)),
        dict(zip(OFFSETS, offsets.tolist(), strict=True)),
    )


def test_a_model_that_does_everything_right() -> None:
    pairs = TASK.sample(5, 0)
    values, offsets = read(Scripted(TASK.gold, TASK.gold, pairs.target), pairs)
    assert values["accuracy"] == values["attention"] == values["knowledge"] == 1
    assert values["agreement"] == 1
    assert values["loss"] == pytest.approx(np.log(4))
    assert values["beta gold"] == pytest.approx(0.6)
    assert values["beta rest"] == pytest.approx(0.1)
    assert values["gap"] == pytest.approx(np.log(6))
    assert values["alpha gold"] == pytest.approx(0.85)
    assert values["at end"] == 0
    assert values["entropy"] == pytest.approx(-0.85 * np.log(0.85) - 0.15 * np.log(0.05))
    assert offsets[0] == 1
    assert sum(offsets.values()) == 1


def test_a_model_that_looks_at_the_end_and_knows_elsewhere() -> None:
    pairs = TASK.sample(5, 0)
    said = pairs.target.clone()
    said[:, 0] = END
    last = torch.full((4,), 3)
    # Words 0, 1 and 2 stand at three positions before END; each is known one position later.
    values, offsets = read(Scripted(last, TASK.gold + 1 - (TASK.gold == 3).long(), said), pairs)
    assert values["accuracy"] == pytest.approx(2 / 3)
    assert (values["attention"], values["at end"], values["knowledge"]) == (0, 1, 0)
    assert values["agreement"] == pytest.approx(
        1 / 3
    )  # of the word at the last place, known at END
    assert values["alpha gold"] == pytest.approx(0.05)
    assert [offsets[away] for away in (1, 2, 3)] == pytest.approx([1 / 3] * 3)


def test_reading_changes_neither_model_nor_random_numbers() -> None:
    pairs = TASK.sample(3, 0)
    model = Seq2Seq(TASK.vocabulary, embedding=4, hidden=4, projection=True)
    before = [p.clone() for p in model.parameters()]
    state = torch.get_rng_state()
    read(model, pairs)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def fake(**curves: list[list[float]]) -> Readings:
    """Return runs of the case "a" with given readings at steps 0, 10 and 20."""
    seeds = range(len(next(iter(curves.values()))))
    known = {("a", seed): {name: runs[seed] for name, runs in curves.items()} for seed in seeds}
    return Readings(trajectory([0, 10, 20], known), CountTableStudy.labels).of("a")


def test_levels_are_reached_between_record_points_or_never() -> None:
    run = fake(accuracy=[[0.0, 0.4, 0.8], [0.1, 0.2, 0.3], [0.7, 0.8, 0.9]])
    np.testing.assert_allclose(reaches(run, "accuracy", 0.5), [12.5, 20.0, 0.0])
    np.testing.assert_array_equal(curve(run, "accuracy").sel(step=10), [0.4, 0.2, 0.8])
    np.testing.assert_array_equal(curve(run, "loss"), np.zeros((3, 3)))


def test_knowledge_counts_only_before_attention() -> None:
    run = fake(
        knowledge=[[0.1, 0.6, 1.0], [0.1, 0.6, 1.0], [0.9, 0.9, 0.9]],
        attention=[[0.05, 0.05, 0.3], [0.05, 0.05, 0.05], [0.2, 0.2, 0.2]],
        accuracy=[[0.0, 0.2, 0.4]] * 3,
    )
    np.testing.assert_array_equal(known_unattended(run), [0.6, 1.0, 0.0])
    np.testing.assert_array_equal(known_unattended(run, "accuracy"), [0.2, 0.4, 0.0])


def test_what_lies_between_the_first_two_record_points_is_not_known() -> None:
    """At width 256 words were known and attended to within ten steps, and that counted as none."""
    run = fake(knowledge=[[0.0, 0.9, 1.0]] * 2, attention=[[0.02, 0.12, 0.9], [0.02, 0.08, 0.9]])
    np.testing.assert_array_equal(known_unattended(run), [np.nan, 0.9])
