"""The spec of ``snell2021.initial_derivative``, its runs, and three predictions of θ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.engines import Flow, Given, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.word_proxy import ProxyObjective, WordProxy
from attnscope.studies.snell2021._snell import CITATION
from attnscope.studies.snell2021.initial_derivative.claims import (
    MIXTURE,
    PERMUTATIONS,
    WORDS,
    claims_of,
    width_case,
)
from attnscope.studies.snell2021.initial_derivative.figures import figures_of, tables_of
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import SequencePairs
from attnscope.theory import snell2021
from attnscope.trajectory import Readings, initial


@dataclass(frozen=True)
class InitialDerivative(Study):
    """The proxy's derivative at time 0 over widths, and its gradient flow a little further.

    The proxy averages embeddings and predicts the bag of output words. Its derivative at the start
    is taken by automatic differentiation at several widths d and compared with eq 15, which is for
    d → ∞. Then the proxy is trained by gradient flow, against three predictions: eq 15 to first
    order, the flow at infinite width, and the flow from the actual start. Two more cases have
    counts that say nothing about positions.
    """

    training: Flow = Flow(until=0.15, rtol=1e-4, atol=1e-4)
    points: Several = 31
    """Record points, evenly spaced."""
    widths: tuple[Count, ...] = (200, 2_000, 20_000, 200_000)
    """d, lengths of the embeddings, ascending."""
    length: Count = 5
    """Words in a sequence, to be copied."""
    types: Count = 10
    """Words that a sequence is drawn from."""
    pairs: Count = 100
    """Pairs of sequences; all of them make the loss."""

    citation = CITATION
    quick: ClassVar = {"seeds": 3}
    claims, figures, tables = claims_of, figures_of, tables_of

    def check(self) -> None:
        """Check tasks, widths and the tolerance."""
        for case in self.cases[-3:]:
            self.task(case)
        if self.types == self.length:
            raise AttnscopeError(
                f"types = {self.types}: expected more than length = {self.length}, or counts say "
                "nothing about positions."
            )
        if len(self.widths) < 2 or list(self.widths) != sorted(set(self.widths)):
            raise AttnscopeError(
                f"widths = {self.widths}: expected two or more widths of 1 or more, ascending."
            )
        if self.training.rtol >= 1:
            raise AttnscopeError(f"rtol = {self.training.rtol}: expected a number between 0 and 1.")

    @property
    def cases(self) -> tuple[str, ...]:
        """The widths, then the tasks whose counts say nothing about positions."""
        return (*map(width_case, self.widths), PERMUTATIONS, MIXTURE)

    @property
    def vocabulary(self) -> int:
        """Vocabulary size, the same in all cases; it is |I| and |O|."""
        return max(self.task(case).vocabulary for case in self.cases)

    @property
    def common(self) -> int:
        """Width of the cases whose counts say nothing about positions: the second largest."""
        return self.widths[-2]

    def task(self, case: str) -> Copying:
        """Return the task of a case."""
        types = self.length if case in (PERMUTATIONS, MIXTURE) else self.types
        return Copying(self.length, types, sets=2 if case == MIXTURE else 1, end=False)

    def sample(self, case: str, seed: int) -> SequencePairs:
        """Return the pairs of a run."""
        return self.task(case).sample(self.pairs, seed)

    def bags(self, case: str, seed: int) -> snell2021.PairBags:
        """Return the pairs of a run as the theory takes them."""
        pairs = self.sample(case, seed)
        return snell2021.pair_bags(pairs.source.numpy(), pairs.target.numpy(), self.vocabulary)

    def width(self, case: str) -> int:
        """Return d of a case."""
        return {width_case(width): width for width in self.widths}.get(case, self.common)

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.end:g} units of time by gradient flow"

    def engine(self, case: str, seed: int) -> Flow:
        """Return gradient flow; its absolute tolerance is over √d, the size of the start."""
        least = self.training.rtol * self.width(case) ** -0.5
        return replace(self.training, atol=min(self.training.atol, least))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed, in double precision."""
        pairs, gold, size = self.sample(case, seed), self.task(case).gold, self.vocabulary
        generator = torch.Generator().manual_seed(seed)
        model = WordProxy(size, size, self.width(case), generator=generator).double()
        loss: Any = ProxyObjective(pairs)

        def alpha(module: Any) -> Tensor:
            return torch.softmax(module.log_beta(pairs), dim=2)

        def gold_mass(module: nn.Module) -> Tensor:
            return alpha(module)[:, torch.arange(len(gold)), gold].mean()

        def gold_largest(module: nn.Module) -> Tensor:
            return (alpha(module).argmax(dim=2) == gold).double().mean()

        def variation(module: nn.Module) -> Tensor:
            return (alpha(module) - 1 / self.length).abs().sum(dim=2).mean() / 2

        curves = (
            Observable("loss", loss, (), "nats", "sum of -log p over all target words"),
            Observable("logits", lambda m: m.logits_by_word(), WORDS, "", "(W e_i)_o"),  # type: ignore[operator]
            Observable("gold_mass", gold_mass, (), "", "β^px at the gold word over its sum"),
            Observable("gold_largest", gold_largest, (), "", "share with β^px largest at gold"),
            Observable("variation", variation, (), "", "distance of β^px from uniform positions"),
        )
        at_start = (
            Observable("logits_velocity", lambda m: m.velocity(loss), WORDS, "1/time"),  # type: ignore[operator]
            Observable("theta_velocity", lambda m: m.velocity(loss, True), WORDS, "1/time"),  # type: ignore[operator]
            Observable("source_gram", lambda m: m.embedding @ m.embedding.T, ("input", "input_2")),  # type: ignore[operator]
            Observable("target_gram", lambda m: m.W @ m.W.T, ("output", "output_2")),  # type: ignore[operator]
        )
        along, start = Record(curves, Linear(self.points)), Record(at_start, Given(()), dim="start")
        return Problem(model, loss, [along, start])

    def truth(self) -> dict[str, object]:
        """Return the count tables of all runs."""
        tables = [self.bags(case, seed).counts.toarray() for case, seed in self.runs()]
        return {"counts": (("run", *WORDS), np.stack(tables), {"meaning": "C of eq 16"})}

    def theory(self, run: Readings) -> dict[str, object]:
        """Predict the derivative at time 0 and θ over time.

        ``early`` is softmax(2τC), right to first order; ``limit`` is the flow at infinite width;
        ``exact`` is the flow from the inner products of the actual start.
        """
        times = run["observables/time"].to_numpy()
        found: dict[str, list[np.ndarray]] = {}
        limits: dict[tuple[Copying, int], np.ndarray] = {}
        for case, seed in self.runs():
            bags, starts = self.bags(case, seed), ("logits", "source_gram", "target_gram")
            read = (initial(run.of(case).get(name)).sel(seed=seed) for name in starts)
            grams = snell2021.Grams(*(each.to_numpy() for each in read))
            exact = snell2021.exact_derivative(grams, bags)
            # Widths share their pairs, and at infinite width nothing else is in the prediction.
            data = (self.task(case), seed)
            if data not in limits:
                limits[data] = snell2021.proxy_flow(bags, times).probabilities
            early = [snell2021.early_probabilities(bags.counts, time) for time in times]
            values = {
                "logits_limit": snell2021.limit_derivative(bags.counts).logits,
                "logits_exact": exact.logits,
                "theta_rate_exact": exact.probabilities,
                "expected_error": np.array(snell2021.expected_error(bags, self.width(case))),
                "theta_early": np.stack(early),
                "theta_limit": limits[data],
                "theta_exact": snell2021.proxy_flow(bags, times, grams).probabilities,
            }
            for name, value in values.items():
                found.setdefault(name, []).append(value)
        dims = ("step", *WORDS)
        return {
            name: (("run", *dims[3 - parts[0].ndim :]), np.stack(parts))
            for name, parts in found.items()
        }

    def knowledge(self, case: str, seed: int = 0) -> snell2021.Knowledge:
        """Return what the count table of a run says of its pairs, without any training."""
        pairs, counts = self.sample(case, seed), self.bags(case, seed).counts
        source, target = pairs.source.numpy(), pairs.target.numpy()
        return snell2021.predict_knowledge(counts, source, target, self.task(case).gold)
