"""Recorded attention is the model's own, and sums are those of a plain loop over pairs."""

from __future__ import annotations

import dataclasses
from itertools import chain
from typing import Any

import numpy as np
import pretrained_toys as toys
import pytest
import torch
from torch import Tensor, nn
from transformers import BartConfig, BartModel, LlamaConfig, LlamaModel

from attnscope.errors import AttnscopeError
from attnscope.pretrained.language_model import Encoded, LanguageModel
from attnscope.pretrained.loading import from_hugging_face
from attnscope.pretrained.measuring import attend, measure, measure_batch
from attnscope.pretrained.plan import MeasurementPlan, count_cooccurrence, make_plan
from attnscope.probes.topics.topic_pairs import DIFFERENT, SAME
from attnscope.topics.filter import TopicVocabulary
from fake_device import NAMED, fake_device_by_name

TEXTS = [*toys.documents(6, words=12), "the of and", "cruiser in navy and moon of cruiser"]
PIECES = len(toys.tokenizer())


def chosen(overlap: bool = False) -> TopicVocabulary:
    topics = {word: frozenset({n}) for n, topic in enumerate(toys.TOPICS) for word in topic}
    if overlap:
        topics["moon"] |= {0}
    return TopicVocabulary(tuple(sorted(topics)), topics, 0.001, overlap)


@pytest.fixture(scope="module")
def plan() -> MeasurementPlan:
    return count_cooccurrence(make_plan([chosen(), chosen(True)]), TEXTS)


def llama() -> Any:
    torch.manual_seed(1)
    sizes = {"hidden_size": 32, "intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
    return LlamaModel(LlamaConfig(vocab_size=PIECES, **sizes, **heads)).eval()


def bart() -> Any:
    torch.manual_seed(2)
    sizes = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 16}
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    made = BartConfig(vocab_size=PIECES, max_position_embeddings=64, **sizes, **heads, **special)
    return BartModel(made).eval()


MODELS = {"encoder": toys.planted, "decoder": llama, "encoder-decoder": bart}


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", MODELS)
def test_recorded_weights_are_those_of_output_attentions(kind: str, implementation: str) -> None:
    model = MODELS[kind]()
    language_model = from_hugging_face("toy", model, toys.tokenizer())
    encoded = language_model.encode(TEXTS, 64)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(**encoded.batch, output_attentions=True)
    wanted = [
        layer
        for name in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
        for layer in getattr(output, name, None) or ()
    ]
    model.set_attn_implementation(implementation)
    kept: list[Tensor] = []
    attend(language_model, encoded, kept.append)
    assert len(kept) == len(wanted)
    real = encoded.batch["attention_mask"].bool()
    for layer in kept:
        # Every recorded layer is one of the returned ones; rows of padding may be anything.
        rows = layer.transpose(1, 2)[real]
        gaps = [float((rows - other.transpose(1, 2)[real]).abs().max()) for other in wanted]
        assert min(gaps) < 1e-6


@pytest.mark.parametrize("kind", MODELS)
def test_sums_are_those_of_a_loop(plan: MeasurementPlan, kind: str) -> None:
    language_model = from_hugging_face("toy", MODELS[kind](), toys.tokenizer())
    encoded = language_model.encode(TEXTS, 64)
    kept: list[Tensor] = []
    attend(language_model, encoded, kept.append)
    found = list(measure(language_model, TEXTS, plan, length=64, batch=len(TEXTS)))
    pieces = toys.tokenizer().get_vocab()
    names = {number: name for name, number in pieces.items()}
    for row, sums in enumerate(found):
        ids = encoded.ids[row].tolist()
        words: list[tuple[str, list[int]]] = []
        for place, number in enumerate(ids):
            if names[number] == "##er":
                words[-1][1].append(place)
            elif (name := names[number].replace("cruis", "cruiser")) in plan.numbers:
                words.append((name, [place]))
        assert sums.words == len(words)
        for layer, weights in enumerate(kept):
            seen = (weights[row] > 0).any(dim=0)
            total, count = torch.zeros(2, weights.shape[1]), [0, 0]
            for one, here in words:
                for other, there in words:
                    cells = [(q, k) for q in here for k in there]
                    if one == other or not all(seen[q, k] for q, k in cells):
                        continue
                    kind_ = SAME if chosen().same(one, other) else DIFFERENT
                    each = [weights[row, :, q, k] * seen[q].sum() / 100 for q, k in cells]
                    total[kind_] += torch.stack(each).mean(dim=0)
                    count[kind_] += 1
            np.testing.assert_allclose(
                sums.attention[0, :2, layer], total.numpy(), rtol=2e-5, atol=1e-6
            )
            assert sums.pairs[0, :2, layer].tolist() == count


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_on_a_device_is_read_as_on_the_cpu(
    kind: str, plan: MeasurementPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = from_hugging_face("toy", MODELS[kind](), toys.tokenizer())
    twin = own.twin(3)
    here = [measure_batch(each, TEXTS, plan, 64) for each in (own, twin)]
    with fake_device_by_name(monkeypatch) as sides:
        there = own.on(NAMED)
        assert there.on(NAMED) is there
        found = [measure_batch(each, TEXTS, plan, 64) for each in (there, there.twin(3))]
    assert sides.passed["moved"]
    for ours, theirs in zip(chain(*here), chain(*found), strict=True):
        for field in dataclasses.fields(ours):
            np.testing.assert_array_equal(
                getattr(ours, field.name), getattr(theirs, field.name), field.name
            )


def test_topics_that_were_planted_are_found_and_random_weights_have_none(
    plan: MeasurementPlan,
) -> None:
    language_model = from_hugging_face("toy", toys.planted(), toys.tokenizer())
    texts = toys.documents(40)

    def ratio(one: LanguageModel) -> tuple[np.ndarray, float]:
        every = list(measure(one, texts, plan, length=64))
        sums = sum(each.attention[0, :2] for each in every)
        counts = sum(each.pairs[0, :2] for each in every)[..., None]
        vectors = sum(each.vectors[0, :2, 0, 0] for each in every)
        cosine = vectors / sum(each.vector_pairs[0, :2] for each in every)
        means = sums / counts
        return means[SAME] / means[DIFFERENT], cosine[SAME] - cosine[DIFFERENT]

    heads, gap = ratio(language_model)
    assert heads[0, 0] > 1.5  # topics are in the first dimensions, those of the first head
    assert heads[1] == pytest.approx(1, abs=0.05)
    assert gap > 0.5
    twin, none = ratio(language_model.twin(3))
    assert twin == pytest.approx(1, abs=0.02)
    assert abs(none) < 0.1


def test_uniform_attention_is_a_hundredth_at_any_length(plan: MeasurementPlan) -> None:
    for model in (toys.planted(strength=0.0), llama()):
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "q_proj" in name or "query" in name:
                    weight.zero_()
        language_model = from_hugging_face("flat", model, toys.tokenizer())
        for texts in (TEXTS[:1], [TEXTS[0][:40]]):
            (sums,) = measure_batch(language_model, texts, plan, 64)
            means = sums.attention[0, :2] / sums.pairs[0, :2, :, None]
            np.testing.assert_allclose(means, 0.01, rtol=1e-5)


class Own(nn.Module):
    """Somebody's own model: an embedding and one layer that returns its weights."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(PIECES, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        mixed: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return mixed


def own_encode(texts: Any, length: int) -> Encoded:
    made = toys.tokenizer()(
        list(texts), max_length=length, truncation=True, return_offsets_mapping=True
    )
    ids = torch.tensor(made["input_ids"])
    return Encoded(ids, ids, made["offset_mapping"], texts, [True] * len(texts))


def test_a_model_of_ones_own(plan: MeasurementPlan) -> None:
    torch.manual_seed(0)
    model = Own()
    language_model = LanguageModel("own", model, own_encode)
    (sums,) = measure_batch(language_model, TEXTS[:1], plan, 64)
    assert sums.attention.shape[2:] == (1, 2)
    assert sums.vectors.shape[2:] == (1, 2)
    assert model.training
    with pytest.raises(AttnscopeError, match="'own' has no random twin"):
        language_model.twin(0)


def test_a_model_without_attention_is_a_sentence(plan: MeasurementPlan) -> None:
    class Flat(Own):
        def forward(self, ids: Tensor) -> Tensor:
            return self.words(ids)

    model = Flat()
    del model.attention
    with pytest.raises(AttnscopeError, match=r"'own' \(Flat\) shows no attention.*attention="):
        measure_batch(LanguageModel("own", model, own_encode), TEXTS[:1], plan, 64)


def test_a_model_that_returns_no_attention_says_which_implementation_is_active(
    plan: MeasurementPlan,
) -> None:
    class Quiet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.config = type("Config", (), {"_attn_implementation": "sdpa"})()
            self.words = nn.Embedding(PIECES, 8)

        def forward(self, ids: Tensor, output_attentions: bool = False) -> Any:
            return type("Output", (), {"attentions": ()})()

    with pytest.raises(AttnscopeError, match=r"active implementation is 'sdpa'.*'eager'"):
        measure_batch(LanguageModel("quiet", Quiet(), own_encode), TEXTS[:1], plan, 64)


def test_a_model_without_embeddings_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="has no input embedding"):
        _ = LanguageModel("bare", nn.Linear(2, 2), own_encode).embeddings
