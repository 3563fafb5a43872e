from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from attnscope.probes.evidence.bags import labelled_bags
from attnscope.probes.evidence.carried import (
    certainty,
    information,
    label_entropy,
    texts_needed,
)


def test_a_word_that_decides_carries_all_and_one_that_is_everywhere_nothing() -> None:
    labels = np.array([0, 0, 1, 1])
    rows = [np.array([0, 1]) if label else np.array([0]) for label in labels]
    data = labelled_bags(rows, labels, 2, 2)
    assert label_entropy(data) == pytest.approx(1.0)
    assert information(data) == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("classes", [2, 3])
def test_certainty_is_the_root_of_the_likelihood_ratio(classes: int) -> None:
    dice = np.random.default_rng(classes)
    labels = dice.integers(0, classes, 200)
    rows = [np.unique(dice.integers(0, 6, 3)) for _ in labels]
    data = labelled_bags(rows, labels, 6, classes)
    found = certainty(data)
    for word in range(6):
        c = found.favoured[word]
        inside = data.by_class[word, c]
        table = [
            [inside, data.texts_with[word] - inside],
            [(labels == c).sum() - inside, (labels != c).sum() - data.texts_with[word] + inside],
        ]
        deviance = chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
        assert found.z[word] == pytest.approx(np.sqrt(deviance))


def test_shuffled_labels_are_seldom_beyond_chance() -> None:
    dice = np.random.default_rng(0)
    rows = [np.unique(dice.integers(0, 200, 20)) for _ in range(400)]
    hits = 0
    for seed in range(20):
        labels = np.random.default_rng(seed).integers(0, 2, 400)
        hits += bool(certainty(labelled_bags(rows, labels, 200, 2)).sure.any())
    assert hits <= 4  # Five in a hundred are expected.


def test_how_many_texts_would_be_needed_is_at_most_ten_times_as_many() -> None:
    assert texts_needed(100, 0.0, 4.0) == 1000
    assert texts_needed(100, 4.0, 4.0) == 100
