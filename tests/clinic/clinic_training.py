"""Train a case of the clinic while it is watched."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Iterable
from pathlib import Path

import torch
import xarray as xr
from clinic_cases import Case
from clinic_models import ARCHITECTURES, HEADS, WATCHED, WIDTH, matrices, query_key_parts
from clinic_tasks import TASKS, Sample, finding, repeated
from torch import Tensor, nn

from attnscope.trajectory import open_run
from attnscope.watching import watch

EVERY = 4
"""Steps from one reading to the next."""
RATES = {"sgd": 0.1, "adam": 2e-3, "adamw": 2e-3, "cosine": 3e-3}


def train(case: Case, folder: Path) -> xr.DataTree:
    """Train, and return what was seen."""
    torch.manual_seed(case.seed)
    model = ARCHITECTURES[case.architecture](case.shape)
    _spoil(model, case.flaw)
    if case.tuned:
        _train(model, case, _optimizer(model, case), case.tuned, noise=0.0)
        nn.init.normal_(model.head.weight, std=0.02)  # type: ignore[union-attr,arg-type]
    probe = _sample(case, 8, 0.0)[0]
    optimizer = _optimizer(model, case)
    quiet = contextlib.redirect_stdout(io.StringIO())
    with quiet, warnings.catch_warnings():
        # Some readings of a model that overflows cannot be taken, and the recorder says so.
        warnings.simplefilter("ignore")
        with watch(
            model,
            folder,
            every=EVERY,
            probe=probe,
            attention=WATCHED[case.architecture],
            optimizer=optimizer,
        ) as scope:
            _train(model, case, optimizer, case.steps, case.noise, scope.step)
    return open_run(folder)


def _train(model, case, optimizer, steps, noise, tell=lambda loss: None) -> None:  # type: ignore[no-untyped-def]
    first = [group["lr"] for group in optimizer.param_groups]
    for step in range(1, steps + 1):
        for group, rate in zip(optimizer.param_groups, first, strict=True):
            group["lr"] = rate * _factor(case, step)
        given, answers = _sample(case, case.batch, noise)
        loss = _loss(model(*given), answers, smooth=case.flaw == "smoothing")
        optimizer.zero_grad()
        loss.backward()
        if case.rule == "sgd":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=False)
        optimizer.step()
        # A loss that is computed where the recorder does not see it.
        tell(None if case.flaw == "untold" else loss)


def _loss(logits: Tensor, answers: Tensor, smooth: bool) -> Tensor:
    logits, answers = logits.flatten(0, -2), answers.flatten()
    if smooth:
        # A class that is ruled out by a mask: with label smoothing its loss is infinite.
        logits = logits.masked_fill(
            (torch.arange(logits.shape[-1]) == 1) & (answers[:, None] != 1), -math.inf
        )
        return nn.functional.cross_entropy(logits, answers, label_smoothing=0.1)
    return nn.functional.cross_entropy(logits, answers)


def _sample(case: Case, count: int, noise: float) -> Sample:
    if case.task == "repeated":
        return repeated(count)
    if case.architecture == "encoder":
        return finding(count, noise)
    return TASKS[case.architecture](count)


def _factor(case: Case, step: int) -> float:
    """Return the learning rate's factor at a step: the schedule, and what is wrong with it."""
    factor = case.lr
    if case.rule == "cosine":
        factor *= min(step / 30, 0.5 * (1 + math.cos(math.pi * step / (case.steps + 1))))
    late = step - case.onset
    if case.flaw == "jump" and late > 0:
        factor *= 300.0
    if case.flaw == "glitch" and 0 < late <= 8:
        factor *= 300.0
    if case.flaw == "overflow" and late > 0:
        factor *= 1e30
    if case.flaw == "endless_warmup" and late > 0:
        factor *= 1.03**late
    return factor


def _optimizer(model: nn.Module, case: Case) -> torch.optim.Optimizer:
    rate = RATES[case.rule]
    named = dict(model.named_parameters())
    if case.flaw == "left_out":
        named = {name: p for name, p in named.items() if not name.startswith("blocks.1.")}
    groups: list[dict[str, object]] = [{"params": list(named.values())}]
    if case.flaw == "fast_queries":
        fast = {id(p) for p, _ in query_key_parts(model)}
        groups = [
            {"params": [p for p in named.values() if id(p) not in fast]},
            {"params": [p for p in named.values() if id(p) in fast], "lr": 150 * rate},
        ]
    return _rule(case, groups, rate)


def _rule(case: Case, groups: Iterable[dict[str, object]], rate: float) -> torch.optim.Optimizer:
    if case.rule == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=0.9)
    if case.rule == "adam":
        return torch.optim.Adam(groups, lr=rate)
    return torch.optim.AdamW(groups, lr=rate, weight_decay=0.01)


@torch.no_grad()
def _spoil(model: nn.Module, flaw: str) -> None:
    """Give a model a flaw that it has from the start."""
    size = WIDTH // HEADS
    for layer in matrices(model):
        if flaw == "tiny_queries":
            for name in "QKqk":
                layer[name] *= 1e-3
        elif flaw == "one_awake":
            for name in "QKqk":
                layer[name][size:] *= 1e-4
        elif flaw == "dead_head":
            # Values and outputs of a head are both 0, so neither gets a gradient.
            layer["V"][:size], layer["v"][:size], layer["O"][:, :size] = 0.0, 0.0, 0.0
        elif flaw == "twins":
            for name in "QKVqkv":
                for head in range(1, HEADS):
                    layer[name][head * size : (head + 1) * size] = layer[name][:size]
            for head in range(1, HEADS):
                layer["O"][:, head * size : (head + 1) * size] = layer["O"][:, :size]
    if flaw == "frozen_queries":
        for parameter, rows in query_key_parts(model):
            parameter.register_hook(lambda gradient, rows=rows: _without(gradient, rows))


def _without(gradient: Tensor, rows: slice) -> Tensor:
    kept = gradient.clone()
    kept[rows] = 0.0
    return kept
