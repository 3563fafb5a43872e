"""A pass over documents as a run: every record point is a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines import Descent, Linear, Observable, Record
from attnscope.engines.sink import Checkpoint, Memory, Sink
from attnscope.engines.solution import Outcome, Solution
from attnscope.errors import AttnscopeError
from attnscope.pretrained.loading import Source, load, random_twin
from attnscope.pretrained.measuring import DocumentSums, measure_batch
from attnscope.pretrained.plan import SHUFFLES, Plan
from attnscope.pretrained.subject import Subject
from attnscope.probes.topic_pairs import DISTANCES, KINDS
from attnscope.studies.li2023._pretrained_cases import Layout

SPREAD = 1_000_003
"""Seeds of twins of two runs are that far apart."""


@dataclass(frozen=True)
class Field:
    """One thing that is recorded of a document."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    meaning: str


class Reader(nn.Module):
    """Reads documents with one model, batch after batch.

    A random twin has new weights for every batch, so that what is said of it is said of random
    weights and not of one draw of them.

    Args:
        where: the model.
        twin: whether to read with random weights instead.
        documents: returns the texts from the beginning.
        plan: words and topics.
        room: sizes of what is recorded; what the model does not have is NaN.
        length: positions of a document that are read.
        batch: documents that are read at a time.
        seed: of the twins.
    """

    def __init__(
        self,
        where: Source,
        twin: bool,
        documents: Callable[[], Iterator[str]],
        plan: Plan,
        room: Layout,
        *,
        length: int,
        batch: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.where, self.twin, self.documents, self.plan = where, twin, documents, plan
        self.room, self.length, self.batch, self.seed = room, length, batch, seed

    def fields(self) -> tuple[Field, ...]:
        """Return what is recorded of each document."""
        room, labels = self.room, len(self.plan.labels)
        kinds, two, bins = len(KINDS), 2, len(DISTANCES)
        return (
            Field(
                "attention",
                ("label", "kind", "layer", "head"),
                (labels, kinds, room.layers, room.heads),
                "attention × visible positions / 100, summed over pairs of words",
            ),
            Field("pairs", ("label", "kind", "layer"), (labels, kinds, room.layers), "pairs"),
            Field(
                "by_distance",
                ("label", "topic_kind", "bin"),
                (labels, two, bins),
                "the same by distance, mean over layers and heads",
            ),
            Field("distance_pairs", ("label", "topic_kind", "bin"), (labels, two, bins), "pairs"),
            Field(
                "shuffled",
                ("label", "shuffle", "topic_kind"),
                (labels, SHUFFLES, two),
                "the same with topics dealt to words at random, mean over layers and heads",
            ),
            Field(
                "shuffled_pairs",
                ("label", "shuffle", "topic_kind"),
                (labels, SHUFFLES, two),
                "pairs",
            ),
            Field(
                "vectors",
                ("label", "kind", "depth", "measure"),
                (labels, kinds, room.depths, 2),
                "cosine and dot product, summed over pairs; depth 0 is before any layer",
            ),
            Field("vector_pairs", ("label", "kind"), (labels, kinds), "pairs"),
            Field("words", (), (), "words with a topic"),
            Field("positions", (), (), "positions that were read, special tokens left out"),
            Field("group", (), (), "documents of one number were read with the same weights"),
        )

    def record(self, documents: int) -> Record:
        """Return what is recorded, at one point a document."""

        def empty(shape: tuple[int, ...]) -> Callable[[nn.Module], Tensor]:
            return lambda _: torch.full(shape, torch.nan)

        return Record(
            tuple(
                Observable(field.name, empty(field.shape), field.dims, "", field.meaning)
                for field in self.fields()
            ),
            Linear(documents),
            "document",
        )

    def read(self, done: int) -> Iterator[list[list[Tensor]]]:
        """Read on after ``done`` documents; yield what is recorded of each document of a batch."""
        texts = islice(self.documents(), done, None)
        subject = random_twin(self.where, 0) if self.twin else load(self.where)
        number = done // self.batch
        while held := list(islice(texts, self.batch)):
            reading = subject.twin(self.seed * SPREAD + number) if self.twin else subject
            yield [
                self._values(sums, number if self.twin else done + place)
                for place, sums in enumerate(self._sums(reading, held))
            ]
            done, number = done + len(held), number + 1

    def _sums(self, subject: Subject, texts: Sequence[str]) -> list[DocumentSums]:
        return measure_batch(subject, texts, self.plan, self.length)

    def _values(self, sums: DocumentSums, group: int) -> list[Tensor]:
        values = []
        for field in self.fields():
            found = group if field.name == "group" else getattr(sums, field.name)
            padded = np.full(field.shape, np.nan, dtype=np.float32)
            padded[tuple(slice(n) for n in np.shape(found))] = found
            values.append(torch.from_numpy(padded))
        return values


@dataclass(frozen=True)
class Pass(Descent):
    """Reads documents one after another: nothing learns, and time counts documents."""

    lr: float = 1.0

    def run(
        self,
        model: nn.Module,
        loss: Any,
        *,
        time: float,
        record: Sequence[Record],
        stop: Sequence[Any] = (),
        sink: Sink | None = None,
        resume: Checkpoint | None = None,
    ) -> Solution:
        """Read to the end of the corpus, or as many documents as there are record points."""
        if not isinstance(model, Reader):
            raise AttnscopeError(f"a {type(model).__name__} reads no documents: expected a Reader.")
        sink = Memory() if sink is None else sink
        total = round(time) + 1
        done = int(resume.values["documents"]) if resume is not None else 0
        sink.open(model, list(record), [each.times(time, self.grid) for each in record])

        def checkpoint() -> Checkpoint:
            return Checkpoint({"documents": torch.tensor(done)}, {"documents": done})

        def end(outcome: Outcome, status: str) -> Solution:
            sink.close(checkpoint if outcome is Outcome.INTERRUPTED else None)
            return Solution(outcome, status, float(done), 0.0, done, done)

        for batch in model.read(done):
            for values in batch[: total - done]:
                sink.put(0, done, values)
                done += 1
            if done >= total:
                return end(Outcome.FINISHED, f"finished after {done} documents")
            if not sink.step(float(done), 0.0, checkpoint):
                return end(Outcome.INTERRUPTED, f"interrupted after {done} documents")
        return end(Outcome.STOPPED, f"stopped after {done} documents: the corpus has no more")
