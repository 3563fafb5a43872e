"""The spec of the agreement study, its runs, and what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import torch
import xarray as xr

from attnscope import engines
from attnscope.bounds import Count, Natural
from attnscope.datasets import labelled, parallel
from attnscope.datasets.catalogue import CATALOGUE
from attnscope.engines import Descent
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.report import Table
from attnscope.studies.snell2021._snell import CITATION
from attnscope.studies.snell2021.agreement.claims import claims_of
from attnscope.studies.snell2021.agreement.classification import ClassificationSetup
from attnscope.studies.snell2021.agreement.evidence import evidence
from attnscope.studies.snell2021.agreement.figures import figures_of
from attnscope.studies.snell2021.agreement.maps import maps_of
from attnscope.studies.snell2021.agreement.predictions import predictions
from attnscope.studies.snell2021.agreement.setup import Setup
from attnscope.studies.snell2021.agreement.tables import row, tables_of
from attnscope.studies.snell2021.agreement.translation import EPOCHS, TranslationSetup
from attnscope.trajectory import Readings

ALIASES = {"sst": "sst2"}
SETUPS = {"labelled": ClassificationSetup, "parallel": TranslationSetup}
WHICH = ("data", "seeds", "sentence", "gold", "source", "classes", "convention", "glove")
"""Settings that say what is looked at, and are no departure from the paper."""
FIRST, OTHERS, UNIFORM, FROZEN, PROXY = 20, 13, 12, 11, 10
"""Seeds: those of the released code for the normal runs (20; 13, 14, ...) and the uniform one."""


@dataclass(frozen=True, kw_only=True)
class Adam(engines.Adam):
    """Adam; 0 stands for the paper's number, which depends on the kind of data."""

    steps: Natural = 0
    """Steps; 0 for the paper's: 4,000 for classification, its number of epochs for translation."""
    batch: Natural = 0
    """Texts in a step; 0 for the paper's: 32 for classification, 16 for translation."""


@dataclass(frozen=True)
class Agreement(Study):
    """Train normal, uniform, frozen and proxy models on a data set, and compare where they look.

    The set is a key of the catalogue, or a file of your own: a table of labelled texts, or two
    line-aligned files SOURCE:TARGET.
    """

    training: Adam = Adam()
    data: str = "sst2"
    """Data set: a key that `attnscope data` lists (sst is sst2), or files of your own."""
    seeds: Count = 5
    """Normal runs B, C, ... that put an agreement into context; the first normal run is A."""
    embedding: Natural = 0
    """Length of embeddings; 0 for the paper's: 300 for classification, 256 for translation."""
    hidden: Count = 256
    """Length of the LSTM's state in one direction."""
    proxy_epochs: Natural = 0
    """Epochs of the proxy; 0 for those of the released code: 60, or 30 for translation."""
    evaluated: Count = 4000
    """Validation texts at most; as many training texts are read, 500 at most for classification."""
    salient: Natural = 0
    """Texts whose saliency is read, on both splits; 0 for 500, or 100 for translation."""
    limit: Count = 1000
    """Words (pieces, in translation) of a text at most; longer ones are cut, and counted."""
    train_most: Natural = 0
    """Training texts at most; 0 for all."""
    classes: tuple[str, ...] = ()
    """The two classes to tell apart, the negative one first; the paper's unless given."""
    glove: str = ""
    """File of GloVe vectors; glove/glove.6B.LENGTHd.txt below the data folder unless given."""
    vocabulary: Count = 8000
    """Pieces of SentencePiece, for translation."""
    source: str = ""
    """Language that is translated from; the first of the set unless given."""
    convention: Literal["paper", "released"] = "paper"
    """Order of arguments and sign of saliency: the paper's notation, or the released code's."""
    sentence: Natural = 0
    """Validation text that the report shows position by position."""
    gold: str = ""
    """Gold word alignments, as TEXTS:LINKS; read for translation only."""

    citation = CITATION
    renamed: ClassVar = {"points": None}
    cases = ("normal", "uniform", "frozen", "proxy")
    quick: ClassVar[dict[str, Any]] = {
        "seeds": 1,
        "steps": 1200,
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
    claims, figures, maps, tables = claims_of, figures_of, maps_of, tables_of

    def check(self) -> None:
        """Name the data set by its key, and refuse alignments where no words are to be aligned."""
        object.__setattr__(self, "data", ALIASES.get(self.data, self.data))
        if self.gold and self.kind != "parallel":
            raise AttnscopeError(
                f"gold = '{self.gold}' with '{self.data}': expected parallel text, for there are "
                "no words to align in classification."
            )

    @property
    def kind(self) -> Literal["labelled", "parallel"]:
        """What the data set is."""
        if self.data in CATALOGUE:
            return "parallel" if CATALOGUE[self.data].kind == "parallel" else "labelled"
        return "parallel" if ":" in self.data else "labelled"

    @property
    def setup(self) -> Setup:
        """The data set and its models."""
        return setup_of(self)

    def wanted(self, name: str) -> int:
        """Return a number of the spec; where it is 0, the paper's for this kind of data."""
        return int(self.to_json()[name] or SETUPS[self.kind].paper[name])

    @property
    def length(self) -> int:
        """Steps of a run; what the paper has for translation depends on the number of pairs."""
        if self.kind == "labelled" or self.training.steps:
            return self.wanted("steps")
        epochs = EPOCHS.get(self.setup.text.name, EPOCHS["multi30k"])
        return epochs * self.setup.batches("normal", 0).per_epoch

    @property
    def end(self) -> float:
        """The end of the run, in steps."""
        return float(self.length)

    def departures(self) -> str:
        """Say in which settings the spec differs from the paper's."""
        default, own = type(self)().to_json(), SETUPS[self.kind].paper
        paper = {**default, **own, "salient": "all", "train_most": "all"}
        return ", ".join(
            f"{name} = {value} (paper: {paper[name]})"
            for name, value in self.to_json().items()
            if name not in WHICH and value not in (default[name], paper[name])
        )

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.length:,} steps of Adam"

    def introduction(self) -> str:
        """Say what was trained on what."""
        return (
            f"{len(self.runs())} runs on {self.data}: {self.seeds + 1} normal ones, one with "
            "uniform attention, one whose attention alone is trained, and the proxy; "
            f"{self.describe()}."
        )

    def runs(self) -> list[tuple[str, int]]:
        """Return the normal runs A, B, ..., then one of each other case."""
        self.check_runs(self.seeds + 4)
        others = [("normal", OTHERS + i) for i in range(self.seeds)]
        singles = [("uniform", UNIFORM), ("proxy", PROXY)]
        return [("normal", FIRST), *singles, others[0], ("frozen", FROZEN), *others[1:]]

    def engine(self, case: str, seed: int) -> Descent:
        """Return Adam on batches that are numbered from 0 and served in order.

        A batch is a function of seed and number, so a run that was killed goes on bit for bit. The
        proxy takes steps of its own, which are mapped on the axis of the other runs.
        """
        setup, steps, rate = self.setup, self.length, self.training.rate
        if case == "proxy":
            steps = setup.proxy_steps(seed)
            rate = setup.proxy_rates.get(setup.text.name, setup.proxy_rates[""])
        return Descent(
            lr=rate,
            optimizer="adam",
            batch_size=1,
            samples=steps + 1,
            seed=seed,
            tick=self.length / steps,
            shuffle=False,
            **self.training.options(),
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; the random numbers of dropout go on from those of the start."""
        setup, first = self.setup, (case, seed) == ("normal", FIRST)
        loss, model = setup.loss(case, seed), setup.model(case, seed)
        torch.manual_seed(seed)
        return Problem(model, loss, setup.records(case, first))

    def truth(self) -> xr.Dataset:
        """Return the texts that are read, word by word."""
        truth = self.setup.truth()
        texts = int(truth["sentence_dev"].max()) + 1
        if self.sentence >= texts:
            raise AttnscopeError(
                f"sentence = {self.sentence}: expected 0 to {texts - 1}, for {texts} validation "
                "texts."
            )
        return truth

    def theory(self, run: Readings) -> xr.Dataset:
        """Predict attention from the data set alone: counts, IBM Model 1, and the proxy."""
        source, target = self.setup.data.train.sides
        return predictions(run["data"].to_dataset(), source, target, evidence(run).alpha)

    def printed(self, run: Readings) -> list[Table]:
        """Print the row of Table 2 beside the paper's."""
        return [row(self, evidence(run), 5)]


@lru_cache(maxsize=4)
def setup_of(study: Agreement) -> Setup:
    """Read the data set of a study."""
    if study.kind == "parallel":
        return TranslationSetup(study, parallel(study.data))
    return ClassificationSetup(study, labelled(study.data))
