"""The classifiers of Lu 2021, section 5."""

from __future__ import annotations

import math

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models import FixedLinear, TrainableLinear, TwoLayer, classifier

pytestmark = pytest.mark.usefixtures("float64")
DIM, CLASSES = 15, 4


def test_the_papers_fixed_classifier_has_orthonormal_columns(generator: torch.Generator) -> None:
    fixed = classifier("FC", DIM, CLASSES, generator=generator)
    assert fixed.weight.shape == (DIM, CLASSES)
    torch.testing.assert_close(
        fixed.weight.T @ fixed.weight, torch.eye(CLASSES), rtol=0, atol=1e-13
    )


def test_the_released_fixed_classifier_has_ones_on_the_diagonal(
    generator: torch.Generator,
) -> None:
    fixed = classifier("FC-released", DIM, CLASSES, generator=generator)
    assert torch.equal(fixed.weight.diagonal(), torch.ones(CLASSES))
    again = torch.randn(DIM, CLASSES, generator=torch.Generator().manual_seed(7))
    off = ~torch.eye(DIM, CLASSES, dtype=torch.bool)
    assert torch.equal(fixed.weight[off], again[off])
    assert not torch.allclose(fixed.weight.T @ fixed.weight, torch.eye(CLASSES), atol=0.5)


@pytest.mark.parametrize("kind", ["FC", "FC-released"])
def test_a_fixed_classifier_has_nothing_to_train_but_is_saved(kind: str) -> None:
    fixed = classifier(kind, DIM, CLASSES)  # type: ignore[arg-type]
    assert isinstance(fixed, FixedLinear)
    assert list(fixed.parameters()) == []
    assert "weight" in fixed.state_dict()


@pytest.mark.parametrize(("kind", "count"), [("TC", 60), ("TL", 15 * 10 + 10 + 10 * 4 + 4)])
def test_a_trained_classifier_starts_as_pytorchs_linear_does(kind: str, count: int) -> None:
    trained = classifier(kind, DIM, CLASSES)  # type: ignore[arg-type]
    parameters = dict(trained.named_parameters())
    assert sum(p.numel() for p in parameters.values()) == count
    for name, p in parameters.items():
        bound = 1 / math.sqrt(10 if name.startswith("readout") else DIM)
        assert float(p.detach().abs().max()) <= bound
        if p.numel() > 10:
            assert float(p.detach().abs().max()) > 0.8 * bound


def test_linear_classifiers_return_projections(generator: torch.Generator) -> None:
    context = torch.randn(5, DIM, generator=generator)
    for kind in ("FC", "FC-released", "TC"):
        linear = classifier(kind, DIM, CLASSES, generator=generator)  # type: ignore[arg-type]
        logits = linear.rest(linear.first(context))
        torch.testing.assert_close(logits, context @ linear.weight)


def test_two_layers_are_two_linear_modules(generator: torch.Generator) -> None:
    two = TwoLayer(DIM, CLASSES, hidden=6, generator=generator)
    one, other = torch.nn.Linear(DIM, 6), torch.nn.Linear(6, CLASSES)
    with torch.no_grad():
        one.weight.copy_(two.weight.T)
        one.bias.copy_(two.bias)
        other.weight.copy_(two.readout.T)
        other.bias.copy_(two.readout_bias)
    context = 5 * torch.randn(8, DIM, generator=generator)
    torch.testing.assert_close(two.rest(two.first(context)), other(torch.relu(one(context))))


@pytest.mark.parametrize("kind", ["FC", "FC-released", "TC", "TL"])
def test_the_generator_fixes_the_draw(kind: str) -> None:
    def weight(seed: int) -> torch.Tensor:
        source = torch.Generator().manual_seed(seed)
        return classifier(kind, DIM, CLASSES, generator=source).weight  # type: ignore[arg-type]

    assert torch.equal(weight(1), weight(1))
    assert not torch.equal(weight(1), weight(2))


def test_kinds_have_their_classes() -> None:
    assert isinstance(classifier("TC", DIM, CLASSES), TrainableLinear)
    assert isinstance(classifier("TL", DIM, CLASSES), TwoLayer)


def test_a_fixed_classifier_has_a_direction_for_each_topic() -> None:
    with pytest.raises(AttnscopeError, match="dim = 2 with 4 topics: expected 4 dimensions"):
        FixedLinear(2, 4)
    assert FixedLinear(2, 4, orthonormal=False).weight.shape == (2, 4)
