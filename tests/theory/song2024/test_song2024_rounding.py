"""A certificate never lies: frozen parts, padding, rounding, and what is not finite."""

import importlib
import math

import numpy as np
import pytest
import torch
from certificate_trial import Case, draw, judge
from torch import nn
from torch.nn.utils import parametrize

from attnscope.engines import Flow
from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.models.kernels import KERNELS
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory.song2024 import certify, layer_state, pl_constant, state_from_arrays
from attnscope.theory.song2024.rounding import row_slack

X, Y = RandomRegression(3, 4, 16).sample(1)
FEATURES = importlib.import_module("attnscope.theory.song2024.features")


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_no_certificate_lies(first):
    said = []
    for seed in range(first, first + 30):
        told, wrong = judge(draw(seed, certain=seed % 3 == 0))
        assert not wrong, f"seed {seed}: {told}; {wrong}"
        said.append(told)
    assert {"nothing", "at the start", "for all time"} == set(said)


def _saddle():
    # W^V and W^O of one number each, and a label of 0: W^O goes there, as it is the smaller one.
    layer = KernelAttention(1, 1, 1, 1, trained=("W_V", "W_O")).double()
    with torch.no_grad():
        layer.W_V.fill_(-1.0)
        layer.W_O.fill_(0.5)
    one = torch.ones(1, 1, dtype=torch.float64)
    return Case(layer, one[..., None], 0 * one, None, False, "saddle")


@pytest.mark.parametrize(
    ("mistake", "case"),
    [
        ("W_V learns", lambda: draw(174, certain=True)),
        ("W_O stays", _saddle),
        ("B stays", lambda: draw(189, certain=True)),
        ("no rounding", lambda: draw(232)),
    ],
)
def test_the_trial_finds_mistakes(mistake, case, monkeypatch):
    certificate = importlib.import_module("attnscope.theory.song2024.certificate")
    assert judge(case())[1] == ""
    learns = FEATURES.LayerState.learns
    if mistake == "W_V learns":
        learning = lambda self, name: name == "W_V" or learns(self, name)  # noqa: E731
        monkeypatch.setattr(FEATURES.LayerState, "learns", learning)
    elif mistake == "W_O stays":
        learning = lambda self, name: name != "W_O" and learns(self, name)  # noqa: E731
        monkeypatch.setattr(FEATURES.LayerState, "learns", learning)
    elif mistake == "B stays":
        monkeypatch.setattr(certificate, "feature_shift", lambda state, radius: 0.0)
    else:
        monkeypatch.setattr(certificate, "singular_value_error", lambda matrix: 0.0)
        exact = property(lambda self: np.zeros_like(self.features))
        monkeypatch.setattr(FEATURES.LayerState, "feature_error", exact)
    assert judge(case())[1] != ""


def test_a_frozen_w_v_certifies_nothing():
    model = KernelAttention(16, 2, 8, 1, trained=("W_Q",)).double()
    with torch.no_grad():
        model.W_Q.mul_(60)
        y = model(X) + 1e-8
    found = certify(model, X, y)
    assert (found.beta, found.pl, found.rate) == (0, 0, 0)
    assert not found.for_all_time
    assert found.verdict == ("Theorem 1 does not apply: W^V does not learn. Nothing is certified.")
    assert pl_constant(layer_state(model, X)) == 0


def test_a_frozen_b_is_certified_for_all_time_and_a_w_o_that_learns_uses_the_room():
    fixed = kernel_regression(16, 2, 8, trained=("W_V",))
    found = certify(fixed, X, Y)
    assert found.for_all_time
    assert found.shift == 0
    assert "B does not move" in found.verdict
    x, y = RandomRegression(2, 3, 32).sample(0)
    strong = {"kernel": "softmax", "value_scale": 0, "output_scale": 1e6}
    frozen = kernel_regression(32, 2, 8, **strong)
    learns = kernel_regression(32, 2, 8, trained=("W_Q", "W_K", "W_V", "W_O"), **strong)
    assert certify(frozen, x, y).output_shift == 0
    assert certify(learns, x, y).output_shift == certify(learns, x, y).reach > 0
    assert "W^O by" in certify(learns, x, y).verdict
    # Half the room for W^O, half for B: each alone would do, both together do not.
    near = certify(learns, x, y)
    tight = type(near)(**{**near.__dict__, "output_shift": 0.2 * near.strength})
    assert tight.for_all_time
    both = type(near)(**{**tight.__dict__, "shift": 0.2 * near.sigma_min})
    assert not both.for_all_time


def test_biases_move_b_too():
    model = KernelAttention(16, 2, 8, 1, trained=("W_V",), bias=True).double()
    assert certify(model, X, Y).shift == 0
    assert model.b_Q is not None
    model.b_Q.requires_grad_(True)
    assert certify(model, X, Y).shift > 0


def test_frozen_parts_of_pytorchs_layer():
    layer = nn.MultiheadAttention(16, 2, batch_first=True)
    x, y = torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    assert certify(layer, x, y).rate > 0
    layer.in_proj_weight.requires_grad_(False)
    assert certify(layer, x, y).rate == 0
    assert "W^V does not learn" in certify(layer, x, y).verdict


def test_padding_has_no_label_and_no_row():
    model = kernel_regression(16, 2, 4, seed=1)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[0, 2:] = False
    x, y = X.clone(), Y.clone()
    clean = certify(model, x, y, mask)
    x[0, 2:], y[0, 2:] = 1e3, math.nan
    junk = certify(model, x, y, mask)
    assert junk.labels == clean.labels == 10
    assert junk.loss == pytest.approx(clean.loss, rel=1e-12)
    assert junk.sigma_min == pytest.approx(clean.sigma_min, rel=1e-9)
    assert clean.sigma_min > 0.1
    loss = SquaredError(x, y, mask=mask)
    assert float(loss(model).detach()) == pytest.approx(clean.loss)
    Flow().run(model, loss, time=1.0, record=[])
    assert float(loss(model).detach()) <= clean.bound(1.0)
    nobody = certify(model, x, y, torch.zeros(3, 4, dtype=torch.bool))
    assert nobody.verdict == "Theorem 1 does not apply: there is no token but padding."


def test_sequences_that_permute_each_other_have_no_rank_in_either_precision():
    for seed in range(60):
        torch.manual_seed(seed)
        for dtype in (torch.float32, torch.float64):
            layer = KernelAttention(16, 2, 4, 1).to(dtype)
            one = torch.randn(1, 4, 16, dtype=dtype)
            found = certify(layer, torch.cat([one, one[:, torch.randperm(4)]]))
            assert found.sigma_min == found.rate == 0
            assert "linearly dependent, or within rounding" in found.verdict


def test_the_margin_covers_what_single_precision_does():
    # The same layer in single precision errs by no more than the bound at its unit says.
    ratio = float(np.finfo(np.float32).eps) / FEATURES.UNIT
    for kernel in KERNELS:
        for scale in (0.1, 1.0, 5.0):
            model = kernel_regression(16, 2, 4, kernel=kernel, query_scale=scale).float()
            x = X.float()
            state = layer_state(model, x)
            single = model.features(x).detach().double().numpy()
            exact = state.slack
            assert exact is not None
            share = np.expm1(np.log1p(exact) * ratio) + 8 * ratio * FEATURES.UNIT
            wide = FEATURES.features(share[..., None] * np.abs(state.weights), np.abs(state.x))
            assert (np.abs(single - state.features) <= wide + 1e-30).all()
    huge = row_slack("softmax", np.full((1, 2, 3), 1e200), np.ones((1, 3, 2)), np.ones((1, 3, 2)))
    assert np.isinf(huge).all()


def test_arrays_of_single_precision_are_known_to_their_last_digits_only():
    rng = np.random.default_rng(0)
    s = rng.dirichlet(np.ones(3), size=(1, 1, 3)).reshape(1, 1, 3, 3)
    x = rng.normal(size=(1, 3, 4))
    s[0, 0, 2] = s[0, 0, 1] * (1 + 1e-9 * rng.normal(size=3))
    assert certify(state_from_arrays(s, x, np.ones((1, 2)))).sigma_min > 0
    single = state_from_arrays(s.astype(np.float32), torch.tensor(x), np.ones((1, 2)))
    assert certify(single).sigma_min == 0


def test_what_is_not_finite_or_not_its_own_gets_a_sentence():
    model = kernel_regression(16, 2, 4)
    for bad in (math.nan, math.inf):
        x = X.clone()
        x[1, 2, 3] = bad
        with pytest.raises(AttnscopeError, match=rf"x: {bad} at \(1, 2, 3\), 1 of 192 numbers"):
            certify(model, x, Y)
        y = Y.clone()
        y[0, 0] = bad
        with pytest.raises(AttnscopeError, match=f"y: {bad} at"):
            certify(model, X, y)
    with pytest.raises(AttnscopeError, match="the loss is beyond the largest number"):
        certify(model, X, 1e200 * Y)
    with pytest.raises(AttnscopeError, match="not finite even in double precision"):
        certify(model, 1e300 * X, Y)
    with torch.no_grad():
        model.W_V[0, 0, 0] = math.nan
    with pytest.raises(AttnscopeError, match=r"W_V: nan at \(0, 0, 0\)"):
        certify(model, X, Y)
    with pytest.raises(AttnscopeError, match="weights: nan"):
        state_from_arrays(np.full((1, 1, 2, 2), np.nan), np.ones((1, 2, 3)), np.ones((1, 3)))
    tied = kernel_regression(16, 2, 4)
    tied.W_K = tied.W_V
    with pytest.raises(AttnscopeError, match="W_K and W_V share their numbers"):
        certify(tied, X, Y)
    normed = kernel_regression(16, 2, 4)
    parametrize.register_parametrization(normed, "W_V", nn.Identity())
    with pytest.raises(AttnscopeError, match="computed from other parameters"):
        certify(normed, X, Y)

    class Other(KernelAttention):
        def forward(self, x, mask=None):
            return 2 * super().forward(x, mask)

    with pytest.raises(AttnscopeError, match="Other has a forward pass of its own"):
        certify(Other(16, 2, 4, 1).double(), X, Y)
    dropped = KernelAttention(16, 2, 8, 1, dropout=0.1).double()
    assert "Dropout of 0.1 is left out" in certify(dropped, X, Y).verdict
