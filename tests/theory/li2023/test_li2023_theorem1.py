from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import (
    TopicSetting,
    corrected_example,
    embedding_bias,
    embedding_family_residual,
    embedding_member,
    embedding_residual,
    gram_shift,
    measured_gap,
    printed_example,
    topic_gap,
)

BERT = TopicSetting(topics=10, words=10, tau=3)
SMALL = TopicSetting(topics=5, words=3, tau=2, p_m=0.3, p_c=0.2, p_r=0.15)


@pytest.mark.parametrize("setting", [BERT, SMALL])
def test_random_members_are_optimal_and_have_the_gap(
    setting: TopicSetting, documents: Callable
) -> None:
    rng = np.random.default_rng(1)
    size = setting.topics * setting.words
    member = embedding_member(setting, rng.normal(size=size + 1), rng.normal(size=(size + 1, size)))
    masked, words = documents(setting)
    predicted = masked @ member.T + embedding_bias(setting)
    np.testing.assert_allclose(predicted, words, atol=1e-13)
    assert embedding_residual(member, setting).max() < 1e-13
    assert embedding_family_residual(member, setting).max() < 1e-13
    assert measured_gap(member, setting) == pytest.approx(topic_gap(setting), rel=1e-12)


def test_members_are_all_optima_there_are(documents: Callable) -> None:
    # Least squares has a null space of Tv + 1 - rank for each row. That of the family: u_i, and v-1
    # free entries for each topic.
    masked, _ = documents(SMALL)
    assert np.linalg.matrix_rank(masked) == 16 - (1 + 5 * 2)


def test_leaving_the_family_shows_in_both_residuals() -> None:
    member = embedding_member(SMALL, 0.3)
    member[4, 7] += 0.01
    for residual in (embedding_residual(member, SMALL), embedding_family_residual(member, SMALL)):
        assert residual.argmax() == 4
        assert residual[4] > 1e-4
        assert np.delete(residual, 4).max() < 1e-14


def test_the_printed_example_fails_on_the_mask_row_and_only_there() -> None:
    printed, corrected = printed_example(BERT), corrected_example(BERT)
    residual = embedding_residual(printed, BERT)
    # c3 I predicts c3 m where there is never a [MASK] to predict.
    assert residual[0] == pytest.approx(0.12 / 0.865, rel=1e-14)
    assert residual[1:].max() < 1e-15
    assert embedding_residual(printed, BERT, as_printed=True)[0] == pytest.approx(0.1386, abs=5e-5)
    assert embedding_family_residual(printed, BERT).argmax() == 0
    assert embedding_residual(corrected, BERT).max() < 1e-15
    assert embedding_family_residual(corrected, BERT).max() < 1e-15


def test_the_printed_bias_is_off_on_the_mask_row() -> None:
    residual = embedding_residual(corrected_example(BERT), BERT, as_printed=True)
    assert residual[0] == pytest.approx(0.15 * 0.1 / 0.865 / 100, rel=1e-12)
    assert residual[1:].max() < 1e-15


@pytest.mark.parametrize("u", [0.0, 0.02, 3.0])
def test_some_members_are_gram_matrices_of_a_few_dimensions(u: float) -> None:
    member = embedding_member(SMALL, gram_shift(SMALL, u))
    np.testing.assert_allclose(member, member.T, atol=1e-15 * max(1.0, np.abs(member).max()))
    eigenvalues = np.linalg.eigvalsh(member)
    assert eigenvalues.min() > -1e-12
    assert (eigenvalues > 1e-9).sum() == SMALL.topics + (u > 0)
    assert embedding_residual(member, SMALL).max() < 1e-13


def test_gram_shift_must_not_be_negative() -> None:
    with pytest.raises(AttnscopeError, match=r"u = -1: expected 0 or more"):
        gram_shift(SMALL, -1.0)
