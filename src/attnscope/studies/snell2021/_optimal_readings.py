"""What ``snell2021.optimal_attention`` reads off a model, and off problems that are drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.models.seq2seq import Seq2Seq
from attnscope.models.sequences import evaluating
from attnscope.probes.agreement import mean_agreement, shuffled_baseline
from attnscope.trajectory import select
from attnscope.tasks.sequence_pairs import SequencePairs
from attnscope.theory.snell2021 import OptimalAttention, optimal_attention

LEARNED, UNIFORM = "learned", "uniform"
"""Cases: attention is trained, or held at uniform."""
QUANTITIES = {
    "optimal_beta": "A(α_opt, β)",
    "optimal_shuffled": "A(α_opt, β in random order)",
    "attention_beta": "A(α, β)",
    "optimal_attention": "A(α_opt, α)",
    "neglected": "share of words whose largest β gets no optimal attention",
    "positions": "positions with optimal attention, mean",
    "gold_optimal": "α_opt at the gold position, mean",
    "gold_attention": "α at the gold position, mean",
    "gold_beta": "share of words whose gold position has the largest β",
    "loss": "loss with the model's attention (nats)",
    "loss_optimal": "loss with optimal attention (nats)",
    "loss_largest": "loss with all attention at the largest β (nats)",
    "accuracy": "share of words predicted rightly",
    "gap": "largest Frank-Wolfe gap of any word",
    "gap_uniform": "largest Frank-Wolfe gap of uniform attention",
}
"""What is read at each record point, with its meaning."""
EQUATION_30 = np.array([[0.0, 0, 0], [0, -10, 5], [0, 5, -10]])
"""Logits of three positions for three outputs; the first output is right."""
_PROBLEMS, _SHUFFLE = 0x0A1, 0x0A2


def reader(pairs: SequencePairs, gold: Tensor) -> Callable[[nn.Module], Tensor]:
    """Return a function that reads all quantities off a model with added output, eq 32."""
    target, places = pairs.target.numpy(), gold.numpy()

    def read(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        look = model.look(pairs)
        logits, offset = word_logits(model, pairs)
        best = optimal_attention(logits[:, None], target, offset)
        alpha = look.weights[:, 0].double().numpy()
        steps = np.arange(len(places))
        uniform = np.full(best.alpha.shape, 1 / best.alpha.shape[-1])
        values = {
            "optimal_beta": mean_agreement(best.alpha, best.beta).value,
            "optimal_shuffled": shuffled_baseline(best.alpha, best.beta, seed=_SHUFFLE).value,
            "attention_beta": mean_agreement(alpha, best.beta).value,
            "optimal_attention": mean_agreement(best.alpha, alpha).value,
            "neglected": best.neglects.mean(),
            "positions": (best.alpha > 1e-6).sum(axis=-1).mean(),
            "gold_optimal": best.alpha[:, steps, places].mean(),
            "gold_attention": alpha[:, steps, places].mean(),
            "gold_beta": (best.beta.argmax(axis=-1) == places).mean(),
            "loss": -look.log_p.double().mean().item(),
            "loss_optimal": -np.log(best.probability).mean(),
            "loss_largest": -np.log(best.beta.max(axis=-1)).mean(),
            "accuracy": (look.predicted == pairs.target).double().mean().item(),
            "gap": best.gap.max(),
            "gap_uniform": frank_wolfe_gap(logits[:, None], target, offset, uniform).max(),
        }
        return torch.tensor([float(values[name]) for name in QUANTITIES], dtype=torch.float64)

    return read


def word_logits(model: Seq2Seq, pairs: SequencePairs) -> tuple[np.ndarray, np.ndarray]:
    """Return γ_l ``(row, L, word)`` and γ_s ``(row, T, word)`` of a model with added output."""
    with torch.no_grad(), evaluating(model):
        states = model.states(pairs)
        weight = model.readout.weight.double()
        source, target = (
            (part.double() @ weight.T).numpy() for part in (states.encoder, states.decoder)
        )
    return source, target


def frank_wolfe_gap(
    logits: np.ndarray, target: np.ndarray, offset: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Return α·∇ - min ∇ of log g at any attention, position axis last in ``alpha``."""
    right = target[..., None]
    margins = logits - np.take_along_axis(
        np.broadcast_to(logits, (*target.shape, *logits.shape[-2:])), right[..., None], axis=-1
    )
    values = np.einsum("...l,...lo->...o", alpha, margins) + offset
    np.put_along_axis(values, right, -np.inf, axis=-1)
    weights = np.exp(values - values.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    gradient = np.einsum("...lo,...o->...l", margins, weights)
    return np.asarray((alpha * gradient).sum(axis=-1) - gradient.min(axis=-1))


def drawn(count: int, positions: int, outputs: int, spread: float, seed: int) -> OptimalAttention:
    """Solve problems whose logits are all drawn from N(0, spread²)."""
    rng = np.random.default_rng([seed, outputs, _PROBLEMS])
    logits = spread * rng.standard_normal((count, positions, outputs))
    offset = spread * rng.standard_normal((count, outputs))
    return optimal_attention(logits, np.zeros(count), offset)


def near_equation_30(count: int, noise: float, seed: int) -> OptimalAttention:
    """Solve problems like eq 30, with noise on every logit."""
    rng = np.random.default_rng([seed, _PROBLEMS])
    logits = EQUATION_30 + noise * rng.standard_normal((count, 3, 3))
    return optimal_attention(logits, np.zeros(count))


def curve(tree: xr.DataTree, quantity: str, case: str) -> np.ndarray:
    """Return a quantity over steps, shape ``(seed, step)``."""
    return select(tree, "optimal", case).isel(quantity=list(QUANTITIES).index(quantity)).to_numpy()
