"""Shortcuts that were planted are found, and content is not taken for one."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from scipy import stats

from attnscope.errors import AttnscopeError
from attnscope.probes.shortcuts import dependence as dependence_module
from attnscope.probes.shortcuts import find_duplicates, find_shortcuts
from attnscope.probes.shortcuts import tokens as tokens_module
from attnscope.probes.shortcuts.content import Pairs
from attnscope.probes.shortcuts.dependence import dependence, least_texts
from attnscope.probes.shortcuts.features import from_tokens
from attnscope.probes.shortcuts.tokens import tokens
from attnscope.tasks.planted_shortcuts import PLANTS, Plant, PlantedShortcut

SUBJECTS = ("the film", "a story", "this plot", "her voice", "the old actor", "an early scene")
VERBS = ("shows", "carries", "hides", "wants", "follows", "loses")
GOOD = ("a warm heart", "real wit", "rare grace", "quiet joy")
BAD = ("a dull face", "cheap tricks", "stale jokes", "pure noise")
ENDS = ("in the end", "from the start", "for two hours", "with its cast", "at every turn")


def sentences(count: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts of a small grammar, whose content words tell the label."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    texts = []
    for label in labels:
        parts = []
        for _ in range(int(random.integers(1, 4))):
            kind = (BAD, GOOD)[label] if random.random() < 0.7 else (GOOD, BAD)[label]
            parts.append(
                " ".join(str(random.choice(each)) for each in (SUBJECTS, VERBS, kind, ENDS)) + " ."
            )
        texts.append(" ".join(parts))
    return texts, labels


def test_examples() -> None:
    assert doctest.testmod(tokens_module).failed == 0
    assert doctest.testmod(dependence_module).failed == 0


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_shortcut_is_found_and_told_where_it_stands(plant: Plant) -> None:
    texts, labels = sentences(3000)
    planted, rows = PlantedShortcut(plant, 0.05, 1, 1).sample(texts, labels, 0)
    found = find_shortcuts(planted, labels, 2).shortcuts
    own = [
        one
        for one in found
        if one.label == 1 and len(np.intersect1d(one.texts, rows)) > 0.8 * len(rows)
    ]
    assert own, [one.name for one in found]
    assert own[0].surely > 0.8
    assert 0.5 < own[0].low < own[0].surely
    assert own[0].share == pytest.approx(own[0].count / 3000)
    assert own[0].why


def test_content_is_no_shortcut() -> None:
    texts, labels = sentences(3000, seed=1)
    search = find_shortcuts(texts, labels, 2)
    assert [one.name for one in search.shortcuts if one.kind == "word"] == []


def test_nothing_is_found_where_labels_are_drawn() -> None:
    texts, labels = sentences(2000)
    drawn = np.random.default_rng(5).permutation(labels)
    assert find_shortcuts(texts, drawn, 2).shortcuts == ()


def test_the_lower_end_is_clopper_and_pearsons_for_all_features_together() -> None:
    by_class = np.array([[30, 10], [5, 60], [1, 0]])
    totals = np.array([500, 500])
    found = dependence(by_class, totals)
    assert found.tested == 4  # two features are frequent enough, for two classes
    for row, (k, n) in enumerate(((30, 40), (60, 65))):
        exact = stats.binomtest(k, n, 0.5, alternative="greater").proportion_ci(1 - 0.05 / 4)
        assert found.low[row] == pytest.approx(exact.low, rel=1e-9)
    assert found.best.tolist()[:2] == [0, 1]
    assert found.certain.tolist() == [True, True, False]
    assert least_texts(0.5, 1) == 5


def test_features_hold_each_text_once() -> None:
    read = tokens(["a a b !!", "b a (Reuters)", ""])
    found = from_tokens(read)
    words = found["word"]
    assert {words.names[k]: words.of(i).tolist() for i, k in enumerate(words.keys)} == {
        "a": [0, 1],
        "b": [0, 1],
    }
    assert found["source"].names[found["source"].keys[0]] == "(Reuters)"
    shown = {found["position"].names[k] for k in found["position"].keys}
    assert "'a' as the first token" in shown


def test_a_token_that_was_put_in_reads_on_and_a_word_does_not() -> None:
    texts, labels = sentences(2000)
    planted, _ = PlantedShortcut("token", 0.1, 1, 0).sample(texts, labels, 0)
    read = tokens(planted)
    pairs = Pairs(read)

    def effect(word: str) -> float:
        places = pairs.occurrences(read.names.index(word))
        return pairs.reads_on(places) / np.sqrt(len(places))

    assert abs(effect("cf")) < 0.3
    assert effect("wit") < -0.4
    assert pairs.bonds(pairs.occurrences(read.names.index("wit"))) > 10


def test_duplicates_across_splits_and_with_other_labels() -> None:
    long = (
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    )
    train = ["A b c.", "a B, c", long, "something else"]
    found = find_duplicates(
        train, np.array([0, 1, 0, 1]), {"test": ["a b C!", long + " sixteen", "quite new"]}
    )
    assert found.repeated == 1
    assert found.contradicting == ((0, 1),)
    assert (found.leaked["test"], found.near["test"]) == (1, 1)
    assert found.examples["test"] == ((0, 0), (1, 2))


def test_plants_that_cannot_be() -> None:
    with pytest.raises(AttnscopeError, match="plant = 'x'"):
        PlantedShortcut("x", 0.1)  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match="share = 0"):
        PlantedShortcut("token", 0.0)
    with pytest.raises(AttnscopeError, match="no text is of class 3"):
        PlantedShortcut("token", 0.1, 3).sample(["a"], np.array([0]), 0)
