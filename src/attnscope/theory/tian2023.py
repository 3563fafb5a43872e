r"""Which tokens attention turns to in a one-layer model of next tokens (Tian et al. 2023).

*Scan and Snap* (NeurIPS 2023). A query looks at context tokens l with logits :math:`z_l`; the next
token is n. With :math:`P(l|n)` and :math:`c_{l|n} \propto P(l|n) e^{z_l}`, the decoder reads
:math:`h_n = c_n / \|c_n\|_2` by a matrix Y, under cross-entropy. A token is *distinct* if it comes
with one n only, *common* if it comes with several. Logits of distinct tokens grow and those of
common ones fall; among distinct tokens those that are frequent win, by :math:`P^2` while gains are
small; and the faster the decoder, the earlier all of it freezes.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from attnscope.errors import AttnscopeError


def attention(logits: np.ndarray, context: np.ndarray) -> np.ndarray:
    """Return c, the attention on every token given the next one, shape ``(next, token)``.

    Args:
        logits: z, shape ``(token,)``.
        context: P(l|n), shape ``(next, token)``; rows sum to 1.
    """
    weights = context * np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def signs(context: np.ndarray) -> np.ndarray:
    """Return which way each logit moves: 1 for distinct tokens, -1 for common ones, 0 for absent.

    >>> signs(np.array([[0.6, 0.4, 0.0, 0.0], [0.0, 0.4, 0.6, 0.0]]))
    array([ 1, -1,  1,  0])
    """
    known = check_context(context)
    count = (known > 0).sum(axis=0)
    return np.where(count == 1, 1, np.where(count > 1, -1, 0))


def early_gains(context: np.ndarray) -> np.ndarray:
    """Return the gains of distinct tokens relative to the largest, P², while all are small.

    Tokens that are not distinct are 0.

    >>> print(early_gains(np.array([[0.6, 0.3, 0.1], [0.0, 0.0, 1.0]])))
    [1.   0.25 0.  ]
    """
    known = check_context(context)
    squares = np.where(signs(known) == 1, known.max(axis=0) ** 2, 0.0)
    return np.asarray(squares / (squares.max() or 1.0))


def scan_and_snap(
    context: np.ndarray, times: np.ndarray, decoder_rate: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return logits and loss of the gradient flow from z = 0, Y = 0 at given times.

    :math:`\dot z = -\partial L / \partial z` and :math:`\dot Y = -\eta \, \partial L / \partial Y`,
    with next tokens equally frequent.

    Args:
        context: P(l|n), shape ``(next, token)``.
        times: rising, from 0 or later.
        decoder_rate: η, the learning rate of Y over that of z.

    Returns:
        z of shape ``(time, token)``, and the cross-entropy in nats, ``(time,)``.
    """
    known = check_context(context)
    many, tokens = known.shape

    def parts(state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        c = attention(state[:tokens], known)
        size = np.linalg.norm(c, axis=1, keepdims=True)
        h = c / size
        outputs = h @ state[tokens:].reshape(many, tokens).T
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        return c, size, h, shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    def slope(time: float, state: np.ndarray) -> np.ndarray:
        c, size, h, logs = parts(state)
        error = (np.eye(many) - np.exp(logs)) / many
        decoder = error.T @ h
        # Back through h = c/|c| and through c, a softmax with fixed weights.
        back = error @ state[tokens:].reshape(many, tokens)
        back = (back - h * (back * h).sum(axis=1, keepdims=True)) / size
        turn = (c * (back - (back * c).sum(axis=1, keepdims=True))).sum(axis=0)
        return np.concatenate([turn, decoder_rate * decoder.ravel()])

    start = np.zeros(tokens + many * tokens)
    until = float(times[-1])
    solved = solve_ivp(slope, (0, until), start, "LSODA", times, rtol=1e-8, atol=1e-10)
    states = solved.y.T
    losses = [-float(np.diag(parts(state)[3]).mean()) for state in states]
    return np.asarray(states[:, :tokens]), np.array(losses)


def check_context(context: np.ndarray) -> np.ndarray:
    """Return P(l|n) as an array, or refuse what is none.

    Raises:
        AttnscopeError: an entry is negative or a row does not sum to 1.
    """
    known = np.asarray(context, dtype=float)
    if known.ndim != 2 or (known < 0).any() or not np.allclose(known.sum(axis=1), 1):
        raise AttnscopeError(
            f"context of shape {known.shape}: expected P(l|n), a row for each next token with "
            "entries of 0 or more that sum to 1."
        )
    return known
