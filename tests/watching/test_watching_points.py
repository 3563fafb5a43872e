from __future__ import annotations

import subprocess
import sys

import torch
from torch import Tensor, nn

from attnscope.watching.introduction import describe
from attnscope.watching.points import COMPILED, find, uncompiled
from watched_toys import Own, Reader


class Upside(nn.Module):
    """Runs its layers in another order than it holds them, and one of them never."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("second", "first", "never"):
            self.add_module(name, nn.MultiheadAttention(8, 2 if name == "first" else 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x, x, x)[0]
        out: Tensor = self.second(x, x, x)[0]
        return out


def test_layers_are_in_the_order_in_which_the_model_holds_or_runs_them() -> None:
    model = Upside()
    assert [point.name for point in find(model)] == ["second", "first", "never"]
    points = find(model, run=lambda: model(torch.zeros(3, 2, 8)))
    assert [(point.name, point.heads) for point in points] == [("first", 2), ("second", 1)]
    paths = find(model, ["second:bias_k", "first"])
    assert [point.name for point in paths] == ["second", "first"]


def test_a_model_without_attention_is_told_what_to_do() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    assert find(model) == []
    assert find(model, run=lambda: model(torch.zeros(1, 3))) == []
    words = describe([], ["loss every 1 step"], "8 B per reading")
    assert "no attention was found" in words
    assert "attention='blocks.*.attn'" in words
    assert words.endswith("  records    loss every 1 step\n  costs      8 B per reading")


def test_what_was_found_is_said_in_aligned_lines() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = nn.TransformerEncoder(layer, 3)
    readings = ["attention every 1 step", "entropy every 100 steps"]
    assert describe(find(model), readings, "1.2 kB per reading").splitlines() == [
        "attnscope watches this model",
        "  attention  3 layers of 2 heads",
        "             layers.{0-2}.self_attn (nn.MultiheadAttention in nn.TransformerEncoderLayer, "
        "2 heads)",
        "  records    attention every 1 step, entropy every 100 steps",
        "  costs      1.2 kB per reading",
    ]


def test_names_are_folded_only_if_nothing_is_lost() -> None:
    def lines(*paths: str) -> list[str]:
        model = nn.ModuleList(nn.ModuleList(nn.Identity() for _ in range(3)) for _ in range(4))
        return [
            line.strip().split(" ")[0]
            for line in describe(find(model, paths), [], "8 B").splitlines()[2:-2]
        ]

    assert lines("0.0", "1.0", "3.0") == ["{0,1,3}.0"]
    assert lines("0.*", "1.*") == ["{0-1}.{0-2}"]
    assert lines("0.0", "1.1", "2.1") == ["0.0", "1.1", "2.1"]


def test_heads_that_are_not_known_yet_are_not_invented() -> None:
    model = Reader()
    ids = torch.zeros(2, 6, dtype=torch.long)
    assert find(model, "attention:weights")[0].heads == 2
    unknown = find(model, lambda model: model.attention.weights)
    assert unknown[0].heads == 0
    assert "1 layer; heads are known after" in describe(unknown, [], "")
    known = find(model, lambda model: model.attention.weights, run=lambda: model(ids))
    assert "1 layer of 2 heads" in describe(known, [], "")
    assert "1 layer of 2 heads" in describe([Own(model)], [], "")


def test_a_compiled_model_is_looked_at_uncompiled() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    compiled = torch.compile(model, backend="eager")
    assert uncompiled(compiled) is model
    assert uncompiled(model) is model
    points = find(compiled)
    assert [point.name for point in points] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert "probe=" in COMPILED
    assert "the model is compiled" in describe(points, [], "")
    kept: list[Tensor] = []
    handle = points[1].attach(kept.append)
    uncompiled(compiled)(torch.zeros(2, 3, 8))
    handle.remove()
    assert [weights.shape for weights in kept] == [(2, 2, 3, 3)]
    assert [point.name for point in find(compiled, "layers.*.self_attn")] == [
        "layers.0.self_attn",
        "layers.1.self_attn",
    ]


def test_compiled_parts_have_the_names_of_what_is_inside() -> None:
    model = nn.Sequential(torch.compile(nn.TransformerEncoderLayer(8, 2, 8), backend="eager"))
    (point,) = find(model)
    assert point.name == "0.self_attn"
    kept: list[Tensor] = []
    handle = point.attach(kept.append)
    with torch.compiler.set_stance("force_eager"):
        model(torch.zeros(3, 2, 8))
    handle.remove()
    assert len(kept) == 1


def test_transformers_is_not_needed() -> None:
    code = (
        "import sys; from torch import nn; from attnscope.watching.points import find; "
        "sys.modules['transformers'] = None; assert find(nn.MultiheadAttention(4, 1))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)
