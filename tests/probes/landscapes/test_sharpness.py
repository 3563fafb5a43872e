from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.probes.landscapes.sharpness import hessian_trace, sharpness


class Quadratic(nn.Module):
    """1/2 xᵀ A x + c · y, with a known spectrum of A."""

    def __init__(self, spectrum: np.ndarray) -> None:
        super().__init__()
        size = len(spectrum)
        chance = np.random.default_rng(0)
        turn, _ = np.linalg.qr(chance.standard_normal((size, size)))
        self.A = torch.as_tensor(turn * spectrum @ turn.T)
        self.x = nn.Parameter(torch.as_tensor(chance.standard_normal(size)))
        self.y = nn.Parameter(torch.ones(3, dtype=torch.float64), requires_grad=False)


def half(model: Quadratic) -> Tensor:
    return 0.5 * model.x @ model.A @ model.x + model.y.sum()


SPECTRUM = np.concatenate([[-7.0, -1.0], np.linspace(0, 3, 36), [5.0, 11.0]])


@pytest.mark.parametrize("method", ["exact", "lanczos"])
def test_the_spectrum_of_a_quadratic_form(method: str) -> None:
    model = Quadratic(SPECTRUM)
    top = sharpness(model, half, "x", count=3, method=method)
    np.testing.assert_allclose(top.eigenvalues, [11, 5, 3], rtol=1e-7)
    low = sharpness(model, half, "x", count=2, end="smallest", method=method)
    np.testing.assert_allclose(low.eigenvalues, [-7, -1], rtol=1e-7)
    assert top.method == method
    assert top.residuals.max() < 1e-6
    assert top.size == 40
    assert top.products > 0


def test_a_block_leaves_the_others_alone() -> None:
    model = Quadratic(SPECTRUM)
    assert sharpness(model, half, "*").eigenvalues == pytest.approx(11)
    assert sharpness(model, half, "y").eigenvalues == pytest.approx(0, abs=1e-12)
    assert not model.y.requires_grad
    assert model.x.requires_grad
    assert model.x.grad is None


def test_lanczos_agrees_with_the_whole_hessian_of_attention() -> None:
    source = torch.Generator().manual_seed(0)
    x = torch.randn(3, 5, 4, generator=source, dtype=torch.float64)
    for kernel in ("softmax", "gaussian"):
        model = KernelAttention(4, 2, kernel=kernel, generator=source).double()
        exact, lanczos = (
            sharpness(model, lambda m: m(x).square().sum(), ("W_Q", "W_K"), count=3, method=method)
            for method in ("exact", "lanczos")
        )
        np.testing.assert_allclose(lanczos.eigenvalues, exact.eigenvalues, rtol=1e-6)
        assert exact.eigenvalues[0] > 0
        again = sharpness(
            model, lambda m: m(x).square().sum(), ("W_Q", "W_K"), count=3, method="lanczos"
        )
        np.testing.assert_array_equal(again.eigenvalues, lanczos.eigenvalues)


def test_the_trace_is_within_its_error() -> None:
    model = Quadratic(SPECTRUM)
    trace, error = hessian_trace(model, half, "x", samples=400)
    assert abs(trace - SPECTRUM.sum()) < 4 * error
    assert error < 0.1 * SPECTRUM.sum()
    assert hessian_trace(Quadratic(np.ones(5)), half, "x") == pytest.approx((5.0, 0.0))


class Fused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 8, generator=torch.Generator().manual_seed(0)))


def fused(model: Fused) -> Tensor:
    x = torch.linspace(-1, 1, 16 * 8).view(1, 1, 16, 8) @ model.w
    return F.scaled_dot_product_attention(x, x, x).square().sum()


def test_fused_attention_gets_a_sentence_and_the_path_it_names_works() -> None:
    with pytest.raises(AttnscopeError, match=r"sdpa_kernel\(SDPBackend\.MATH\)"):
        sharpness(Fused(), fused)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert np.isfinite(sharpness(Fused(), fused).eigenvalues).all()


def test_the_model_is_bit_identical_afterwards_and_other_errors_pass() -> None:
    model = Quadratic(SPECTRUM)
    before = model.x.detach().clone()

    def breaks(model: Quadratic) -> Tensor:
        raise RuntimeError("unrelated")

    with pytest.raises(RuntimeError, match="unrelated"):
        sharpness(model, breaks)
    sharpness(model, half)
    assert torch.equal(model.x, before)
    assert not model.y.requires_grad


def test_what_has_no_spectrum_gets_a_sentence() -> None:
    model = Quadratic(SPECTRUM)
    with pytest.raises(AttnscopeError, match="count = 41: expected 1 to 40"):
        sharpness(model, half, "x", count=41)
    with pytest.raises(AttnscopeError, match="no gradient in x"):
        sharpness(model, lambda m: m.y.sum().detach(), "x")
    with pytest.raises(AttnscopeError, match="The loss is nan"):
        sharpness(model, lambda m: m.x.sum() * np.nan, "x")
    with pytest.raises(AttnscopeError, match="end = 'top'"):
        sharpness(model, half, "x", end="top")
    with pytest.raises(AttnscopeError, match="method = 'power'"):
        sharpness(model, half, "x", method="power")
    with pytest.raises(AttnscopeError, match="named 'z'"):
        sharpness(model, half, "z")
    with pytest.raises(AttnscopeError, match="samples = 1"):
        hessian_trace(model, half, "x", samples=1)
