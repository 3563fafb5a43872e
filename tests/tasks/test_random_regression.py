"""Random data: shapes, moments, seeds."""

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks.random_regression import RandomRegression


def test_entries_are_standard_normal_in_double_precision():
    task = RandomRegression(100, 20, 30)
    x, y = task.sample(0)
    assert x.shape == (100, 20, 30)
    assert y.shape == (100, 20)
    assert task.labels == 2000
    assert x.dtype == y.dtype == torch.float64
    for values in (x, y):
        assert abs(float(values.mean())) < 0.05
        assert abs(float(values.std()) - 1) < 0.05


def test_a_seed_is_a_problem():
    task = RandomRegression()
    assert torch.equal(task.sample(1)[0], task.sample(1)[0])
    assert not torch.equal(task.sample(1)[0], task.sample(2)[0])


def test_an_empty_problem_gets_a_sentence():
    with pytest.raises(AttnscopeError, match=r"length = 0: expected 1 or more"):
        RandomRegression(length=0)
