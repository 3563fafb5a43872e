"""What is read while sequences are copied: predictions, attention, and knowledge of words.

The gold position of an output word is the input position that it was copied from. β_{t,l} is the
probability of output word t if the model looked at input position l alone (the lexical probe, eq
4). All readings are means over the words of held-out sequences; END is not among them.
"""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Observable
from attnscope.models.seq2seq import Look, Seq2Seq
from attnscope.probes.agreement import agreement
from attnscope.tasks.sequence_pairs import END, SequencePairs
from attnscope.trajectory import Readings, crossing

READINGS = {
    "loss": "mean of -log p, in nats",
    "accuracy": "share of words that are right under teacher forcing",
    "attention": "share of words whose gold position has the largest α",
    "knowledge": "share of words whose gold position has the largest β",
    "gap": "log β at the gold position less its mean elsewhere, in nats",
    "beta gold": "β at the gold position",
    "beta rest": "β elsewhere",
    "alpha gold": "α at the gold position",
    "at end": "share of words whose largest α is at the last position, that of END",
    "entropy": "entropy of α, in nats",
    "agreement": "A(α, β), eq 10: whether the largest α has one of the 5 % largest β",
}
OFFSETS = (-3, -2, -1, 0, 1, 2, 3)
LEARNED = 0.95
"""Accuracy above which a run has learned."""
UNATTENDED = 0.1
"""Attention accuracy below which attention has not been learned."""


def observables(pairs: SequencePairs, gold: Tensor) -> tuple[Observable, ...]:
    """Return the readings on given sequences.

    Args:
        pairs: sequences of one length.
        gold: source position of each target position.
    """
    words = int((pairs.target[0] != END).sum())
    listed = "; ".join(f"{name}: {meaning}" for name, meaning in READINGS.items())

    def read(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        return _readings(model.look(pairs), pairs.target, gold, words)

    def offsets(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        weights = model.attention_weights(model.states(pairs))[:, 0, :words]
        away = weights.argmax(dim=2) - gold[:words]
        return torch.stack([(away == offset).double().mean() for offset in OFFSETS])

    return (
        Observable("reading", read, ("reading",), "", listed),
        Observable(
            "offset",
            offsets,
            ("offset",),
            "",
            f"share of words whose largest α is {OFFSETS[0]} to {OFFSETS[-1]} from the gold one",
        ),
    )


def _readings(look: Look, target: Tensor, gold: Tensor, words: int) -> Tensor:
    alpha, log_beta = (part[:, :words].double() for part in (look.weights[:, 0], look.log_beta))
    place = gold[:words].expand(len(target), words)[:, :, None]

    def split(values: Tensor) -> tuple[Tensor, Tensor]:
        there = values.gather(2, place)[:, :, 0]
        return there.mean(), ((values.sum(dim=2) - there) / (values.shape[2] - 1)).mean()

    log_gold, log_rest = split(log_beta)
    beta_gold, beta_rest = split(log_beta.exp())
    right = (look.predicted == target)[:, :words]
    values = {
        "loss": -look.log_p[:, :words].mean(),
        "accuracy": right.double().mean(),
        "attention": (alpha.argmax(dim=2) == place[:, :, 0]).double().mean(),
        "knowledge": (log_beta.argmax(dim=2) == place[:, :, 0]).double().mean(),
        "gap": log_gold - log_rest,
        "beta gold": beta_gold,
        "beta rest": beta_rest,
        "alpha gold": split(alpha)[0],
        "at end": (alpha.argmax(dim=2) == alpha.shape[2] - 1).double().mean(),
        "entropy": torch.special.entr(alpha).sum(dim=2).mean(),
        "agreement": torch.tensor(float(np.mean(agreement(alpha.numpy(), log_beta.numpy())))),
    }
    return torch.stack([values[name].double() for name in READINGS])


def curve(run: Readings, name: str) -> xr.DataArray:
    """Return one of the readings, along ``seed`` and ``step``, and ``case`` if it is of all."""
    return run.reading.sel(reading=name, drop=True)


def reaches(run: Readings, name: str, level: float = LEARNED) -> xr.DataArray:
    """Return the step where a reading first exceeds a level, by seed.

    A run that never gets there counts with its last step, which is the least that it would need.
    """
    values = curve(run, name)
    return crossing(values, level).fillna(float(values["step"][-1]))


def known_unattended(run: Readings, name: str = "knowledge") -> xr.DataArray:
    """Return the largest knowledge, or so, before the attention of a run has been learned."""
    early = (curve(run, "attention") >= UNATTENDED).cumsum("step") == 0
    return curve(run, name).where(early, 0.0).max("step")
