"""The rank of what attention learned, against singular values of the whole products."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from attnscope.trajectory import open_run
from attnscope.watching import watch
from attnscope.watching.readings.rank_growth import stable_rank_of_change
from watched_toys import Reader


def slow(matrix: Tensor) -> float:
    values = torch.linalg.svdvals(matrix)
    return float((values**2).sum() / values[0] ** 2)


def test_factors_are_enough() -> None:
    torch.manual_seed(0)
    left, right, left0, right0 = torch.randn(4, 3, 8, dtype=torch.float64)
    found = stable_rank_of_change(left, right, left0, right0)
    assert found.item() == pytest.approx(slow(left.T @ right - left0.T @ right0))
    assert stable_rank_of_change(left, right, left, right).isnan()
    one = left.clone()
    one[0] += 1
    moved = stable_rank_of_change(one, right, left, right)
    assert moved.item() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["torch", "own"])
def test_every_head_of_a_trained_layer(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(1)
    if kind == "torch":
        model: nn.Module = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        batch: Tensor = torch.randn(4, 5, 8, dtype=torch.float64)
        attention, fused, out = model.self_attn, model.self_attn.in_proj_weight, "out_proj"
    else:
        model, batch = Reader(), torch.randint(0, 11, (4, 6))
        attention, fused, out = model.attention, model.attention.qkv.weight, "out"
    model = model.double()
    output = getattr(attention, out).weight
    before = [fused.detach().clone(), output.detach().clone()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, tmp_path / "run", ["rank_growth"], every=1, optimizer=optimizer) as scope:
        for _ in range(2):
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            scope.step(loss)
    found = open_run(tmp_path / "run")["observables/rank_growth"].isel(run=0)
    assert found.isel(step=0).isnull().all()
    heads = found.sizes["head"]
    for head in range(heads):
        products = []
        for whole, o in (before, (fused.detach(), output.detach())):
            q, k, v = (part.unflatten(0, (heads, -1))[head] for part in whole.chunk(3))
            products.append((k.T @ q, v.T @ o.T.unflatten(0, (heads, -1))[head]))
        for name, old, new in zip(("KQ", "VO"), *products, strict=True):
            read = found.isel(step=-1, head=head).sel(product=name).item()
            assert read == pytest.approx(slow(new - old), rel=1e-6)


def test_what_has_no_matrices_says_so(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="were not recognised"):
        watch(nn.Linear(2, 2), tmp_path / "run", ["rank_growth"])
