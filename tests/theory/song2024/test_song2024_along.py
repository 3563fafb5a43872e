"""The certificate along a run, on curves with known integrals and on a flow."""

import numpy as np
import pytest

from attnscope.engines import Flow, Logarithmic, Memory, Observable, Record
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory.song2024 import (
    along,
    certify,
    descent_path_bound,
    layer_state,
    pl_constant,
)


def test_bounds_of_a_constant_that_dips():
    times = np.array([0.0, 1.0, 2.0, 4.0])
    found = along(times, [8.0, 4, 2, 1], [1.0, 0.6, 0.4, 0.8], 1.0)
    assert found.certified.tolist() == [True, True, False, False]
    assert found.until == 1
    np.testing.assert_allclose(found.rate_bound, 8 * np.exp(-times))
    np.testing.assert_allclose(found.path_bound, 8 * np.exp(-2 * np.array([0, 0.6, 1.0, 1.8])))
    assert found.verdict(4.0) == "global convergence certified up to time 1 of 4"


def test_runs_are_followed_together():
    times = np.array([0.0, 1.0])
    found = along(times, np.ones((2, 2)), np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0]))
    assert found.certified.tolist() == [[True, True], [False, False]]
    assert found.until[0] == 1
    assert np.isnan(found.until[1])
    alone = along(times, [1.0, 1.0], [0.0, 0.0], 0.0)
    assert alone.verdict(1.0).startswith("nothing certified")
    whole = along(times, [1.0, 0.1], [1.0, 1.0], 1.0)
    assert "up to the end of the run" in whole.verdict(1.0)


def test_the_product_for_descent():
    np.testing.assert_allclose(descent_path_bound(8.0, [1.0, 2.0], 0.25), [8.0, 6.0, 3.0])


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_a_flow_stays_below_both_bounds(kernel):
    x, y = RandomRegression(3, 4, 16).sample(3)
    model, loss, memory = (
        kernel_regression(16, 2, 8, kernel=kernel, seed=3),
        SquaredError(x, y),
        Memory(),
    )
    beta = certify(model, x, y).beta

    def pl(module):
        return module.W_Q.new_tensor(pl_constant(layer_state(module, x)))

    readings = (Observable("loss", loss), Observable("pl", pl))
    Flow().run(
        model, loss, time=10.0, record=[Record(readings, Logarithmic(81, 1e-3))], sink=memory
    )
    f, mu = (memory.arrays[0][name] for name in ("loss", "pl"))
    found = along(memory.times[0], f, mu, beta)
    assert found.certified.sum() > 5
    assert (f <= found.path_bound * (1 + 1e-9)).all()
    assert (f <= found.rate_bound * (1 + 1e-9))[found.certified].all()
    # The wrong constant, one that asks for too much, is found out.
    greedy = along(memory.times[0], f, 1e5 * mu, 1e5 * beta)
    assert not (f <= greedy.path_bound).all()
