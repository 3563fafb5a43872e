"""What the studies of copied sequences share: settings, readings, count tables, tables, panels.

The gold position of an output word is the input position that it was copied from. β_{t,l} is the
probability of output word t if the model looked at input position l alone (the lexical probe, eq
4). All readings are means over the words of held-out sequences; END is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.engines import Adam, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective
from attnscope.probes.lexicon.agreement import agreement
from attnscope.probes.shares import share_interval
from attnscope.report import Line, Mark, Panel, Table, ends
from attnscope.report.page import Cell
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import END, SequencePairs
from attnscope.theory.snell2021.knowledge import Knowledge, predict_knowledge
from attnscope.trajectory import Readings, crossing

HELD_OUT = 1_000_003
"""Seed of the sequences that are read; runs have small seeds."""
UNIFORM = ", uniform attention"
"""How the names of cases end in which attention is held at uniform."""
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
EARLY = (
    "largest share of words whose gold position has the largest β, while less than "
    f"{UNATTENDED:g} have the largest α there"
)
"""What :func:`known_unattended` measures, in words."""
BLUE, RED, GREEN, PURPLE, SKY = 0, 1, 2, 3, 5
Shown = tuple[str, str, int]
"""A case with its label and its colour."""


@dataclass(frozen=True)
class SequenceStudy(Study):
    """Sequences are copied by a recurrent network with attention, trained on fresh batches."""

    seeds: Count = 20
    training: Adam = Adam(rate=1e-3, steps=400, batch=128)
    points: Several = 41
    """Record points, evenly spaced."""
    length: Several = 40
    """L, words in a sequence."""
    width: Count = 256
    """Length of embeddings and of states."""
    held_out: Count = 50
    """Sequences that are read at each record point."""

    citation = CITATION

    def check(self) -> None:
        """Check that steps have batches, and that record points are steps."""
        if self.training.batch is None:
            raise AttnscopeError("batch = None: expected the number of fresh sequences in a step.")
        if self.training.steps % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {self.training.steps} steps: expected points a whole "
                "number of steps apart."
            )

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.training.steps:,} steps of Adam on fresh sequences"

    def problem(
        self, model: Seq2Seq, task: Copying, read: tuple[Observable, ...], stream: int
    ) -> Problem:
        """Return the run of a model on sequences that are never seen again."""
        rows = (self.training.batch or 0) * (self.training.steps + 1)
        loss = Seq2SeqObjective(task.stream(stream))
        return Problem(model, loss, [Record(read, Linear(self.points))], rows=rows, seed=stream)


@dataclass(frozen=True)
class CountTableStudy(SequenceStudy):
    """Copying tasks, beside what their count tables tell of the places of words."""

    types: Count = 60
    """Words that sequences are drawn from where not all of them are in each."""
    verdict: Count = 200
    """Step at which it is judged who has learned."""

    labels: ClassVar = {"reading": tuple(READINGS), "offset": OFFSETS}

    def check(self) -> None:
        """Check that there are words to draw from, and that the verdict is on a record point."""
        super().check()
        if self.types <= self.length:
            raise AttnscopeError(
                f"length = {self.length} and types = {self.types}: expected two words or more in a "
                "sequence, and more to draw from."
            )
        every = self.training.steps // (self.points - 1)
        if self.verdict > self.training.steps or self.verdict % every:
            raise AttnscopeError(
                f"verdict = {self.verdict}: expected a step that is recorded, a multiple of "
                f"{every} up to {self.training.steps}."
            )

    @property
    def learners(self) -> tuple[str, ...]:
        """Cases in which attention learns."""
        return tuple(case for case in self.cases if not case.endswith(UNIFORM))

    def task(self, case: str, seed: int = 0) -> Copying:
        """Return the task of a case."""
        raise NotImplementedError

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; cases of one seed and vocabulary start from the same numbers."""
        task = self.task(case, seed)
        torch.manual_seed(seed)
        model = Seq2Seq(
            task.vocabulary,
            embedding=self.width,
            hidden=self.width,
            output="tanh",
            projection=True,
            attention="uniform" if case.endswith(UNIFORM) else "learned",
        )
        pairs = task.sample(self.held_out, HELD_OUT)
        return self.problem(model, task, observables(pairs, task.gold), seed)

    def truth(self) -> dict[str, object]:
        """Return where each output word of each run was copied from."""
        gold = np.stack([self.task(case, seed).gold.numpy() for case, seed in self.runs()])
        meaning = "source position of each target position, END included"
        return {"gold": (("run", "target"), gold, {"meaning": meaning})}

    def theory(self, run: Readings) -> dict[str, object]:
        """Say from the count table alone, before training, how well words tell their places."""
        told = [self.told(case, seed) for case, seed in self.runs()]
        meaning = "α^IBM at the gold position (eq 19) over its mean at words of the sequence"
        return {"told": ("run", told, {"meaning": meaning})}

    def told(self, case: str, seed: int = 0) -> float:
        """Return α^IBM at the gold position over its mean at words: 1 if C tells no places.

        END is left out of the mean. In a mixture it goes with the words of all sets, and so less
        with each word than the words of its set do, which says nothing of places among them.
        """
        gold = self.task(case, seed).gold[:-1].numpy()
        every = np.stack(self.known(case, seed).alpha)[:, :-1, :-1]
        return float((every[:, np.arange(len(gold)), gold] / every.mean(axis=2)).mean())

    def known(self, case: str, seed: int = 0) -> Knowledge:
        """Return what the exact count table of a case says about its held-out sequences."""
        task = self.task(case, seed)
        pairs = task.sample(self.held_out, HELD_OUT)
        # END is always where it is; what counts is whether words can be told apart.
        gold = torch.where(pairs.target[0] == END, -1, task.gold)
        return predict_knowledge(task.counts(), list(pairs.source), list(pairs.target), gold)

    def accuracy(self, run: Readings, case: str) -> xr.DataArray:
        """Return the accuracy of a case at the step of the verdict, by seed."""
        return curve(run.of(case), "accuracy").sel(step=self.verdict)

    def knowledge(self, run: Readings, case: str) -> xr.DataArray:
        """Return the knowledge of words of a case at the step of the verdict, by seed."""
        return curve(run.of(case), "knowledge").sel(step=self.verdict)

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate who has learned when, what C says before, all readings, and every seed."""
        at_verdict = run.reading.sel(step=self.verdict)
        return [
            self.learned_table(run),
            self.counts_table(),
            ends(
                run,
                title=f"Readings at step {self.verdict}, mean over {self.seeds} seeds",
                key="readings",
                more={text: at_verdict.sel(reading=name) for name, text in READINGS.items()},
            ),
            self.seeds_table(run),
        ]

    def learned_table(self, run: Readings) -> Table:
        """Tabulate the share of seeds that have learned, at multiples of half the verdict."""
        rows: list[tuple[Cell, ...]] = []
        recorded = run.reading["step"].to_numpy()
        halves = np.arange(1, 2 * recorded[-1] // self.verdict + 1) * self.verdict / 2
        steps = np.unique(
            [recorded[np.argmin(np.abs(recorded - step))] for step in (*halves, recorded[-1])]
        )
        for case in self.learners:
            for step in steps:
                accuracy = curve(run.of(case), "accuracy").sel(step=step).to_numpy()
                share = share_interval(int((accuracy > LEARNED).sum()), accuracy.size)
                spread = (accuracy.mean(), accuracy.min(), accuracy.max())
                rows.append((case, int(step), *astuple(share), *map(float, spread)))
        columns = ("case", "step", "share that has learned", "lower end", "upper end")
        return Table(
            "learned",
            f"Share of {self.seeds} seeds with accuracy above {LEARNED:g}, with its 95 % interval "
            "by Clopper and Pearson, and accuracy",
            (*columns, "mean accuracy", "least", "largest"),
            tuple(rows),
        )

    def counts_table(self) -> Table:
        """Tabulate what the count table says before training."""
        rows = []
        for case in self.cases:
            known = self.known(case)
            row: dict[str, Cell] = {
                "case": case,
                "α^IBM at the gold position": known.mean_gold_mass,
                "uniform attention": known.gold_chance,
                "at the gold position over the mean at words": self.told(case),
                "variation of the table": known.table_variation,
                "knowledge of words": known.learnable,
            }
            rows.append(tuple(row.values()))
        title = "What the exact count table says before training"
        return Table("counts", title, tuple(row), tuple(rows))

    def seeds_table(self, run: Readings) -> Table:
        """Tabulate every run: when it learns, and where its attention is."""
        rows: list[tuple[Cell, ...]] = []
        for case in self.learners:
            own = run.of(case)
            found = {
                "half of the words known (step)": crossing(curve(own, "knowledge"), 0.5),
                "half attended (step)": crossing(curve(own, "attention"), 0.5),
                f"accuracy above {LEARNED:g} (step)": crossing(curve(own, "accuracy"), LEARNED),
                f"accuracy at step {self.verdict}": self.accuracy(run, case),
                "attention at the gold position": curve(own, "attention").sel(step=self.verdict),
            }
            for seed, shares in enumerate(own.offset.sel(step=self.verdict).to_numpy()):
                values = (float(each.sel(seed=seed)) for each in found.values())
                shown = (None if np.isnan(value) else value for value in values)
                distance = OFFSETS[int(shares.argmax())]
                rows.append((case, seed, *shown, distance, float(shares.max())))
        columns = ("case", "seed", *found, "commonest distance from it", "share at that distance")
        title = "Every run; empty where a level is not reached. Attention is that at step"
        return Table("seeds", f"{title} {self.verdict}", columns, tuple(rows))


def observables(pairs: SequencePairs, gold: Tensor) -> tuple[Observable, ...]:
    """Return the readings on sequences of one length, given the source of each target position."""
    words = int((pairs.target[0] != END).sum())
    listed = "; ".join(f"{name}: {meaning}" for name, meaning in READINGS.items())
    away = f"share of words whose largest α is {OFFSETS[0]} to {OFFSETS[-1]} from the gold one"
    place = gold[:words].expand(len(pairs.target), words)[:, :, None]

    def split(values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean at gold positions, and elsewhere."""
        there = values.gather(2, place)[:, :, 0]
        return there.mean(), ((values.sum(dim=2) - there) / (values.shape[2] - 1)).mean()

    def read(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        look = model.evaluate(pairs)
        alpha, log_beta = (part[:, :words].double() for part in (look.weights[:, 0], look.log_beta))
        log_gold, log_rest = split(log_beta)
        beta_gold, beta_rest = split(log_beta.exp())
        right = (look.predicted == pairs.target)[:, :words]
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

    def offsets(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        weights = model.attention_weights(model.states(pairs))[:, 0, :words]
        distance = weights.argmax(dim=2) - gold[:words]
        return torch.stack([(distance == offset).double().mean() for offset in OFFSETS])

    return (
        Observable("reading", read, ("reading",), "", listed),
        Observable("offset", offsets, ("offset",), "", away),
    )


def curve(run: Readings, name: str) -> xr.DataArray:
    """Return one of the readings, along ``seed`` and ``step``, and ``case`` if it is of all."""
    return run.reading.sel(reading=name, drop=True)


def reaches(run: Readings, name: str = "accuracy", level: float = LEARNED) -> xr.DataArray:
    """Return the step where a reading first exceeds a level, by seed.

    A run that never gets there counts with its last step, which is the least that it would need.
    """
    values = curve(run, name)
    return crossing(values, level).fillna(float(values["step"][-1]))


def known_unattended(run: Readings, name: str = "knowledge") -> xr.DataArray:
    """Return the largest knowledge, or so, before the attention of a run has been learned.

    A run whose attention is there at the first record point after the start says nothing, NaN: what
    came before lies between the two.
    """
    early = (curve(run, "attention") >= UNATTENDED).cumsum("step") == 0
    found = curve(run, name).where(early, 0.0).max("step", skipna=False)
    unseen = early.isel(step=0, drop=True) & ~early.isel(step=1, drop=True)
    return found.where(~unseen)


def lines(reading: xr.DataArray, label: str = "", color: int = 0, thin: bool = True) -> list[Mark]:
    """Return a curve for every seed along the other dimension; the first is in the legend."""
    x = reading[reading.dims[-1]].to_numpy()
    values = enumerate(reading.to_numpy())
    return [Line(x, y, "" if seed else label, color, thin=thin) for seed, y in values]


def seed_lines(run: Readings, name: str, cases: Iterable[Shown]) -> tuple[Mark, ...]:
    """Return the curves of a reading for every seed of some cases."""
    found = ((curve(run.of(case), name), label, color) for case, label, color in cases)
    return tuple(mark for each in found for mark in lines(*each))


def stage_panel(run: Readings, title: str, length: int) -> Panel:
    """Draw knowledge, attention and accuracy of a case."""
    marks: list[Mark] = []
    for name, color in (("knowledge", GREEN), ("attention", RED), ("accuracy", BLUE)):
        reading = curve(run, name)
        steps = reading["step"].to_numpy()
        marks += lines(reading, color=color)
        marks.append(Line(steps, reading.mean("seed", skipna=False).to_numpy(), name, color))
    marks.append(Line(steps, np.full(len(steps), 1 / (length + 1)), "chance", theory=True))
    return Panel(title, "step", "share of words", tuple(marks))


def gap_panel(run: Readings, cases: Iterable[Shown]) -> Panel:
    """Draw log β at the gold position of cases held at uniform, with their labels and colours."""
    marks = seed_lines(run, "gap", [(case + UNIFORM, label, c) for case, label, c in cases])
    ylabel = "log β at gold less elsewhere (nats)"
    return Panel("attention held at uniform", "step", ylabel, marks)
