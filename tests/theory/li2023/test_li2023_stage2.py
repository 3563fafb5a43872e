from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import (
    TopicSetting,
    ValueBlocks,
    attention_loss,
    best_attention,
    best_gamma,
    constants,
    diagonal_value_blocks,
    gamma_bounds,
    mean_ratio,
    value_blocks,
)

SMALL = TopicSetting(topics=4, words=3, tau=2, p_m=0.3, p_c=0.2, p_r=0.15)
TEN = TopicSetting(topics=10, words=10, tau=3)


def printed_loss(setting: TopicSetting, g: np.ndarray) -> np.ndarray:
    """Eqs (F.22)-(F.26), term by term."""
    T, v, tau, p_c, p_r = setting.topics, setting.words, setting.tau, setting.p_c, setting.p_r
    p2 = setting.p_m * p_r / (v * T)
    p1 = (1 - (1 - p_c) * setting.p_m) / (v * tau) + p2
    c3 = 1 / (1 - (1 - p_c) * setting.p_m)

    def q(x: np.ndarray) -> np.ndarray:
        return c3 * x - setting.p_m * p_r * c3 / (T * v)

    z1 = p1 * g * v + p1 * v * (tau - 1) + p2 * v * (T - tau)
    z2 = p2 * g * v + p1 * v * tau + p2 * v * (T - tau - 1)
    own, other, out = q(p1 * g / z1), q(p1 / z1), q(p2 / z1)
    inside, seen, outside = q(p1 / z2), q(p2 * g / z2), q(p2 / z2)
    rest = v * (T - tau) * out**2
    first = (1 - own) ** 2 + (v - 1) * own**2 + v * (tau - 1) * other**2 + rest
    second = (1 - other) ** 2 + v * own**2 + (v * (tau - 1) - 1) * other**2 + rest
    third = (1 - inside) ** 2 + (v * tau - 1) * inside**2 + v * seen**2
    third += v * (T - tau - 1) * outside**2
    return (p_c + p_r / T) * first + p_r * (tau - 1) / T * second + p_r * (1 - tau / T) * third


def written_out_loss(
    setting: TopicSetting, alpha: float, beta: float, values: ValueBlocks
) -> float:
    """Every word seen and every target of the document of the first topics; [MASK] is a key."""
    known, size, v = constants(setting), setting.topics * setting.words, setting.words
    topic = np.r_[-1, np.arange(size) // v]
    inside = topic[1:] < setting.tau
    share = np.r_[known.mask, np.where(inside, known.present, known.absent)]
    target = np.r_[0.0, inside / (setting.tau * v)]
    weights = values.matrix(setting)
    total = 0.0
    for seen in range(1, size + 1):
        ratio = np.where(topic == topic[seen], alpha, 1.0)
        ratio[seen] = beta
        output = weights @ (share * ratio / (share * ratio).sum())
        for word in np.flatnonzero(target):
            chance = setting.p_c * (seen == word) + setting.p_r / size
            total += target[word] * chance * np.square(output - np.eye(size + 1)[word]).sum()
    return total


@pytest.mark.parametrize("setting", [SMALL, TEN, TopicSetting(topics=100, words=300, tau=20)])
def test_loss_is_that_of_the_appendix_and_only_gamma_counts(setting: TopicSetting) -> None:
    rng = np.random.default_rng(0)
    alpha, beta = np.exp(rng.normal(0, 3, size=(2, 50)))
    gamma = mean_ratio(setting, alpha, beta)
    expected = printed_loss(setting, gamma)
    np.testing.assert_allclose(attention_loss(setting, alpha, beta), expected, rtol=1e-12)
    np.testing.assert_allclose(attention_loss(setting, gamma, gamma), expected, rtol=1e-12)


@pytest.mark.parametrize("values", [value_blocks(SMALL), diagonal_value_blocks(SMALL)])
def test_attended_mask_is_the_model_written_out(values: ValueBlocks) -> None:
    alpha, beta = np.array([0.0, 0.5, 4.0]), np.array([1.0, 30.0])
    expected = [[written_out_loss(SMALL, a, b, values) for b in beta] for a in alpha]
    found = attention_loss(SMALL, alpha[:, None], beta, values, mask="attended")
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("values", [value_blocks(SMALL), diagonal_value_blocks(SMALL)])
def test_the_two_readings_of_the_mask_differ_at_uniform_attention_by_its_share(
    values: ValueBlocks,
) -> None:
    # At α = β = 1 the paper's normalisers leave m out, so words get 1/(1-m) times their share.
    m = constants(SMALL).mask
    block, spike = values.same - values.different, values.diagonal - values.same
    stretched = ValueBlocks(
        mask=values.mask,
        same=values.different + block / (1 - m),
        different=values.different,
        diagonal=values.different + (block + spike) / (1 - m),
    )
    paper = attention_loss(SMALL, 1.0, 1.0, values)
    assert paper == pytest.approx(float(attention_loss(SMALL, 1.0, 1.0, stretched, "attended")))


@pytest.mark.parametrize(
    ("setting", "gamma"),
    [
        (TopicSetting(topics=100, words=300, tau=20), 53.2),
        (TopicSetting(topics=100, words=300, tau=40), 66.3),
        (TopicSetting(topics=100, words=300, tau=60), 72.0),
        (TopicSetting(topics=100, words=300, tau=80), 75.3),
        (TEN, 7.05),
    ],
)
def test_minimum_is_stationary_and_inside_the_bounds(setting: TopicSetting, gamma: float) -> None:
    found = best_gamma(setting)
    # The published numbers are those of a grid; ours is where the slope changes sign.
    assert found == pytest.approx(gamma, rel=3e-3)
    assert found in gamma_bounds(setting)
    low, mid, high = printed_loss(setting, found * np.array([1 - 1e-4, 1, 1 + 1e-4]))
    curvature = low + high - 2 * mid
    assert curvature > 0
    assert abs(high - low) < 0.02 * curvature


def test_size_of_the_papers_inconsistency() -> None:
    # Words get 1 - m of the attention instead of all of it: γ grows by 1/(1-m) in the limit.
    huge = TopicSetting(topics=10**6, words=300, tau=1000)
    ratio = best_gamma(huge, "attended") / best_gamma(huge)
    assert ratio == pytest.approx(1 / (1 - constants(huge).mask), rel=2e-3)
    large = TopicSetting(topics=100, words=300, tau=20)
    assert best_gamma(large, "attended") / best_gamma(large) == pytest.approx(1.1001, abs=1e-3)
    assert best_gamma(TEN, "attended") / best_gamma(TEN) == pytest.approx(0.9948, abs=1e-3)


@pytest.mark.parametrize("mask", ["paper", "attended"])
@pytest.mark.parametrize("setting", [TEN, TopicSetting(topics=48, words=23, tau=47, p_m=0.38)])
def test_best_attention_is_best_on_a_fine_grid(setting: TopicSetting, mask: str) -> None:
    values = diagonal_value_blocks(setting)
    alpha, beta = best_attention(setting, values, mask)
    least = attention_loss(setting, alpha, beta, values, mask)
    near = np.exp(np.linspace(-0.05, 0.05, 11))
    around = attention_loss(setting, alpha * near[:, None], beta * near, values, mask)
    assert around.min() == pytest.approx(least, rel=1e-13)
    wide = np.r_[0, np.logspace(-3, 5, 120)]
    assert attention_loss(setting, wide[:, None], wide, values, mask).min() > least


def test_with_many_words_the_other_words_of_the_topic_get_nothing() -> None:
    setting = TopicSetting(topics=100, words=300, tau=20)
    values = diagonal_value_blocks(setting)
    alpha, beta = best_attention(setting, values)
    assert alpha == 0
    assert attention_loss(setting, 1e-3, beta, values) > attention_loss(setting, 0, beta, values)


def test_topics_of_one_word_have_beta_alone() -> None:
    setting = TopicSetting(topics=10, words=1, tau=3)
    alpha, beta = best_attention(setting, ValueBlocks(-0.1, 0.0, 0.0, 1.1))
    assert alpha == 0
    near = attention_loss(
        setting, 0, beta * np.array([0.99, 1, 1.01]), ValueBlocks(-0.1, 0, 0, 1.1)
    )
    assert near.argmin() == 1


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(AttnscopeError, match=r"p_c = p_r = 0: expected one of them above 0"):
        attention_loss(TopicSetting(topics=4, words=3, tau=2, p_c=0, p_r=0), 1.0, 1.0)
    with pytest.raises(AttnscopeError, match="mask = 'none': expected 'paper' or 'attended'"):
        attention_loss(SMALL, 1.0, 1.0, mask="none")  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match="a negative α or β"):
        attention_loss(SMALL, [1.0, -1.0], 1.0)
    with pytest.raises(AttnscopeError, match="only γ is determined"):
        best_attention(SMALL, value_blocks(SMALL))
    # One topic and no random words: all there is to attend to is of the own topic.
    only_kept = TopicSetting(topics=4, words=2, tau=1, p_c=0.1, p_r=0.0)
    with pytest.raises(AttnscopeError, match="no minimum between"):
        best_gamma(only_kept)
