"""Training on a table: smoothing, attention beside what was said, parts that go on."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.datasets.kinds import LabelledText, Split
from attnscope.errors import AttnscopeError
from attnscope.lab.table_training import Beside, learned, padded, smoothed, training
from attnscope.prediction.asked import AskedLabelled
from attnscope.probes.evidence.predictors import CHOSEN


def keyword(count: int = 200, seed: int = 0) -> AskedLabelled:
    dice = np.random.default_rng(seed)
    labels = dice.integers(0, 2, count)
    texts = []
    for label in labels:
        words = [f"w{i}" for i in dice.integers(0, 12, 5)]
        words.insert(int(dice.integers(0, 6)), ("awful", "superb")[label])
        odd = label and sum("oddity" in text for text in texts) < 3
        texts.append(" ".join([*words, "oddity"] if odd else words))
    return AskedLabelled(LabelledText("mine", ("bad", "good"), {"train": Split(texts, labels)}))


def test_the_usual_smoothing_is_what_predict_says_and_another_is_not() -> None:
    asked = keyword()
    np.testing.assert_array_equal(smoothed(asked, 1.0).evidence, CHOSEN.evidence(asked.table.bags))
    some, more = smoothed(asked, 1.0), smoothed(asked, 30.0)
    assert some.table is more.table
    # A word of three texts of one class: with more pseudo-counts it says less beside the others.
    rare = asked.table.numbers["oddity"]
    share = [each.attraction[rare] / each.attraction.max() for each in (some, more)]
    assert share[1] < share[0]


def test_a_bag_of_words_is_shaded_word_by_word_and_a_prediction_by_states() -> None:
    asked = keyword()
    text = "w0 superb w0 w1 w1 w1 w0"
    by_word, by_states = smoothed(asked, 1.0).shade(text).weights, asked.shade(text).weights
    assert by_word[0] == pytest.approx(by_word[2]) == pytest.approx(by_word[6])
    assert by_states[2] > by_states[6]  # Beside 'superb', and far from it.


def test_attention_goes_where_it_was_said_and_not_where_shuffled_labels_say() -> None:
    asked = smoothed(keyword(), 1.0)
    beside = Beside(asked)
    parts = list(training(asked, 3000))
    epochs = np.concatenate([part.epochs for part in parts])
    assert epochs[0] == 0
    assert epochs[-1] == 3000
    assert (np.diff(epochs) > 0).all()
    assert beside.share(parts[0].scores[0]) < 0.5
    assert beside.share(parts[-1].scores[-1]) > 0.95
    assert beside.share(parts[-1].scores[-1], shuffled=True) < 0.5
    assert 0.1 < beside.chance < 0.3
    losses = np.concatenate([part.losses for part in parts])
    assert (np.diff(losses) < 1e-6).all()


def test_parts_are_one_flow() -> None:
    # Ten short parts end where one part of the whole length does: a flow has no memory.
    asked = smoothed(keyword(80), 1.0)
    whole = list(training(asked, 400))[-1].scores[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnscope.lab.table_training.PARTS", 1)
        (once,) = training(asked, 400)
    np.testing.assert_allclose(whole, once.scores[-1], atol=2e-4)


def test_learned_attention_is_a_softmax_of_scores() -> None:
    scores = np.array([[0.0, 0.0, 0.0], [0.0, np.log(2.0), 900.0]])
    np.testing.assert_allclose(learned(scores, np.array([0, 1])), [[0.5, 0.5], [1 / 3, 2 / 3]])
    assert learned(scores, np.zeros(0, np.int64)).shape == (2, 0)


def test_texts_without_words_are_a_sentence() -> None:
    asked = keyword(20)
    ids, mask, labels = padded(asked)
    assert ids.shape == mask.shape == (20, 7)
    assert set(labels) == {0, 1}
    asked.__dict__["texts"] = ["  "] * 20
    with pytest.raises(AttnscopeError, match="No text holds a word"):
        padded(asked)
