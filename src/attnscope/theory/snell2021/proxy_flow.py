"""How lexical knowledge grows: the proxy of Snell 2021 followed in time. Beyond the paper.

The inner products of :mod:`attnscope.theory.snell2021.grams` are a closed system of |I||O| + |I|² +
|O|² numbers. From the start at infinite width it predicts θ(τ), hence β^px, from the data alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import softmax

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.snell2021.grams import Grams
from attnscope.theory.snell2021.pair_bags import PairBags


@dataclass(frozen=True, eq=False)
class ProxyFlow:
    """The proxy along its gradient flow.

    Args:
        times: τ, shape ``(time,)``.
        logits: (W e_i)_o, shape ``(time, input word, output word)``.
    """

    times: np.ndarray
    logits: np.ndarray

    @property
    def probabilities(self) -> np.ndarray:
        """θ_io = softmax(W e_i)_o, eq 13; β^px_tl is its entry (x_l, y_t)."""
        return np.asarray(softmax(self.logits, axis=-1))


def proxy_flow(
    bags: PairBags,
    times: Numbers,
    start: Grams | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
) -> ProxyFlow:
    """Follow gradient flow of eq 14 from τ = 0.

    Args:
        bags: the pairs.
        times: where to report, ascending, from 0 on.
        start: inner products at τ = 0; infinite width when left out.
        rtol: relative tolerance of the solver, per step.
        atol: absolute tolerance of the solver, per step.
    """
    times = float64(times)
    if times.ndim != 1 or len(times) == 0 or times[0] < 0 or not (np.diff(times) > 0).all():
        raise AttnscopeError(
            f"times of shape {times.shape}: expected one or more times from 0 on, strictly "
            "ascending."
        )
    start = Grams.infinite_width(bags) if start is None else start
    parts = (start.logits, start.source, start.target)
    ends = np.cumsum([part.size for part in parts])[:-1]

    def field(_: float, state: np.ndarray) -> np.ndarray:
        pieces = np.split(state, ends)
        now = Grams(*(piece.reshape(p.shape) for piece, p in zip(pieces, parts, strict=True)))
        moved = now.velocity(bags)
        return np.concatenate([moved.logits, moved.source, moved.target], axis=None)

    shape = (len(times), *start.logits.shape)
    if times[-1] == 0:
        return ProxyFlow(times, start.logits[None].copy())
    first = np.concatenate(parts, axis=None)
    span = (0.0, float(times[-1]))
    found = solve_ivp(field, span, first, "DOP853", t_eval=times, rtol=rtol, atol=atol)
    if not found.success:
        raise AttnscopeError(
            f"the flow of the proxy ended before τ = {times[-1]:g}: {found.message} Expected a "
            "shorter time."
        )
    return ProxyFlow(times, found.y[: ends[0]].T.reshape(shape))
