"""The runs of ``lu2021.sst``, what the data say, and what theory says of each word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import xarray as xr

from attnscope.bounds import Count, Several
from attnscope.engines import Descent, Flow, Patience
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.objective import BagObjective
from attnscope.probes.topics.purity import class_counts, purer_company, rival_words, topic_purity
from attnscope.studies.lu2021._topic_words import CITATION, bag
from attnscope.studies.lu2021.sst import records
from attnscope.studies.lu2021.sst.claims import FIG5, claims
from attnscope.studies.lu2021.sst.figures import figures
from attnscope.studies.lu2021.sst.tables import PAPER, tables
from attnscope.studies.lu2021.sst.variants import MODELS, VARIANTS, Name, parts, texts
from attnscope.tasks.text_bags import SPLITS, TextBags
from attnscope.theory import lu2021
from attnscope.trajectory import Readings, initial


@dataclass(frozen=True)
class Sst(Study):
    """Attn-FC and Attn-TC on labelled text, stopped early, as the paper says and as its code does.

    The paper masks the padding, has an orthonormal U, d = 200 and a patience of 100 epochs. Its
    released code masks nothing, draws U from a normal distribution with ones on the diagonal, has
    d = 100 for Attn-TC, a query of its own and a patience of 2,000 epochs. With padding as a word
    the flow is stiff (it needs as many gradients as there are epochs), so the released setting is
    always run step by step.
    """

    training: Flow | Descent = Flow(lr=0.1, epochs=1_000_000)
    """How models are trained; the longest that a run may take, as early stopping ends it before."""
    data: str = "sst2"
    """A set that `attnscope data` lists (sst2, sst5, ...), or a table of text and label."""
    variant: Literal["paper", "released", "both"] = "both"
    """The paper's setting, its released code's, or one beside the other."""
    points: Several = 241
    """Record points, in constant ratio from epoch 50 on."""
    least: Count = 5
    """Words in fewer training sentences are not followed, only evaluated at the end."""
    top: Count = 50
    """How many of the words of the largest final scores are held against theory."""
    pair: tuple[str, str] = FIG5
    """Two words that compete: a rare pure one and a frequent impure one."""

    citation = CITATION
    quick = {"seeds": 2, "variant": "paper", "points": 121}
    labels: ClassVar = {"side": records.SIDES, "pair": ("pure", "frequent"), "split": SPLITS}
    claims, figures, tables = claims, figures, tables

    @property
    def cases(self) -> tuple[str, ...]:
        """Model and variant of each case: ``FC, paper``."""
        variants = VARIANTS if self.variant == "both" else (self.variant,)
        return tuple(f"{model}, {variant}" for variant in variants for model in MODELS)

    def text(self, variant: Name = "paper") -> TextBags:
        """Return the sentences as a variant reads them."""
        return texts(self.data, variant)

    def followed(self) -> np.ndarray:
        """Return the numbers of the words that are followed through training."""
        train = self.text().train
        words = lu2021.words_in_company(train, self.least)
        if not words.size:
            raise AttnscopeError(
                f"no word of {self.data} stands in {self.least} training sentences: expected a "
                "smaller `least`, or more text."
            )
        if (pairs := lu2021.neighbours(train, words)) > records.MOST_NEIGHBOURS:
            raise AttnscopeError(
                f"least = {self.least} follows {len(words):,} words of {self.data}, which stand "
                f"beside each other {pairs:,} times: expected shorter texts or a larger `least`: "
                f"{records.MOST_NEIGHBOURS:,} times at most."
            )
        return np.union1d(words, self.rivals())

    def rivals(self) -> tuple[int, int]:
        """Return the numbers of the pure and of the frequent word.

        If the text does not hold the paper's pair, a similar one is chosen.
        """
        text = self.text()
        if self.pair[0] == self.pair[1]:
            raise AttnscopeError(f"pair = {self.pair}: expected two different words.")
        try:
            return text.number(self.pair[0]), text.number(self.pair[1])
        except AttnscopeError:
            if self.pair != FIG5:
                raise
        found = rival_words(text.train, len(text.classes))
        if found is None:
            raise AttnscopeError(
                f"no two words of {text.name} compete: expected a frequent word of purity below "
                "0.9 in the same class as a pure one; name two by --pair."
            )
        return found

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return the training that the spec asks for; of the released setting always descent."""
        if case.endswith("released"):
            return Descent(self.unit or 1.0, epochs=self.training.epochs)
        return self.training

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        model, variant = parts(case)
        text, setting, unit = self.text(variant), VARIANTS[variant], self.unit or 1.0
        dev = BagObjective(text.dev)
        stop = Patience(lambda m: dev(bag(m)), setting.patience * unit, setting.every * unit)
        reading = records.records(text, self.followed(), self.rivals(), stop, unit, self.points)
        start = setting.model(model, text, seed)
        return Problem(start, BagObjective(text.train), reading, (stop,))

    def departures(self) -> str:
        """Say what differs from the paper's setting; both of its data sets are that."""
        same = replace(self, data=Sst.data) if self.data in PAPER else self
        return super(Sst, same).departures()

    def describe(self) -> str:
        """Say how long runs are."""
        how = "gradient descent"
        if isinstance(self.training, Flow) and self.variant != "released":
            how = "gradient flow"
            if self.variant == "both":
                how += " (the paper's setting) and gradient descent (the released one)"
        return f"at most {self.training.epochs or 0:,} epochs, ended by early stopping, by {how}"

    def truth(self) -> xr.Dataset:
        """Return the words, what the data say of them, and the training sentences."""
        text, padded = self.text(), self.text("released").train
        train, classes = text.train, len(text.classes)
        purity, occurrences = topic_purity(train, classes), train.occurrences.numpy().copy()
        held = np.flatnonzero(occurrences)
        # Where padding is a word, it is a word that can be attended to.
        purity[-1], occurrences[-1] = topic_purity(padded, classes)[-1], padded.occurrences[-1]
        assert train.mask is not None
        m = np.full(train.vocabulary, np.nan)
        m[held] = lu2021.effective_m(train, held)
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
                "wordless": ("split", [text.wordless[split] for split in SPLITS]),
                "sentences": ("split", [len(text.train), len(text.dev), len(text.test)]),
                "unseen": ("split", [text.unseen(split) for split in SPLITS]),
            },
            attrs={"set": text.name, "classes": list(text.classes)},
        )

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict norms by Corollary 1 with each word's own m, and distances by Theorem 1.

        ``norm`` is eq (10) at the measured score with m the mean length of the word's sentences,
        less one. ``distance`` is ‖v - ⟨v̄(χ∖t)⟩‖ by eq (9) with the averages over the word's own
        sentences as they are at that time; ``distance_measured`` is what it should equal. These
        averages are constants in the theorem. Where they move, what follows from Lemma 2 is an
        integral: ``score`` is eq (8) integrated along the run, with the averages of every moment.
        """
        m = run.data.m.isel(vocab=run.data.word_number)
        level, right, _, speed = (run.identity.astype(float).sel(side=s) for s in records.SIDES)
        half_square = level + initial(right) - initial(level)
        predicted: dict[str, tuple[xr.DataArray, str]] = {
            "norm": (
                run.score.copy(data=lu2021.norm_from_score(run.score, m)),
                "Corollary 1 at the measured score, own m",
            ),
            "distance": (
                xr.ufuncs.sqrt(2 * half_square.clip(min=0)),
                "Theorem 1 at the measured score, own averages",
            ),
            "distance_measured": (xr.ufuncs.sqrt(2 * right), "‖v - ⟨v̄(χ∖t)⟩‖"),
            "score": (
                speed.cumulative_integrate("time_probe"),
                "eq (8) integrated along the run",
            ),
        }
        return {
            name: (reading.dims, reading.to_numpy().astype(np.float32), {"meaning": meaning})
            for name, (reading, meaning) in predicted.items()
        }
