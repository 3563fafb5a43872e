"""What is read while permutations are copied with one head or several."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Observable
from attnscope.models.seq2seq import Seq2Seq, cross_entropy
from attnscope.trajectory import select
from attnscope.studies.snell2021._multihead_pools import GOOD
from attnscope.tasks.sequence_pairs import END, SequencePairs


def observables(pairs: SequencePairs, gold: Tensor, heads: int) -> tuple[Observable, ...]:
    """Return the readings on given sequences; END is not among the words that count.

    Args:
        pairs: sequences of one length.
        gold: source position of each target position.
        heads: entries of what is read head by head; NaN for heads that a run does not have.
    """
    words = int((pairs.target[0] != END).sum())

    def loss(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        return cross_entropy(model, pairs)

    def accuracy(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        right = model.log_probabilities(pairs).argmax(dim=2) == pairs.target
        return right[:, :words].double().mean()

    def attention(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        weights = model.attention_weights(model.states(pairs))[:, :, :words]
        found = (weights.argmax(dim=3) == gold[:words]).double().mean(dim=(0, 2))
        return F.pad(found, (0, heads - len(found)), value=torch.nan)

    return (
        Observable("loss", loss, (), "nats", "mean of -log p of unseen sequences"),
        Observable("accuracy", accuracy, (), "", "share of words that are right"),
        Observable(
            "attention",
            attention,
            ("head",),
            "",
            "share of words whose gold position has the head's largest α",
        ),
    )


def best(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the largest accuracy of each run of a case."""
    return np.asarray(select(tree, "accuracy", case).max("step").to_numpy())


def final(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return the accuracy of each run of a case at the end."""
    return np.asarray(select(tree, "accuracy", case).isel(step=-1).to_numpy())


def learned(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return which runs of a case have learned: accuracy above 95 % at some time."""
    return np.asarray(best(tree, case) > GOOD)
