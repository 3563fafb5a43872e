"""The one call that people make: what it finds, says, keeps and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.trajectory import open_run
from attnscope.watching import Reading, watch
from watched_toys import Reader

IDS = torch.tensor([[1, 2, 3, 4, 5], [5, 6, 7, 8, 2]])
OWN = "attention:weights"


def test_what_is_usual_and_what_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Reader()
    with watch(model, tmp_path / "run", probe=IDS, attention=OWN, every=20):
        pass
    said = capsys.readouterr().out
    assert "1 layer of 2 heads" in said
    assert "every 20 steps attention, entropy," in said
    assert "every step loss" in said
    assert "a forward pass of the probe batch" in " ".join(said.split())
    assert "give optimizer=..." in said
    tree = open_run(tmp_path / "run")
    found = set(tree["observables"].data_vars)
    assert {"loss", "attention", "entropy", "weight_norm", "rank_residual"} <= found
    assert not found & {"saliency", "embedding_norm", "topic_ratio", "lexical_probe"}
    spec = json.loads(tree.attrs["spec"])
    assert spec["layers"] == ["attention"]
    assert spec["blocks"] == ["words", "attention.qkv", "attention.out", "norm", "head"]
    assert spec["record"]["every_1"] == {"every": 1, "readings": ["loss"]}
    assert spec["parameters"] == sum(p.numel() for p in model.parameters())


def test_a_model_without_attention_is_recorded_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = nn.Linear(2, 2)
    with watch(model, tmp_path / "run", every=1) as scope:
        model(torch.ones(1, 2)).sum().backward()
        scope.step(3.0)
    assert "no attention was found in this model" in capsys.readouterr().out
    found = open_run(tmp_path / "run")["observables"]
    assert found["loss"].to_numpy()[0, 1] == 3
    np.testing.assert_allclose(found["block_gradient_norm"].to_numpy()[0, 1], [2, np.sqrt(2)])


def test_axes_of_other_lengths_get_other_names(tmp_path: Path) -> None:
    own = Reading("own", lambda moment: torch.ones(3), ("head",))
    free = lambda model: model.head.weight  # noqa: E731
    with watch(Reader(), tmp_path / "run", ["entropy", own, free], probe=IDS, attention=OWN):
        pass
    found = open_run(tmp_path / "run")["observables"]
    assert found["entropy"].dims == ("run", "step", "layer", "head")
    assert found["own"].dims == ("run", "step", "own[0]")
    assert found["head.weight"].shape == (1, 1, 11, 8)


def test_half_precision_is_widened(tmp_path: Path) -> None:
    model = Reader().bfloat16()
    record = ["attention", "entropy", "weight_norm", "stable_rank", "embedding_norm", "saliency"]
    given: dict[str, Any] = {"probe": IDS, "attention": OWN, "words": [1], "targets": IDS}
    with watch(model, tmp_path / "run", record, **given):
        pass
    found = open_run(tmp_path / "run")["observables"]
    for name in record:
        assert np.isfinite(found[name].to_numpy()).all(), name
    norm = model.words.weight[1].float().norm().item()
    np.testing.assert_allclose(found["embedding_norm"].to_numpy()[0, 0, 0], norm, rtol=1e-6)


def test_a_compiled_model_is_watched_with_a_probe_batch(tmp_path: Path) -> None:
    model = Reader()
    compiled: Any = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(compiled.parameters(), lr=0.1)
    record = ["attention", "weight_norm", "gradient_norm"]
    with watch(
        compiled, tmp_path / "run", record, every=1, probe=IDS, attention=OWN, optimizer=optimizer
    ) as scope:
        compiled(IDS).sum().backward()
        optimizer.step()
        scope.step()
    model.eval()
    model(IDS)
    found = open_run(tmp_path / "run")["observables"]
    attention = found["attention"].to_numpy()[0, 1, 0]
    assert np.array_equal(attention, model.attention.weights.detach().numpy())
    assert np.isfinite(found["gradient_norm"].to_numpy()[0, 1]).all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"record": ["entropi"]}, "Did you mean 'entropy'?"),
        ({"attention": "atention"}, "The nearest names are 'attention'"),
        ({"probe": (IDS, IDS)}, "does not take the probe batch"),
        ({"record": ["saliency"]}, "'saliency' needs a probe batch"),
        ({"record": ["saliency"], "probe": IDS}, "'saliency' needs right answers"),
        ({"record": ["topic_ratio"], "probe": IDS}, "'topic_ratio' needs topics of words"),
        ({"words": [12]}, "expected 0 to 10"),
    ],
)
def test_sentences(given: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError) as caught:
        watch(Reader(), tmp_path / "run", **{"attention": OWN, **given})
    assert sentence in str(caught.value)
    assert not (tmp_path / "run").exists()


def _weights(tree: Any, name: str = "attention") -> Any:
    return tree["observables"][name].to_numpy()[0, 0]


def test_hugging_face_with_padding_on_the_left(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=8, n_positions=8, vocab_size=11, attn_implementation="sdpa"
    )
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    batch = {"input_ids": IDS, "attention_mask": mask}
    targets = torch.full_like(IDS, -100)
    targets[:, 2:-1] = IDS[:, 3:]
    before = torch.get_rng_state()
    record = ["attention", "entropy", "mass_first", "rank_residual", "weight_norm", "saliency"]
    with watch(model, tmp_path / "run", record, probe=batch, targets=targets):
        pass
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training
    assert model.config._attn_implementation == "sdpa"
    tree = open_run(tmp_path / "run")
    model.eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        own: tuple[Tensor, ...] = model(**batch, output_attentions=True).attentions
    weights = torch.stack(own).double()
    np.testing.assert_allclose(_weights(tree)[:, 0], weights[:, 0], atol=1e-6)
    np.testing.assert_allclose(_weights(tree)[:, 1, :, 2:], weights[:, 1, :, 2:], atol=1e-6)
    rows = [(0, q, 0) for q in range(5)] + [(1, q, 2) for q in range(2, 5)]
    first = torch.stack([weights[:, r, :, q, k] for r, q, k in rows]).mean(0)
    np.testing.assert_allclose(_weights(tree, "mass_first"), first, rtol=1e-5)
    logs = torch.where(weights > 0, weights * weights.clamp(min=1e-30).log(), 0.0)
    entropy = torch.stack([-logs[:, r, :, q].sum(-1) for r, q, _ in rows]).mean(0)
    np.testing.assert_allclose(_weights(tree, "entropy"), entropy, rtol=1e-5)
    assert np.isfinite(_weights(tree, "weight_norm")).all()
    assert np.isfinite(_weights(tree, "saliency")).all()


def test_an_encoder_and_a_decoder_have_masks_of_their_own(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BartConfig(
        vocab_size=11,
        d_model=8,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        max_position_embeddings=16,
    )
    batch = {
        "input_ids": IDS,
        "attention_mask": torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]),
        "decoder_input_ids": IDS[:, :4],
        "decoder_attention_mask": torch.tensor([[1] * 4, [1, 1, 0, 0]]),
    }
    from attnscope.watching.points import find
    from attnscope.watching.probe import Probe

    model = transformers.BartModel(config)
    probe = Probe(model, batch)
    with probe.beginning() as run:
        points = find(model, None, run)
    probe.watch(points)
    look = probe.evaluate()
    sizes = [tuple(weights.shape[2:]) for weights in look.attention]
    assert sizes == [(5, 5), (4, 4), (4, 5)]
    asking = [part.sum(-1).tolist() for part in look.asking]
    assert asking == [[5, 3], [4, 2], [4, 2]]
    keys = [part.any(1).sum(-1).tolist() for part in look.visible]
    assert keys == [[5, 3], [4, 2], [5, 3]]
    with watch(model, tmp_path / "run", ["attention", "entropy", "mass_self"], probe=batch):
        pass
    tree = open_run(tmp_path / "run")
    assert _weights(tree).shape == (3, 2, 2, 5, 5)
    assert np.isfinite(_weights(tree, "entropy")).all()
    assert np.isnan(_weights(tree, "mass_self")[2]).all()
