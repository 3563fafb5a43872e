"""The constants of Theorem 1 against gradients, and its bounds against training."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from attnscope.engines import Descent, Flow, Logarithmic, Memory, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory.song2024 import (
    certify,
    layer_state,
    output_strength,
    pl_constant,
    smallest_singular_value,
    state_from_arrays,
)

TASK = RandomRegression(3, 4, 16)


@pytest.mark.parametrize("outputs", [1, 2, 3])
@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_the_gradient_of_w_v_obeys_the_inequality_and_the_best_constant_is_attained(
    kernel, outputs
):
    x, _ = TASK.sample(1)
    model = KernelAttention(
        16, 2, 4, outputs, kernel=kernel, generator=torch.Generator().manual_seed(0)
    ).double()
    state, certificate = layer_state(model, x), certify(model, x)
    assert 0 < certificate.beta <= certificate.pl * (1 + 1e-9)
    # The residual may be anything: take labels that make it so. f/‖∇f‖² at its worst gives μ.
    blocks = np.split(state.features, 2, axis=1)
    rows = [np.kron(block.T, w) for block, w in zip(blocks, state.w_o, strict=True)]
    _, _, vectors = np.linalg.svd(np.concatenate(rows))
    worst = torch.from_numpy(vectors[-1].reshape(3, 4, outputs).squeeze())
    for residual, tight in ((worst, True), (torch.randn_like(worst), False)):
        y = model(x).detach() - residual
        f = 0.5 * (model(x) - y).square().sum()
        (gradient,) = torch.autograd.grad(f, model.W_V)
        constant = float(gradient.square().sum() / (2 * f.detach()))
        assert constant >= certificate.pl * (1 - 1e-9)
        if tight:
            assert constant == pytest.approx(certificate.pl, rel=1e-6)


def test_the_norm_of_the_whole_w_o_is_too_large_a_constant():
    # Head 2 sees nothing of the residual; head 1, which does, has a small W^O.
    b = np.zeros((1, 2, 1, 1))
    b[0, 0] = 1.0
    state = state_from_arrays(b, np.ones((1, 1, 1)), [[0.1], [3.0]])
    assert pl_constant(state) == pytest.approx(0.01)
    printed = np.linalg.norm(state.w_o) ** 2 * smallest_singular_value(state.features) ** 2
    assert printed > 9
    assert certify(state).beta == pytest.approx(0.01)


def test_constants_by_hand():
    assert smallest_singular_value(np.ones((3, 2))) == 0
    assert output_strength([[[3.0], [4.0]], [[0.0], [1.0]]]) == 1
    assert output_strength(np.ones((2, 1, 3))) == 0


def test_below_the_threshold_it_does_not_apply_and_says_so():
    x, y = RandomRegression(9, 4, 16).sample(0)
    certificate = certify(kernel_regression(16, 2, 4), x, y)
    assert not certificate.wide_enough
    assert not certificate.applies
    assert certificate.pl == 0
    assert "HD = 32, Nn = 36" in certificate.verdict
    assert "does not apply" in certificate.verdict


def test_equal_tokens_make_the_rows_dependent():
    x, y = TASK.sample(0)
    x[:, 1] = x[:, 0]
    certificate = certify(kernel_regression(16, 2, 4), x, y)
    assert certificate.wide_enough
    assert not certificate.applies
    assert "linearly dependent" in certificate.verdict
    assert certificate.verdict.endswith("Nothing is certified.")


def test_a_users_layer_is_certified_in_one_call():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 16)
    layer = nn.MultiheadAttention(16, 2, batch_first=True)
    certificate = certify(layer, x, torch.randn(2, 3, 16))
    # 16 outputs and heads of width 8: the product form says nothing, all heads together do.
    assert certificate.beta == 0
    assert certificate.pl > 0
    assert certificate.outputs == 16
    assert certificate.rate == certificate.pl
    assert "All heads together give the PL constant" in certificate.verdict
    out = layer(x, x, x, need_weights=False)[0]
    y = torch.randn(2, 3, 16)
    f = 0.5 * (out - y).square().sum()
    (gradient,) = torch.autograd.grad(f, layer.in_proj_weight)
    assert float(gradient[32:].square().sum()) >= 2 * certificate.pl * float(f.detach()) * 0.999


def test_the_printed_bound_of_descent_holds_with_small_steps():
    x, y = TASK.sample(2)
    for kernel in ("softmax", "gaussian"):
        model = kernel_regression(16, 2, 4, kernel=kernel, seed=2)
        certificate, loss = certify(model, x, y), SquaredError(x, y)
        reading = Observable("loss", lambda module, f=loss: f(module))
        memory = Memory()
        Descent(lr=0.01).run(
            model, loss, time=5.0, record=[Record((reading,), Logarithmic(51, 0.01))], sink=memory
        )
        times = memory.times[0]
        values = memory.arrays[0]["loss"]
        bound = certificate.descent_bound(times / 0.01, 0.01)
        assert values[0] == pytest.approx(bound[0])
        assert (values <= bound * (1 + 1e-12)).all()


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_a_start_with_large_w_o_is_certified_for_all_time_and_keeps_its_word(kernel):
    x, y = RandomRegression(2, 3, 32).sample(0)
    scale = 1e6
    model = kernel_regression(32, 2, 8, kernel=kernel, value_scale=0, output_scale=scale)
    certificate = certify(model, x, y)
    assert certificate.for_all_time
    assert "certified for all time" in certificate.verdict
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    before = layer_state(model, x).features
    time = 1 / certificate.beta
    Flow(rtol=1e-5, atol=1e-13).run(model, SquaredError(x, y), time=time, record=[])
    assert float(SquaredError(x, y)(model).detach()) <= certificate.bound(time)
    parts = [(p.detach() - start[name]).norm() for name, p in model.named_parameters()]
    assert float(torch.stack(parts).norm()) <= certificate.reach
    moved = np.linalg.norm(layer_state(model, x).features - before)
    assert moved <= certificate.shift <= certificate.room
    usual = certify(kernel_regression(32, 2, 8, kernel=kernel), x, y)
    assert usual.applies
    assert not usual.for_all_time
    assert "look along the run" in usual.verdict


def test_without_labels_there_is_no_reach():
    x, _ = TASK.sample(0)
    certificate = certify(kernel_regression(16, 2, 4), x)
    assert math.isnan(certificate.loss)
    assert not certificate.for_all_time
    assert "Give y" in certificate.verdict


def test_what_is_missing_gets_a_sentence():
    x, y = TASK.sample(0)
    model = kernel_regression(16, 2, 4)
    with pytest.raises(AttnscopeError, match="certify without x"):
        certify(model)
    with pytest.raises(AttnscopeError, match=r"y of shape \(2, 4\)"):
        certify(model, x, y[:2])
    state = state_from_arrays(np.ones((1, 1, 2, 2)), np.ones((1, 2, 3)), np.ones((1, 3)))
    with pytest.raises(AttnscopeError, match="y with a state from arrays"):
        certify(state, y=np.ones(2))
    wide = state_from_arrays(np.ones((1, 1, 65, 65)), np.ones((1, 65, 3)), np.ones((1, 3, 64)))
    with pytest.raises(AttnscopeError, match="expected 4096 labels or fewer"):
        pl_constant(wide)
