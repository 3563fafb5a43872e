"""The figures of ``li2023.attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.probes.topic_attention import UNIT
from attnscope.report.figure import Band, Dots, Figure, Line, Mark, Panel, Rule
from attnscope.studies.li2023 import _attention_claims as said
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.li2023.attention import Attention

UNIFORM = Rule(1 / UNIT, "uniform")


def figures(study: Attention, tree: xr.DataTree) -> list[Figure]:
    """Return Table 3 as dots, attention over training, and the diagonal of W^V."""
    drawn = [table3(study, tree), over_training(study, tree)]
    return [*drawn, diagonal(study, tree)] if said.pool(study) else drawn


def table3(study: Attention, tree: xr.DataTree) -> Figure:
    """Draw the three means of every setting beside the paper's."""
    settings = study.settings()
    at = np.arange(len(settings), dtype=float)
    panels = []
    for kind, name in enumerate(said.KINDS):
        mean, low, high = mean_interval(
            np.stack([said.ends(tree, case)[:, kind] for case in settings], axis=1)
        )
        known = [i for i, case in enumerate(settings) if case in said.TABLE3]
        paper = np.array([said.TABLE3[settings[i]][kind] for i in known])
        spread = np.array([said.SPREAD3.get(settings[i], (0.0,) * 3)[kind] for i in known])
        marks: list[Mark] = [Dots(at - 0.1, mean, low, high, "here, 95 % interval", 0)]
        if known:
            marks.append(Dots(at[known] + 0.1, paper, paper - spread, paper + spread, "paper", 1))
        ticks = tuple((float(i), case) for i, case in enumerate(settings))
        panels.append(
            Panel(name, "optimizer and learning rate", "attention", (*marks, UNIFORM), xticks=ticks)
        )
    return Figure(
        "table3",
        "Attention by kind of pair, beside the paper's Table 3",
        f"Mean attention weight × length / 100 over pairs of positions of {study.documents} "
        f"held-out documents, [MASK] left out, after {study.epochs:,} steps with {study.seeds} "
        "seeds, and the values of Li 2023, Table 3, with the paper's ±. Uniform attention is 0.01. "
        "Adam tells topics apart more sharply than in the paper; SGD at these rates has not begun.",
        tuple(panels),
    )


def over_training(study: Attention, tree: xr.DataTree) -> Figure:
    """Draw the three means over training, one panel each, and the loss."""
    steps = tree["observables/time"].to_numpy()
    panels = []
    for kind, name in enumerate(said.KINDS):
        marks: list[Mark] = []
        for i, case in enumerate(study.cases()):
            values = select(tree, "attention", case).isel(kind=kind).to_numpy()
            mean, low, high = mean_interval(values)
            marks += [Band(steps, low, high, color=i), Line(steps, mean, case, i)]
        panels.append(Panel(name, "step", "attention", (*marks, UNIFORM)))
    losses = [
        Line(steps, select(tree, "loss", case).mean("run").to_numpy(), case, i)
        for i, case in enumerate(study.cases())
    ]
    panels.append(Panel("held-out loss", "step", "cross-entropy (nats)", tuple(losses)))
    return Figure(
        "over-training",
        "Attention over training",
        f"Mean attention × length / 100 of the three kinds of pairs, mean over {study.seeds} seeds "
        "with 95 % bands. One-hot inputs √V times as large have unit variance, as after a layer "
        "norm; with them SGD at the paper's rates leaves uniform attention.",
        tuple(panels),
        columns=2,
    )


def diagonal(study: Attention, tree: xr.DataTree) -> Figure:
    """Draw how far W^V's diagonal stands out against attention to the same word."""
    marks: list[Mark] = []
    for i, case in enumerate(said.pool(study)):
        ours = said.ends(tree, case)
        ratio = ours[:, said.WORD] / ours[:, said.TOPIC]
        marks.append(Dots(said.prominence(study, tree, case), ratio, label=case, color=i))
    marks += [
        Rule(said.VISIBLE, "visible", vertical=True),
        Rule(said.TABLE4[said.WORD] / said.TABLE4[said.TOPIC], "paper, chosen runs"),
    ]
    panel = Panel(
        "every run",
        "diagonal of W^V over entries of its topic (standard deviations)",
        "same word / same topic, different words",
        tuple(marks),
        yscale="log",
    )
    return Figure(
        "table4",
        "Choosing runs by the diagonal of W^V",
        "Every run of Adam at the paper's two rates: attention to the same word over that to other "
        "words of the topic, against how far the mean diagonal entry of W^V stands out from the "
        "entries of two words of one topic. Table 4 of Li 2023 keeps 7 of 10 runs with a visible "
        "diagonal, so its mean is one of the right end of this axis.",
        (panel,),
        columns=1,
    )
