"""The same theory on real sentences: film reviews, or a table of your own (Figs 4 to 7)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Flow, Patience
from attnscope.errors import AttnscopeError
from attnscope.models.objective import BagObjective
from attnscope.probes.purity import class_counts, purer_company, topic_purity
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.lu2021 import _sst_claims, _sst_figures, _sst_pair, _sst_tables
from attnscope.studies.lu2021._sst_records import (
    MOST_NEIGHBOURS,
    bag,
    neighbours,
    records,
    words_in_company,
)
from attnscope.studies.lu2021._sst_tables import PAPER
from attnscope.studies.lu2021._sst_variants import VARIANTS, Model, Name, initial_model, texts
from attnscope.studies.lu2021._topic_words import CITATION
from attnscope.tasks.text_bags import TextBags
from attnscope.theory import lu2021

MODELS: tuple[Model, ...] = ("FC", "TC")


@dataclass(frozen=True)
class Sst(Study):
    """Attn-FC and Attn-TC on labelled text, stopped early, as the paper says and as its code does.

    The paper masks the padding, has an orthonormal U, d = 200 and a patience of 100 epochs. Its
    released code masks nothing, draws U from a normal distribution with ones on the diagonal, has
    d = 100 for Attn-TC, a query of its own and a patience of 2,000 epochs. With padding as a word
    the flow is stiff (it needs as many gradients as there are epochs), so the released setting is
    always run step by step.
    """

    data: str = "sst2"
    """A set that `attnscope data` lists (sst2, sst5, ...), or a table of text and label."""
    variant: Literal["paper", "released", "both"] = "both"
    """The paper's setting, its released code's, or one beside the other."""
    epochs: int = 1_000_000
    """The longest that a run may take; early stopping ends it before."""
    points: int = 241
    """Record points, in constant ratio from epoch 50 on."""
    least: int = 5
    """Words in fewer training sentences are not followed, only looked at in the end."""
    top: int = 50
    """How many of the words of the largest final scores are held against theory."""
    pair: tuple[str, str] = ("powerful", "best")
    """Two words that compete: a rare pure one and a frequent impure one."""

    citation = CITATION
    quick: ClassVar[dict[str, Any]] = {"seeds": 2, "variant": "paper", "points": 121}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("paper", "released", "both"):
            raise AttnscopeError(
                f"variant = '{self.variant}': expected 'paper', 'released' or 'both'."
            )
        for name in ("least", "top"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")

    def variants(self) -> tuple[Name, ...]:
        """Return the variants that are run."""
        return ("paper", "released") if self.variant == "both" else (self.variant,)

    def cases(self) -> tuple[str, ...]:
        """Return model and variant of each case: ``FC, paper``."""
        return tuple(f"{model}, {variant}" for variant in self.variants() for model in MODELS)

    def text(self, variant: Name | None = None) -> TextBags:
        """Return the sentences as a variant reads them."""
        return texts(self.data, variant or self.variants()[0])

    def followed(self) -> np.ndarray:
        """Return the numbers of the words that are followed through training."""
        train = self.text("paper").train
        words = words_in_company(train, self.least)
        if not words.size:
            raise AttnscopeError(
                f"no word of {self.data} stands in {self.least} training sentences: expected a "
                "smaller `least`, or more text."
            )
        if (pairs := neighbours(train, words)) > MOST_NEIGHBOURS:
            raise AttnscopeError(
                f"least = {self.least} follows {len(words):,} words of {self.data}, which stand "
                f"beside each other {pairs:,} times: expected shorter texts or a larger `least`: "
                f"{MOST_NEIGHBOURS:,} times at most."
            )
        return np.union1d(words, self.rivals())

    def rivals(self) -> tuple[int, int]:
        """Return the numbers of the pair."""
        return _sst_pair.rivals(self.text("paper"), self.pair, self.pair == Sst.pair)

    def make_engine(self, case: str = "", seed: int = 0) -> Flow | Descent:
        """Return the engine that the spec asks for; for the released setting always descent."""
        if case.endswith("released"):
            return Descent(lr=self.lr)
        return super().make_engine(case, seed)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        model_name, variant = _parts(case)
        text, setting = self.text(variant), VARIANTS[variant]
        dev = BagObjective(text.dev)
        stop = Patience(
            lambda m: dev(bag(m)),
            patience=setting.patience * self.lr,
            every=setting.every * self.lr,
        )
        model = initial_model(model_name, variant, text, seed)
        reading = records(text, self.followed(), self.rivals(), stop, self.lr, self.points)
        return Problem(model, BagObjective(text.train), reading, (stop,))

    def departures(self) -> str:
        """Say what differs from the paper's setting; both of its data sets are that."""
        same = dataclasses.replace(self, data=Sst.data) if self.data in PAPER else self
        return super(Sst, same).departures()

    def course(self) -> str:
        """Say how long runs are."""
        how = "gradient descent" if self.engine == "descent" else "gradient flow"
        if self.variant == "both" and self.engine == "flow":
            how += " (the paper's setting) and gradient descent (the released one)"
        elif self.variant == "released":
            how = "gradient descent"
        return f"at most {self.epochs:,} epochs, ended by early stopping, by {how}"

    def truth(self) -> xr.Dataset:
        """Return the words, what the data say of them, and the training sentences."""
        text, padded = self.text("paper"), self.text("released").train
        train, classes = text.train, len(text.classes)
        purity, occurrences = topic_purity(train, classes), train.occurrences.numpy().copy()
        # Where padding is a word, it is a word that can be attended to.
        purity[-1], occurrences[-1] = topic_purity(padded, classes)[-1], padded.occurrences[-1]
        assert train.mask is not None
        held = train.occurrences.numpy() > 0
        m = np.full(train.vocabulary, np.nan)
        m[held] = lu2021.effective_m(train, np.flatnonzero(held))
        return xr.Dataset(
            {
                "words": ("vocab", np.array(text.words, dtype=object)),
                "word_number": ("word", self.followed(), {"meaning": "which words are followed"}),
                "pair_number": ("pair", np.array(self.rivals())),
                "occurrences": ("vocab", occurrences, {"unit": "sentences"}),
                "by_class": (("vocab", "class"), class_counts(train, classes)),
                "purity": ("vocab", purity, {"meaning": "δ(w), topic purity"}),
                "purer_company": ("vocab", purer_company(train, purity)),
                "m": ("vocab", m, {"meaning": "mean length of the sentences with w, less one"}),
                "ids": (("sentence", "position"), train.ids.masked_fill(~train.mask, -1).numpy()),
                "labels": ("sentence", train.labels.numpy()),
                "wordless": ("split", [text.wordless[s] for s in ("train", "dev", "test")]),
                "sentences": ("split", [len(text.train), len(text.dev), len(text.test)]),
                "unseen": ("split", [text.unseen(s) for s in ("train", "dev", "test")]),
            },
            attrs={"set": text.name, "classes": list(text.classes)},
        )

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict norms by Corollary 1 with each word's own m, and distances by Theorem 1.

        ``norm`` is eq (10) at the measured score with m the mean length of the word's sentences,
        less one. ``distance`` is ‖v - ⟨v̄(χ∖t)⟩‖ by eq (9) with the averages over the word's own
        sentences as they are at that time; ``distance_measured`` is what it should equal. These
        averages are constants in the theorem. Where they move, what follows from Lemma 2 is an
        integral: ``score`` is eq (8) integrated along the run, with the averages of every moment.
        """
        observed = tree["observables"].to_dataset()
        m = tree["data/m"].to_numpy()[tree["data/word_number"].to_numpy()]
        sides = observed["identity"].to_numpy().astype(float)
        left, right = sides[..., 0], sides[..., 1]
        half_square = right[:, :1] + left - left[:, :1]
        score, dims = observed["score"].to_numpy(), ("run", "probe", "word")
        slope, times = sides[..., 3], observed["time_probe"].to_numpy()
        pieces = (slope[:, 1:] + slope[:, :-1]) / 2 * np.diff(times)[:, None]
        integral = np.concatenate([np.zeros_like(slope[:, :1]), np.cumsum(pieces, axis=1)], axis=1)
        return xr.Dataset(
            {
                "norm": (
                    ("run", "step", "word"),
                    lu2021.norm_from_score(score, m).astype(np.float32),
                    {"meaning": "Corollary 1 at the measured score, own m"},
                ),
                "distance": (
                    dims,
                    np.sqrt(2 * np.maximum(0.0, half_square)).astype(np.float32),
                    {"meaning": "Theorem 1 at the measured score, own averages"},
                ),
                "distance_measured": (
                    dims,
                    np.sqrt(2 * right).astype(np.float32),
                    {"meaning": "‖v - ⟨v̄(χ∖t)⟩‖"},
                ),
                "score": (
                    dims,
                    integral.astype(np.float32),
                    {"meaning": "eq (8) integrated along the run"},
                ),
            }
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what section 5.2 says of these runs, and one statement of our own."""
        return _sst_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Figs 4 to 7."""
        return _sst_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate accuracies, words and the fit over the vocabulary."""
        return _sst_tables.tables(self, tree)


def _parts(case: str) -> tuple[Model, Name]:
    model, _, variant = case.partition(", ")
    return next(m for m in MODELS if m == model), next(v for v in VARIANTS if v == variant)
