from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import AttnscopeError
from attnscope.tasks import Bags, TopicWords
from attnscope.theory.lu2021 import (
    PsiAverages,
    PsiSets,
    effective_m,
    neighbours,
    psi_averages,
    words_in_company,
)


def slow_averages(
    scores: np.ndarray, embeddings: np.ndarray, bags: Bags, words: list[int]
) -> PsiAverages:
    """Compute the means sentence by sentence, word by word."""
    inverse_z, context, ratio = [], [], []
    for t in words:
        found = []
        for row in range(len(bags)):
            ids = bags.ids[row] if bags.mask is None else bags.ids[row][bags.mask[row]]
            sentence = ids.tolist()
            others = [w for w in sentence if w != t]
            if t not in sentence or not others:
                continue
            z = sum(np.exp(scores[w]) for w in others)
            whole = sum(np.exp(scores[w]) for w in sentence)
            average = sum(np.exp(scores[w]) * embeddings[w] for w in others) / z
            found.append((1 / z, average, whole / z))
        inverse_z.append(np.mean([f[0] for f in found]))
        context.append(np.mean([f[1] for f in found], axis=0))
        ratio.append(np.mean([f[2] for f in found]))
    return PsiAverages(np.array(inverse_z), np.array(context), np.array(ratio))


def random_bags(rng: np.random.Generator, vocabulary: int, sentences: int, length: int) -> Bags:
    """Sentences of 1 to ``length`` words, with repeats, some made of one word alone."""
    lengths = rng.integers(1, length + 1, sentences)
    ids = torch.from_numpy(rng.integers(vocabulary, size=(sentences, length)))
    mask = torch.from_numpy(np.arange(length) < lengths[:, None])
    return Bags(ids, torch.zeros(sentences, dtype=torch.long), vocabulary, mask)


def company(bags: Bags) -> list[int]:
    """Words that stand beside another word somewhere."""
    rows = [ids[mask].tolist() for ids, mask in zip(bags.ids, bags.mask, strict=True)]
    return sorted({w for row in rows for w in row if set(row) - {w}})


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(3, 30), st.integers(2, 6))
def test_averages_equal_the_slow_ones(seed: int, vocabulary: int, count: int, length: int) -> None:
    rng = np.random.default_rng(seed)
    bags = random_bags(rng, vocabulary, count, length)
    words = rng.permutation(company(bags))[: rng.integers(1, vocabulary + 1)].tolist()
    if not words:
        return
    scores, embeddings = rng.normal(size=vocabulary) * 2, rng.normal(size=(vocabulary, 3))
    fast = psi_averages(scores, embeddings, bags, words)
    slow = slow_averages(scores, embeddings, bags, words)
    np.testing.assert_allclose(fast.inverse_z, slow.inverse_z, rtol=1e-12)
    np.testing.assert_allclose(fast.context, slow.context, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(fast.ratio, slow.ratio, rtol=1e-12)


def test_a_word_that_holds_all_attention_leaves_the_others_their_digits() -> None:
    # Here e^{s_t} / Z(χ∖t) = 2e17: subtracting t's share from the whole would leave nothing.
    data = TopicWords(topics=2, words_per_topic=1, m=3, dictionary=9, train=12, test=1).sample(0)
    scores = np.zeros(data.task.vocabulary)
    scores[:2] = 41.0
    embeddings = np.random.default_rng(0).normal(size=(data.task.vocabulary, 4))
    around = psi_averages(scores, embeddings, data.train, [0, 1])
    slow = slow_averages(scores, embeddings, data.train, [0, 1])
    np.testing.assert_allclose(around.inverse_z, 1 / 3, rtol=1e-14)
    np.testing.assert_allclose(around.context, slow.context, rtol=1e-12, atol=1e-15)


def test_one_structure_serves_many_times_and_takes_tensors() -> None:
    data = TopicWords(m=4, dictionary=40, train=30, test=1).sample(1)
    sets = PsiSets(data.train, torch.arange(8))
    rng = np.random.default_rng(5)
    for _ in range(2):
        scores = torch.from_numpy(rng.normal(size=48)).requires_grad_()
        embeddings = torch.from_numpy(rng.normal(size=(48, 2)))
        slow = slow_averages(scores.detach().numpy(), embeddings.numpy(), data.train, [*range(8)])
        np.testing.assert_allclose(sets.averages(scores, embeddings).context, slow.context)
    assert sets.sizes.sum() == 30


def test_words_without_company_are_refused() -> None:
    bags = Bags(torch.tensor([[0, 0], [1, 2]]), torch.tensor([0, 1]), 4)
    for words in ([0], [1, 3]):
        with pytest.raises(AttnscopeError, match="stand beside no other word"):
            PsiSets(bags, words)
    with pytest.raises(AttnscopeError, match="expected each word once"):
        PsiSets(bags, [1, 1])


def test_effective_m_is_the_mean_length_less_one() -> None:
    ids = torch.tensor([[0, 1, 1, 2], [1, 2, 0, 0], [2, 0, 0, 0]])
    mask = torch.arange(4) < torch.tensor([[4], [2], [3]])
    bags = Bags(ids, torch.tensor([0, 1, 0]), 4, mask)
    assert effective_m(bags, [2, 1, 0]).tolist() == [2.0, 2.0, 2.5]
    with pytest.raises(AttnscopeError, match=r"words \[3\] stand in no training sentence"):
        effective_m(bags, [0, 3])


def test_effective_m_is_m_on_the_synthetic_task() -> None:
    data = TopicWords(m=6, dictionary=50, train=60, test=1).sample(2)
    assert effective_m(data.train, range(8)).tolist() == [6.0] * 8


def test_words_alone_in_their_sentences_are_not_in_company() -> None:
    ids = torch.tensor([[0, 0], [1, 2], [3, 0]])
    mask = torch.tensor([[True, True], [True, True], [True, False]])
    bags = Bags(ids, torch.tensor([0, 1, 0]), 5, mask)
    assert words_in_company(bags).tolist() == [1, 2]
    assert neighbours(bags, np.array([1, 2, 3])) == 2**2 + 1
