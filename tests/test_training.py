"""A model of one's own, trained in memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope import (
    AttnscopeError,
    Descent,
    Flow,
    Linear,
    LossBelow,
    Observable,
    Record,
    snapshots,
    train,
)


class Point(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))


def bowl(model: nn.Module) -> Tensor:
    return 0.5 * model.get_parameter("x").square().sum()


X = Observable("x", lambda m: m.get_parameter("x"), ("coordinate",), "", "where it is")


def test_descent_is_a_geometric_series() -> None:
    model = Point()
    tree = train(model, bowl, Descent(lr=0.1), time=2.0, record=[Record((X,), Linear(5))])
    x = tree["observables/x"]
    assert x.dims == ("run", "step", "coordinate")
    assert x["epoch"].to_numpy().tolist() == [0, 5, 10, 15, 20]
    expected = 0.9 ** x["epoch"].to_numpy()[:, None] * np.array([1.0, -2.0])
    assert np.allclose(x[0], expected, rtol=1e-13)
    assert np.array_equal(model.x.detach().numpy(), x[0, -1])
    assert tree.attrs["status"] == "finished at step 20"
    assert int(tree["stats/steps"][0]) == 20
    assert x.attrs["meaning"] == "where it is"


def test_flow_decays_exponentially() -> None:
    engine = Flow(rtol=1e-9, atol=1e-12)
    tree = train(Point(), bowl, engine, time=3.0, record=[Record((X,), Linear(7))])
    x = tree["observables/x"]
    expected = np.exp(-x["time"].to_numpy())[:, None] * np.array([1.0, -2.0])
    assert np.allclose(x[0], expected, rtol=1e-6)
    assert "epoch" not in x.coords


def test_parameters_have_a_group_of_their_own() -> None:
    model = Point()
    record = [Record((X,), Linear(3)), snapshots(model, Linear(2))]
    tree = train(model, bowl, Descent(lr=0.1), time=1.0, record=record)
    assert set(tree.children) == {"observables", "params", "stats"}
    assert tree["params/x"].dims == ("run", "snapshot", "x[0]")
    assert np.array_equal(tree["params/x"][0, -1], tree["observables/x"][0, -1])


def test_stopping_early_leaves_nan_and_says_why() -> None:
    tree = train(
        Point(),
        bowl,
        Descent(lr=0.1),
        time=10.0,
        record=[Record((X,), Linear(11))],
        stop=[LossBelow(0.1)],
    )
    assert "the loss fell below 0.1" in tree.attrs["status"]
    # 2.5 · 0.81^k falls below 0.1 at k = 16; points lie at multiples of 10.
    assert int(tree["stats/steps"][0]) == 16
    assert np.isnan(tree["observables/x"][0]).all("coordinate").to_numpy().tolist() == (
        [False] * 2 + [True] * 9
    )


def test_a_diverging_run_says_so() -> None:
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="the run diverged at step"):
        tree = train(Point(), bowl, Descent(lr=3.0), time=300.0, record=[Record((X,), Linear(3))])
    assert tree.attrs["status"].startswith("diverged at step 14 ")
    assert tree["stats/outcome"].item() == "diverged"


def test_time_for_less_than_a_step_is_refused() -> None:

    with pytest.raises(AttnscopeError, match="expected room for one step or more"):
        train(Point(), bowl, Descent(lr=0.1), time=0.01, record=[Record((X,), Linear(3))])


def test_axes_that_do_not_fit_are_refused() -> None:
    model = nn.Linear(2, 1)
    weight = Observable("weight", lambda m: m.weight[0], ("one", "two"))
    with pytest.raises(AttnscopeError, match=r"'weight' has dims .* array of shape \(2,\)"):
        train(
            model,
            lambda m: m.weight.square().sum(),
            Flow(),
            time=1.0,
            record=[Record((weight,), Linear(2))],
        )
