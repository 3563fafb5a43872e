"""Lexical probes against the formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.lexical import (
    correct_probability,
    log_lexical_probe,
    polarity_probe,
    saliency,
)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 5), st.integers(0, 99))
def test_probe_is_the_softmax_at_the_right_word(t: int, length: int, words: int, seed: int) -> None:
    source = np.random.default_rng(seed)
    logits, correct = source.normal(size=(t, length, words)), source.integers(0, words, t)
    found = log_lexical_probe(logits, correct)
    assert found.shape == (t, length)
    for i in range(t):
        for l in range(length):  # noqa: E741
            weights = [math.exp(value) for value in logits[i, l]]
            expected = math.log(weights[correct[i]] / sum(weights))
            assert found[i, l] == pytest.approx(expected, abs=1e-12)


def test_probe_of_the_counterexample() -> None:
    # Snell 2021, appendix A.1.
    gamma = np.array([[0.0, 0, 0], [0, -10, 5], [0, 5, -10]])
    beta = np.exp(log_lexical_probe(gamma, np.int64(0)))
    np.testing.assert_allclose(beta, [1 / 3, 0.00669, 0.00669], atol=1e-5)


def test_large_logits_stay_finite() -> None:
    found = log_lexical_probe(np.array([[1e4, 0.0], [0.0, 1e4]]), np.int64(0))
    assert found.tolist() == [0, -1e4]


@given(st.lists(st.floats(-30, 30), max_size=5), st.integers(0, 1))
def test_polarity_is_the_probability_of_the_label(gamma: list[float], label: int) -> None:
    found = polarity_probe(np.array(gamma), np.int64(label))
    expected = [sigmoid(g) if label else 1 - sigmoid(g) for g in gamma]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 0.99)), min_size=1, max_size=6))
def test_probability_is_eq_12(terms: list[tuple[float, float]]) -> None:
    alpha, beta = np.array(terms).T
    expected = sigmoid(sum(a * math.log(b / (1 - b)) for a, b in terms))
    assert correct_probability(alpha, beta) == pytest.approx(expected, abs=1e-12)


def test_attention_to_one_position_gives_its_probe() -> None:
    beta = np.array([[0.2, 0.9], [0.0, 1.0]])
    for position in range(2):
        found = correct_probability(np.eye(2)[[position] * 2], beta)
        np.testing.assert_allclose(found, beta[:, position], atol=1e-15)


def test_positions_without_attention_add_nothing() -> None:
    beta = np.array([0.7, 0.0, 1.0, np.nan])
    assert correct_probability(np.array([1.0, 0, 0, 0]), beta) == pytest.approx(0.7)
    assert correct_probability(np.zeros((1, 0)), np.zeros((1, 0))).tolist() == [0.5]


def test_saliency_is_the_derivative_with_respect_to_a_gate(float64: None) -> None:
    e = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    gate = torch.ones(3, 4, requires_grad=True)
    embedded = (e * gate[..., None]).requires_grad_()
    embedded.retain_grad()
    (embedded.sin().sum(dim=(1, 2)) ** 2).sum().backward()
    assert gate.grad is not None
    assert embedded.grad is not None
    found = saliency(e.numpy(), embedded.grad.numpy())
    np.testing.assert_allclose(found, -gate.grad.numpy(), atol=1e-12)


def test_a_word_that_helps_is_positive() -> None:
    # Loss -e: a larger embedding is a smaller loss.
    assert saliency(np.array([[2.0]]), np.array([[-1.0]])).tolist() == [2]


def test_wrong_input_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match=r"shape \(2, 3\) and the right words \(2,\)"):
        log_lexical_probe(np.zeros((2, 3)), np.zeros(2, dtype=int))
    with pytest.raises(AttnscopeError, match="go from 3 to 3: expected 0 to 2"):
        log_lexical_probe(np.zeros((2, 3)), np.int64(3))
    with pytest.raises(AttnscopeError, match="are float64: expected word ids"):
        log_lexical_probe(np.zeros((2, 3)), np.float64(1))
    with pytest.raises(AttnscopeError, match=r"NaN in logits at \(0, 1\)"):
        log_lexical_probe(np.array([[0, np.nan]]), np.int64(0))
    with pytest.raises(AttnscopeError, match="a label is 2"):
        polarity_probe(np.zeros((1, 2)), np.array([2]))
    with pytest.raises(AttnscopeError, match=r"labels \(2,\)"):
        polarity_probe(np.zeros((1, 2)), np.array([1, 1]))
    with pytest.raises(AttnscopeError, match="NaN in log-odds"):
        polarity_probe(np.array([np.nan]), np.int64(1))
    with pytest.raises(AttnscopeError, match=r"attention has the shape \(2,\) and beta \(3,\)"):
        correct_probability(np.zeros(2), np.zeros(3))
    with pytest.raises(AttnscopeError, match=r"beta is 1\.5"):
        correct_probability(np.ones(1), np.array([1.5]))
    with pytest.raises(AttnscopeError, match="NaN in beta"):
        correct_probability(np.ones(1), np.array([np.nan]))
    with pytest.raises(AttnscopeError, match="NaN in attention"):
        correct_probability(np.array([np.nan]), np.ones(1))
    with pytest.raises(AttnscopeError, match=r"attention is -0\.5"):
        correct_probability(np.array([-0.5, 1.5]), np.full(2, 0.5))
    with pytest.raises(AttnscopeError, match="beta = 0 and to one with beta = 1"):
        correct_probability(np.full(2, 0.5), np.array([0.0, 1.0]))
    with pytest.raises(AttnscopeError, match=r"gradient \(2, 2\)"):
        saliency(np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(AttnscopeError, match="NaN in the gradient"):
        saliency(np.zeros((1, 1)), np.array([[np.nan]]))
