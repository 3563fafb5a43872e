"""Readings of watched models as observables: the same numbers, on one evaluation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attnscope.engines import Adam, Given, Memory, Record
from attnscope.errors import AttnscopeError
from attnscope.models.relative_attention import RelativeTransformer, next_state_loss
from attnscope.tasks.markov_chains import MarkovChains
from attnscope.trajectory import open_run
from attnscope.watching import THEORIES, as_observables, watch

TOKENS = MarkovChains(2, 12).sample(6, 0).tokens
STEPS = 4


def fresh() -> RelativeTransformer:
    """Return the model at its start."""
    source = torch.Generator().manual_seed(0)
    return RelativeTransformer(2, 12, width=8, distance_std=0.2, generator=source).double()


def loss(model: nn.Module) -> torch.Tensor:
    """Return the loss on the sequences."""
    return next_state_loss(model(TOKENS), TOKENS)


def test_a_study_reads_what_watch_records(tmp_path: Path) -> None:
    model = fresh()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with watch(model, tmp_path / "run", list(THEORIES), every=1, probe=TOKENS) as scope:
        for _ in range(STEPS):
            value = loss(model)
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            scope.step(value)
    watched = open_run(tmp_path / "run")["observables"]

    model, sink = fresh(), Memory()
    times = Given(tuple(float(step) for step in range(STEPS + 1)))
    record = Record(as_observables(model, THEORIES, probe=TOKENS), times)
    Adam(rate=1e-2, steps=STEPS).run(model, loss, record=[record], sink=sink)
    for name in THEORIES:
        expected = watched[name].isel(run=0).to_numpy()
        np.testing.assert_allclose(sink.arrays[0][name], expected, rtol=1e-9, atol=1e-12)


def test_the_start_is_that_of_the_model_when_it_was_given() -> None:
    model = fresh()
    (growth,) = as_observables(model, ["rank_growth"], probe=TOKENS)
    with torch.no_grad():
        for layer in model.layers:
            # One direction of the queries: the change of W_KᵀW_Q has rank one.
            layer.query.weight[0] += 1.0  # type: ignore[union-attr, operator]
    found = growth.read(model)[:, 0]
    np.testing.assert_allclose(found[:, 0], 1.0, atol=1e-9)
    assert torch.isnan(found[:, 1]).all()  # values have not changed
    assert growth.coords["product"] == ("KQ", "VO")


def test_readings_share_one_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fresh()
    read = as_observables(model, ["entropy", "entropy_floor", "onset_distance"], probe=TOKENS)
    calls = 0
    forward = RelativeTransformer.forward

    def counted(self: RelativeTransformer, tokens: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return forward(self, tokens)

    monkeypatch.setattr(RelativeTransformer, "forward", counted)
    for _ in range(3):
        values = [each.read(model) for each in read]
    assert calls == 3
    assert (values[0] >= values[1] - 1e-12).all()


def test_what_cannot_be_read_off_a_model_is_said() -> None:
    with pytest.raises(AttnscopeError, match="there is no reading 'entropie'"):
        as_observables(fresh(), ["entropie"], probe=TOKENS)
    with pytest.raises(AttnscopeError, match="'gradient_norm' is read off a step"):
        as_observables(fresh(), ["gradient_norm"], probe=TOKENS)
    plain = nn.Sequential(nn.Embedding(2, 4), nn.Linear(4, 2))
    with (
        pytest.warns(UserWarning, match="no attention was found"),
        pytest.raises(AttnscopeError, match="no attention was found in Sequential"),
    ):
        as_observables(plain, ["entropy"], probe=TOKENS)
