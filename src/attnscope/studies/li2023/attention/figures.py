"""The figures of ``li2023.attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes import mean_interval
from attnscope.probes.topic_attention import UNIT
from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule, bands
from attnscope.studies.li2023._held_out import KINDS, TOPIC, WORD, ratio
from attnscope.studies.li2023.attention.claims import SPREAD3, TABLE3, TABLE4, VISIBLE, prominence
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.li2023.attention.study import AttentionStudy

UNIFORM = Rule(1 / UNIT, "uniform")


def figures(study: AttentionStudy, run: Readings) -> list[Figure]:
    """Draw Table 3, the way there, and Table 4."""
    drawn = [table3(study, run), over_training(study, run)]
    return [*drawn, diagonal(study, run)] if study.pool else drawn


def table3(study: AttentionStudy, run: Readings) -> Figure:
    """Draw the three means of every setting beside the paper's."""
    settings, panels = list(study.settings), []
    at = np.arange(len(settings), dtype=float)
    ours = final(run.attention).sel(case=settings).transpose("seed", "case", "kind")
    known = [i for i, case in enumerate(settings) if case in TABLE3]
    for kind, name in enumerate(KINDS):
        paper = np.array([TABLE3[settings[i]][kind] for i in known])
        spread = np.array([SPREAD3.get(settings[i], (0.0,) * 3)[kind] for i in known])
        here = mean_interval(ours.sel(kind=name).to_numpy())
        marks: list[Mark] = [Dots(at - 0.1, *here, "here, 95 % interval", 0)]
        if known:
            marks.append(Dots(at[known] + 0.1, paper, paper - spread, paper + spread, "paper", 1))
        ticks = tuple(zip(at.tolist(), settings, strict=True))
        panels.append(
            Panel(name, "optimizer and learning rate", "attention", (*marks, UNIFORM), xticks=ticks)
        )
    return Figure(
        "table3",
        "Attention by kind of pair, beside the paper's Table 3",
        f"Mean attention weight × length / 100 over pairs of positions of {study.documents} "
        f"held-out documents, [MASK] left out, after {study.training.steps:,} steps with "
        f"{study.seeds} seeds, and the values of Li 2023, Table 3, with the paper's ±. Uniform "
        "attention is 0.01. Adam tells topics apart more sharply than in the paper; SGD at these "
        "rates has not begun.",
        tuple(panels),
    )


def over_training(study: AttentionStudy, run: Readings) -> Figure:
    """Draw the three means over training, one panel each, and the loss."""
    readings = {case: run.of(case) for case in study.cases}
    panels = []
    for kind in KINDS:
        curves = bands({case: own.attention.sel(kind=kind) for case, own in readings.items()})
        panels.append(Panel(kind, "step", "attention", (*curves, UNIFORM)))
    losses = tuple(
        Line(own.loss["step"].to_numpy(), own.loss.mean("seed").to_numpy(), case, i)
        for i, (case, own) in enumerate(readings.items())
    )
    panels.append(Panel("held-out loss", "step", "cross-entropy (nats)", losses))
    return Figure(
        "over-training",
        "Attention over training",
        f"Mean attention × length / 100 of the three kinds of pairs, mean over {study.seeds} seeds "
        "with 95 % bands. One-hot inputs √V times as large have unit variance, as after a layer "
        "norm; with them SGD at the paper's rates leaves uniform attention.",
        tuple(panels),
        columns=2,
    )


def diagonal(study: AttentionStudy, run: Readings) -> Figure:
    """Draw how far W^V's diagonal stands out against attention to the same word."""
    dots = [
        Dots(
            prominence(run, case),
            ratio(final(run.of(case).attention), WORD, TOPIC).to_numpy(),
            label=case,
            color=i,
        )
        for i, case in enumerate(study.pool)
    ]
    rules = (
        Rule(VISIBLE, "visible", vertical=True),
        Rule(TABLE4[0] / TABLE4[1], "paper, chosen runs"),
    )
    panel = Panel(
        "every run",
        "diagonal of W^V over entries of its topic (standard deviations)",
        "same word / same topic, different words",
        (*dots, *rules),
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
