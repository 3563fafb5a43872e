"""The largest rate of decay, against the loss's own gradient and against layers in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_regression import SquaredError, kernel_regression
from attnscope.tasks.random_regression import RandomRegression
from attnscope.theory import song2024


def made(
    kernel: str, seed: int, sequences: int = 3, **more: object
) -> tuple[KernelAttention, SquaredError]:
    x, y = RandomRegression(sequences, 4, 5).sample(seed)
    return kernel_regression(5, 2, 3, kernel=kernel, seed=seed, **more), SquaredError(x, y, 4.0)  # type: ignore[arg-type]


def falls(model: KernelAttention, loss: SquaredError) -> float:
    """Return -d log f/dt at the state: ‖∇f‖² over f."""
    value = loss(model)
    parts = torch.autograd.grad(value, [p for p in model.parameters() if p.requires_grad])
    return float(sum(part.square().sum() for part in parts) / value.detach())


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("seed", range(5))
def test_no_loss_falls_faster(kernel: str, seed: int) -> None:
    model, loss = made(kernel, seed)
    assert 0 < falls(model, loss) < song2024.fastest_rate(model, loss)
    assert model.eager is False


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_it_is_reached_along_the_first_eigenvector(kernel: str) -> None:
    model, loss = made(kernel, 1)
    names = [name for name, p in model.named_parameters() if p.requires_grad]

    def output(*values: torch.Tensor) -> torch.Tensor:
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(model, given, (loss.x,)).reshape(-1)

    model.eager = True
    values = tuple(model.get_parameter(name).detach() for name in names)
    parts = torch.autograd.functional.jacobian(output, values)
    jacobian = torch.cat([part.flatten(1) for part in parts], dim=1)
    first = torch.linalg.svd(jacobian)[0][:, 0].reshape(loss.y.shape)
    with torch.no_grad():
        aligned = SquaredError(loss.x, model(loss.x) - first, 4.0)
    np.testing.assert_allclose(falls(model, aligned), song2024.fastest_rate(model, aligned))


def test_with_values_alone_it_is_the_largest_eigenvalue_of_the_features() -> None:
    model, loss = made("softmax", 2, trained=("W_V",))
    state = song2024.layer_state(model, loss.x)
    blocks = state.features.reshape(12, 2, 5) * np.linalg.norm(state.w_o, axis=(1, 2))[:, None]
    largest = np.linalg.norm(blocks.reshape(12, 10), 2) ** 2
    np.testing.assert_allclose(song2024.fastest_rate(model, loss), 2 * largest / 4.0)


def test_nothing_learns_nothing_falls() -> None:
    assert song2024.fastest_rate(*made("softmax", 0, trained=())) == 0.0
