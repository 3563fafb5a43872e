"""Steps that only hand on what is there are read in fewer calls: nothing else may differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.trajectory import open_run
from attnscope.watching import Every, watch
from attnscope.watching.moment import Moment, Reading

STEPS = 20


class Attention(nn.Module):
    """One head that returns its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return what was mixed, and the weights."""
        q, k, v = self.q(x)[:, None], self.k(x)[:, None], self.v(x)[:, None]
        weights = torch.softmax(q @ k.transpose(-1, -2), dim=-1)
        return (weights @ v)[:, 0], weights


def trained(folder: Path, record: list[Any]) -> tuple[Any, list[Tensor], list[float]]:
    """Train; return the run, and weights and losses as the loop itself saw them."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Attention())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    weights, losses = [], []
    with watch(model, folder, record, attention="1") as scope:
        for _ in range(STEPS):
            mixed, seen = model(torch.randn(2, 5, 3))
            loss = mixed.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss)
            weights.append(seen.detach().clone())
            losses.append(loss.item())
    return open_run(folder), weights, losses


def size(model: nn.Module) -> Tensor:
    """Read something that is computed."""
    return next(model.parameters()).norm()


@pytest.mark.parametrize(
    "record",
    [
        pytest.param([Every(1, "attention")], id="alone"),
        pytest.param([Every(1, "attention"), Every(7, size)], id="another-every-7"),
        pytest.param([Every(1, "attention"), Every(2, size)], id="another-every-2"),
        pytest.param([Every(1, "attention", size)], id="computed-at-every-step"),
    ],
)
def test_every_step_is_what_the_model_did(tmp_path: Path, record: list[Any]) -> None:
    """Whatever is read beside, attention and loss of each step are the model's own bits."""
    run, weights, losses = trained(tmp_path / "run", record)
    kept = run["observables"]
    attention = kept["attention"].to_numpy()[0, 1:, 0]
    assert np.array_equal(attention, np.stack([w.numpy() for w in weights]))
    assert np.array_equal(kept["loss"].to_numpy()[0, 1:], np.array(losses, dtype=np.float64))
    for other in record[1:]:
        along = kept["size"].dims[1]
        times = next(v for n, v in kept.coords.items() if v.dims == (along,) and "time" in str(n))
        assert np.array_equal(times, np.arange(0, STEPS + 1, other.steps))


def test_a_plain_reading_that_fails_is_nan_from_there_on(tmp_path: Path) -> None:
    """It is said once; the others go on."""

    def fails_later(moment: Moment) -> float:
        if 5 <= moment.step < 8:
            raise RuntimeError("no more")
        return float(moment.step)

    reading = Reading("later", fails_later, plain=True)
    with pytest.warns(UserWarning, match="'later' can no longer be read") as said:
        run, weights, _ = trained(tmp_path / "run", [Every(1, "attention", reading)])
    assert len([w for w in said if "no longer" in str(w.message)]) == 1
    later = run["observables/later"].to_numpy()[0]
    assert np.array_equal(later[:5], np.arange(5.0))
    assert np.isnan(later[5:]).all()
    last = run["observables/attention"].to_numpy()[0, -1, 0]
    assert np.array_equal(last, weights[-1].numpy())
