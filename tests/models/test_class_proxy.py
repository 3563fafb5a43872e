import pytest
import torch
import torch.nn.functional as F

from attnscope.errors import AttnscopeError
from attnscope.models.class_proxy import ClassProxy, class_proxy_loss
from attnscope.tasks.keyword import LabelledSequences


def sequences(mask=None):
    ids = torch.tensor([[3, 4, 4], [5, 3, 0]])
    return LabelledSequences(ids, torch.tensor([1.0, 0.0]), torch.full((2,), -1), mask)


def proxy():
    torch.manual_seed(0)
    return ClassProxy(6, width=8).double()


def test_the_logit_is_that_of_the_mean_embedding():
    model, mask = proxy(), torch.tensor([[True, True, True], [True, True, False]])
    e, w, b = model.embedding.weight, model.readout.weight[0], model.readout.bias
    expected = torch.stack([w @ (e[3] + 2 * e[4]) / 3, w @ (e[5] + e[3]) / 2]) + b
    assert torch.allclose(model.logits(sequences().source, mask), expected, atol=1e-14)


def test_without_a_mask_every_position_counts():
    model = proxy()
    everywhere = torch.ones(2, 3, dtype=torch.bool)
    ids = sequences().source
    assert torch.equal(model.logits(ids), model.logits(ids, everywhere))


def test_the_probe_has_no_bias():
    model = proxy()
    assert torch.allclose(
        model.log_odds_by_word(), model.embedding.weight @ model.readout.weight[0], atol=1e-14
    )


def test_the_loss_is_a_sum():
    model = proxy()
    logits = model.logits(sequences().source)
    expected = F.softplus(-logits[0]) + F.softplus(logits[1])
    assert torch.allclose(class_proxy_loss(model, sequences()), expected, atol=1e-14)


def test_the_start_is_that_of_the_released_code():
    torch.manual_seed(0)
    model = ClassProxy(20000, width=64)
    assert model.embedding.weight.std().item() == pytest.approx(1.0, abs=0.01)
    assert model.readout.weight.abs().max().item() <= 1 / 8


def test_bad_sizes_are_refused():
    with pytest.raises(AttnscopeError, match="vocabulary = 0"):
        ClassProxy(0)
