"""Induction, previous-token and duplicate-token heads, on random words that come twice.

The probe batch is run once more with other words: its word ids are exchanged for repeated random
ones on their way into the embedding, so nothing has to be known of the model but that table.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from attnscope.probes import repeated_tokens
from attnscope.watching.moment import Evaluation, Moment, Need, Reading
from attnscope.watching.probe import Probe
from attnscope.watching.readings.lexical import IGNORED, log_likelihood
from attnscope.watching.readings.offer import Layer, Offer, WatchedModel, array, layers, stacked

NEEDS: frozenset[Need] = frozenset({"attention", "probe"})
SHORTEST = 8
"""Rows of fewer words are too short to say one half twice."""
APART = 10
"""It costs a forward pass, so without being asked for it is at every tenth reading."""


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    lacks = watched.lacks_words or _lacks(watched)
    usual = not lacks and _causal(watched)
    runs = _Runs(watched.probe)
    of_heads = (
        (
            "induction",
            repeated_tokens.induction,
            "attention to the word behind the first occurrence of the query's own word, on random "
            "words that come twice (prefix matching, Olsson et al. 2022)",
        ),
        (
            "previous_token",
            repeated_tokens.previous_token,
            "attention to the word before the query, on random words that come twice",
        ),
        (
            "duplicate_token",
            repeated_tokens.duplicate_token,
            "attention to the first occurrence of the query's own word, on random words that come "
            "twice",
        ),
    )
    gain = Reading(
        "repetition_gain",
        lambda moment: _gain(runs.of(moment)),
        (),
        NEEDS,
        "nats",
        "loss of the next word in the first half minus that in the second, on random words that "
        "come twice",
    )
    return [
        *(
            Offer(
                Reading(name, _read(runs, of), ("layer", "head"), NEEDS, meaning=meaning),
                usual,
                lacks,
                APART,
            )
            for name, of, meaning in of_heads
        ),
        Offer(gain, usual and _predicts(watched), lacks, APART),
    ]


class _Runs:
    """The model's answer to repeated words, once for all readings of a moment."""

    def __init__(self, probe: Probe | None) -> None:
        self.probe = probe
        self._made: WeakKeyDictionary[Moment, tuple[Evaluation, Tensor]] = WeakKeyDictionary()

    def of(self, moment: Moment) -> tuple[Evaluation, Tensor]:
        if moment not in self._made:
            self._made[moment] = self._run()
        return self._made[moment]

    def _run(self) -> tuple[Evaluation, Tensor]:
        assert self.probe is not None
        table = self.probe.embedding
        assert table is not None
        words = len(table.weight)  # type: ignore[arg-type]
        shown: list[Tensor] = []

        def exchange(_: object, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            ids = given[0]
            if not shown:
                rows, length = ids.shape
                new = repeated_tokens.repeated_ids(rows, length, words)
                shown.append(torch.from_numpy(new).to(ids))
            return (shown[0], *given[1:]) if shown[0].shape == ids.shape else given

        handle = table.register_forward_pre_hook(exchange)
        try:
            return self.probe.evaluate(), shown[0]
        finally:
            handle.remove()


def _read(runs: _Runs, of: Callable[[np.ndarray], np.ndarray]) -> Callable[[Moment], Tensor | None]:
    def one(layer: Layer | None, length: int) -> np.ndarray | None:
        if layer is None:
            return None
        if layer.weights.shape[-2:] != (length, length):
            return np.full(layer.weights.shape[1], np.nan)
        return of(layer.weights)

    def read(moment: Moment) -> Tensor | None:
        evaluation, ids = runs.of(moment)
        return stacked([one(layer, ids.shape[1]) for layer in layers(evaluation)])

    return read


def _gain(run: tuple[Evaluation, Tensor]) -> float:
    evaluation, ids = run
    half = ids.shape[1] // 2
    targets = torch.full_like(ids, IGNORED)
    targets[:, :-1] = ids[:, 1:]
    likely = log_likelihood(evaluation.output, targets)
    # The first word that is said for the second time follows from nothing.
    return float(likely[:, half:-1].mean() - likely[:, : half - 1].mean())


def _lacks(watched: WatchedModel) -> str:
    assert watched.first is not None
    assert watched.first.ids is not None
    if watched.first.ids.shape[1] < SHORTEST:
        return f"a probe batch of rows of {SHORTEST} words or more"
    return ""


def _causal(watched: WatchedModel) -> bool:
    """Whether no query sees a later key, in any layer of the words to themselves."""
    assert watched.first is not None
    squares = [array(see) for see in watched.first.visible if see.numel()]
    return bool(squares) and all(
        see.shape[1] == see.shape[2] and not np.triu(see, 1).any() for see in squares
    )


def _predicts(watched: WatchedModel) -> bool:
    """Whether the model answers with a score for every word at every position."""
    assert watched.first is not None
    assert watched.first.ids is not None
    try:
        log_likelihood(watched.first.output, watched.first.ids)
    except Exception:
        return False
    return True
