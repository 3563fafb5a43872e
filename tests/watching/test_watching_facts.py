"""What is written down about an optimizer and the blocks, for advice that knows them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn

from attnscope.trajectory import open_run
from attnscope.watching import watch
from attnscope.watching.facts import block_facts, optimizer_facts
from attnscope.watching.points import search


def encoder(first: bool) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def test_an_optimizer_and_what_it_does_not_hold() -> None:
    model = encoder(True)
    held = [p for name, p in model.named_parameters() if name.startswith("layers.0.")]
    optimizer = torch.optim.AdamW(
        [{"params": held[:2], "lr": 0.5}, {"params": held[2:]}], lr=1e-3, weight_decay=0.1
    )
    found = optimizer_facts(optimizer, model)
    assert found is not None
    assert found["name"] == "AdamW"
    assert [group["lr"] for group in found["groups"]] == [0.5, 1e-3]
    assert found["groups"][1]["weight_decay"] == 0.1
    assert sum(group["parameters"] for group in found["groups"]) == sum(p.numel() for p in held)
    assert len(found["left_out"]) == 12
    assert all(name.startswith("layers.1.") for name in found["left_out"])
    json.dumps(found, allow_nan=False)


def test_parameters_that_are_frozen_on_purpose_are_not_left_out() -> None:
    model = encoder(True)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith("layers.1."))
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    found = optimizer_facts(optimizer, model)
    assert found is not None
    assert found["left_out"] == []
    assert block_facts(model, ())["frozen"] > 0


def test_no_optimizer_is_no_fact() -> None:
    assert optimizer_facts(None, encoder(True)) is None


def test_where_norms_stand() -> None:
    for first in (True, False):
        model = encoder(first)
        facts = block_facts(model, search(model, None).points)
        assert facts["norm_first"] is first
        assert (facts["attentions"], facts["norms"], facts["query_key_norm"]) == (2, 4, False)


def test_a_recording_keeps_them(tmp_path: Path) -> None:
    model = encoder(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    with watch(model, tmp_path / "run", ["entropy"], optimizer=optimizer):
        pass
    spec = json.loads(open_run(tmp_path / "run").attrs["spec"])
    assert spec["optimizer"]["name"] == "Adam"
    assert spec["optimizer"]["groups"][0]["betas"] == [0.9, 0.999]
    assert spec["architecture"]["norm_first"] is False
