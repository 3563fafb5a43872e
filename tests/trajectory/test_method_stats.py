"""What a flow says of its methods is kept with the trajectory."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from attnscope import Descent, Flow, train
from attnscope.trajectory.method_stats import method_stats


class Bowl(nn.Module):
    """½ Σ c x²: stiff."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.ones(2, dtype=torch.float64))

    def forward(self) -> torch.Tensor:
        return 0.5 * (torch.tensor([100.0, 0.1]) * self.x * self.x).sum()


def test_gradients_sharpness_and_switches_are_in_the_tree() -> None:
    tree = train(Bowl(), lambda m: m(), Flow(), time=20.0, record=[])
    stats = tree["stats"].to_dataset()
    assert int(stats["gradients"].sum()) == int(stats["evaluations"][0])
    assert float(stats["gradients"].sel(solver="chebyshev")[0]) > 0
    np.testing.assert_allclose(stats["sharpness"][0], 100, rtol=0.05)
    assert (np.diff(stats["sharpness_time"][0]) >= 0).all()
    assert "chebyshev, since steps" in str(stats["switches"].values[0])


def test_runs_that_looked_less_often_end_in_nan_and_descent_says_nothing() -> None:
    flow = {"gradients": {"chebyshev": 3}, "sharpness": [[0.0, 5.0], [1.0, 6.0]], "switches": ["a"]}
    found = method_stats([flow, {"gradients": {"dormand-prince": 7}}, {}])
    assert found["gradients"].values.tolist() == [[3, 0], [0, 7], [0, 0]]
    assert np.isnan(found["sharpness"].values[1:]).all()
    assert found["sharpness_time"].values[0].tolist() == [0.0, 1.0]
    assert not method_stats([{}])
    tree = train(Bowl(), lambda m: m(), Descent(lr=0.01), time=1.0, record=[])
    assert "gradients" not in tree["stats"].to_dataset()
