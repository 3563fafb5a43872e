"""Named readings of a watched run, each against what the model itself says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnscope.errors import AttnscopeError
from attnscope.trajectory import open_run
from attnscope.watching import Every, mass_on, watch
from attnscope.watching.readings.embeddings import read_words
from attnscope.watching.readings.lexical import log_likelihood
from attnscope.watching.readings.topics import read_topics
from watched_toys import Reader

IDS = torch.tensor([[1, 2, 3, 4, 2], [5, 6, 7, 8, 1]])


@pytest.fixture(autouse=True)
def _double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _reader() -> Reader:
    torch.manual_seed(0)
    model = Reader()
    with torch.no_grad():
        model.attention.qkv.weight.mul_(4)
    return model


def _readings(model: nn.Module, out: Path, record: Any, **given: Any) -> Any:
    """Return what is read before the first step."""
    if isinstance(model, Reader):
        given.setdefault("attention", "attention:weights")
    with watch(model, out, record, probe=given.pop("probe", IDS), **given):
        pass
    found = open_run(out)["observables"]
    return {str(name): value.to_numpy()[0, 0] for name, value in found.data_vars.items()}


def _evaluate(model: Reader, embeddings: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return logits and weights of a reader, written out."""
    model.eval()
    x = model.words(IDS) if embeddings is None else embeddings
    x = x + model.attention(x)
    x = model.norm(x.transpose(1, 2)).transpose(1, 2)
    return model.head(x), model.attention.weights.detach()


def test_attention(tmp_path: Path) -> None:
    model = _reader()
    names = ["attention", "entropy", "max_attention", "mass_previous", "mass_self", "mass_first"]
    found = _readings(
        model, tmp_path / "run", [*names, "onset_distance", "distance_to_uniform", mass_on([-1, 1])]
    )
    weights = _evaluate(model)[1]
    assert np.array_equal(found["attention"][0], weights.numpy())
    entropy = -(weights * weights.log()).sum(-1).mean((0, 2))
    np.testing.assert_allclose(found["entropy"][0], entropy, rtol=1e-12)
    np.testing.assert_allclose(found["max_attention"][0], weights.amax(-1).mean((0, 2)))
    before = torch.diagonal(weights, -1, -2, -1)
    np.testing.assert_allclose(found["mass_previous"][0], before.mean((0, 2)))
    np.testing.assert_allclose(
        found["mass_self"][0], torch.diagonal(weights, 0, -2, -1).mean((0, 2))
    )
    np.testing.assert_allclose(found["mass_first"][0], weights[..., 0].mean((0, 2)))
    np.testing.assert_allclose(found["mass_on_-1_1"][0], weights[..., [1, 4]].sum(-1).mean((0, 2)))
    apart = 0.5 * (weights - 0.2).abs().sum(-1).mean((0, 2))
    np.testing.assert_allclose(found["distance_to_uniform"][0], apart, rtol=1e-12)
    np.testing.assert_allclose(found["onset_distance"][0], apart.max(), rtol=1e-12)


def test_depth(tmp_path: Path) -> None:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    x = torch.randn(2, 4, 6)
    found = _readings(model, tmp_path / "run", ["rank_residual", "token_similarity"], probe=x)
    model.eval()
    for index in range(3):
        with torch.no_grad():
            x = model.layers[index](x)
        centred = x - x.mean(1, keepdim=True)
        expected = (centred.flatten(1).norm(dim=1) / x.flatten(1).norm(dim=1)).mean()
        np.testing.assert_allclose(found["rank_residual"][index], expected, rtol=1e-9)
        unit = F.normalize(x, dim=-1)
        cosines = (unit @ unit.mT).sum((1, 2)) - 4
        np.testing.assert_allclose(
            found["token_similarity"][index], (cosines / 12).mean(), rtol=1e-9
        )


def test_words(tmp_path: Path) -> None:
    model = _reader()
    found = _readings(
        model, tmp_path / "run", ["embedding_norm", "word_score"], words={"two": 2, "nine": 9}
    )
    np.testing.assert_allclose(
        found["embedding_norm"], model.words.weight[[2, 9]].norm(dim=1).detach(), rtol=1e-12
    )
    logs = _evaluate(model)[1].log()[0]  # 'two' is at positions 1 and 4 of row 0
    score = logs[..., [1, 4]].mean((1, 2)) - logs[..., [0, 2, 3]].mean((1, 2))
    np.testing.assert_allclose(found["word_score"][0, :, 0], score, rtol=1e-12)
    assert np.isnan(found["word_score"][0, :, 1]).all()
    spec = json.loads(open_run(tmp_path / "run").attrs["spec"])
    assert spec["words"] == {"two": 2, "nine": 9}
    assert spec["ids"] == IDS.tolist()


def test_saliency_is_the_derivative_by_a_factor(tmp_path: Path) -> None:
    model = _reader()
    targets = torch.where(IDS == 2, -100, IDS)
    found = _readings(
        model, tmp_path / "run", ["saliency", "probe_loss", "lexical_probe"], targets=targets
    )

    def losses(gate: Tensor) -> Tensor:
        logits, _ = _evaluate(model, model.words(IDS) * gate[..., None])
        parts = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        return parts.sum(1) / (targets != -100).sum(1)

    with torch.no_grad():
        np.testing.assert_allclose(found["probe_loss"], losses(torch.ones(2, 5)).mean(), rtol=1e-12)
        for row, position in np.ndindex(2, 5):
            gate = torch.ones(2, 2, 5)
            gate[0, row, position] += 1e-5
            gate[1, row, position] -= 1e-5
            slope = (losses(gate[0])[row] - losses(gate[1])[row]) / 2e-5
            np.testing.assert_allclose(found["saliency"][row, position], -slope, atol=1e-8)
        for position in range(5):
            gate = F.one_hot(torch.tensor(position), 5).double()
            logits, _ = _evaluate(model, model.words(IDS) * gate[..., None])
            chance = logits.softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0]
            expected = chance.masked_fill(targets == -100, torch.nan)
            np.testing.assert_allclose(found["lexical_probe"][..., position], expected, rtol=1e-12)


def test_answers_of_classifiers() -> None:
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, -100])
    found = log_likelihood((logits,), labels)
    np.testing.assert_allclose(found[:3], logits.log_softmax(-1)[range(3), labels[:3]])
    assert found[3] == 0
    odds = torch.randn(4, 1)
    binary = log_likelihood({"logits": odds}, torch.tensor([1, 0, 1, 0]))
    sign = torch.tensor([1, -1, 1, -1])
    np.testing.assert_allclose(binary, (sign * odds[:, 0]).sigmoid().log(), rtol=1e-10)
    with pytest.raises(AttnscopeError, match="the target of a position is the next word"):
        log_likelihood(torch.randn(2, 5, 7), torch.zeros(2, 4))
    with pytest.raises(AttnscopeError, match="returned a str"):
        log_likelihood("no", labels)


def test_topics(tmp_path: Path) -> None:
    model = _reader()
    (tmp_path / "topics.txt").write_text("# word topic\n1 0\n2 0\n3 1\n5 1\n6,0\n\n7 1\n8 0\n")
    found = _readings(
        model,
        tmp_path / "run",
        ["topic_ratio", "topic_attention"],
        topics=tmp_path / "topics.txt",
    )
    topic = {1: 0, 2: 0, 3: 1, 5: 1, 6: 0, 7: 1, 8: 0}
    weights = _evaluate(model)[1].numpy()
    kinds: list[list[Any]] = [[], [], []]
    for row, query, key in np.ndindex(2, 5, 5):
        a, b = int(IDS[row, query]), int(IDS[row, key])
        if a in topic and b in topic:
            kind = 0 if a == b else 1 if topic[a] == topic[b] else 2
            kinds[kind].append(weights[row, :, query, key] * 5 / 100)
    means = np.stack([np.mean(part, axis=0) for part in kinds], axis=-1)
    np.testing.assert_allclose(found["topic_attention"][0], means, rtol=1e-12)
    np.testing.assert_allclose(found["topic_ratio"][0], means[:, 1] / means[:, 2], rtol=1e-12)


def test_topics_and_words_from_what_people_have(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text('{"3": 1, "0": 2}')
    for given in (tmp_path / "topics.json", {3: 1, 0: 2}, [2, -1, -1, 1]):
        assert read_topics(given).tolist() == [2, -1, -1, 1]
    (tmp_path / "wrong.txt").write_text("1 2 3\n")
    (tmp_path / "wrong.json").write_text("{")
    for wrong, sentence in (
        (tmp_path / "none", "cannot be read"),
        (tmp_path / "wrong.txt", "line 1 is '1 2 3': expected a word number and a topic"),
        (tmp_path / "wrong.json", "expected JSON"),
        ({"cat": 1}, "expected topic numbers by word number"),
        ([0.5], "expected topic numbers by word number"),
        ({}, "no words"),
    ):
        with pytest.raises(AttnscopeError, match=sentence):
            read_topics(wrong)  # type: ignore[arg-type]
    model = _reader()
    assert read_words([3, 4], model) == {"3": 3, "4": 4}
    with pytest.raises(AttnscopeError, match="'cat' is no word number"):
        read_words(["cat"], model)  # type: ignore[list-item]
    with pytest.raises(AttnscopeError, match="number 11: expected 0 to 10"):
        read_words({"cat": 11}, model)


def test_without_a_probe_batch_attention_is_that_of_training(tmp_path: Path) -> None:
    model, kept = _reader(), []
    record = [lambda m: m(IDS).sum(), "attention", Every(2, "entropy")]
    with watch(model, tmp_path / "run", record, every=1, attention="attention:weights") as scope:
        for rows in (3, 3, 2, 3):
            model(torch.randint(0, 11, (rows, 5)))
            kept.append(model.attention.weights.detach().numpy())
            if rows == 2:
                with pytest.warns(UserWarning, match="has the shape .* such steps are NaN"):
                    scope.step()
            else:
                scope.step()
            assert model.attention.weights.shape[0] == rows
    found = open_run(tmp_path / "run")["observables"]
    attention = found["attention"].to_numpy()[0, :, 0]
    assert np.isnan(attention[[0, 3]]).all()
    for step in (1, 2, 4):
        assert np.array_equal(attention[step], kept[step - 1])
    entropy = [-(w * np.log(w)).sum(-1).mean((0, 2)) for w in (kept[1], kept[3])]
    np.testing.assert_allclose(found["entropy"].to_numpy()[0, 1:, 0], entropy, rtol=1e-12)
