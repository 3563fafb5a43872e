"""Training is the same to the last bit, whatever is recorded at every step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.trajectory import open_run
from attnscope.watching import watch
from attnscope.watching.readings import catalogue
from attnscope.watching.readings.offer import WatchedModel
from watched_toys import Reader

IDS = torch.tensor([[1, 2, 3, 4, 5, 2, 9, 10], [5, 6, 7, 8, 2, 3, 3, 1]])
ALL = ["loss", *catalogue(WatchedModel(nn.Linear(1, 1)))]


class Encoder(nn.Module):
    """PyTorch's own encoder, with one part that its owner keeps in evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.frozen = nn.Dropout(0.5)
        self.head = nn.Linear(8, 11)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.frozen(self.encoder(self.words(ids)))
        out: Tensor = self.head(x)
        return out


Start = Callable[[nn.Module, torch.optim.Optimizer], Any]


def _train(make: type[nn.Module], start: Start | None) -> tuple[nn.Module, list[float], list[Any]]:
    torch.manual_seed(7)
    model = make()
    if isinstance(model, Encoder):
        model.frozen.eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses, gradients = [], []
    scope = None if start is None else start(model, optimizer).__enter__()
    for _ in range(6):
        ids = torch.randint(0, 11, (4, 5))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        if scope is not None:
            scope.step(loss)
        losses.append(loss.item())
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    if scope is not None:
        scope.__exit__(None, None, None)
    return model, losses, [gradients, torch.get_rng_state(), [m.training for m in model.modules()]]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


@pytest.mark.parametrize("make", [Reader, Encoder])
@pytest.mark.parametrize("with_probe", [True, False])
def test_with_every_reading_at_every_step(
    make: type[nn.Module], with_probe: bool, tmp_path: Path
) -> None:
    own = "attention:weights" if make is Reader else None
    given: dict[str, Any] = {"attention": own}
    record: list[Any] = [lambda model: model(IDS).mean()]
    if with_probe:
        given |= {"probe": IDS, "targets": IDS, "words": [1, 2], "topics": [0, 1] * 5 + [1]}
        record += ALL
    else:
        record += ["attention", "entropy", "weight_norm", "update_ratio", "gradient_norm"]

    def start(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        return watch(model, tmp_path / "run", record, every=1, optimizer=optimizer, **given)

    plain, losses, rest = _train(make, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watched, again, other = _train(make, start)
    assert again == losses
    for name, value in watched.state_dict().items():
        assert torch.equal(value, plain.state_dict()[name]), name
    assert _equal(other, rest)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in watched.modules())
    found = open_run(tmp_path / "run")["observables"]
    assert found["loss"].to_numpy()[0, 1:].tolist() == losses
    names = [name for name in record if isinstance(name, str)]
    assert set(found.data_vars) == {"loss", "mean", *names}
    for name in names:
        assert found[name].sizes["step"] == 7
        assert np.isfinite(found[name].to_numpy()[0, -1]).any(), name
