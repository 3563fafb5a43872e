"""The passes of ``li2023.pretrained``: every document is read by a model and by a random twin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from typing import Annotated, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from attnscope.bounds import Bounds, Count, Several
from attnscope.engines.device import wanted
from attnscope.errors import AttnscopeError
from attnscope.experiment import Measurement, Pass, Quantity
from attnscope.pretrained.loading import load, random_twin
from attnscope.pretrained.measuring import DocumentSums, measure_batch
from attnscope.pretrained.plan import SHUFFLES, MeasurementPlan, count_cooccurrence, make_plan
from attnscope.probes.topics.topic_pairs import DISTANCES, KINDS
from attnscope.studies.li2023._topic_documents import CITATION
from attnscope.studies.li2023.pretrained import paper
from attnscope.studies.li2023.pretrained.cases import common_layout, expand
from attnscope.studies.li2023.pretrained.claims import claims
from attnscope.studies.li2023.pretrained.figures import figures
from attnscope.studies.li2023.pretrained.tables import printed, tables
from attnscope.topics import TopicFit, TopicModel, topic_words
from attnscope.trajectory import Readings

MEASURES = ("cosine", "dot product")
SPREAD = 1_000_003
"""Seeds of twins of two runs are that far apart."""


@dataclass(frozen=True)
class Pretrained(Measurement):
    """Topics are fitted to a corpus, and every document is shown to a model and to a random twin.

    A run is a model, and its record points are documents: sums over pairs of words, from which
    means and intervals are made afterwards. Nothing is trained. The paper's own checkpoints (Bert,
    Albert, Bart, Electra, Roberta) and its Wikipedia dump are not shipped; its values are, and the
    models that are read stand beside them under their own names.
    """

    seeds: Count = 1
    """Fits of the topics, and draws of the twins, with seeds 0, 1, ..."""
    model: tuple[str, ...] = ("minilm",)
    """Folders of models, folders of checkpoints of one run, names of packages (minilm, bert-tiny,
    smollm2), or names that the hub knows."""
    fit: TopicFit = TopicFit()
    thresholds: tuple[Annotated[float, Bounds(0, 1, open_low=True)], ...] = paper.THRESHOLDS
    """Shares of the vocabulary kept for each topic; each is read without and with overlap."""
    documents: Several = 600
    """Documents that are read, from the first."""
    length: Annotated[int, Bounds(8)] = 512
    """Positions of a document that are read, special tokens included."""
    batch: int = 8
    """Documents that are read at a time; a random twin has new weights for each batch."""

    citation = CITATION
    quick: ClassVar = {"documents": 120, "batch": 4}
    renamed: ClassVar = dict.fromkeys(("engine", "lr", "epochs", "points", "correct"))
    labels: ClassVar = {"kind": KINDS, "topic_kind": KINDS[:2], "measure": MEASURES}
    claims, figures, tables, printed = claims, figures, tables, printed

    def check(self) -> None:
        """Check that there is something to compare, and that a twin is drawn twice or more."""
        if not self.model:
            raise AttnscopeError("model is empty: expected one model or more.")
        if not self.thresholds or len(set(self.thresholds)) < len(self.thresholds):
            raise AttnscopeError(
                f"thresholds = {self.thresholds}: expected one or more, each once."
            )
        if not 1 <= self.batch <= self.documents // 2:
            raise AttnscopeError(
                f"batch = {self.batch}: expected 1 to {self.documents // 2}, so that the twin is "
                "drawn twice or more."
            )

    @property
    def cases(self) -> tuple[str, ...]:
        """The models, their checkpoints, and their random twins."""
        return tuple(expand(self.model))

    def measure(self, case: str, seed: int) -> Pass:
        """Return the pass of one model over the documents.

        A random twin has new weights for every batch, so that what is said of it is said of random
        weights and not of one draw of them.
        """
        known, where = expand(self.model)[case]
        twin = known.role == "twin"
        _, plan = fitted(self.fit, seed, self.thresholds, self.documents)
        recorded = self.quantities(len(plan.labels))

        def read(done: int) -> Iterator[list[list[Tensor]]]:
            texts = islice(self.fit.documents(self.documents), done, None)
            model = (random_twin(where, 0) if twin else load(where)).on(wanted())
            number = done // self.batch
            while held := list(islice(texts, self.batch)):
                own = model.twin(seed * SPREAD + number) if twin else model
                yield [
                    padded(recorded, sums, number if twin else done + place)
                    for place, sums in enumerate(measure_batch(own, held, plan, self.length))
                ]
                done, number = done + len(held), number + 1

        return Pass(recorded, self.documents, read)

    def quantities(self, labels: int) -> tuple[Quantity, ...]:
        """Return what is recorded of each document; what a model does not have is NaN."""
        layers, heads, depths = common_layout(self.model)
        sizes = {
            **{"label": labels, "kind": len(KINDS), "topic_kind": 2, "bin": len(DISTANCES)},
            **{"layer": layers, "head": heads, "depth": depths},
            **{"shuffle": SHUFFLES, "measure": len(MEASURES)},
        }
        every = {
            "attention": (
                "label kind layer head",
                "attention × visible positions / 100, summed over pairs of words",
            ),
            "pairs": ("label kind layer", "pairs"),
            "by_distance": (
                "label topic_kind bin",
                "the same by distance, mean over layers and heads",
            ),
            "distance_pairs": ("label topic_kind bin", "pairs"),
            "shuffled": (
                "label shuffle topic_kind",
                "the same with topics shuffled among words, mean over layers and heads",
            ),
            "shuffled_pairs": ("label shuffle topic_kind", "pairs"),
            "vectors": (
                "label kind depth measure",
                "cosine and dot product, summed over pairs; depth 0 is before any layer",
            ),
            "vector_pairs": ("label kind", "pairs"),
            "words": ("", "words with a topic"),
            "positions": ("", "positions that were read, special tokens left out"),
            "group": ("", "documents of one number were read with the same weights"),
        }
        return tuple(
            Quantity(name, tuple(dims.split()), tuple(sizes[d] for d in dims.split()), meaning)
            for name, (dims, meaning) in every.items()
        )

    def truth(self) -> xr.Dataset:
        """Return models, corpus and topics of seed 0."""
        model, plan = fitted(self.fit, 0, self.thresholds, self.documents)
        labels = [
            {
                "name": each.name,
                "threshold": each.threshold,
                "overlap": each.overlap,
                "words": int(each.topics.any(axis=1).sum()),
                "pairs": each.pairs(),
            }
            for each in plan.labels
        ]
        facts = {
            "cases": [asdict(case) for case, _ in expand(self.model).values()],
            "labels": labels,
            "thresholds": list(self.thresholds),
            "corpus": self.fit.path.name,
            "topics": len(model.topic_word),
            "vocabulary": len(model.words),
            "coherence": float(model.coherence.mean()),
            "top_words": [" ".join(words) for words in model.top(10)],
        }
        return xr.Dataset(attrs={"facts": json.dumps(facts)})

    def theory(self, run: Readings) -> xr.Dataset:
        """Return the published ratios, on the thresholds of the paper."""
        names = list(paper.NO_OVERLAP)
        values = [[table[name] for name in names] for table in (paper.NO_OVERLAP, paper.OVERLAP)]
        dims = ("published_overlap", "published_model", "published_threshold", "quantity")
        meaning = {"meaning": "same topic over different topics, Tables 1 and 5"}
        return xr.Dataset(
            {"published_ratio": (dims, values, meaning)},
            attrs={"models": names, "quantities": list(paper.MEASURES)},
        )

    def describe(self) -> str:
        """Say how much is read."""
        return f"up to {self.documents:,} documents of {self.length} positions"

    def introduction(self) -> str:
        """Say what was read."""
        return (
            f"{len(self.model)} model{'s' * (len(self.model) > 1)} ({', '.join(self.model)}), each "
            f"with a random twin, {self.describe()} of the corpus {self.fit.corpus}."
        )


@lru_cache(maxsize=4)
def fitted(
    fit: TopicFit, seed: int, thresholds: tuple[float, ...], most: int
) -> tuple[TopicModel, MeasurementPlan]:
    """Return topics, and the pairs that are compared in the first documents of a corpus.

    Raises:
        AttnscopeError: no pair of words with one topic is left; the sentence says which thresholds
            would leave some.
    """
    model = fit.model(seed)
    chosen = [
        topic_words(model, threshold, overlap=overlap)
        for overlap in (False, True)
        for threshold in thresholds
    ]
    return model, count_cooccurrence(make_plan(chosen, seed), fit.documents(most))


def padded(recorded: tuple[Quantity, ...], sums: DocumentSums, group: int) -> list[Tensor]:
    """Return what one document adds, in the room that is enough for all models."""
    values = []
    for each in recorded:
        found = group if each.name == "group" else getattr(sums, each.name)
        room = np.full(each.shape, np.nan, dtype=np.float32)
        room[tuple(slice(n) for n in np.shape(found))] = found
        values.append(torch.from_numpy(room))
    return values
