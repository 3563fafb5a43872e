"""After a look everything about a model is as it was before."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.watching.undisturbed import bare, undisturbed


class Restless(nn.Module):
    """Changes all that a module can change when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm, self.dropout = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("replaced", torch.ones(2))
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.replaced = torch.zeros(2)
        self.last = x + random.random() + np.random.rand() + torch.rand(())  # noqa: NPY002
        self.made_late = x
        self.register_buffer("late", x)
        out: Tensor = self.norm(self.dropout(self.fc(x)))
        return out


def test_everything_is_as_it_was() -> None:
    model = Restless()
    model.norm.eval()  # frozen by its owner, in the middle of a model that trains
    kept = torch.ones(1)
    model.last = kept
    replaced, x = model.replaced, torch.randn(4, 3)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(1)
    random.seed(2)
    np.random.seed(3)  # noqa: NPY002
    with undisturbed(model):
        assert not any(module.training for module in model.modules())
        model(x)
        assert model.count == 1
    assert model.training
    assert model.dropout.training
    assert not model.norm.training
    assert model.last is kept
    assert model.replaced is replaced
    assert not hasattr(model, "made_late")
    assert not hasattr(model, "late")
    assert state.keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    drawn = (torch.rand(()), random.random(), np.random.rand())  # noqa: NPY002
    torch.manual_seed(1)
    random.seed(2)
    np.random.seed(3)  # noqa: NPY002
    assert drawn == (torch.rand(()), random.random(), np.random.rand())  # noqa: NPY002


def test_an_error_inside_changes_nothing_either() -> None:
    model = Restless()
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), undisturbed(model):
        model(torch.randn(4, 5))
    assert model.training
    assert model.count == 0
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.backends.mha.get_fastpath_enabled()


def test_mixed_precision_around_a_look_keeps_its_gradients() -> None:
    model, x = nn.Linear(3, 3), torch.randn(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        with torch.no_grad(), undisturbed(model):
            model(x)
        model(x).sum().backward()
    assert model.weight.grad is not None
    assert torch.is_autocast_cache_enabled()


def test_the_model_inside_wrappers() -> None:
    model = nn.Linear(2, 2)
    assert bare(model) is model
    assert bare(torch.compile(model, backend="eager")) is model  # type: ignore[arg-type]
    assert bare(nn.DataParallel(model)) is model
