"""Sums of rows and shares within them: one model at a point, three around it."""

from __future__ import annotations

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernels import Gaussian, Kernel
from attnscope.models.kernels.row_sums import MOVES, Moves, moving

IDS = torch.randint(0, 9, (3, 6), generator=torch.Generator().manual_seed(1))
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0]], dtype=torch.bool)
KERNELS = ["softmax", "gaussian", "normalised-gaussian", Gaussian(bandwidth=2.0, stretch=1.5)]

pytestmark = pytest.mark.usefixtures("float64")


def made(kernel: str | Kernel) -> KernelClassifier:
    model = KernelClassifier(9, 6, 2, width=8, hidden=8, head_width=4, dropout=0.0).double().eval()
    model.set_kernel(kernel)
    with torch.no_grad():  # queries and keys that tell tokens apart
        for layer in model.attention:
            layer.W_Q.mul_(3)
            layer.W_K.mul_(3)
    return model


def shifted(model: KernelClassifier) -> None:
    source = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for layer in model.attention:
            layer.W_Q.add_(0.2 * torch.randn(layer.W_Q.shape, generator=source))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("mask", [None, MASK], ids=["whole", "padded"])
@pytest.mark.parametrize("moves", MOVES)
def test_in_the_middle_all_are_the_same_model(
    kernel: str | Kernel, mask: torch.Tensor | None, moves: Moves
) -> None:
    model = made(kernel)
    before, weighing = model(IDS, mask), [layer.weighing for layer in model.attention]
    with moving(model, IDS, mask, moves):
        torch.testing.assert_close(model(IDS, mask), before, rtol=1e-11, atol=1e-12)
    assert [layer.weighing for layer in model.attention] == weighing


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_is_held_stays_and_what_moves_is_the_kernels_own(kernel: str | Kernel) -> None:
    model = made(kernel)
    (first, *_), x = model.attention, model.attention_inputs(IDS)[0]
    at = first.weights(x)
    found = {}
    for moves in MOVES:
        with moving(model, IDS, None, moves):
            keep = first.W_Q.detach().clone()
            shifted(model)
            found[moves] = first.weights(x)
            with torch.no_grad():
                first.W_Q.copy_(keep)
    shifted(model)
    own = first.weights(x)

    def sums(weights: torch.Tensor) -> torch.Tensor:
        return weights.sum(-1, keepdim=True)

    torch.testing.assert_close(sums(found["shares"]), sums(at))
    torch.testing.assert_close(found["sums"] / sums(found["sums"]), at / sums(at))
    torch.testing.assert_close(sums(found["sums"]), sums(found["both"]))
    torch.testing.assert_close(
        found["shares"] / sums(found["shares"]), found["both"] / sums(found["both"])
    )
    assert (sums(found["both"]) - sums(at)).abs().max() > 1e-3
    # Where sums are one anyway, holding them changes nothing; elsewhere nothing is held in "both".
    torch.testing.assert_close(found["shares" if first.weighing.normalised else "both"], own)


def test_bad_input_gets_a_sentence_and_the_kernel_comes_back() -> None:
    model = made("gaussian")
    with pytest.raises(AttnscopeError, match="moves = 'rows': expected one of both, sums, shares"):
        moving(model, IDS, None, "rows").__enter__()  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match="a layer with linear attention: expected softmax"):
        moving(made("linear"), IDS, None, "sums").__enter__()
    with pytest.raises(AttnscopeError, match="A sequence has no token at all"):
        moving(model, IDS, torch.zeros_like(MASK), "sums").__enter__()
    with (
        pytest.raises(AttnscopeError, match=r"expected \(3, 2, 6, 6\), those of the batch"),
        moving(model, IDS, None, "sums"),
    ):
        model(IDS[:2])
    assert model.kernel == "gaussian"
