"""Evidence of words, against hand-made numbers and obvious computations, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnscope.errors import AttnscopeError
from attnscope.probes.evidence.bags import LabelledBags, labelled_bags
from attnscope.probes.evidence.predictors import (
    CHOSEN,
    FAMILY,
    Ibm1,
    LogOdds,
    Rarity,
    attraction,
    held_by_states,
    picked_share,
    predicted_attention,
    strongest_words,
)


def bags(rows: list[list[int]], labels: list[int], words: int, classes: int = 2) -> LabelledBags:
    return labelled_bags(
        [np.array(row, dtype=int) for row in rows], np.array(labels), words, classes
    )


def random_bags(seed: int, classes: int = 2, texts: int = 60, words: int = 12) -> LabelledBags:
    dice = np.random.default_rng(seed)
    rows = [dice.integers(0, words, dice.integers(1, 9)) for _ in range(texts)]
    labels = np.concatenate([np.arange(classes), dice.integers(0, classes, texts - classes)])
    return labelled_bags(rows, labels, words, classes)


def test_log_odds_by_hand() -> None:
    # Word 0 stands in three texts of class 1 and one of class 0; half of the texts are of each.
    data = bags([[0, 0], [0], [0, 1], [0, 1], [1], [1]], [1, 1, 1, 0, 0, 0], 3)
    found = LogOdds(1.0).evidence(data)
    assert found[0, 1] == pytest.approx(np.log(3.5 / 1.5))
    assert found[0, 0] == pytest.approx(-np.log(3.5 / 1.5))
    assert found[2].tolist() == [0.0, 0.0]  # It was never seen.


def test_smoothed_ibm1_counts_every_word_and_shrinks_to_the_prior() -> None:
    data = bags([[0, 0], [0], [1]], [1, 0, 0], 2)
    share = (2 + 10 / 3) / (3 + 10)
    assert Ibm1(10.0).evidence(data)[0, 1] == pytest.approx(share / (1 / 3) - 1)
    assert abs(Ibm1(1e9).evidence(data)).max() < 1e-6


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_evidence_does_not_depend_on_how_words_and_classes_are_numbered(
    seed: int, classes: int
) -> None:
    data = random_bags(seed, classes)
    dice = np.random.default_rng(seed + 1)
    words, places = dice.permutation(data.words), dice.permutation(classes)
    turned = LabelledBags(data.counts[:, words], places[data.labels], classes)
    for predictor in (LogOdds(3.0), Ibm1(3.0), Rarity(), CHOSEN):
        plain, other = predictor.evidence(data), predictor.evidence(turned)
        assert plain.dtype == np.float64
        assert other == pytest.approx(plain[words][:, np.argsort(places)], abs=2e-4)


@pytest.mark.parametrize("predictor", FAMILY, ids=lambda each: each.name)
def test_every_predictor_finds_the_word_that_decides(predictor: object) -> None:
    dice = np.random.default_rng(0)
    labels = dice.integers(0, 2, 300)
    rows = [np.r_[dice.integers(2, 30, 8), label] for label in labels]
    data = labelled_bags(rows, labels, 30, 2)
    drawn = attraction(predictor.evidence(data))  # type: ignore[attr-defined]
    assert set(np.argsort(-drawn)[:2]) == {0, 1}
    assert picked_share(data, drawn)[:2].sum() == pytest.approx(1.0)


def test_the_strongest_word_of_a_text_is_found_as_an_obvious_loop_finds_it() -> None:
    data = random_bags(3)
    drawn = np.random.default_rng(1).integers(0, 5, data.words).astype(float)
    dense = data.counts.toarray()
    expected = [
        min((w for w in range(data.words) if row[w]), key=lambda w: (-drawn[w], w)) for row in dense
    ]
    assert strongest_words(data, drawn).tolist() == expected


def test_a_text_without_words_picks_none() -> None:
    data = bags([[], [0], []], [0, 1, 1], 2)
    assert strongest_words(data, np.ones(2)).tolist() == [-1, 0, -1]
    assert predicted_attention(np.ones((2, 1)), np.zeros(0, dtype=int)).size == 0


def test_predicted_attention_is_a_softmax_and_uniform_at_no_sharpness() -> None:
    evidence = np.array([[0.0, -1.0], [2.0, -2.0]])
    assert predicted_attention(evidence, np.array([0, 1, 1])).sum() == pytest.approx(1.0)
    assert predicted_attention(evidence, np.array([0, 1]), 0.0).tolist() == [0.5, 0.5]
    alone = predicted_attention(evidence, np.array([0, 1]), 1.0, leak=0.0)
    np.testing.assert_allclose(alone, np.exp([0, 2]) / np.exp([0, 2]).sum())


def test_a_state_holds_a_leaky_sum_of_the_words_around_it() -> None:
    evidence = np.random.default_rng(0).standard_normal((3, 7, 2))
    apart = np.abs(np.subtract.outer(np.arange(7), np.arange(7)))
    expected = np.einsum("tk,nkc->ntc", 0.4**apart, evidence)
    np.testing.assert_allclose(held_by_states(evidence, 0.4), expected, rtol=1e-12)
    assert held_by_states(evidence, 0.0) is evidence
    # Words that speak for different classes take from each other: the one alone attracts more.
    good, bad = (2.0, -2.0), (-2.0, 2.0)
    text = held_by_states(np.array([good, bad, (0, 0), (0, 0), (0, 0), bad]), 0.4).max(axis=1)
    assert text.argmax() == 5
    # Padding behind a text changes nothing in it.
    padded = np.concatenate([evidence[:1], np.zeros((1, 4, 2))], axis=1)
    np.testing.assert_allclose(held_by_states(padded)[:, :7], held_by_states(evidence[:1]))


def test_labels_out_of_range_are_refused() -> None:
    with pytest.raises(AttnscopeError, match="labels go from 0 to 2: expected 0 to 1"):
        bags([[0], [0]], [0, 2], 1)
