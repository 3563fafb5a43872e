"""Toy tasks told learnable or not from their data alone, and trained: copying, keyword, XOR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.claims import Claim, above
from attnscope.datasets.kinds import LabelledText, ParallelText, Split
from attnscope.engines import Adam, Linear, Observable, Record, Steps
from attnscope.experiment import Problem, Study
from attnscope.models.bag_attention import BagAttention
from attnscope.models.classifiers import FixedLinear
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective
from attnscope.models.sequence_classifier import SequenceClassifier, classifier_loss
from attnscope.prediction.asked import AskedLabelled
from attnscope.prediction.learnable import Learnable, learnable_labels, learnable_pairs
from attnscope.report import Cell, Figure, Line, Panel, Rule, Table
from attnscope.tasks.bags import Bags
from attnscope.tasks.copying import Copying
from attnscope.tasks.keyword import Keyword, LabelledSequences, WordParity
from attnscope.tasks.sequence_pairs import SequencePairs
from attnscope.trajectory import Readings, final

COPYING, PERMUTED, MIXED = "copying", "permutations", "mixture"
KEYWORD, PARITY = "keyword", "XOR"
LSTM, BAG = "LSTM", "bag of words"
LABELLED = tuple(f"{task}, {model}" for task in (KEYWORD, PARITY) for model in (LSTM, BAG))
CASES = (COPYING, PERMUTED, MIXED, *LABELLED)
OTHER = {COPYING: PERMUTED, PERMUTED: COPYING, MIXED: COPYING, KEYWORD: PARITY, PARITY: KEYWORD}
"""The task whose verdict stands in as a control."""
LEARNED = 0.9
"""Accuracy above which a task has been learned."""
HELD_OUT = 1_000_003
SAID: dict[Learnable, float] = {"learnable": 1.0, "not learnable": 0.0, "cannot tell": np.nan}
RATES = {LSTM: 2e-3, BAG: 5e-2}


@dataclass(frozen=True)
class Toys(Study):
    """Say of five tasks whether attention will learn them, from texts alone; then train.

    Copying sequences of some of the words; permutations of one set of words; of one of two
    disjoint sets (a mixture); whether a keyword is there; whether exactly one of two words is.
    """

    training: Steps = Steps(steps=100, batch=64)
    seeds: Count = 5
    points: Several = 11
    """Record points, evenly spaced."""
    length: Several = 24
    """Words of a sequence that is copied."""
    types: Count = 36
    """Words that copied sequences are drawn from."""
    width: Count = 64
    """Length of embeddings and states that copy."""
    texts: Count = 2000
    """Texts, or pairs, that the verdict is told from."""
    held_out: Count = 400
    """Sequences that are read."""

    citation = "Tasks: Snell 2021, sections 3.3 and 6.1; verdicts: docs/predict.md."
    cases = CASES
    quick: ClassVar[dict[str, Any]] = {"seeds": 3, "held_out": 200}

    def check(self) -> None:
        """There is nothing that single bounds do not say."""

    def departures(self) -> str:
        """There is no paper to depart from."""
        return ""

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.training.steps:,} steps of Adam on fresh sequences"

    def task(self, case: str) -> Copying | Keyword | WordParity:
        """Return the task of a case."""
        tasks: dict[str, Copying | Keyword | WordParity] = {
            COPYING: Copying(self.length, self.types),
            PERMUTED: Copying(self.length, self.length),
            MIXED: Copying(self.length, self.length, sets=2),
            KEYWORD: Keyword(12, 30),
            PARITY: WordParity(12, 30),
        }
        return tasks[case.split(", ")[0]]

    def data(self, case: str) -> ParallelText | LabelledText:
        """Return texts of a task, as somebody who has them in a table would."""
        task = self.task(case)
        drawn = task.sample(self.texts, 0)
        if isinstance(drawn, SequencePairs):
            sides = [[_text(row[:-1]) for row in side] for side in (drawn.source, drawn.target)]
            return ParallelText(case, ("in", "out"), {"train": (sides[0], sides[1])})
        labels = drawn.label.numpy().astype(np.int64)
        texts = [_text(row) for row in drawn.source]
        return LabelledText(case, ("no", "yes"), {"train": Split(texts, labels)})

    def verdict(self, case: str) -> Learnable:
        """Tell from the texts alone whether attention will learn the task."""
        data = self.data(case)
        if isinstance(data, ParallelText):
            return learnable_pairs(data)
        return learnable_labels(AskedLabelled(data))

    def engine(self, case: str, seed: int) -> Adam:
        """Return Adam at the rate of the model."""
        return self.training.adam(RATES.get(case.split(", ")[-1], 3e-3))

    def build(self, case: str, seed: int) -> Problem:
        """Make a run on sequences that are never seen again."""
        torch.manual_seed(seed)
        task, rows = self.task(case), (self.training.batch or 1) * (self.training.steps + 1)
        read = task.sample(self.held_out, HELD_OUT)
        model, loss, right = _parts(task, case, self.width, seed, read)
        found = Observable("accuracy", right, (), "", "accuracy on held-out sequences")
        return Problem(model, loss, [Record((found,), Linear(self.points))], rows=rows, seed=seed)

    def theory(self, run: Readings) -> xr.Dataset:
        """Tell every task from its texts, and from those of the task that it is held against."""
        own = {case: SAID[self.verdict(case)] for case in self.cases}
        by_task = {case.split(", ")[0]: value for case, value in own.items()}
        other = [by_task[OTHER[case.split(", ")[0]]] for case in self.cases]
        meaning = "1 for learnable, 0 for not, NaN for cannot tell"
        return xr.Dataset(
            {
                "told": ("case", [own[case] for case in self.cases], {"meaning": meaning}),
                "told_of_other": ("case", other, {"meaning": f"of the other task: {meaning}"}),
            }
        )

    def claims(self) -> list[Claim]:
        """What was told is what training shows."""
        return [
            Claim(
                "as-told",
                "{case} is learned within the steps if and only if the texts said so.",
                as_told,
                "told",
                above(0.5),
                ("told_of_other", "the verdict on the task that it is held against"),
                "Snell 2021, sections 3.3 and 6.1",
                measure=f"1 if accuracy exceeds {LEARNED:g} as told, 0 if not as told",
                per=self.cases,
                reason="Not learnable means that single words do not lead there; a recurrent model "
                "may get there later by other means.",
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """What was told, and what came."""
        rows: list[tuple[Cell, ...]] = []
        for case in self.cases:
            values = final(run.of(case).accuracy).to_numpy()
            told = float(run.theory.told.sel(case=case).isel(seed=0))
            said = "cannot tell" if np.isnan(told) else "learnable" if told else "not learnable"
            learned = int((values > LEARNED).sum())
            mean = round(100 * float(values.mean()), 1)
            rows.append((case, said, f"{learned} of {len(values)}", mean))
        columns = ("task", "told from the texts", "seeds that learned it", "accuracy (%)")
        return [
            Table("toys", "Told before training, and what training shows", columns, tuple(rows))
        ]

    def printed(self, run: Readings) -> list[Table]:
        """Print what was told and what came."""
        return self.tables(run)

    def figures(self, run: Readings) -> list[Figure]:
        """Draw accuracy over training, for tasks told learnable and not."""
        panels = []
        for title, value in (("told learnable", 1.0), ("told not learnable", 0.0)):
            marks: list[Any] = [Rule(LEARNED, "learned")]
            told = run.theory.told.isel(seed=0)
            own = [case for case in self.cases if float(told.sel(case=case)) == value]
            for color, case in enumerate(own):
                curve = run.of(case).accuracy.transpose("seed", "step")
                for number, row in enumerate(curve.to_numpy()):
                    label = "" if number else case
                    marks.append(Line(curve["step"].to_numpy(), row, label, color, thin=True))
            panels.append(Panel(title, "step", "accuracy, held-out", tuple(marks)))
        text = "One curve a seed. What is told, is told from texts alone, before training."
        return [Figure("toys", "Tasks told learnable or not", text, tuple(panels), columns=2)]


def as_told(run: Readings, by: str) -> xr.DataArray:
    """Return 1 where a seed learned its task as told, or failed to as told; 0 elsewhere."""
    told, learned = run.theory.get(by), final(run.accuracy) > LEARNED
    found: xr.DataArray = ((learned == (told == 1)) & told.notnull()).astype(float)
    return found


def _text(row: Tensor) -> str:
    return " ".join(f"w{number}" for number in row.tolist())


def _parts(
    task: Copying | Keyword | WordParity, case: str, width: int, seed: int, read: Any
) -> tuple[nn.Module, Callable[..., Tensor], Callable[[nn.Module], Tensor]]:
    """Return a model, its loss on row numbers, and its accuracy on what is read."""
    if isinstance(task, Copying):
        size = task.vocabulary
        model = Seq2Seq(size, embedding=width, hidden=width, output="tanh", projection=True)

        def copied(model: nn.Module) -> Tensor:
            assert isinstance(model, Seq2Seq)
            return (model.evaluate(read).predicted == read.target)[:, :-1].double().mean()

        return model, Seq2SeqObjective(task.stream(seed)), copied
    stream = task.stream(seed)
    if case.endswith(LSTM):
        reader = SequenceClassifier(task.vocabulary, embedding=32, hidden=32, attention_hidden=32)

        def told(model: nn.Module) -> Tensor:
            assert isinstance(model, SequenceClassifier)
            right = (model.evaluate(read.source).logits > 0) == (read.label > 0.5)
            return right.double().mean()

        return reader, lambda model, rows: classifier_loss(model, stream.batch(rows)), told
    dice = torch.Generator().manual_seed(seed)
    bag = BagAttention(task.vocabulary, 16, FixedLinear(16, 2, generator=dice), generator=dice)

    def bags(drawn: LabelledSequences) -> Bags:
        return Bags(drawn.source, drawn.label.long(), task.vocabulary)

    def weighed(model: nn.Module, rows: Tensor) -> Tensor:
        own = bags(stream.batch(rows))
        assert isinstance(model, BagAttention)
        return F.cross_entropy(model.forward_padded(own), own.labels)

    @torch.no_grad()
    def found(model: nn.Module) -> Tensor:
        assert isinstance(model, BagAttention)
        own = bags(read)
        return (model.forward_padded(own).argmax(dim=1) == own.labels).double().mean()

    return bag, weighed, found
