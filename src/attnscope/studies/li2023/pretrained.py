"""Topics in language models trained on real text: attention and embeddings (Tables 1, 2, 5)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.li2023 import (
    _pretrained_cases,
    _pretrained_claims,
    _pretrained_figures,
    _pretrained_paper,
    _pretrained_tables,
    _pretrained_topics,
)
from attnscope.studies.li2023._pretrained_cases import Layout
from attnscope.studies.li2023._pretrained_reading import Pass, Reader
from attnscope.studies.li2023._topic_documents import CITATION


@dataclass(frozen=True)
class Pretrained(Study):
    """Topics are fitted to a corpus, and every document is shown to a model and to a random twin.

    A run is a model, and its record points are documents: sums over pairs of words, from which
    means and intervals are made afterwards. Nothing is trained. The paper's own checkpoints (Bert,
    Albert, Bart, Electra, Roberta) and its Wikipedia dump are not shipped; its values are, and the
    models that are read stand beside them under their own names.
    """

    seeds: int = 1
    """Fits of the topics, and draws of the twins, with seeds 0, 1, ..."""
    engine: Literal["flow", "descent"] = "descent"
    """Nothing learns; time counts documents."""
    lr: float = 1.0
    """Unit of time: a document."""
    epochs: int = 1
    """Not used: the length of a run is `documents`."""
    points: int = 2
    """Not used: every document is a record point."""
    model: tuple[str, ...] = ("minilm",)
    """Folders of models, folders of checkpoints of one run, names of packages (minilm, bert-tiny,
    smollm2), or names that the hub knows."""
    corpus: str = _pretrained_topics.WIKITEXT
    """File or folder of documents, or wikitext2."""
    topics: int = 100
    """Topics that are fitted."""
    passes: int = 6
    """Passes of the fit over the corpus."""
    vocabulary: int = 100_000
    """Words that topics are made of, at most."""
    thresholds: tuple[float, ...] = _pretrained_paper.THRESHOLDS
    """Shares of the vocabulary kept for each topic; each is read without and with overlap."""
    documents: int = 600
    """Documents that are read, from the first."""
    length: int = 512
    """Positions of a document that are read, special tokens included."""
    batch: int = 8
    """Documents that are read at a time; a random twin has new weights for each batch."""

    citation = CITATION
    quick: ClassVar[dict[str, Any]] = {"documents": 120, "batch": 4}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; nothing learns here, and time counts documents."
            )
        if not self.model:
            raise AttnscopeError("model is empty: expected one model or more.")
        if not self.thresholds or len(set(self.thresholds)) < len(self.thresholds):
            raise AttnscopeError(
                f"thresholds = {self.thresholds}: expected one or more, each once."
            )
        for name, least in (("topics", 2), ("passes", 1), ("documents", 2), ("length", 8)):
            if getattr(self, name) < least:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {least} or more.")
        if not 1 <= self.batch <= self.documents // 2:
            raise AttnscopeError(
                f"batch = {self.batch}: expected 1 to {self.documents // 2}, so that the twin is "
                "drawn twice or more."
            )

    @property
    def time(self) -> float:
        """The number of the last document."""
        return float(self.documents - 1)

    def make_engine(self, case: str = "", seed: int = 0) -> Pass:
        """Return the pass over the documents."""
        return Pass()

    def course(self) -> str:
        """Say how much is read."""
        return f"up to {self.documents:,} documents of {self.length} positions"

    def cases(self) -> tuple[str, ...]:
        """Return the models, their checkpoints, and their random twins."""
        return tuple(_pretrained_cases.expand(self.model))

    def room(self) -> Layout:
        """Return sizes that are enough for all models; checkpoints of one run are alike."""
        found = _pretrained_cases.expand(self.model).values()
        last = [where for case, where in found if case.role == "trained"]
        return _pretrained_cases.largest([_pretrained_cases.layout(where) for where in last])

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model."""
        known, where = _pretrained_cases.expand(self.model)[case]
        _, plan = self._plan(seed)
        reader = Reader(
            where,
            known.role == "twin",
            lambda: _pretrained_topics.documents(self.corpus, self.documents),
            plan,
            self.room(),
            length=self.length,
            batch=self.batch,
            seed=seed,
        )
        return Problem(reader, lambda *_: torch.zeros(()), [reader.record(self.documents)])

    def _plan(self, seed: int) -> tuple[Any, Any]:
        return _pretrained_topics.plan_of(
            self.corpus,
            self.topics,
            self.passes,
            self.vocabulary,
            seed,
            self.thresholds,
            self.documents,
        )

    def truth(self) -> xr.Dataset:
        """Return models, corpus and topics of seed 0."""
        model, plan = self._plan(0)
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
        cases = _pretrained_cases.expand(self.model).values()
        facts = {
            "cases": [case.to_json() for case, _ in cases],
            "labels": labels,
            "thresholds": list(self.thresholds),
            "corpus": _pretrained_topics.find_corpus(self.corpus).name,
            "topics": len(model.topic_word),
            "vocabulary": len(model.words),
            "coherence": float(model.coherence.mean()),
            "top_words": [" ".join(words) for words in model.top(10)],
        }
        return xr.Dataset(attrs={"facts": json.dumps(facts)})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Return the published ratios, on the thresholds of the paper."""
        names = list(_pretrained_paper.NO_OVERLAP)
        tables = [_pretrained_paper.NO_OVERLAP, _pretrained_paper.OVERLAP]
        return xr.Dataset(
            {
                "published_ratio": (
                    ("published_overlap", "published_model", "published_threshold", "quantity"),
                    [[table[name] for name in names] for table in tables],
                    {"meaning": "same topic over different topics, Tables 1 and 5"},
                )
            },
            attrs={"models": names, "quantities": list(_pretrained_paper.MEASURES)},
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what the tables say, beside a random twin."""
        return _pretrained_claims.claims()

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw ratios, heads, distances, depths and training."""
        return _pretrained_figures.figures(tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the paper's rows with ours, and what stands behind them."""
        return _pretrained_tables.tables(tree)

    def printed(self, tree: xr.DataTree) -> list[Table]:
        """Return the paper's tables with rows for these models."""
        return _pretrained_tables.printed(tree)

    def introduction(self) -> str:
        """Say what was read."""
        return (
            f"{len(self.model)} model{'s' * (len(self.model) > 1)} ({', '.join(self.model)}), each "
            f"with a random twin, {self.course()} of the corpus {self.corpus}."
        )
