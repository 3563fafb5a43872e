"""What is read of the minimal model: how far from each rule, where it looks, what it holds."""

from __future__ import annotations

from torch import Tensor, nn

from attnscope.engines import Observable
from attnscope.models.minimal_induction import MinimalInduction
from attnscope.tasks.markov_chains import Chains
from attnscope.theory.edelman2024 import STRATEGIES, divergence, looks_back, strategies

LAGS = 8
"""Distances of layer 1 that are recorded."""


def observables(chains: Chains) -> tuple[Observable, ...]:
    """Return the readings of a minimal model on its sequences."""
    states = chains.matrices.shape[-1]
    answers = strategies(chains.tokens, states)
    lags = min(LAGS, chains.tokens.shape[1])

    def kl(model: nn.Module) -> Tensor:
        logs = model(chains.tokens).log_softmax(dim=-1)
        return divergence(answers, logs).mean(dim=(1, 2))

    def diagonal(model: nn.Module) -> Tensor:
        own = minimal(model).W
        off = (own.sum() - own.trace()) / (states * (states - 1))
        return own.trace() / states - off

    return (
        Observable(
            "kl",
            kl,
            ("strategy",),
            "nats",
            "KL divergence of the model from each strategy, mean over positions",
            {"strategy": STRATEGIES},
        ),
        Observable("looks_back", looks_back, (), "", "attention of layer 1 to the previous state"),
        Observable("diagonal", diagonal, (), "", "mean diagonal of W less the mean of the rest"),
        Observable(
            "v",
            lambda model: minimal(model).v[:lags],
            ("lag",),
            "",
            "logits of layer 1 by distance",
        ),
    )


def minimal(model: nn.Module) -> MinimalInduction:
    """Return the model as what it is."""
    assert isinstance(model, MinimalInduction)
    return model
