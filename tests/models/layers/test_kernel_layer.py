"""A layer whose derivative is written out against the same by plain operations, in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.kernels import KERNELS, Gaussian
from attnscope.models.kernels.by_hand import LONGEST
from attnscope.models.layers.kernel_layer import KernelLayer
from attnscope.models.layers.kernel_layer_by_hand import NAMES, parts_of

FAST = ("softmax", "gaussian", "normalised-gaussian")
MASK = torch.tensor([[True] * 5, [True, True, False, True, False], [False] * 5])


def layer(kernel: str, dropout: float = 0.0) -> KernelLayer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        made = KernelLayer(6, 10, 2, 4, kernel, dropout).double()
        with torch.no_grad():
            for norm in (made.norm_1, made.norm_2):  # They begin at 1 and 0, which hides mistakes.
                norm.weight.normal_(), norm.bias.normal_()
    return made


def tokens() -> Tensor:
    source = torch.Generator().manual_seed(5)
    return torch.randn(3, 5, 6, dtype=torch.float64, generator=source).requires_grad_()


def value_and_gradients(
    made: KernelLayer, x: Tensor, mask: Tensor | None, fast: bool
) -> list[Tensor]:
    torch.manual_seed(6)
    out = made(x, mask, fast=fast)
    assert ("ByHand" in type(out.grad_fn).__name__) == fast
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape)
    learn = [x, *(p for p in made.parameters() if p.requires_grad)]
    found = torch.autograd.grad((out * weights).sum(), learn)
    return [out.detach(), *found]


@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
@pytest.mark.parametrize("kernel", FAST)
def test_values_and_gradients_are_those_of_plain_operations(
    kernel: str, mask: Tensor | None
) -> None:
    made, x = layer(kernel), tokens()
    fast = value_and_gradients(made, x, mask, fast=True)
    slow = value_and_gradients(made, x, mask, fast=False)
    assert len(fast) == 2 + len(NAMES)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kernel", FAST)
def test_with_dropout_the_same_numbers_are_drawn(kernel: str) -> None:
    """Both draw for attention, for what it adds, for the hidden entries and for what they add."""
    made, x = layer(kernel, dropout=0.3).train(), tokens()
    fast = value_and_gradients(made, x, MASK, fast=True)
    slow = value_and_gradients(made, x, MASK, fast=False)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)
    still = value_and_gradients(made.eval(), x, MASK, fast=True)
    assert (still[0] - fast[0]).abs().max() > 0.01


def test_what_does_not_learn_gets_no_gradient() -> None:
    made, x = layer("softmax"), tokens()
    for name in ("W_Q", "b_Q", "W_K", "b_K"):
        getattr(made.attention, name).requires_grad_(False)
    fast = value_and_gradients(made, x, None, fast=True)
    slow = value_and_gradients(made, x, None, fast=False)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)
    made(x, None).sum().backward()
    assert made.attention.W_Q.grad is None
    assert made.attention.W_V.grad is not None


@pytest.mark.parametrize("kernel", FAST)
def test_it_can_be_differentiated_twice(kernel: str) -> None:
    made, x = layer(kernel), tokens()
    products = []
    for fast in (True, False):
        out = made(x, MASK, fast=fast).pow(2).sum()
        learn = [x, *made.parameters()]
        first = torch.autograd.grad(out, learn, create_graph=True)
        again = sum(part.pow(2).sum() for part in first)
        products.append(torch.autograd.grad(again, learn))  # type: ignore[arg-type]
    for one, other in zip(*products, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_a_second_derivative_with_dropout_gets_a_sentence() -> None:
    made = layer("softmax", dropout=0.5).train()
    with pytest.raises(AttnscopeError, match=r"dropout = 0.5: expected dropout 0, or the plain"):
        torch.autograd.grad(made(tokens(), None).sum(), made.W_1.weight, create_graph=True)
    made.attention.eager = True
    torch.autograd.grad(made(tokens(), None).sum(), made.W_1.weight, create_graph=True)


def test_names_and_parts_are_in_one_order() -> None:
    made = layer("softmax")
    for name, part in zip(NAMES, parts_of(made), strict=True):
        assert made.get_parameter(name) is part
    assert set(NAMES) == {name for name, _ in made.named_parameters()}


def test_the_plain_path_is_taken_where_something_would_be_lost() -> None:
    def by_hand(made: KernelLayer, x: Tensor) -> bool:
        return "LayerByHand" in type(made(x, None).grad_fn).__name__

    made = layer("softmax")
    assert by_hand(made, tokens())
    seen: list[object] = []
    hook = made.attention.register_forward_hook(lambda *_: seen.append(1))
    assert not by_hand(made, tokens())
    assert seen
    hook.remove()
    made.attention.eager = True
    assert not by_hand(made, tokens())
    made.attention.eager = False
    long = torch.randn(1, LONGEST + 1, 6, dtype=torch.float64)
    assert not by_hand(made, long)
    assert by_hand(made, long[:, 1:])
    made.W_1 = torch.nn.utils.parametrizations.weight_norm(made.W_1)
    assert not by_hand(made, tokens())
    assert [kernel for kernel in KERNELS if not by_hand(layer(kernel), tokens())] == ["linear"]


def test_a_kernel_of_a_name_with_other_settings_is_not_taken_for_it() -> None:
    made, x = layer("gaussian"), tokens()
    wide = Gaussian(bandwidth=3.0)
    made.attention.use(wide)
    assert made.attention.kernel == "gaussian"
    out = made(x, None)
    torch.testing.assert_close(out, made.plain(x, None), rtol=0, atol=0)
    made.attention.use("gaussian")
    assert (made(x, None) - out).abs().max() > 1e-3
