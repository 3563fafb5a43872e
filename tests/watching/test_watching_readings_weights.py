"""Weights and gradients as the optimizer sees them, in mixed precision too."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.trajectory import open_run
from attnscope.watching import watch
from attnscope.watching.readings.weights import blocks
from watched_toys import Reader

NAMES = ["weight_norm", "stable_rank", "update_ratio", "gradient_norm"]
NAMES += ["query_key_gradient_ratio", "block_gradient_norm"]


def _parts(model: Reader, of: Any) -> list[Tensor]:
    attention = model.attention
    return [*of(attention.qkv.weight).chunk(3), of(attention.out.weight)]


def _run(
    out: Path, optimizer: Any, *, scaler: Any = None, given: bool = True
) -> tuple[Any, list[dict[str, Any]]]:
    """Train a reader in double precision; return what was recorded and what was there."""
    torch.manual_seed(2)
    model = Reader().double()
    steps = optimizer(model.parameters(), lr=0.05)
    expected = []
    with watch(model, out, NAMES, every=1, optimizer=steps if given else None) as scope:
        for _ in range(3):
            ids = torch.randint(0, 11, (4, 6))
            state = torch.get_rng_state()
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            names = [name for name, _ in model.named_parameters()]
            made = torch.autograd.grad(loss, list(model.parameters()))
            slopes = {id(p): g for p, g in zip(model.parameters(), made, strict=True)}
            before = [part.detach().clone() for part in _parts(model, lambda p: p)]
            torch.set_rng_state(state)
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            if scaler is None:
                loss.backward()
                steps.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(steps)
                scaler.update()
            if given:
                steps.zero_grad()
            scope.step(loss)
            if not given:
                steps.zero_grad()
            after = _parts(model, lambda p: p.detach())
            squares = dict(zip(names, [float(g.square().sum()) for g in made], strict=True))
            groups: dict[str, float] = {}
            for name, square in squares.items():
                block = name.rpartition(".")[0]
                groups[block] = groups.get(block, 0) + square
            gradients = [float(g.norm()) for g in _parts(model, lambda p, s=slopes: s[id(p)])]
            values = [torch.linalg.svdvals(part) for part in after]
            expected.append(
                {
                    "weight_norm": [float(part.norm()) for part in after],
                    "stable_rank": [float(v.square().sum() / v[0] ** 2) for v in values],
                    "update_ratio": [
                        float((a - b).norm() / b.norm()) for a, b in zip(after, before, strict=True)
                    ],
                    "gradient_norm": gradients,
                    "query_key_gradient_ratio": np.sqrt((gradients[0] ** 2 + gradients[1] ** 2) / 2)
                    / gradients[2],
                    "block_gradient_norm": np.sqrt(list(groups.values())),
                }
            )
    return open_run(out)["observables"], expected


def _compare(found: Any, expected: list[dict[str, Any]]) -> None:
    for name in NAMES:
        values = found[name].to_numpy()[0, 1:]
        wanted = np.array([np.reshape(step[name], values.shape[1:]) for step in expected])
        np.testing.assert_allclose(values, wanted, rtol=1e-9, err_msg=name)
    for name in ("update_ratio", "gradient_norm", "block_gradient_norm"):
        assert np.isnan(found[name].to_numpy()[0, 0]).all()


@pytest.mark.parametrize("given", [True, False])
def test_against_autograd(given: bool, tmp_path: Path) -> None:
    _compare(*_run(tmp_path / "run", torch.optim.SGD, given=given))


@pytest.mark.parametrize("fused", [False, True])
def test_under_a_scaled_loss_gradients_are_unscaled(fused: bool, tmp_path: Path) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    # A fused optimizer divides by the scale inside its step, after everybody has looked.
    _compare(*_run(tmp_path / "run", partial(torch.optim.SGD, fused=fused), scaler=scaler))


def test_gradients_that_are_gone_are_said_once(tmp_path: Path) -> None:
    model = Reader()
    with watch(model, tmp_path / "run", ["block_gradient_norm"], every=1) as scope:
        with pytest.warns(UserWarning, match="have no gradients when scope.step is called"):
            scope.step(1.0)
        scope.step(1.0)  # a second warning would be an error


def test_blocks_are_layers_or_modules() -> None:
    model = nn.ModuleDict(
        {
            "embed": nn.Embedding(3, 2),
            "layers": nn.ModuleList([nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2)]),
        }
    )
    assert blocks(model) == {
        "embed": ["embed.weight"],
        "layers.0": ["layers.0.0.weight", "layers.0.0.bias"],
        "layers.1": ["layers.1.weight", "layers.1.bias"],
    }
    assert list(blocks(torch.compile(model, backend="eager"))) == list(blocks(model))  # type: ignore[arg-type]


def test_function_points_and_matrices_may_differ_in_number(tmp_path: Path) -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList([nn.MultiheadAttention(4, 2) for _ in range(3)])

        def forward(self, x: Tensor) -> Tensor:
            for part in self.parts:
                x, self.seen = part(x, x, x)
            return x

    record = ["entropy", "weight_norm"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.randn(5, 2, 4)
        with watch(Deep(), tmp_path / "run", record, probe=x, attention=lambda m: m.seen):
            pass
    found = open_run(tmp_path / "run")["observables"]
    assert found["entropy"].sizes["layer"] == 1
    assert found["weight_norm"].sizes["weight_layer"] == 3
