"""The probe batch in all its forms, and what is known about its positions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.points import find
from attnscope.watching.probe import Probe, input_embedding
from watched_toys import Own, Reader

IDS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])


def _answer(model: nn.Module, *args: Tensor, **named: Tensor) -> Tensor:
    model.eval()
    with torch.no_grad():
        out: Tensor = model(*args, **named)
    return out


@pytest.mark.parametrize(
    "batch",
    [IDS, (IDS,), [IDS], {"ids": IDS}, lambda model: model(IDS)],
    ids=["tensor", "tuple", "list", "dictionary", "function"],
)
def test_every_form_gives_the_same(batch: Any) -> None:
    model = Reader()
    probe = Probe(model, batch)
    probe.watch([Own(model)])
    look = probe.evaluate()
    assert torch.equal(look.output, _answer(model, IDS))  # type: ignore[arg-type]
    assert torch.equal(look.attention[0], model.attention.weights)
    assert look.ids is not None
    assert torch.equal(look.ids, IDS)
    assert look.hidden[0].shape == (2, 4, 8)
    assert look.visible[0].all()
    assert look.asking[0].all()


def test_gradients_are_not_touched() -> None:
    model = Reader()
    probe = Probe(model, IDS)
    probe.watch([Own(model)])
    probe.evaluate()
    with torch.enable_grad():
        probe.through(lambda e: e.detach().requires_grad_())
    assert all(p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def _encoder(batch_first: bool = True) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=batch_first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=batch_first)


@pytest.mark.parametrize("batch_first", [True, False])
def test_padding_is_left_out(batch_first: bool) -> None:
    model, x = _encoder(batch_first), torch.randn(2, 5, 8)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    src = x if batch_first else x.transpose(0, 1)
    probe = Probe(model, {"src": src, "src_key_padding_mask": padding})
    probe.watch(find(model))
    look = probe.evaluate()
    assert len(look.attention) == 2
    for index in range(2):
        assert torch.equal(look.asking[index], ~padding)
        allowed = ~padding[:, None, :] & ~padding[:, :, None]
        assert torch.equal(look.visible[index], allowed)
        assert look.hidden[index].shape == (2, 5, 8)
    # The same positions come out when the batch does not say what is padding.
    own = Probe(model, lambda m: m(src, src_key_padding_mask=padding))
    own.watch(find(model))
    assert torch.equal(own.evaluate().asking[0], ~padding)


def test_what_was_once_visible_stays_visible() -> None:
    model = Reader()
    probe = Probe(model, IDS)
    probe.watch([Own(model)])
    probe.evaluate()
    with torch.no_grad():
        model.attention.qkv.weight.mul_(1e4)  # attention collapses, and weights underflow
    look = probe.evaluate()
    assert (look.attention[0] == 0).any()
    assert look.visible[0].all()


def test_a_batch_elsewhere_is_moved_or_a_sentence() -> None:
    model = Reader().to("meta")
    assert Probe(model, IDS).run().device.type == "meta"  # type: ignore[attr-defined]
    with pytest.raises(AttnscopeError, match="on 'meta' and the model on 'cpu'"):
        Probe(Reader(), IDS.to("meta")).run()


def test_what_cannot_be_meant_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="probe of type int: expected a tensor"):
        Probe(Reader(), 3)  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match="does not take the probe batch"):
        Probe(Reader(), (IDS, IDS)).run()
    with pytest.raises(AttnscopeError, match="lazy modules"):
        Probe(nn.LazyLinear(3), torch.ones(1, 2))
    with pytest.raises(AttnscopeError, match="no input embedding"):
        Probe(nn.Linear(2, 2), torch.ones(1, 2)).through(lambda e: e)


def test_the_embedding_of_words_is_found() -> None:
    model = nn.ModuleDict({"pos_emb": nn.Embedding(9, 2), "wte": nn.Embedding(5, 2)})
    assert input_embedding(model) is model["wte"]
    assert input_embedding(nn.Linear(1, 1)) is None


def test_a_compiled_model_is_shown_uncompiled() -> None:
    model = Reader()
    compiled = torch.compile(model, backend="eager")
    probe = Probe(compiled, IDS)  # type: ignore[arg-type]
    probe.watch([Own(model)])
    assert torch.equal(probe.evaluate().output, _answer(model, IDS))  # type: ignore[arg-type]
