"""Shapes of attention against sums written out query by query."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.probes import attention_shape as shape


def _attention(seed: int = 0, causal: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights of 3 rows and 2 heads over 5 positions, the last ones of row 1 padding."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(3, 2, 5, 5)) * 2
    real = np.ones((3, 5), dtype=bool)
    real[1, 3:] = False
    visible = np.repeat(real[:, None, :], 5, axis=1)
    if causal:
        visible = visible & np.tri(5, dtype=bool)
    weights = np.exp(np.where(visible[:, None], logits, -np.inf))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights, visible & real[..., None], real


def _average(weights, visible, asking, measure, least=1):  # type: ignore[no-untyped-def]
    """Average a function of one query's weights on the keys it sees, per head."""
    values: list[list[float]] = [[], []]
    for row, head, query in np.ndindex(weights.shape[:3]):
        seen = visible[row, query]
        if asking[row, query] and seen.sum() >= least:
            values[head].append(measure(weights[row, head, query][seen], seen))
    return [np.mean(part) for part in values]


@pytest.mark.parametrize("causal", [False, True])
def test_each_measure_is_the_mean_over_queries_that_count(causal: bool) -> None:
    weights, visible, asking = _attention(causal=causal)
    pairs = (
        (shape.entropy(weights, asking), lambda a, _: -(a * np.log(a)).sum(), 1),
        (
            shape.relative_entropy(weights, visible, asking),
            lambda a, _: -(a * np.log(a)).sum() / math.log(len(a)),
            2,
        ),
        (shape.largest_weight(weights, asking), lambda a, _: a.max(), 1),
        (
            shape.distance_to_uniform(weights, visible, asking),
            lambda a, _: 0.5 * np.abs(a - 1 / len(a)).sum(),
            2,
        ),
        (
            shape.logit_range(weights, visible, asking),
            lambda a, _: np.log(a.max()) - np.log(a.min()),
            1,
        ),
    )
    for found, measure, least in pairs:
        expected = _average(weights, visible, asking, measure, least)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_logit_range_is_that_of_the_logits() -> None:
    logits = np.random.default_rng(4).normal(size=(2, 3, 4, 6)) * 3
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    everything = np.ones((2, 4, 6), dtype=bool)
    spread = logits.max(-1) - logits.min(-1)
    np.testing.assert_allclose(shape.logit_range(weights, everything), spread.mean((0, 2)))
    np.testing.assert_allclose(
        shape.logit_range(weights, everything, largest=True), spread.max((0, 2))
    )


def test_an_underflow_is_a_lower_bound_and_finite() -> None:
    weights = np.zeros((1, 1, 1, 3), dtype=np.float32)
    weights[..., 0] = 1
    everything = np.ones((1, 1, 3), dtype=bool)
    found = shape.logit_range(weights, everything)
    np.testing.assert_allclose(found, -math.log(np.finfo(np.float32).tiny), rtol=1e-6)
    assert shape.entropy(weights)[0] == 0
    np.testing.assert_allclose(shape.distance_to_uniform(weights, everything), 2 / 3, rtol=1e-6)


def test_uniform_causal_attention_has_no_distance_and_full_entropy() -> None:
    visible = np.tri(6, dtype=bool)[None]
    weights = (visible / visible.sum(-1, keepdims=True))[:, None]
    assert np.array_equal(shape.visible_pairs(weights), visible)
    np.testing.assert_allclose(shape.distance_to_uniform(weights, visible), 0, atol=1e-15)
    np.testing.assert_allclose(shape.relative_entropy(weights, visible), 1)


def test_mass_goes_to_positions_that_are_no_padding() -> None:
    weights, visible, asking = _attention()
    # Padding on the left of row 0.
    visible[0, :, :2] = visible[0, :2] = asking[0, :2] = False
    weights = weights * visible[:, None]
    first = shape.positions_among(visible, (0,))
    assert [int(row.any(0).argmax()) for row in first] == [2, 0, 0]
    ends = shape.positions_among(visible, (0, -1))
    assert [np.flatnonzero(row.any(0)).tolist() for row in ends] == [[2, 4], [0, 2], [0, 4]]
    expected = _average(weights, visible, asking, lambda a, _: a[0] + a[-1])
    np.testing.assert_allclose(shape.mass_on(weights, ends, asking), expected)


def test_effective_rank_counts_ways_of_looking() -> None:
    same = np.broadcast_to(np.array([0.2, 0.3, 0.5, 0.0]), (1, 1, 4, 4))
    own = np.eye(4)[None, None]
    halves = np.kron(np.eye(2), np.full((2, 2), 0.5))[None, None]
    for weights, rank in ((same, 1), (own, 4), (halves, 2)):
        np.testing.assert_allclose(shape.effective_rank(weights), rank, rtol=1e-12)
    asking = np.array([[True, True, True, False]])
    np.testing.assert_allclose(shape.effective_rank(own, asking), 3, rtol=1e-12)
    weights, _, asked = _attention(2)
    values = [np.linalg.svd(weights[r, 1][asked[r]], compute_uv=False) for r in range(3)]
    shares = [v / v.sum() for v in values]
    expected = np.mean([np.exp(-(s[s > 0] * np.log(s[s > 0])).sum()) for s in shares])
    np.testing.assert_allclose(shape.effective_rank(weights, asked)[1], expected, rtol=1e-10)


def test_nobody_asking_is_nan_and_wrong_axes_are_a_sentence() -> None:
    weights, visible, _ = _attention()
    nobody = np.zeros((3, 5), dtype=bool)
    assert np.isnan(shape.entropy(weights, nobody)).all()
    assert np.isnan(shape.logit_range(weights, visible, nobody, largest=True)).all()
    with pytest.raises(AttnscopeError, match=r"shape \(3, 5\): expected \(row, head"):
        shape.entropy(np.ones((3, 5)))
