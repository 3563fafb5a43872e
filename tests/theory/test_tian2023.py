"""Scan and snap: signs at all times, gains as P², the freeze, and a control that must flip."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope import AttnscopeError
from attnscope.theory import tian2023

CONTEXT = np.array(
    [
        [0.3, 0.15, 0.05, 0.0, 0.0, 0.0, 0.3, 0.2],
        [0.0, 0.0, 0.0, 0.3, 0.15, 0.05, 0.3, 0.2],
    ]
)
TIMES = np.concatenate([[0.0], np.geomspace(1e-2, 1e8, 61)])


@pytest.mark.parametrize("rate", [1.0, 100.0])
def test_distinct_tokens_rise_and_common_ones_fall_at_all_times(rate: float) -> None:
    logits, loss = tian2023.scan_and_snap(CONTEXT, TIMES, rate)
    steps = np.diff(logits, axis=0)[:40] * tian2023.signs(CONTEXT)
    assert (steps > 0).all()
    assert (np.diff(loss) < 1e-9).all()


def test_gains_are_as_the_square_of_frequencies_and_a_fast_decoder_freezes_them() -> None:
    logits, _ = tian2023.scan_and_snap(CONTEXT, TIMES, 100.0)
    end = logits[-1]
    np.testing.assert_allclose(end[:3], [0.376, 0.096, 0.011], atol=1.5e-3)
    gains = tian2023.early_gains(CONTEXT)
    np.testing.assert_allclose(gains[:3] * 36, [36, 9, 1])
    np.testing.assert_allclose(end[:3] / end[0], gains[:3], rtol=0.06)
    slow, _ = tian2023.scan_and_snap(CONTEXT, TIMES, 1.0)
    assert slow[-1, 0] == pytest.approx(1.005, abs=5e-3)
    # From 1e6 to 1e8 it moves by less than a tenth of what it had moved until then.
    assert slow[-1, 0] - slow[-13, 0] < 0.1 * slow[-13, 0]


def test_a_common_token_that_becomes_distinct_changes_its_sign() -> None:
    other = CONTEXT.copy()
    other[1, 6] = 0.0
    other[1] /= other[1].sum()
    assert tian2023.signs(CONTEXT)[6] == -1
    assert tian2023.signs(other)[6] == 1
    logits, _ = tian2023.scan_and_snap(other, TIMES[:30])
    assert logits[-1, 6] > 0


def test_the_flow_is_that_of_automatic_gradients() -> None:
    times = np.array([0.0, 3.0])
    logits, _ = tian2023.scan_and_snap(CONTEXT, times, 2.0)
    z = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    decoder = torch.zeros(2, 8, dtype=torch.float64, requires_grad=True)
    context = torch.as_tensor(CONTEXT)
    for _ in range(3000):
        c = context * z.exp()
        c = c / c.sum(dim=1, keepdim=True)
        h = c / c.norm(dim=1, keepdim=True)
        loss = -torch.log_softmax(h @ decoder.T, dim=1).diagonal().mean()
        by_z, by_decoder = torch.autograd.grad(loss, [z, decoder])
        with torch.no_grad():
            z -= 1e-3 * by_z
            decoder -= 2e-3 * by_decoder
    np.testing.assert_allclose(logits[-1], z.detach().numpy(), atol=2e-3 * logits[-1].max())


def test_what_is_no_distribution_is_said() -> None:
    with pytest.raises(AttnscopeError, match="sum to 1"):
        tian2023.signs(np.array([[0.5, 0.4]]))
