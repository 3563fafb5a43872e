"""Score and embedding pull each other up, or first hold each other down (Fig 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from attnscope.bounds import Count, Finite, Positive
from attnscope.claims import Claim, above, below, within
from attnscope.engines import Descent, Flow, Given
from attnscope.experiment import Problem
from attnscope.models import BagAttention
from attnscope.models.bag_attention import Freeze
from attnscope.probes import largest, relative_deviation
from attnscope.report import Figure, Line, Panel, Rule, Table, bands, ends
from attnscope.studies.lu2021._topic_words import TopicWordsStudy, seed_by_seed
from attnscope.theory import lu2021
from attnscope.trajectory import Readings, final, initial

FREEZE: dict[str, Freeze] = {"TC": "nothing", "TC-KF": "scores", "TC-EF": "embeddings"}
NEGATIVE = ", negative start"
BEFORE = 1000
"""Epoch at which models are compared; the paper says that Attn-TC has converged at around it."""
ZOOM = 800
"""Epochs of the panels of a negative start."""
RESOLUTION = 5e-8
"""Differences of growth per epoch below this are rounding of single-precision norms."""
FITTED_BY_OTHERS = (
    "in some seeds the score of one or two topic words turns negative, as the table of frozen "
    "embeddings shows: their sentences are fitted by the non-topic words in them, which does not "
    "carry over to new sentences. In the other seeds every sentence is right."
)


@dataclass(frozen=True)
class Synergy(TopicWordsStudy):
    """Attn-TC against its twins with frozen scores (KF) and frozen embeddings (EF).

    One topic word is followed. Its initial embedding is given a projection of a chosen size on the
    direction that it will move along, positive in three cases and negative in three others.
    """

    training: Flow | Descent = Flow(lr=0.1, epochs=60_000)
    variance: Positive = 0.1
    projection: Finite = 0.5
    """Initial projection of the followed word on u_y - mean(u); its opposite if negative."""
    early: Count = 3000
    """Epochs at the beginning that are recorded densely."""

    quick = {"seeds": 2}
    cases = (*FREEZE, *(name + NEGATIVE for name in FREEZE))

    def curve_schedule(self) -> Given:
        """Evenly over the early epochs, then in constant ratio."""
        early = min(self.early * (self.unit or 1.0), self.end)
        dense = np.linspace(0, early, self.points)
        return Given((*dense, *np.geomspace(early, self.end, 40)[1:]))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one model with one seed."""
        model = self.model("TC", seed, FREEZE[case.removesuffix(NEGATIVE)])
        push(model, -self.projection if case.endswith(NEGATIVE) else self.projection)
        return self.problem(model, self.task.sample(seed))

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict ½‖v - ⟨v̄⟩‖² by Theorem 1 from the score, with initial values that matter."""
        left, right = (run.identity.sel(side=side) for side in ("score", "embedding"))
        distance = (2 * (left - initial(left) + initial(right))).clip(min=0) ** 0.5
        norm = lu2021.norm_from_score(run.score, self.task.m)
        meaning = "Corollary 1 at the measured score, blind to the start"
        return {
            "norm": (run.score.dims, norm, {"meaning": meaning}),
            "distance": distance.assign_attrs(meaning="Theorem 1 at the measured score"),
        }

    def claims(self) -> list[Claim]:
        """Return what section 5.1 says of the synergy."""
        later = "the same ratio at the end, long after TC has converged"
        other_side = "a positive projection of the same size"
        return [
            Claim(
                "enhancement-score",
                "The score grows faster when the embedding may grow too (TC) than when it is "
                "frozen (EF).",
                lambda run, when: (
                    when(followed(run, "TC", "score")) / when(followed(run, "TC-EF", "score"))
                ),
                before,
                above(1.2),
                (final, later),
                "section 5.1, Fig 3, first plot",
                "grows faster",
                f"score of TC over score of EF at epoch {BEFORE}",
            ),
            Claim(
                "enhancement-norm",
                "The embedding grows faster when the score may grow too (TC) than when it is "
                "frozen (KF).",
                lambda run, when: when(growth(run, "TC")) / when(growth(run, "TC-KF")),
                before,
                above(1.1),
                (final, later),
                "section 5.1, Fig 3, second plot",
                "increases more rapidly",
                f"growth of the norm, TC over KF, by epoch {BEFORE}",
            ),
            Claim(
                "enhancement-loss",
                "Attn-TC has the fastest drop of the training loss of the three.",
                loss_beside_others,
                "TC",
                below(0.5),
                ("TC-KF", "Attn-TC-KF in the place of Attn-TC"),
                "section 5.1, Fig 3, third plot",
                "fastest",
                f"loss over the smaller of the two others' at epoch {2 * BEFORE}",
            ),
            Claim(
                "frozen-embedding-surpasses",
                "The score in Attn-TC-EF finally surpasses the one in Attn-TC, which has "
                "converged.",
                lambda run, when: (
                    when(followed(run, "TC-EF", "score")) - when(followed(run, "TC", "score"))
                ),
                final,
                above(0),
                (before, f"the same lead at epoch {BEFORE}"),
                "section 5.1",
                "finally surpasses",
                "score of EF minus score of TC at the end",
            ),
            Claim(
                "diminution-score",
                "From an initial embedding with a negative projection, the score first falls.",
                lambda run, case: followed(run, case, "score").min("step"),
                "TC" + NEGATIVE,
                below(-0.005),
                ("TC", other_side),
                "section 5.1, Fig 3, fourth plot; eq (8)",
                "decreases",
                "lowest score",
            ),
            Claim(
                "diminution-norm",
                "From a negative projection the embedding first shrinks.",
                lambda run, case: growth(run, case).min("step"),
                "TC" + NEGATIVE,
                below(-0.002),
                ("TC", other_side),
                "section 5.1, Fig 3, last plot",
                "impeded, or shrinks",
                "lowest norm minus initial norm",
            ),
            Claim(
                "diminution-turns",
                "The diminution does not last: after a few hundred epochs the embedding grows "
                "faster with attention than without.",
                turning_epochs,
                NEGATIVE,
                within(20, 1000),
                ("", "a positive projection: there is nothing to turn"),
                "section 5.1, Fig 3, last plot",
                "epoch 370",
                "epoch from which TC's norm grows faster than KF's",
                reason="how long it lasts depends on how far on the wrong side the embedding "
                "starts and on the seed; the paper shows one word of one run.",
            ),
            Claim(
                "converged",
                "60,000 epochs are enough for all three models to converge.",
                lambda run, when: when(run.loss).sel(case=list(FREEZE)).max("case"),
                final,
                below(0.05),
                (before, f"epoch {BEFORE}"),
                "section 5.1",
                "fully converge",
                "largest training loss of the three (nats)",
            ),
            *(
                Claim(
                    "accuracy",
                    "The trained Attn-{case} classifies every test sentence rightly.",
                    lambda run, when: when(run.test_accuracy),
                    final,
                    above(0.999),
                    (initial, "the same model before training"),
                    "section 5.1",
                    "100 %",
                    "share of test sentences",
                    reason=FITTED_BY_OTHERS if case == "TC-EF" else "",
                    per=(case,),
                )
                for case in FREEZE
            ),
            Claim(
                "theorem1-large-start",
                "Theorem 1, with the initial values and the means over Ψ_t that Corollary 1 "
                "leaves out, also holds from an initial variance of 0.1.",
                deviation,
                "distance",
                below(0.02),
                ("norm", "Corollary 1, which knows nothing of the start"),
                "Theorem 1, eq (9), in the setting of Fig 3",
                "stated for small σ²",
                "largest relative deviation of a topic word's distance",
                reason="Theorem 1 takes h and v̄ as uncorrelated over Ψ_t, which needs a small σ²; "
                "at σ²/d = 0.1 the words around a topic word differ from sentence to sentence.",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw Fig 3, and Theorem 1 where Corollary 1 does not reach."""
        return [self.fig3(run), self.theorem1(run)]

    def fig3(self, run: Readings) -> Figure:
        """Draw Fig 3: five panels over the early epochs."""
        turn = Rule(float(turning_epochs(run).mean()), "mean turn", vertical=True)
        panels = []
        for title, name, suffix, ylabel in (
            ("score, positive start", "score", "", "score"),
            ("embedding norm, positive start", "norm", "", "norm"),
            ("training loss", "loss", "", "cross-entropy (nats)"),
            ("score, negative start", "score", NEGATIVE, "score"),
            ("growth of the norm, negative start", "norm", NEGATIVE, "norm less its initial value"),
        ):
            grown, until = name == "norm" and suffix, ZOOM if suffix else self.early
            found = {}
            for case in FREEZE:
                whole = growth(run, case + suffix) if grown else followed(run, case + suffix, name)
                found[f"Attn-{case}"] = whole.sel(step=slice(None, until))
            marks = (*bands(found, x="epoch"), *((turn,) if grown else ()))
            panels.append(Panel(title, "epoch", ylabel, marks))
        return Figure(
            "fig3-synergy",
            "Score and embedding pull each other up, or first hold each other down",
            "One topic word in Attn-TC and in its twins with frozen scores (KF) and frozen "
            f"embeddings (EF), mean over {self.seeds} seeds with 95 % bands, σ²/d = "
            f"{self.variance:g}. Above: with attention both grow faster. Below: from a negative "
            "projection both fall first; the rule marks the mean epoch from which TC's norm grows "
            "faster than KF's (Lu 2021, Fig 3).",
            tuple(panels),
        )

    def theorem1(self, run: Readings) -> Figure:
        """Draw distance against score, with Theorem 1 and with Corollary 1."""
        panels = []
        for case, start in (("TC", "positive"), ("TC" + NEGATIVE, "negative")):
            own, marks = run.of(case), []
            measured, predicted = (
                each.isel(word=0).to_numpy() for each in (distance(own), own.theory.distance)
            )
            curve = followed(run, case, "score").astype(float)
            for i, score in enumerate(curve.interp(step=own.identity["probe"]).to_numpy()):
                marks += [
                    Line(score, measured[i], f"seed {i}", i, thin=True),
                    Line(score, predicted[i], "Theorem 1, per seed", theory=True),
                ]
            title, ylabel = f"Attn-TC, {start} start", "distance ‖v - ⟨v̄(χ∖t)⟩‖"
            panels.append(Panel(title, "score of a topic word", ylabel, tuple(marks)))
        return Figure(
            "theorem1-large-start",
            "Theorem 1 from a start that matters",
            "Distance of a topic word from the mean of the words around it against its score, "
            f"σ²/d = {self.variance:g}, {self.seeds} seeds. Corollary 1 starts all curves at the "
            "origin; Theorem 1 with each run's own initial values starts them where they are "
            "(Lu 2021, eq 9).",
            tuple(panels),
            columns=2,
        )

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate when the diminution turns, seed by seed, and the end of training."""
        score = final(run.of("TC-EF").score)
        columns = {
            "loss (nats)": run.loss,
            "score": run.score.isel(word=0),
            "norm": run.norm.isel(word=0),
            "test accuracy": run.test_accuracy,
            "gradients computed": run.stats.evaluations,
        }
        return [
            seed_by_seed(
                "frozen-embeddings",
                "Attn-TC-EF at the end",
                {
                    "test accuracy": final(run.of("TC-EF").test_accuracy),
                    "topic words with a negative score": (score < 0).sum("word"),
                    "lowest score": score.min("word"),
                },
            ),
            seed_by_seed(
                "turn",
                "From mutual diminution to mutual enhancement",
                {
                    "epoch from which TC's norm grows faster than KF's": turning_epochs(run),
                    "lowest score": followed(run, "TC" + NEGATIVE, "score").min("step"),
                },
            ),
            ends(run, title=f"End of training, mean over {self.seeds} seeds", more=columns),
        ]


def push(model: BagAttention, projection: float) -> None:
    """Give word 0, of topic 0, an initial embedding with this projection on u_0 - mean(u)."""
    weight = model.classifier.weight.detach()
    direction = weight[:, 0] - weight.mean(dim=1)
    direction = direction / direction.norm()
    with torch.no_grad():
        word = model.embedding[0]
        word += (projection - word @ direction) * direction


def followed(run: Readings, case: str, name: str) -> xr.DataArray:
    """Return a reading of one case, that of the followed word if there are several."""
    reading = run.of(case).get(name)
    return reading.isel(word=0) if "word" in reading.dims else reading


def growth(run: Readings, case: str) -> xr.DataArray:
    """Return by how much the norm of the followed word has grown."""
    norm = followed(run, case, "norm")
    return norm - norm.isel(step=0, drop=True)  # its clock would displace that of the curve


def distance(run: Readings) -> xr.DataArray:
    """Return how far topic words are from the mean of the words around them."""
    return (2 * run.identity.sel(side="embedding")) ** 0.5


def before(reading: xr.DataArray, epoch: float = BEFORE) -> xr.DataArray:
    """Return the reading that is nearest to an epoch."""
    return reading.isel(step=int(abs(reading["epoch"] - epoch).to_numpy().argmin()))


def loss_beside_others(run: Readings, case: str) -> xr.DataArray:
    """Return the loss of a model over the smaller one of the two others."""
    loss = before(run.loss, 2 * BEFORE)
    others = [other for other in FREEZE if other != case]
    return loss.sel(case=case) / loss.sel(case=others).min("case")


def deviation(run: Readings, name: str) -> np.ndarray:
    """Return how far Attn-TC is from Theorem 1 (``distance``) or from Corollary 1 (``norm``)."""
    own = run.of("TC")
    measured = own.norm if name == "norm" else distance(own)
    off = relative_deviation(measured.to_numpy(), own.theory.get(name).to_numpy(), 0.3)
    return largest(off, axis=(1, 2))


def turning_epochs(run: Readings, suffix: str = NEGATIVE) -> xr.DataArray:
    """Return the epoch at which TC's norm begins to grow faster than KF's after growing slower.

    Zero if it never grew slower in the time until TC's loss has halved (a model that has converged
    does not grow any more), or never faster again. One number per seed.
    """
    speed, other = (
        followed(run, case + suffix, "norm").astype(float).differentiate("epoch")
        for case in ("TC", "TC-KF")
    )
    lead, loss = speed - other, run.of("TC" + suffix).loss
    slower = (lead < -RESOLUTION) & (loss > initial(loss) / 2)
    turned = (lead > RESOLUTION) & (slower.cumsum("step") > 0)
    return lead["epoch"].isel(step=turned.argmax("step")).where(turned.any("step"), 0.0)
