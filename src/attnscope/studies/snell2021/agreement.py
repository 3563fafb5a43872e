"""Attention agrees with lexical knowledge learned without it, on real data (Tables 2 to 8, 10)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.datasets import labelled, parallel
from attnscope.datasets.catalogue import CATALOGUE
from attnscope.engines import Descent, Given, Record
from attnscope.errors import AttnscopeError
from attnscope.report.attention_maps import AttentionMaps
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.snell2021 import (
    _agreement_claims,
    _agreement_figures,
    _agreement_maps,
    _agreement_predictions,
    _agreement_tables,
    _agreement_translation,
)
from attnscope.studies.snell2021._agreement_classification import (
    BATCH,
    EMBEDDING,
    PROXY_EPOCHS,
    STEPS,
    ClassificationSide,
)
from attnscope.studies.snell2021._agreement_evidence import evidence
from attnscope.studies.snell2021._agreement_gold import gold_table
from attnscope.studies.snell2021._agreement_translation import TranslationSide
from attnscope.studies.snell2021._snell import CITATION

ALIASES = {"sst": "sst2"}
PAPER: dict[str, dict[str, Any]] = {
    "labelled": {
        "epochs": STEPS,
        "batch": BATCH,
        "embedding": EMBEDDING,
        "proxy_epochs": PROXY_EPOCHS,
        "salient": "all",
        "train_most": "all",
    },
    "parallel": {
        "epochs": "20 to 40 epochs",
        "batch": _agreement_translation.BATCH,
        "embedding": _agreement_translation.WIDTH,
        "proxy_epochs": _agreement_translation.PROXY_EPOCHS,
        "salient": "all",
        "train_most": "all",
    },
}
"""What 0 stands for."""
WHICH = ("data", "seeds", "sentence", "gold", "source", "classes", "convention", "glove")
"""Fields that say what is looked at, and are no departure from the paper."""
FIRST, OTHERS, UNIFORM, FROZEN, PROXY = 20, 13, 12, 11, 10
"""Seeds: those of the released code for the normal runs (20; 13, 14, ...) and the uniform one."""


@dataclass(frozen=True)
class Agreement(Study):
    """Train normal, uniform, frozen and proxy models on a data set, and compare where they look.

    The set is a key of the catalogue, or a file of your own: a table of labelled texts, or two
    line-aligned files SOURCE:TARGET.
    """

    data: str = "sst2"
    """Data set: a key that `attnscope data` lists (sst is sst2), or files of your own."""
    seeds: int = 5
    """Normal runs B, C, ... that put an agreement into context; the first normal run is A."""
    engine: Literal["flow", "descent"] = "descent"
    """Adam, step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps; Adam's learning rate is the field `rate`."""
    epochs: int = 0
    """Steps; 0 for the paper's: 4,000 for classification, its number of epochs for translation."""
    rate: float = 1e-3
    """Adam's learning rate."""
    batch: int = 0
    """Texts in a step; 0 for the paper's: 32 for classification, 16 for translation."""
    embedding: int = 0
    """Length of embeddings; 0 for the paper's: 300 for classification, 256 for translation."""
    hidden: int = 256
    """Length of the LSTM's state in one direction."""
    proxy_epochs: int = 0
    """Epochs of the proxy; 0 for those of the released code: 60, or 30 for translation."""
    evaluated: int = 4000
    """Validation texts at most; as many training texts are read, 500 at most for classification."""
    salient: int = 0
    """Texts whose saliency is read, on both splits; 0 for 500, or 100 for translation."""
    limit: int = 1000
    """Words (pieces, in translation) of a text at most; longer ones are cut, and counted."""
    train_most: int = 0
    """Training texts at most; 0 for all."""
    classes: tuple[str, ...] = ()
    """The two classes to tell apart, the negative one first; the paper's unless given."""
    glove: str = ""
    """File of GloVe vectors; glove/glove.6B.LENGTHd.txt below the data folder unless given."""
    vocabulary: int = 8000
    """Pieces of SentencePiece, for translation."""
    source: str = ""
    """Language that is translated from; the first of the set unless given."""
    convention: Literal["paper", "released"] = "paper"
    """Order of arguments and sign of saliency: the paper's notation, or the released code's."""
    sentence: int = 0
    """Validation text that the report shows position by position."""
    gold: str = ""
    """Gold word alignments, as TEXTS:LINKS; read for translation only."""

    citation: ClassVar[str] = CITATION
    quick: ClassVar[dict[str, Any]] = {
        "seeds": 1,
        "epochs": 1200,
        "rate": 4e-3,
        "hidden": 64,
        "embedding": 50,
        "batch": 32,
        "proxy_epochs": 10,
        "evaluated": 400,
        "salient": 60,
        "train_most": 20000,
        "vocabulary": 2000,
    }

    def __post_init__(self) -> None:
        if self.data in ALIASES:
            object.__setattr__(self, "data", ALIASES[self.data])
        for name in ("epochs", "batch", "embedding", "proxy_epochs", "salient", "train_most"):
            if getattr(self, name) < 0:
                raise AttnscopeError(
                    f"{name} = {getattr(self, name)}: expected 1 or more, or 0 for the paper's."
                )
        for name in ("seeds", "hidden", "evaluated", "limit"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and Adam's learning rate is 'rate'."
            )
        if self.convention not in ("paper", "released"):
            raise AttnscopeError(
                f"convention = '{self.convention}': expected 'paper' or 'released'."
            )
        if not 0 < self.rate < float("inf"):
            raise AttnscopeError(f"rate = {self.rate}: expected a finite number above 0.")
        if self.gold and self.kind != "parallel":
            raise AttnscopeError(
                f"gold = '{self.gold}' with '{self.data}': expected parallel text, for there are "
                "no words to align in classification."
            )
        if self.sentence < 0:
            raise AttnscopeError(f"sentence = {self.sentence}: expected 0 or more.")

    @property
    def kind(self) -> Literal["labelled", "parallel"]:
        """What the data set is."""
        if self.data in CATALOGUE:
            return "parallel" if CATALOGUE[self.data].kind == "parallel" else "labelled"
        return "parallel" if ":" in self.data else "labelled"

    def departures(self) -> str:
        """Say in which fields the spec differs from the paper's."""
        default, paper = type(self)(), PAPER[self.kind]
        return ", ".join(
            f"{name} = {value} (paper: {paper.get(name, getattr(default, name))})"
            for name, value in vars(self).items()
            if name not in WHICH and value not in (getattr(default, name), paper.get(name))
        )

    @property
    def side(self) -> ClassificationSide | TranslationSide:
        """The data set and its models."""
        return _side(self)

    @property
    def length(self) -> int:
        """Steps of a run."""
        if self.epochs:
            return self.epochs
        return self.side.default_steps if self.kind == "parallel" else STEPS

    @property
    def time(self) -> float:
        """The end of the run, in steps."""
        return float(self.length)

    def cases(self) -> tuple[str, ...]:
        """Return what is trained."""
        return ("normal", "uniform", "frozen", "proxy")

    def runs(self) -> list[tuple[str, int]]:
        """Return the normal runs A, B, ..., then one of each other case."""
        others = [("normal", OTHERS + i) for i in range(self.seeds)]
        return [
            ("normal", FIRST),
            ("uniform", UNIFORM),
            ("proxy", PROXY),
            others[0],
            ("frozen", FROZEN),
            *others[1:],
        ]

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.length:,} steps of Adam"

    def introduction(self) -> str:
        """Say what was trained on what."""
        return (
            f"{len(self.runs())} runs on {self.data}: {self.seeds + 1} normal ones, one with "
            "uniform attention, one whose attention alone is trained, and the proxy; "
            f"{self.course()}."
        )

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return Adam; batches are served in the order of their numbers."""
        return self.side.engine(case, seed)

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; the random numbers of dropout go on from those of the start."""
        side = self.side
        readings = side.readings(case, case == "normal" and seed == FIRST)
        record = Record(readings.observables(), Given(tuple(map(float, side.evaluation))))
        loss = side.loss(case, seed)
        model = side.model(case, seed)
        torch.manual_seed(seed)
        gold = [side.gold.record()] if isinstance(side, TranslationSide) and side.gold else []
        return Problem(model, loss, [record, *gold])

    def truth(self) -> xr.Dataset:
        """Return the texts that are read, word by word."""
        truth = self.side.truth()
        texts = int(truth["sentence_dev"].max()) + 1
        if self.sentence >= texts:
            raise AttnscopeError(
                f"sentence = {self.sentence}: expected 0 to {texts - 1}, for {texts} validation "
                "texts."
            )
        return truth

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict attention from the data set alone: counts, IBM Model 1, and the proxy."""
        return _agreement_predictions.predictions(self, tree)

    def claims(self) -> tuple[Claim, ...]:
        """Return the statements of sections 3 and 5 and of A.6."""
        return _agreement_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw agreement beside the paper's, over training, and the lag."""
        return _agreement_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate Tables 2 to 8 and 10, with the paper's values where there are some."""
        found = _agreement_tables.tables(self, tree)
        if self.gold and isinstance(self.side, TranslationSide) and self.side.gold:
            found.append(gold_table(self.side.gold, tree, self.side.data.train))
        return found

    def printed(self, tree: xr.DataTree) -> list[Table]:
        """Print the row of Table 2 beside the paper's."""
        seen = evidence(tree)
        return [_agreement_tables.row(self, seen, 5, "dev", "top", "accuracy")]

    def maps(self, tree: xr.DataTree) -> list[AttentionMaps]:
        """Return attention and lexical probes of one text over training."""
        return _agreement_maps.maps(self, tree)


@lru_cache(maxsize=4)
def _side(study: Agreement) -> ClassificationSide | TranslationSide:
    if study.kind == "parallel":
        return TranslationSide(study, parallel(study.data))
    return ClassificationSide(study, labelled(study.data))
