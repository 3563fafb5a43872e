from __future__ import annotations

import numpy as np

from attnscope.probes.evidence.bags import LabelledBags, labelled_bags
from attnscope.probes.evidence.held_out import word_accuracy


def made(of: str, texts: int = 600) -> LabelledBags:
    dice = np.random.default_rng(0)
    labels = dice.integers(0, 2, texts)
    noise = dice.integers(4, 40, (texts, 6))
    if of == "xor":
        first = dice.integers(0, 2, texts)
        signs = np.stack([first, 2 + (first ^ labels)], axis=1)
    elif of == "keyword":
        signs = labels[:, None]
    else:
        signs = dice.integers(0, 4, (texts, 1))
    return labelled_bags(list(np.hstack([noise, signs])), labels, 40, 2)


def test_one_word_suffices_where_a_keyword_decides() -> None:
    found = word_accuracy(made("keyword"))
    assert found.one_word.share > 0.97
    assert found.bag.share > 0.97
    assert found.majority.share < 0.6
    assert found.texts == 600


def test_words_say_nothing_of_an_xor_nor_of_labels_at_random() -> None:
    for of in ("xor", "random"):
        found = word_accuracy(made(of))
        assert found.bag.low < max(found.majority.share, 0.55)


def test_a_class_that_a_fold_lacks_is_no_trouble() -> None:
    rows = [np.array([i % 3]) for i in range(12)]
    labels = np.array([0, 1, 2] + [0, 1] * 4 + [0])
    assert word_accuracy(labelled_bags(rows, labels, 3, 4)).texts == 12
