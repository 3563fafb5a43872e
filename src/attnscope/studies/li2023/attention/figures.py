"""The figures and tables of ``li2023.attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes import mean_interval
from attnscope.probes.topics.topic_attention import UNIT
from attnscope.report import Cell, Dots, Figure, Line, Mark, Panel, Rule, Table, bands
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


def tables(study: AttentionStudy, run: Readings) -> list[Table]:
    """Print Tables 3 and 4 beside the paper's, and the runs that Table 4 is drawn from."""
    return [all_settings(study, run), *(chosen_runs(study, run) if study.pool else ())]


def all_settings(study: AttentionStudy, run: Readings) -> Table:
    """Tabulate the three means of every setting."""
    rows = []
    for case in study.cases:
        own, cells = run.of(case), list[Cell]()
        ours = final(own.attention)
        for kind, paper in zip(KINDS, TABLE3.get(case, (None,) * 3), strict=True):
            mean, low, high = mean_interval(ours.sel(kind=kind).to_numpy())
            cells += [float(mean), float(high - low) / 2, paper]
        more = (ratio(ours), final(own.masked), final(own.loss))
        rows.append((case, *cells, *(float(each.mean()) for each in more)))
    columns = [
        "setting",
        *(head for name in KINDS for head in (name, f"± (95 %), {name}", f"paper, {name}")),
        "same topic / different topics",
        "attention to [MASK]",
        "held-out loss (nats)",
    ]
    title = (
        f"Table 3: mean attention × length / 100 after {study.training.steps:,} steps, "
        f"{study.seeds} seeds"
    )
    return Table("table3", title, tuple(columns), tuple(rows))


def chosen_runs(study: AttentionStudy, run: Readings) -> tuple[Table, Table]:
    """Tabulate the runs that are chosen from, and means of all and of the chosen ones."""
    runs: list[tuple[Cell, ...]] = []
    for case in study.pool:
        ours = final(run.of(case).attention).to_numpy()
        for seed, stands_out in enumerate(prominence(run, case)):
            visible = bool(stands_out > VISIBLE)
            runs.append((case, seed, float(stands_out), visible, *ours[seed].tolist()))
    everything = np.array([row[4:] for row in runs])

    def row(name: str, values: np.ndarray) -> tuple[Cell, ...]:
        means = values.mean(axis=0).tolist() if len(values) else [None] * 3
        return (name, len(values), *means)

    rows = (
        row("all runs", everything),
        row(
            f"diagonal stands out by more than {VISIBLE:g} sd",
            everything[[bool(row[3]) for row in runs]],
        ),
        ("paper, chosen by eye from 10", 7, *TABLE4),
    )
    title = "Table 4: Adam, all runs and those chosen for a diagonal W^V"
    columns = ("setting", "seed", "diagonal of W^V stands out (sd)", "chosen", *KINDS)
    return (
        Table("table4-runs", "The runs that Table 4 chooses from", columns, tuple(runs)),
        Table("table4", title, ("runs", "number", *KINDS), rows),
    )
