"""Trained embeddings have topics as blocks, exactly by flow, roughly otherwise (Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import nn

from attnscope.bounds import Count, Positive, Several
from attnscope.claims import Claim, above, below, within
from attnscope.engines import Descent, Flow, Given, Linear, Observable, Record
from attnscope.experiment import Problem
from attnscope.models.topic_objective import LossKind, PopulationObjective, TopicObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.probes.topics.topic_blocks import block_gap, block_means, contrast
from attnscope.report import Figure, Line, Mark, Panel, Rule, Table, band, ends
from attnscope.studies.li2023._topic_blocks import GAP, SHUFFLED, TopicBlocksStudy, heat
from attnscope.tasks.topic_documents import TopicStream
from attnscope.theory import li2023
from attnscope.trajectory import Readings, final, initial

FLOW, PRINTED = "flow, squared", "flow from the printed example"
SGD_ENTROPY, SGD_SQUARED = "SGD, cross-entropy", "SGD, squared"
ADAM_ENTROPY, ADAM_SQUARED = "Adam, cross-entropy", "Adam, squared"
TRAININGS = (SGD_ENTROPY, SGD_SQUARED, ADAM_ENTROPY, ADAM_SQUARED)
"""The paper's ways to train on fresh documents: Figs 1, 2, 9 and 10."""
START = "the random E of the start"
AS_PRINTED, CORRECTED = "E = c₃ I, as printed", "c₃ diag(0, 1, ..., 1)"
PRINTED_BIAS = "the same, bias of the main text"
ROUNDING = 1e-9
"""An optimum in double precision predicts the words' shares to better than this."""


@dataclass(frozen=True)
class Embedding(TopicBlocksStudy):
    """W^K = W^Q = 0, W^V = I: only the embeddings learn, tied to the decoder.

    By flow on all documents in the limit of infinite length, with squared loss and the bias of
    Theorem 1; and as in the paper's experiments, by SGD and Adam on fresh documents, with trained
    biases, squared loss and cross-entropy. Time counts steps; for the flow it is time.
    """

    training: Flow | Descent = Flow(lr=1.0, epochs=5000)
    """The flow, or full-batch descent, for as long as the steps of SGD and Adam."""
    points: Several = 51
    """Record points, evenly spaced."""
    rate: Positive = 0.01
    """Learning rate of SGD and Adam."""
    batch: Count = 40
    """Fresh documents in a step of SGD and Adam."""
    alpha: Positive = 0.1
    """Parameter of the Dirichlet distribution of topics in the experiments."""
    start: Positive = 2e-2
    """Standard deviation of the entries of W^E at the start."""

    quick = {"seeds": 2, "epochs": 1500, "points": 31}
    renamed: ClassVar = {"step_size": "rate"}
    cases = (FLOW, PRINTED, *TRAININGS)

    def check(self) -> None:
        """Let theory and documents say what is wrong with the numbers."""
        super().check()
        self.stream(0)

    def stream(self, seed: int) -> TopicStream:
        """Return the documents of the experiments."""
        task = self.task(alpha=self.alpha, length=(self.shortest, self.longest))
        return TopicStream(task, seed)

    @property
    def steps(self) -> int:
        """Steps of a run."""
        return self.training.epochs or 1

    def describe(self) -> str:
        """Say how long runs are."""
        steps = f"{self.steps:,} steps of SGD or Adam on fresh documents"
        return f"{steps}, or gradient flow for as long"

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return SGD or Adam for an experiment; the flow, or full-batch descent, otherwise."""
        if case not in TRAININGS:
            return self.training
        return Descent(
            self.rate,
            optimizer="adam" if case.startswith("Adam") else "gd",
            batch_size=self.batch,
            samples=self.batch * self.steps,
            seed=seed,
            tick=self.unit,
        )

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        population, experiment = self.population(), case in TRAININGS
        bias = torch.from_numpy(li2023.embedding_bias(population))
        model = TopicTransformer(
            population.vocabulary,
            embedding="trained",
            attention="uniform",
            value="identity",
            embedding_noise=self.start,
            biases=experiment,
            output_bias=None if experiment else bias,
            generator=torch.Generator().manual_seed(seed),
        )
        if case == PRINTED:
            root = np.sqrt(li2023.printed_example(population))
            with torch.no_grad():
                # The noise of the seed is added, or all seeds would be one run.
                model.get_parameter("W_E").mul_(1e-2).add_(torch.from_numpy(root).float())
        if not experiment:
            return Problem(model, PopulationObjective(population), self.records())
        kind: LossKind = "squared" if case.endswith("squared") else "cross-entropy"
        loss = TopicObjective(self.stream(seed), kind)
        return Problem(model, loss, self.records())

    def records(self) -> list[Record]:
        """Return what is read off E over training, and E itself at the end."""
        population = self.population()
        blocks, whole = self.readings("E", gram, "E", "(W^E)ᵀ W^E")
        curves = (
            blocks,
            Observable(
                "contrast",
                lambda m: torch.from_numpy(contrast(gram(m), population.topic_of)),
                meaning="same minus different topic, over the spread of the latter, without the "
                "diagonal",
            ),
            Observable(
                "violation",
                lambda m: torch.tensor(li2023.embedding_family_residual(gram(m), population).max()),
                meaning="largest violation of Theorem 1's conditions, in units of an entry of E",
            ),
        )
        return [
            Record(curves, Linear(self.points)),
            Record((whole,), Given((self.end,)), dim="snapshot"),
        ]

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict the gap of every optimum, whatever else it is: c₃/v (Theorem 1)."""
        gap = np.full(run.contrast.sizes["step"], self.expected)
        return {"gap": ("step", gap, {"meaning": "same minus different topic, c₃/v"})}

    def errors(self, example: str) -> np.ndarray:
        """Return the error of the prediction of an example of Theorem 1, for every row."""
        known = li2023.printed_example if example == AS_PRINTED else li2023.corrected_example
        population = self.population()
        return li2023.embedding_residual(
            known(population), population, as_printed=example == PRINTED_BIAS
        )

    def claims(self) -> list[Claim]:
        """Return what Theorem 1 and the experiments on embeddings say."""
        population, steps = self.population(), f"{self.steps:,} steps"
        topic, size = population.topic_of, population.vocabulary

        def violation(run: Readings, case_when: tuple[str, Any]) -> xr.DataArray:
            case, when = case_when
            return when(run.of(case).violation) / self.expected

        def error(run: Readings, example: str) -> list[float]:
            if example != START:
                return [float(self.errors(example).max())] * self.seeds
            starts = initial(run.of(FLOW).E).to_numpy()
            return [float(li2023.embedding_residual(e, population).max()) for e in starts]

        def start_gap(run: Readings, diagonal: bool) -> np.ndarray:
            random = initial(run.of(SGD_SQUARED).E).to_numpy()
            means = block_means(random if diagonal else random * (1 - np.eye(size)), topic)
            return block_gap(means, self.words) / (size * self.start**2 / self.words)

        return [
            Claim(
                "theorem1",
                "The flow ends at an E that satisfies all conditions of Theorem 1.",
                violation,
                (FLOW, final),
                below(0.01),
                ((FLOW, initial), START),
                "Theorem 1",
                "optimal if and only if",
                "largest violation, over c₃/v",
            ),
            Claim(
                "gap",
                "On average words of one topic exceed words of two by 1/(v(1-(1-p_c)p_m)) in E.",
                self.by_topic("E", FLOW, lambda e, topic: self.gap(block_means(e, topic))),
                False,
                within(0.99, 1.01),
                (True, SHUFFLED),
                "Theorem 1, main text",
                f"c₃/v = {self.expected:.4f}",
                GAP,
            ),
            Claim(
                "printed-example",
                "The simplest example, W^E = √c₃ I and E = c₃ I, is an optimum.",
                error,
                AS_PRINTED,
                below(ROUNDING),
                (START, START),
                "main text, after Theorem 1",
                "optimal",
                "largest error of the prediction, over all sets of topics",
                reason="with E_0j = 0 the theorem itself asks for E_00 = 0; E_00 = c₃ predicts "
                "[MASK], which is never the answer, with weight c₃ p_m (1-p_c-p_r). Only that row "
                "is wrong.",
            ),
            Claim(
                "corrected-example",
                "With E_00 = 0 the simplest example is an optimum: E = c₃ diag(0, 1, ..., 1).",
                error,
                CORRECTED,
                below(ROUNDING),
                (AS_PRINTED, "the example as printed, E = c₃ I"),
                "Theorem 1, with the example corrected",
                "not stated",
                "largest error of the prediction, over all sets of topics",
            ),
            Claim(
                "leaves-example",
                "The flow that starts at the printed example leaves it for an optimum.",
                violation,
                (PRINTED, final),
                below(0.01),
                ((PRINTED, initial), "where it starts, E = c₃ I but for a little noise"),
                "beyond the paper; Theorem 1",
                "would stay",
                "largest violation of Theorem 1's conditions, over c₃/v",
            ),
            Claim(
                "printed-bias",
                "Theorem 1 holds with the bias of the main text, the same for all words and for "
                "[MASK].",
                error,
                PRINTED_BIAS,
                below(ROUNDING),
                (START, START),
                "main text; the appendix gives the bias to words alone",
                "b_i for all i",
                "largest error of the corrected example's prediction",
                reason="the theorem's E predicts 0 for [MASK] without a bias, so b_0 must be 0, as "
                "in the appendix; the error is exactly |b_0| = p_m p_r/((1-(1-p_c)p_m)Tv).",
            ),
            *(
                Claim(
                    "larger-" + case.lower().replace(", ", "-"),
                    f"{case}: entries of E are larger on average for two words of one topic than "
                    "for words of two.",
                    self.by_topic("E", case, contrast),
                    False,
                    above(0.2),
                    (True, SHUFFLED),
                    "Figs 1, 2, 9 and 10",
                    "larger on average",
                    "difference of the means without the diagonal, over the spread of "
                    "different-topic entries",
                )
                for case in TRAININGS
            ),
            Claim(
                "adam-gap",
                f"Adam with squared loss brings the gap to Theorem 1's c₃/v in {steps}, on "
                "documents of finite length.",
                self.final_gap,
                ADAM_SQUARED,
                within(0.9, 1.1),
                (SGD_SQUARED, "SGD with the same learning rate"),
                "Theorem 1; the synthetic experiments",
                "blocks visible",
                GAP,
            ),
            Claim(
                "sgd-squared-tiny",
                f"SGD with squared loss leaves the blocks tiny after {steps}.",
                self.final_gap,
                SGD_SQUARED,
                below(0.25),
                (ADAM_SQUARED, "Adam with the same learning rate"),
                "Figs 9 and 10",
                "means .0055 and -.00016",
                GAP,
            ),
            Claim(
                "start",
                "A random W^E has a gap before any training, dσ²/v, as the same topic includes "
                "the word itself.",
                start_gap,
                True,
                within(0.8, 1.2),
                (False, "the same E with its diagonal taken out"),
                "beyond the paper",
                "not stated",
                "average same-topic minus different-topic entry at the start, over dσ²/v",
            ),
            Claim(
                "cross-entropy",
                "With cross-entropy the gap leaves c₃/v behind: Theorem 1 is of squared loss.",
                self.final_gap,
                ADAM_ENTROPY,
                above(3),
                (ADAM_SQUARED, "Adam with squared loss"),
                "the synthetic experiments; the theory is for squared loss",
                "not stated",
                GAP,
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw E as a matrix with topics as blocks, and how the blocks come about."""
        return [self.matrices(run), self.over_time(run)]

    def matrices(self, run: Readings) -> Figure:
        """Draw E of every case: Figs 1, 2, 9 and 10, beside the start and the flow."""
        shown = {"start": initial(run.of(FLOW).E)}
        shown |= {case: final(run.of(case).E) for case in (FLOW, *TRAININGS)}
        return Figure(
            "maps",
            "Topics are blocks of E",
            "E = (W^E)ᵀ W^E, seed 0; words are sorted by topic, [MASK] is first. The start, the "
            f"flow on the population at time {self.end:,.0f}, and {self.steps:,} steps of "
            f"SGD and Adam at learning rate {self.rate:g} on fresh documents (Li 2023, Figs 1, 2, "
            "9 and 10). Mind the different colour bars. Under SGD the largest part is still the "
            "diagonal of the start, which is the squared length of random vectors.",
            tuple(
                Panel(title, "word j", "word i", (heat(matrix.sel(seed=0), "entry of E"),))
                for title, matrix in shown.items()
            ),
        )

    def over_time(self, run: Readings) -> Figure:
        """Draw the gap, its visibility and the violation of Theorem 1 over training."""
        size: list[Mark] = []
        seen: list[Mark] = []
        for i, case in enumerate((FLOW, *TRAININGS)):
            own = run.of(case)
            for values, marks in ((self.gap(own.blocks), size), (own.contrast, seen)):
                marks += band(values.where(values > 0), case, i, log=True)
        size.append(Rule(1.0, "Theorem 1, c₃/v"))
        seen.append(Rule(1.0, "blocks catch the eye"))
        flows = []
        for case, color in ((FLOW, 0), (PRINTED, len(TRAININGS) + 1)):
            violation = run.of(case).violation.sel(seed=0) / self.expected
            flows.append(Line(violation["step"].to_numpy(), violation.to_numpy(), case, color))
        return Figure(
            "over-time",
            "How the blocks come about",
            f"Left: average same-topic minus different-topic entry of E over Theorem 1's c₃/v = "
            f"{self.expected:.4f}; it begins above zero, as the same topic includes the word "
            "itself. Middle: the same without the diagonal, over the spread of different-topic "
            "entries; blocks catch the eye above 1. Mean of the logarithm and 95 % band over "
            f"{self.seeds} seeds, where all of them are above zero. Right: the largest violation "
            "of Theorem 1's conditions by flow, seed 0; the printed example E = c₃ I starts with "
            "one and leaves. Time counts steps; for the flow it is time.",
            (
                Panel("size of the blocks", "step", "gap over c₃/v", tuple(size), yscale="log"),
                Panel("visibility", "step", "gap over spread", tuple(seen), yscale="log"),
                Panel(
                    "Theorem 1 by flow", "time", "violation over c₃/v", tuple(flows), yscale="log"
                ),
            ),
        )

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the blocks of E at the end, and the examples of Theorem 1."""
        blocks, gap = run.blocks, self.gap(run.blocks)
        columns = {
            "same topic, two words": blocks.sel(block="same topic"),
            "different topic": blocks.sel(block="different topic"),
            "diagonal": blocks.sel(block="diagonal"),
            "gap with the diagonal": gap * self.expected,
            "gap over c₃/v": gap,
            "gap without the diagonal, over spread": run.contrast,
            "largest violation of Theorem 1, over c₃/v": run.violation / self.expected,
        }
        rows = []
        for example in (AS_PRINTED, CORRECTED, PRINTED_BIAS):
            errors = self.errors(example)
            rows.append((example, float(errors[0]), float(errors[1:].max())))
        heads = ("E", "error in the row of [MASK]", "largest error in a word's row")
        title = f"E at the end, mean over {self.seeds} seeds"
        return [
            ends(run, title=title, head="run", more=columns),
            Table("examples", "The examples of Theorem 1", heads, tuple(rows)),
        ]


def gram(model: nn.Module) -> np.ndarray:
    """Return E = (W^E)ᵀ W^E in double precision, shape ``(word, word)``."""
    assert isinstance(model, TopicTransformer)
    w = model.embeddings().detach().double()
    return np.asarray((w.T @ w).numpy())
