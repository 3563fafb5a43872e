"""Attention over word pairs against the two convolutions themselves."""

from __future__ import annotations

import pytest
import torch

from attnscope.models import WordPairAttention, classifier
from attnscope.models.pooling import cross_entropy
from attnscope.tasks import Sentences, WordPairs

pytestmark = pytest.mark.usefixtures("float64")
DIM = 4


@pytest.fixture
def sentences() -> Sentences:
    task = WordPairs(dictionary=10, pairs_per_topic=1, length=5, train=18, test=1)
    return task.sample(0).train


def built(kind: str) -> WordPairAttention:
    source = torch.Generator().manual_seed(5)
    head = classifier(kind, DIM, 2, generator=source)  # type: ignore[arg-type]
    return WordPairAttention(10, DIM, head, std=1.0, generator=source)


@pytest.mark.parametrize("kind", ["FC", "TC", "TL"])
def test_the_fast_path_equals_the_convolutions(sentences: Sentences, kind: str) -> None:
    model = built(kind)
    fast, slow = model(sentences), model.forward_padded(sentences)
    assert fast.shape == (18, 2)
    torch.testing.assert_close(fast, slow, rtol=1e-11, atol=1e-12)
    names, trained = zip(*model.named_parameters(), strict=True)
    fast_grads, slow_grads = (
        torch.autograd.grad(cross_entropy(logits, sentences.labels), trained)
        for logits in (fast, slow)
    )
    torch.testing.assert_close(fast_grads, slow_grads, rtol=1e-9, atol=1e-13)
    # A bias of the keys adds one number to all scores, which a softmax does not see.
    for name, grad in zip(names, fast_grads, strict=True):
        if name == "key_conv.bias":
            assert float(grad.abs().max()) < 1e-12
        else:
            assert float(grad.abs().max()) > 1e-4


def test_attention_scores_and_embeddings_are_those_of_the_convolutions(
    sentences: Sentences,
) -> None:
    model = built("TC")
    keys = model.key_conv(model.key[sentences.ids].transpose(1, 2))
    scores = torch.einsum("d,ndl->nl", model.query, keys)
    torch.testing.assert_close(model.pair_scores(sentences.pair_words)[sentences.pairs.ids], scores)
    torch.testing.assert_close(model.attention(sentences), torch.softmax(scores, dim=1))
    values = model.value_conv(model.embedding[sentences.ids].transpose(1, 2)).transpose(1, 2)
    found = model.pair_embeddings(sentences.pair_words)[sentences.pairs.ids]
    torch.testing.assert_close(found, values * model.query.norm())


def test_all_learn_but_the_query() -> None:
    model = built("TC")
    names = {name for name, p in model.named_parameters() if p.requires_grad}
    assert names == {
        "embedding",
        "key",
        "value_conv.weight",
        "value_conv.bias",
        "key_conv.weight",
        "key_conv.bias",
        "classifier.weight",
    }
    assert "query" in model.state_dict()


def test_the_generator_fixes_everything_drawn() -> None:
    one, same = built("TL").state_dict(), built("TL").state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
