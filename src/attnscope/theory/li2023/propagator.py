"""The linear system of the onset, solved from the actual initial keys and queries.

    dK/dt = -Q G(t)ᵀ,    dQ/dt = -K G(t),    G linear between the times at which it is known.

All singular directions take part, however they turn, and no average over initial values is made.
Where G is linear in time the solution is an entire function of time, so its power series gives it
to rounding: no step size enters but that of G's record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.li2023.onset import check_times

END = 1e6
"""A norm of KᵀQ at which propagation ends: attention is long past uniform, and the linear system
would only run on towards overflow."""


@dataclass(frozen=True, eq=False)
class LinearAttention:
    """Keys and queries of the linear system.

    Args:
        times: shape ``(time,)``; they end where ‖KᵀQ‖₂ has passed :data:`END`.
        keys: K, shape ``(time, d_a, key)``.
        queries: Q, shape ``(time, d_a, query)``.
        norms: ‖KᵀQ‖₂, shape ``(time,)``; :func:`measured_onset` reads the onset off it.
    """

    times: np.ndarray
    keys: np.ndarray
    queries: np.ndarray
    norms: np.ndarray


def propagate(
    keys: Numbers,
    queries: Numbers,
    times: Numbers,
    gradients: Numbers,
    lr: float | None = None,
) -> LinearAttention:
    """Follow the keys and queries through G(t).

    Args:
        keys: initial W^K, shape ``(d_a, key)``.
        queries: initial W^Q, shape ``(d_a, query)``.
        times: learning rate × step, ascending, shape ``(time,)``.
        gradients: G = ∂L/∂(W^Kᵀ W^Q) at uniform attention, shape ``(time, key, query)``.
        lr: take the steps of gradient descent at this rate instead of the flow; all times must be
            whole numbers of steps apart.

    Raises:
        AttnscopeError: shapes do not fit, or ``lr`` does not divide the time between two records.
    """
    key, query = float64(keys), float64(queries)
    times, gradients = check_times(times), float64(gradients)
    expected = (len(times), key.shape[-1], query.shape[-1])
    if key.ndim != 2 or query.ndim != 2 or len(key) != len(query) or gradients.shape != expected:
        raise AttnscopeError(
            f"keys {key.shape}, queries {query.shape}, gradients {gradients.shape} at {len(times)} "
            "times: expected (d_a, key), (d_a, query) and (time, key, query)."
        )
    states, norms = [(key, query)], [_norm(key, query)]
    for start, end, first, last in zip(
        times[:-1], times[1:], gradients[:-1], gradients[1:], strict=True
    ):
        if norms[-1] > END:
            break
        if lr is None:
            key, query = _flow(key, query, first, last, float(end - start))
        else:
            key, query = _descend(key, query, first, last, float(end - start), lr)
        states.append((key, query))
        norms.append(_norm(key, query))
    all_keys, all_queries = (np.stack(side) for side in zip(*states, strict=True))
    return LinearAttention(times[: len(norms)], all_keys, all_queries, np.array(norms))


def expected_norms(
    times: Numbers, gradients: Numbers, eps: float, d_a: int, lr: float | None = None
) -> np.ndarray:
    """‖E W^Kᵀ W^Q‖₂ over random starts: the closed form of the onset with the whole of G.

    Every row (k, q) of the matrices (W^K, W^Q) goes to Φ(t) (k, q), and the d_a rows start i.i.d.
    with standard deviation ε. So, in blocks of keys and queries,

        E W^Kᵀ W^Q = ε² d_a (Φ Φᵀ)_{key, query}.

    With G = σ u wᵀ at all times this is (ε² d_a/2) (exp(2∫σ dt) - exp(-2∫σ dt)), the closed form of
    :func:`attnscope.theory.li2023.predicted_norms` but for the part that shrinks. With all of G it
    needs neither that one direction leads nor that it turns slowly. Like that one it knows nothing
    of the actual start, whose |x - y|² has a logarithm with the standard deviation √(2/d_a).

    Args:
        times: learning rate × step, ascending, shape ``(time,)``.
        gradients: G at uniform attention, shape ``(time, key, query)``.
        eps: ε, standard deviation of the initial entries of W^K and W^Q.
        d_a: rows of W^K and W^Q.
        lr: η of gradient descent; None for gradient flow.

    Returns:
        Shape ``(time,)``, or shorter where the norm has passed :data:`END`.
    """
    for name, value in (("eps", eps), ("d_a", d_a)):
        if not value > 0:
            raise AttnscopeError(f"{name} = {value:g}: expected a number above 0.")
    gradients = float64(gradients)
    if gradients.ndim != 3:
        raise AttnscopeError(
            f"gradients of shape {gradients.shape}: expected (time, key, query), a matrix G a time."
        )
    keys, queries = gradients.shape[1:]
    start = eps * math.sqrt(d_a) * np.eye(keys + queries)
    return propagate(start[:, :keys], start[:, keys:], times, gradients, lr).norms


def _flow(
    key: np.ndarray, query: np.ndarray, first: np.ndarray, last: np.ndarray, length: float
) -> tuple[np.ndarray, np.ndarray]:
    size = length * max(np.linalg.norm(first), np.linalg.norm(last))
    # On pieces where ∫‖G‖ ≤ 1 the terms fall like 1/n! from the first, and nothing cancels.
    pieces = max(1, math.ceil(size))
    slope = (last - first) * (length / pieces**2)
    for piece in range(pieces):
        here = (first + (last - first) * (piece / pieces)) * (length / pieces)
        key, query = _series(key, query, here, slope)
    return key, query


def _series(
    key: np.ndarray, query: np.ndarray, here: np.ndarray, slope: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solve K' = -Q (here + s·slope)ᵀ, Q' = -K (here + s·slope) from s = 0 to 1, term by term."""
    before, term, order = (np.zeros_like(key), np.zeros_like(query)), (key, query), 0
    # The recursion reaches back two terms, so that one may vanish and the next need not.
    while max(_size(before), _size(term)) > np.finfo(np.float64).eps * _size((key, query)):
        order += 1
        following = (
            -(term[1] @ here.T + before[1] @ slope.T) / order,
            -(term[0] @ here + before[0] @ slope) / order,
        )
        key, query = key + following[0], query + following[1]
        before, term = term, following
    return key, query


def _size(pair: tuple[np.ndarray, np.ndarray]) -> float:
    return float(max(np.abs(pair[0]).max(), np.abs(pair[1]).max()))


def _descend(
    key: np.ndarray,
    query: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    length: float,
    lr: float,
) -> tuple[np.ndarray, np.ndarray]:
    steps = round(length / lr)
    if steps < 1 or not math.isclose(steps * lr, length, rel_tol=1e-6):
        raise AttnscopeError(
            f"lr = {lr:g} and times {length:g} apart: expected a whole number of steps, as time is "
            "learning rate × step."
        )
    for step in range(steps):
        gradient = lr * (first + (last - first) * (step / steps))
        key, query = key - query @ gradient.T, query - key @ gradient
    return key, query


def _norm(key: np.ndarray, query: np.ndarray) -> float:
    return float(np.linalg.norm(key.T @ query, 2))
