from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.tasks.copying import Copying
from attnscope.tasks.keyword import FIRST, Keyword
from attnscope.theory.snell2021 import Knowledge, pair_bags, predict_knowledge


def copying(task: Copying, sampled: bool = False) -> Knowledge:
    pairs = task.sample(300, seed=0)
    source, target = pairs.source.numpy(), pairs.target.numpy()
    counts = pair_bags(source, target, task.vocabulary).counts if sampled else task.counts()
    return predict_knowledge(counts, source[:20], target[:20], task.gold)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("end", [False, True])
def test_permutations_of_the_same_words_are_exactly_uniform(sampled: bool, end: bool) -> None:
    found = copying(Copying(length=12, types=12, end=end), sampled)
    assert found.learnable == "not learnable"
    assert found.variation.max() < 1e-12
    assert np.abs(found.divergence).max() < 1e-12
    assert found.table_variation < 1e-12
    assert found.mean_gold_mass == pytest.approx(1 / (12 + end), rel=1e-12)
    assert found.share_singled_out == 0
    assert "exactly uniform" in str(found)
    assert "same output words" in str(found)


def test_forty_of_sixty_is_learnable_by_hand() -> None:
    found = copying(Copying(length=40, types=60, end=False))
    # P(o in the sequence | i in it) is 1 for o = i and 39/59 else.
    gold = 1 / (1 + 39 * 39 / 59)
    assert found.gold_mass == pytest.approx(np.full(800, gold), rel=1e-12)
    assert found.variation == pytest.approx(np.full(800, gold - 1 / 40), rel=1e-9)
    others = (1 - gold) / 39
    divergence = gold * np.log(40 * gold) + 39 * others * np.log(40 * others)
    assert found.divergence == pytest.approx(np.full(800, divergence), rel=1e-9)
    assert found.learnable == "learnable"
    assert found.share_singled_out == 1
    assert (found.singled_out_early == 1).all()
    assert str(found).startswith("learnable")
    assert "100 %" in str(found)


def test_forty_of_sixty_is_learnable_from_a_sample_too() -> None:
    found = copying(Copying(length=40, types=60), sampled=True)
    assert found.learnable == "learnable"
    # END goes with every word equally: nothing singles it out.
    assert 40 / 41 * 0.9 < found.share_singled_out <= 40 / 41


def test_mixture_of_permutations_tells_sentences_apart_but_not_positions() -> None:
    found = copying(Copying(length=12, types=12, sets=2, end=False))
    assert found.table_variation == pytest.approx(0.5, rel=1e-12)
    assert found.variation.max() < 1e-12
    assert found.learnable == "not learnable"
    assert "tells sentences apart" in str(found)


def test_mixture_with_an_end_mark_knows_what_is_no_word_and_nothing_more() -> None:
    found = copying(Copying(length=12, types=12, sets=2))
    assert found.variation.max() > 0.01
    assert found.share_singled_out == 0
    assert found.learnable == "not learnable"


def test_reordering_does_not_matter() -> None:
    plain, other = (copying(Copying(8, 12, reorder_seed=seed, end=False)) for seed in (None, 3))
    assert other.gold_mass == pytest.approx(plain.gold_mass, rel=1e-12)
    assert other.learnable == plain.learnable == "learnable"


def test_classification_has_one_target_word() -> None:
    task = Keyword(length=10, types=20)
    drawn = task.sample(2000, seed=1)
    source, label = drawn.source.numpy(), drawn.label.numpy().astype(int)[:, None]
    counts = pair_bags(source, label, task.vocabulary, 2).counts
    assert counts[FIRST, 0] == 0
    found = predict_knowledge(counts, source[:50], label[:50], drawn.position.numpy()[:50, None])
    positive = label[:50, 0] == 1
    assert np.isnan(found.gold_mass[~positive]).all()
    assert (found.singled_out[positive] == 1).all()
    assert found.learnable == "learnable"
    assert found.gold_mass[positive].min() > 0.15


def test_labels_that_have_nothing_to_do_with_words() -> None:
    rng = np.random.default_rng(0)
    source = [rng.permutation(6) for _ in range(40)]
    label = rng.integers(2, size=(40, 1))
    found = predict_knowledge(pair_bags(source, label, 6, 2).counts, source, label)
    assert found.learnable == "not learnable"


def test_without_gold_uneven_is_all_that_can_be_said() -> None:
    task = Copying(length=5, types=9)
    pairs = task.sample(3, seed=0)
    found = predict_knowledge(task.counts(), pairs.source.numpy(), pairs.target.numpy())
    assert found.learnable == "uneven"
    assert "no gold" in str(found)
    assert np.isnan(found.mean_gold_mass)


def test_random_tables_are_not_learnable() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.permutation(200)[:20] for _ in range(60)]
    others = [rng.permutation(200)[:20] for _ in range(60)]
    found = predict_knowledge(pair_bags(rows, others, 200).counts, rows, others, np.arange(20))
    assert found.mean_variation > 0.1
    assert found.learnable == "not learnable"


def test_partly_learnable_where_half_of_the_words_are() -> None:
    # Words 0 to 3 stand in every sentence; of 4 to 11 four do, and are told apart.
    rng = np.random.default_rng(0)
    rows = [np.concatenate([np.arange(4), 4 + rng.permutation(8)[:4]]) for _ in range(500)]
    found = predict_knowledge(pair_bags(rows, rows, 12).counts, rows, rows, np.arange(8))
    assert found.share_singled_out == pytest.approx(0.5)
    assert found.learnable == "partly learnable"


def test_early_is_the_corrected_eq_15_at_the_words_of_the_pair() -> None:
    rng = np.random.default_rng(0)
    table = rng.uniform(size=(5, 4))
    found = predict_knowledge(table, [[3, 0]], [[1, 2, 2]])
    by_hand = 2 / 4 * (table - table.mean(axis=1, keepdims=True))
    assert found.early[0] == pytest.approx(by_hand[np.ix_([3, 0], [1, 2, 2])].T, rel=1e-12)
    trans = table / table.sum(axis=1, keepdims=True)
    assert found.beta[0] == pytest.approx(trans[np.ix_([3, 0], [1, 2, 2])].T, rel=1e-12)
    assert found.pair.tolist() == [0, 0, 0]
    assert found.length.tolist() == [2, 2, 2]


def test_sparse_and_dense_tables_agree_and_unseen_words_know_nothing() -> None:
    table = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    args = ([[0, 1, 2], [1, 2]], [[0], [0]], [[0], [-1]])
    dense, thin = predict_knowledge(table, *args), predict_knowledge(sparse.csr_array(table), *args)
    assert dense.alpha[0].tolist() == [[1.0, 0.0, 0.0]]
    assert dense.alpha[1].tolist() == [[0.5, 0.5]]
    assert thin.variation.tolist() == dense.variation.tolist()
    shares = np.array([2 / 3, 1 / 3, 0])
    rows = np.abs(np.eye(3)[:2] - shares).sum(axis=1) / 2
    assert dense.table_variation == pytest.approx((2 * rows[0] + rows[1]) / 3, rel=1e-12)


def test_a_word_that_stands_twice_is_gold_at_both_places() -> None:
    table = np.eye(3) + 0.1
    found = predict_knowledge(table, [[0, 1, 0]], [[0]], [[2]])
    assert found.singled_out.tolist() == [1.0]
    assert found.gold_mass[0] < 0.5


def test_a_single_position_has_nothing_to_single_out() -> None:
    found = predict_knowledge(np.eye(2), [[0]], [[0]], [[0]])
    assert np.isnan(found.singled_out).all()
    assert found.learnable == "not learnable"


def test_bad_input_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match="not all of them 0"):
        predict_knowledge(np.zeros((2, 2)), [[0]], [[0]])
    with pytest.raises(AttnscopeError, match="1 sources and 0 targets"):
        predict_knowledge(np.eye(2), [[0]], [])
    with pytest.raises(AttnscopeError, match=r"target of pair 0 is \[5\]"):
        predict_knowledge(np.eye(2), [[0]], [[5]])
    with pytest.raises(AttnscopeError, match="gold of pair 0"):
        predict_knowledge(np.eye(2), [[0, 1]], [[0]], [[2]])
    with pytest.raises(AttnscopeError, match="gold for 2 pairs"):
        predict_knowledge(np.eye(2), [[0, 1]], [[0]], [[0], [1]])


def test_without_gold_it_says_how_much_the_best_word_knows() -> None:
    counts = np.array([[9.0, 1.0], [1.0, 9.0], [5.0, 5.0]])
    found = predict_knowledge(counts, [[0, 2], [1, 2]], [[0], [1]])
    np.testing.assert_allclose(found.gain, np.log2(0.9 / 0.5), rtol=1e-12)
    assert "1.8 times as likely (0.85 bits" in str(found)
