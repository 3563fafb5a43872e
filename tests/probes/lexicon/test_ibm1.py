"""IBM Model 1 against EM by dictionaries, against NLTK, and on translations that are known."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon import ibm1
from attnscope.probes.lexicon.counts import count_table, number_words, sentences, translation_table
from attnscope.probes.lexicon.ibm1 import fit

WORDS = 6
NULL = -1
Lists = list[list[int]]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Lists, Lists]:
    word = st.integers(0, WORDS - 1)
    both = draw(
        st.lists(
            st.tuples(st.lists(word, min_size=1, max_size=6), st.lists(word, max_size=6)),
            min_size=1,
            max_size=9,
        ).filter(lambda drawn: any(y for _, y in drawn))
    )
    return [x for x, _ in both], [y for _, y in both]


def em(source: Lists, target: Lists, iterations: int, null: bool) -> tuple[dict, list[float]]:
    """Go through all pairs of words of all pairs of sentences."""
    table: dict[tuple[int, int], float] = defaultdict(lambda: 1 / WORDS)
    likelihoods = []
    for _ in range(iterations + 1):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        total: dict[int, float] = defaultdict(float)
        likelihood = 0.0
        for x, y in zip(source, target, strict=True):
            words = [*x, NULL] if null else x
            for o in y:
                z = sum(table[i, o] for i in words)
                likelihood += math.log(z / len(words))
                for i in words:
                    counts[i, o] += table[i, o] / z
                    total[i] += table[i, o] / z
        likelihoods.append(likelihood)
        if len(likelihoods) <= iterations:
            table = defaultdict(float, {c: n / total[c[0]] for c, n in counts.items()})
    return table, likelihoods


@given(pairs(), st.integers(1, 6), st.booleans(), st.sampled_from([1, 7, 2**18]), st.booleans())
def test_em_is_that_by_dictionaries(
    case: tuple[Lists, Lists], iterations: int, null: bool, piece: int, kept: bool
) -> None:
    table, likelihoods = em(*case, iterations, null)
    with pytest.MonkeyPatch.context() as patch:
        # Small pieces, and pieces that are built anew, change nothing.
        patch.setattr(ibm1, "PIECE", piece)
        patch.setattr(ibm1, "KEPT", 2**27 if kept else 0)
        source, target = (sentences(side, vocabulary=WORDS) for side in case)
        found = fit(source, target, iterations, null)
    rows = [*range(WORDS), NULL] if null else range(WORDS)
    expected = [[table.get((i, o), 0.0) for o in range(WORDS)] for i in rows]
    np.testing.assert_allclose(found.translation.toarray(), expected, atol=1e-12)
    np.testing.assert_allclose(found.log_likelihoods, likelihoods, atol=1e-9)


@given(pairs(), st.booleans())
def test_rows_are_distributions_and_the_likelihood_rises(
    case: tuple[Lists, Lists], null: bool
) -> None:
    found = fit(*case, iterations=8, null=null)
    total = found.translation.sum(axis=1)
    assert all(value == pytest.approx(1) or value == 0 for value in total)
    assert found.translation.has_canonical_format
    assert (np.diff(found.log_likelihoods) >= -1e-9).all()


@given(pairs())
def test_one_iteration_is_the_count_table(case: tuple[Lists, Lists]) -> None:
    found = fit(*case, iterations=1)
    expected = translation_table(count_table(*case))
    np.testing.assert_allclose(found.translation.toarray(), expected.toarray(), atol=1e-14)


@given(pairs(), st.booleans())
def test_beta_and_alpha_are_read_off_the_table(case: tuple[Lists, Lists], null: bool) -> None:
    found = fit(*case, iterations=2, null=null)
    table = found.translation.toarray()
    for x, y in zip(*case, strict=True):
        rows = [*x, len(table) - 1] if null else x
        beta, alpha = found.beta(x, y), found.alpha(x, y)
        assert beta.shape == alpha.shape == (len(y), len(rows))
        for t, o in enumerate(y):
            assert beta[t].tolist() == [table[i, o] for i in rows]
            assert alpha[t].sum() == pytest.approx(1)
            np.testing.assert_allclose(alpha[t] * beta[t].sum(), beta[t], atol=1e-15)


def test_words_never_seen_together_have_no_alignment() -> None:
    found = fit([[0], [1]], [[0], [1]])
    assert found.beta([0, 1], [1]).tolist() == [[0, 1]]
    assert found.alpha([0, 0], [1, 0]).tolist() == [[0, 0], [0.5, 0.5]]
    assert found.alpha([], [1]).shape == (1, 0)
    assert found.alpha([0], []).shape == (0, 1)


def test_em_finds_the_words_that_go_together() -> None:
    source = np.array([np.random.default_rng(seed).permutation(12)[:4] for seed in range(80)])
    found = fit(source, source[:, ::-1] + 12, iterations=30)
    # Word i is always translated by 12 + i, and 4 of 12 words leave no other explanation.
    assert (np.diag(found.translation.toarray()[:, 12:]) > 0.99).all()


def test_a_null_word_takes_an_empty_source_and_words_of_no_origin() -> None:
    found = fit([[0], [1], []], [[0, 2], [1, 2], [2]], iterations=20, null=True)
    assert found.translation.shape == (3, 3)
    assert found.alpha([0], [0, 2]).argmax(axis=1).tolist() == [0, 1]


def test_target_words_that_never_occur_cost_nothing() -> None:
    target = sentences([[0], [3]], vocabulary=500)
    found = fit([[0], [1]], target, iterations=1)
    assert (found.translation.shape, found.translation.nnz) == ((2, 500), 2)


def test_wrong_input_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="iterations is 0"):
        fit([[0]], [[0]], iterations=0)
    with pytest.raises(AttnscopeError, match="1 source and 2 target"):
        fit([[0]], [[0], [0]])
    with pytest.raises(AttnscopeError, match="pair 0 is empty"):
        fit([[]], [[0]])
    with pytest.raises(AttnscopeError, match="the 1 target sentences hold no word"):
        fit([[0]], [[]])
    found = fit([[0]], [[0]], null=True)
    with pytest.raises(AttnscopeError, match="source holds word 1: expected 0 to 0"):
        found.beta([1], [0])  # the null word has no number of its own
    with pytest.raises(AttnscopeError, match="target holds word -1"):
        found.beta([0], [-1])
    with pytest.raises(AttnscopeError, match="expected a list of word ids"):
        found.beta([0.5], [0])  # type: ignore[list-item]


@pytest.mark.parametrize("repeated", [False, True])
def test_probabilities_are_nltks(repeated: bool) -> None:
    translate = pytest.importorskip("nltk.translate")
    dice = np.random.default_rng(0)
    source = [[f"s{w}" for w in dice.integers(0, 30, dice.integers(1, 9))] for _ in range(60)]
    target = [[f"t{w}" for w in dice.integers(0, 30, dice.integers(1, 9))] for _ in range(60)]
    once = [list(dict.fromkeys(y)) for y in target]
    # NLTK divides by the sum over all equal target words of a sentence: they count as one.
    given_to_nltk = target if repeated else once
    corpus = [translate.AlignedSent(y, x) for x, y in zip(source, given_to_nltk, strict=True)]
    theirs = translate.IBMModel1(corpus, 5).translation_table
    x, source_words = number_words(source)
    y, target_words = number_words(once)
    ours = fit(x, y, iterations=5, null=True).translation.tocoo()
    names = [*source_words, None]
    for i, o, value in zip(ours.row, ours.col, ours.data, strict=True):
        assert theirs[target_words[o]][names[i]] == pytest.approx(value, abs=1e-6)
