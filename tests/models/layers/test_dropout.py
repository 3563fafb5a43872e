"""Cheap dropout against the obvious one on the same bits, and against chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnscope.models.layers.dropout import drop, kept, realised


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (5,), (3, 7), (2, 3, 4, 5)])
def test_entry_by_entry_from_the_same_bits(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.ones(shape, dtype=dtype)
    torch.manual_seed(3)
    fast = kept(x, 0.3)
    torch.manual_seed(3)
    words = np.random.SFC64(int(torch.randint(2**62, ()))).random_raw(x.numel())
    slow = []
    for entry in range(x.numel()):
        bits = (int(words[entry // 4]) >> 16 * (entry % 4)) & 0xFFFF
        slow.append(0.0 if bits < 0.3 * 2**16 else 1 / (1 - realised(0.3)))
    assert fast.shape == x.shape
    assert fast.dtype == dtype
    assert torch.equal(fast.flatten(), torch.tensor(slow, dtype=dtype))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_shares_means_and_neighbours_are_those_of_coins(share: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(1000, 1000)
    factor = kept(x, share)
    error = math.sqrt(share * (1 - share) / x.numel())
    zero = (factor == 0).double()
    assert abs(float(zero.mean()) - share) < 4 * error
    assert abs(float(factor.double().mean()) - 1) < 4 * error / (1 - share)
    for apart in (1, 2, 4, 1000):
        first, second = zero.flatten()[:-apart], zero.flatten()[apart:]
        both = float((first * second).mean())
        assert abs(both - share**2) < 5 * error
    assert not torch.equal(factor, kept(x, share))


def test_the_global_source_decides_and_a_kept_state_goes_on() -> None:
    x = torch.ones(50)
    torch.manual_seed(1)
    first, state = drop(x, 0.5), torch.get_rng_state()
    second = drop(x, 0.5)
    torch.set_rng_state(state)
    assert torch.equal(drop(x, 0.5), second)
    torch.manual_seed(1)
    assert torch.equal(drop(x, 0.5), first)


def test_at_rest_and_without_a_share_nothing_is_drawn() -> None:
    x, state = torch.ones(5), torch.get_rng_state()
    assert drop(x, 0.5, training=False) is x
    assert drop(x, 0.0) is x
    assert torch.equal(torch.get_rng_state(), state)


def test_the_gradient_is_the_factor() -> None:
    x = torch.randn(40, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(2)
    drop(x, 0.25).sum().backward()
    torch.manual_seed(2)
    assert torch.equal(x.grad, kept(x, 0.25))  # type: ignore[arg-type]


def test_shares_close_to_nothing_and_to_all_stay_inside() -> None:
    assert realised(1e-9) == 2**-16
    assert realised(1 - 1e-9) == 1 - 2**-16
    assert abs(realised(0.1) - 0.1) <= 2**-17
