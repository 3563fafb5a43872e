"""The diagonal model against EM by dictionaries, its λ against a grid, and bad numbers."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon import diagonal, ibm1
from attnscope.probes.lexicon.counts import sentences

WORDS = 5
NULL = WORDS
Lists = list[list[int]]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Lists, Lists]:
    word = st.integers(0, WORDS - 1)
    both = draw(
        st.lists(
            st.tuples(st.lists(word, min_size=1, max_size=6), st.lists(word, max_size=6)),
            min_size=1,
            max_size=7,
        ).filter(lambda drawn: any(y for _, y in drawn))
    )
    return [x for x, _ in both], [y for _, y in both]


def prior(t: int, targets: int, sources: int, tension: float, null: float) -> list[float]:
    pull = [
        math.exp(-tension * abs((t + 1) / targets - (at + 1) / sources)) for at in range(sources)
    ]
    return [*((1 - null) * one / sum(pull) for one in pull), null]


def em(
    source: Lists, target: Lists, iterations: int, tension: float, null: float, alpha: float
) -> tuple[dict[tuple[int, int], float], float, list[float]]:
    """Go through every word of every pair, and climb by sums over every word again."""
    table: dict[tuple[int, int], float] = defaultdict(lambda: 1 / WORDS)
    likelihoods = []
    for step in range(iterations + 1):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        likelihood = slope = 0.0
        kept = []
        for x, y in zip(source, target, strict=True):
            for t, o in enumerate(y):
                weights = prior(t, len(y), len(x), tension, null)
                q = [w * table[i, o] for w, i in zip(weights, [*x, NULL], strict=True)]
                likelihood += math.log(sum(q))
                q = [one / sum(q) for one in q]
                for i, one in zip([*x, NULL], q, strict=True):
                    counts[i, o] += one
                for at in range(len(x)):
                    slope -= q[at] * abs((t + 1) / len(y) - (at + 1) / len(x))
                kept.append((1 - q[-1], t, len(y), len(x)))
        likelihoods.append(likelihood)
        if step == iterations:
            break
        total: dict[int, float] = defaultdict(float)
        for (i, _), n in counts.items():
            total[i] += n + alpha
        table = defaultdict(float)
        for (i, o), n in counts.items():
            table[i, o] = (
                math.exp(digamma(n + alpha) - digamma(total[i])) if alpha else n / total[i]
            )
        for _ in range(diagonal.CLIMBS):
            expected = 0.0
            for share, t, targets, sources in kept:
                weights = prior(t, targets, sources, tension, null)[:-1]
                expected -= share * sum(
                    w * abs((t + 1) / targets - (at + 1) / sources) / (1 - null)
                    for at, w in enumerate(weights)
                )
            tension += diagonal.RATE * (slope - expected) / len(kept)
            tension = min(max(tension, diagonal.BOUNDS[0]), diagonal.BOUNDS[1])
    return table, tension, likelihoods


@settings(deadline=None, max_examples=60)
@given(
    pairs(),
    st.integers(1, 4),
    st.floats(0, 10),
    st.floats(0.02, 0.6),
    st.sampled_from([0.0, 0.01, 0.5]),
    st.sampled_from([1, 9, 2**21]),
)
def test_em_is_that_by_dictionaries(
    case: tuple[Lists, Lists],
    iterations: int,
    tension: float,
    null: float,
    alpha: float,
    piece: int,
) -> None:
    table, learned, likelihoods = em(*case, iterations, tension, null, alpha)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagonal, "PIECE", piece)
        source, target = (sentences(side, vocabulary=WORDS) for side in case)
        found = diagonal.fit(
            source, target, iterations, tension=tension, null_share=null, alpha=alpha
        )
    expected = [[table.get((i, o), 0.0) for o in range(WORDS)] for i in range(WORDS + 1)]
    np.testing.assert_allclose(found.translation.toarray(), expected, atol=1e-9)
    np.testing.assert_allclose(found.tension, learned, rtol=1e-8)
    np.testing.assert_allclose(found.log_likelihoods, likelihoods, atol=1e-8)
    x, y = case[0][0], case[1][0]
    if y:
        rows = []
        for t, o in enumerate(y):
            weights = prior(t, len(y), len(x), learned, null)
            q = [w * table[i, o] for w, i in zip(weights, [*x, NULL], strict=True)]
            rows.append([one / sum(q) for one in q])
        np.testing.assert_allclose(found.alpha(x, y), rows, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(pairs(), st.floats(0, 8))
def test_the_likelihood_rises_while_the_tension_is_held(
    case: tuple[Lists, Lists], tension: float
) -> None:
    found = diagonal.fit(*case, iterations=6, tension=tension, climb=False)
    assert (np.diff(found.log_likelihoods) >= -1e-9).all()
    assert found.tension == tension


def test_without_tension_and_with_a_null_of_one_place_it_is_model_1() -> None:
    # Sources of one length L: a null word of the share 1/(L + 1) is one place among equals.
    dice = np.random.default_rng(0)
    source, target = dice.integers(0, 9, (40, 4)), dice.integers(0, 9, (40, 5))
    one = ibm1.fit(source, target, 4, null=True)
    other = diagonal.fit(source, target, 4, tension=0.0, null_share=0.2, climb=False)
    np.testing.assert_allclose(one.translation.toarray(), other.translation.toarray(), atol=1e-12)
    np.testing.assert_allclose(one.log_likelihoods, other.log_likelihoods)


def test_the_tension_of_made_pairs_is_found() -> None:
    # Pairs drawn from the model itself, words that translate one to one: λ is what it was drawn by.
    dice = np.random.default_rng(0)
    source, target = [], []
    for _ in range(1500):
        x = dice.permutation(200)[: int(dice.integers(5, 12))]
        places = int(dice.integers(5, 12))
        weights = diagonal.diagonal_prior(places, len(x), 6.0, 0.08)
        drawn = [dice.choice(len(x) + 1, p=row) for row in weights]
        source.append(x)
        target.append([200 if at == len(x) else int(x[at]) for at in drawn])
    found = diagonal.fit(sentences(source, vocabulary=201), sentences(target, vocabulary=201), 8)
    assert abs(found.tension - 6.0) < 0.3
    # The slope is zero there: a grid of the likelihood has its top at the same place.
    grid = np.arange(5.0, 7.05, 0.25)
    tops = [
        diagonal.fit(source, target, 8, tension=value, climb=False).log_likelihoods[-1]
        for value in grid
    ]
    assert abs(grid[int(np.argmax(tops))] - found.tension) <= 0.25


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"iterations": 0}, "iterations is 0"),
        ({"tension": -1.0}, r"tension is -1\.0"),
        ({"tension": math.nan}, "tension is nan"),
        ({"alpha": -0.1}, r"alpha is -0\.1"),
        ({"null_share": 1.0}, r"null_share is 1\.0"),
    ],
)
def test_bad_numbers_are_quoted(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(AttnscopeError, match=said):
        diagonal.fit([[0]], [[0]], **wrong)  # type: ignore[arg-type]


def test_pairs_that_are_none_are_sentences() -> None:
    with pytest.raises(AttnscopeError, match="hold no word"):
        diagonal.fit([[0]], [[]])
    with pytest.raises(AttnscopeError, match="1 source and 2 target"):
        diagonal.fit([[0]], [[0], [1]])
    with pytest.raises(AttnscopeError, match="source sentence of pair 0 is empty"):
        diagonal.fit([[]], [[0]])
    assert diagonal.fit([[0]], [[0]]).alpha([], [0]).shape == (1, 1)
