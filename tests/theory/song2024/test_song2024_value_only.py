"""W^V alone fits every label exactly when B has full row rank: 100 problems of 100."""

import numpy as np
import pytest
import torch

from attnscope.engines import Descent
from attnscope.errors import AttnscopeError
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory.song2024 import layer_state, value_only


def test_the_residual_vanishes_exactly_when_the_rank_is_full_in_100_of_100():
    rng = np.random.default_rng(0)
    right, full = 0, 0
    for trial in range(100):
        width, heads, length = int(rng.integers(3, 9)), int(rng.integers(1, 4)), 2 + trial % 3
        kind = trial % 5
        # H D above, equal to or below N n; for "equal" the length has to divide H D.
        columns = width * heads
        sequences = {0: columns // length - 1, 1: columns // length, 2: columns // length + 1}.get(
            kind % 3, 1
        )
        if kind == 1 and columns % length:
            width, heads, sequences = length * 2, 2, 4
        x, y = RandomRegression(max(1, sequences), length, width).sample(trial)
        if kind == 3:
            # Two tokens alike: rank deficient although wide enough.
            x[0, 1] = x[0, 0]
        if kind == 4:
            # All tokens in a subspace of few dimensions.
            x = x @ torch.diag(torch.tensor([1.0, 1.0] + [0.0] * (width - 2), dtype=x.dtype))
        kernel = ("softmax", "gaussian")[trial % 2]
        model = kernel_regression(width, heads, 4, kernel=kernel, seed=trial)
        b = layer_state(model, x).features
        found = value_only(b, y)
        rank = int(np.linalg.matrix_rank(b))
        assert found.rank == rank
        right += (found.residual < 1e-10) == (rank == len(b))
        full += rank == len(b)
    assert right == 100
    assert 20 < full < 80, "both kinds shall be there"


def test_descent_on_w_v_does_not_get_below_the_residual():
    x, y = RandomRegression(5, 4, 6).sample(0)
    model = kernel_regression(6, 2, 4, trained=("W_V",))
    found = value_only(model.features(x), y)
    assert not found.can_fit
    loss = SquaredError(x, y)
    Descent(lr=0.02).run(model, loss, time=60.0, record=[])
    reached = float(loss.relative(model).detach())
    assert found.residual <= reached < 1.2 * found.residual + 0.02


def test_bad_labels_get_a_sentence():
    with pytest.raises(AttnscopeError, match=r"B of shape \(2, 3\) and 3 labels"):
        value_only(np.ones((2, 3)), np.ones(3))
    with pytest.raises(AttnscopeError, match="not all zero"):
        value_only(np.ones((2, 3)), np.zeros(2))
