from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.theory.snell2021 import (
    Grams,
    PairBags,
    early_probabilities,
    exact_derivative,
    expected_error,
    limit_derivative,
    pair_bags,
    printed_derivative,
    proxy_flow,
    slope,
)

INPUTS, OUTPUTS = 5, 4
SOURCES = [[0, 1, 1], [2], [3, 0, 2, 2, 4], [4, 1]]
TARGETS = [[0, 3], [1, 1, 2], [3], [0, 2, 0, 1]]


@pytest.fixture
def bags() -> PairBags:
    return pair_bags(SOURCES, TARGETS, INPUTS, OUTPUTS)


def parameters(width: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    e, w = (rng.standard_normal((n, width)) / np.sqrt(width) for n in (INPUTS, OUTPUTS))
    return torch.tensor(e, requires_grad=True), torch.tensor(w, requires_grad=True)


def eq_14(e: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for source, target in zip(SOURCES, TARGETS, strict=True):
        p = torch.log_softmax(w @ e[source].mean(dim=0), dim=0)
        total = total - p[target].sum()
    return total


def test_counts_are_eq_16_word_by_word(bags: PairBags) -> None:
    table = np.zeros((INPUTS, OUTPUTS))
    for source, target in zip(SOURCES, TARGETS, strict=True):
        for i in source:
            for o in target:
                table[i, o] += 1 / len(source)
    assert np.abs(bags.counts.toarray() - table).max() < 1e-15
    assert bags.lengths.tolist() == [2, 3, 1, 4]


def test_exact_derivative_is_that_of_autograd_at_any_width(bags: PairBags) -> None:
    for width in (1, 3, 50):
        e, w = parameters(width, width)
        de, dw = (-g for g in torch.autograd.grad(eq_14(e, w), (e, w)))
        logits = (de @ w.T + e @ dw.T).detach().numpy()
        found = exact_derivative(Grams.of(e, w), bags)
        assert np.abs(found.logits - logits).max() < 1e-12
        _, theta = torch.autograd.functional.jvp(
            lambda a, b: torch.softmax(a @ b.T, dim=1), (e.detach(), w.detach()), (de, dw)
        )
        assert np.abs(found.probabilities - theta.numpy()).max() < 1e-12


def test_infinite_width_is_the_limit_and_probabilities_need_one_over_outputs(
    bags: PairBags,
) -> None:
    limit = limit_derivative(bags.counts)
    found = exact_derivative(Grams.infinite_width(bags), bags)
    assert np.abs(found.logits - limit.logits).max() < 1e-14
    assert np.abs(found.probabilities - limit.probabilities).max() < 1e-14
    assert slope(found.probabilities, printed_derivative(bags.counts)) == pytest.approx(1 / OUTPUTS)
    table = bags.counts.toarray()
    by_hand = 2 * (table[2, 1] - table[2].sum() / OUTPUTS)
    assert limit.logits[2, 1] == pytest.approx(by_hand, rel=1e-14)
    assert printed_derivative(table)[2, 1] == pytest.approx(by_hand, rel=1e-14)


def test_expected_error_is_the_mean_over_starts(bags: PairBags) -> None:
    limit = limit_derivative(bags.counts).logits
    for width in (1000, 4000):
        squares = []
        for seed in range(400):
            e, w = parameters(width, seed)
            gap = exact_derivative(Grams.of(e, w), bags).logits - limit
            squares.append((gap**2).sum())
        # The standard error of the root of the mean of 400 squares is about 2 %.
        assert np.sqrt(np.mean(squares)) == pytest.approx(expected_error(bags, width), rel=0.08)
    ratio = expected_error(bags, 1000) / expected_error(bags, 4000)
    assert ratio == pytest.approx(2, rel=1e-12)


def test_velocity_of_all_grams_is_that_of_the_parameters(bags: PairBags) -> None:
    e, w = parameters(7, 0)
    de, dw = (-g for g in torch.autograd.grad(eq_14(e, w), (e, w)))
    found = Grams.of(e, w).velocity(bags)
    source, target = de @ e.T, dw @ w.T
    assert np.abs(found.source - (source + source.T).detach().numpy()).max() < 1e-12
    assert np.abs(found.target - (target + target.T).detach().numpy()).max() < 1e-12


def test_flow_of_grams_is_the_flow_of_the_parameters(bags: PairBags) -> None:
    from scipy.integrate import solve_ivp

    e, w = parameters(6, 3)
    size = e.numel()

    def field(_: float, state: np.ndarray) -> np.ndarray:
        a = torch.tensor(state[:size].reshape(e.shape), requires_grad=True)
        b = torch.tensor(state[size:].reshape(w.shape), requires_grad=True)
        grads = torch.autograd.grad(eq_14(a, b), (a, b))
        return -np.concatenate([g.numpy().ravel() for g in grads])

    start = np.concatenate([e.detach().numpy().ravel(), w.detach().numpy().ravel()])
    times = np.array([0.0, 0.3, 1.0])
    end = solve_ivp(field, (0, 1), start, "DOP853", t_eval=times, rtol=1e-9, atol=1e-11).y.T
    logits = [row[:size].reshape(e.shape) @ row[size:].reshape(w.shape).T for row in end]
    found = proxy_flow(bags, times, Grams.of(e, w))
    assert np.abs(found.logits - np.stack(logits)).max() < 1e-6
    assert found.probabilities.sum(axis=-1) == pytest.approx(np.ones((3, INPUTS)))


def test_early_probabilities_are_right_to_first_order(bags: PairBags) -> None:
    for time, most in ((1e-3, 2e-5), (1e-4, 2e-7)):
        flow = proxy_flow(bags, [time], rtol=1e-11, atol=1e-13).probabilities[0]
        assert np.abs(flow - early_probabilities(bags.counts, time)).max() < most
    late = proxy_flow(bags, [1.0]).probabilities[0]
    assert np.abs(late - early_probabilities(bags.counts, 1.0)).max() > 0.05


def test_permutations_of_the_same_words_never_tell_input_words_apart() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.permutation(4) for _ in range(6)]
    bags = pair_bags(rows, rows, 4, 5)
    theta = proxy_flow(bags, [0.5, 3.0]).probabilities
    assert np.ptp(theta, axis=1).max() < 1e-9
    assert theta[-1, 0, :4].min() > theta[-1, 0, 4]


def test_flow_reports_time_zero_and_refuses_times_that_do_not_ascend(bags: PairBags) -> None:
    assert np.array_equal(proxy_flow(bags, [0.0]).logits, np.zeros((1, INPUTS, OUTPUTS)))
    for times in ([], [1.0, 0.5], [-1.0, 2.0]):
        with pytest.raises(AttnscopeError, match="ascending"):
            proxy_flow(bags, times)


def test_sparse_tables_give_the_same(bags: PairBags) -> None:
    dense = limit_derivative(bags.counts.toarray())
    assert np.array_equal(dense.logits, limit_derivative(sparse.csr_array(bags.counts)).logits)


def test_bad_input_is_quoted(bags: PairBags) -> None:
    with pytest.raises(AttnscopeError, match="1 sources and 2 targets"):
        pair_bags([[0]], [[0], [1]], 2)
    with pytest.raises(AttnscopeError, match="target 1 is empty"):
        pair_bags([[0], [1]], [[0], []], 2)
    with pytest.raises(AttnscopeError, match="from 0 to 2: expected 0 to 1"):
        pair_bags([[0, 2]], [[0]], 2)
    with pytest.raises(AttnscopeError, match=r"\(2, 3\)"):
        Grams.of(np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(AttnscopeError, match="zero everywhere"):
        slope([1.0], [0.0])
    with pytest.raises(AttnscopeError, match="width = 0"):
        expected_error(bags, 0)
    with pytest.raises(AttnscopeError, match=r"shape \(3,\)"):
        limit_derivative([1.0, 2.0, 3.0])
