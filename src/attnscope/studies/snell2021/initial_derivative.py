"""Words start to be learned as their counts say, but eq 15 is |O| times too fast (eq 15, A.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.studies.old import Claim
from attnscope.engines import Flow, Given, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models.word_proxy import ProxyObjective, WordProxy
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.trajectory import select
from attnscope.studies.snell2021 import (
    _derivative_claims,
    _derivative_figures,
    _derivative_tables,
)
from attnscope.studies.snell2021._derivative_readings import MIXTURE, PERMUTATIONS, width_case
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import SequencePairs
from attnscope.theory import snell2021


@dataclass(frozen=True)
class InitialDerivative(Study):
    """The proxy's derivative at time 0 over widths, and its gradient flow a little further.

    The proxy averages embeddings and predicts the bag of output words. Its derivative at the start
    is taken by automatic differentiation at several widths d and compared with eq 15, which is for
    d → ∞. Then the proxy is trained by gradient flow, against three predictions: eq 15 to first
    order, the flow at infinite width, and the flow from the actual start. Two more cases have
    counts that say nothing about positions.
    """

    lr: float = 1e-3
    """Unit of time."""
    epochs: int = 150
    """Units of time in a run."""
    points: int = 31
    """Record points, evenly spaced."""
    widths: tuple[int, ...] = (200, 2_000, 20_000, 200_000)
    """d, lengths of the embeddings, ascending."""
    length: int = 5
    """Words in a sequence, to be copied."""
    types: int = 10
    """Words that a sequence is drawn from."""
    pairs: int = 100
    """Pairs of sequences; all of them make the loss."""
    rtol: float = 1e-4
    """Relative tolerance of the flow; the absolute one is this over √d, the size of the start."""

    citation = CITATION
    quick: ClassVar[dict[str, Any]] = {"seeds": 3}

    def __post_init__(self) -> None:
        super().__post_init__()
        for case in (width_case(0), PERMUTATIONS, MIXTURE):
            self.task(case)
        if self.types == self.length:
            raise AttnscopeError(
                f"types = {self.types}: expected more than length = {self.length}, or counts say "
                "nothing about positions."
            )
        if (
            len(self.widths) < 2
            or min(self.widths) < 1
            or list(self.widths) != sorted(set(self.widths))
        ):
            raise AttnscopeError(
                f"widths = {self.widths}: expected two or more widths of 1 or more, ascending."
            )
        if self.engine != "flow" or self.correct:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}: expected 'flow' and False."
            )
        if self.pairs < 1:
            raise AttnscopeError(f"pairs = {self.pairs}: expected 1 or more.")
        if not 0 < self.rtol < 1:
            raise AttnscopeError(f"rtol = {self.rtol}: expected a number between 0 and 1.")

    @property
    def vocabulary(self) -> int:
        """Number of words, the same in all cases; it is |I| and |O|."""
        return max(self.task(case).vocabulary for case in (width_case(0), MIXTURE))

    @property
    def common(self) -> int:
        """Width of the cases whose counts say nothing about positions: the second largest."""
        return self.widths[-2]

    def task(self, case: str) -> Copying:
        """Return the task of a case."""
        if case == PERMUTATIONS:
            return Copying(self.length, self.length, end=False)
        if case == MIXTURE:
            return Copying(self.length, self.length, sets=2, end=False)
        return Copying(self.length, self.types, end=False)

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

    def cases(self) -> tuple[str, ...]:
        """Return the widths, then the tasks whose counts say nothing about positions."""
        return (*(width_case(width) for width in self.widths), PERMUTATIONS, MIXTURE)

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.time:g} units of time by gradient flow"

    def make_engine(self, case: str = "", seed: int = 0) -> Flow:
        """Return gradient flow, as exact as the size of the parameters asks for."""
        return Flow(rtol=self.rtol, atol=self.rtol * self.width(case) ** -0.5)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed, in double precision."""
        pairs = self.sample(case, seed)
        generator = torch.Generator().manual_seed(seed)
        size = self.vocabulary
        model = WordProxy(size, size, self.width(case), generator=generator).double()
        loss = ProxyObjective(pairs)
        gold = self.task(case).gold

        def alpha(module: nn.Module) -> Tensor:
            return torch.softmax(module.log_beta(pairs), dim=2)  # type: ignore[operator]

        def gold_mass(module: nn.Module) -> Tensor:
            return alpha(module)[:, torch.arange(len(gold)), gold].mean()

        def gold_largest(module: nn.Module) -> Tensor:
            return (alpha(module).argmax(dim=2) == gold).double().mean()

        def variation(module: nn.Module) -> Tensor:
            return (alpha(module) - 1 / self.length).abs().sum(dim=2).mean() / 2

        words = ("input", "output")
        curves = (
            Observable("loss", loss, (), "nats", "sum of -log p over all target words"),  # type: ignore[arg-type]
            Observable("logits", lambda m: m.logits_by_word(), words, "", "(W e_i)_o"),  # type: ignore[operator]
            Observable("gold_mass", gold_mass, (), "", "β^px at the gold word over its sum"),
            Observable("gold_largest", gold_largest, (), "", "share with β^px largest at gold"),
            Observable("variation", variation, (), "", "distance of β^px from uniform positions"),
        )
        at_start = (
            Observable("logits_velocity", lambda m: _velocity(m, loss, False), words, "1/time"),
            Observable("theta_velocity", lambda m: _velocity(m, loss, True), words, "1/time"),
            Observable("source_gram", lambda m: _gram(m.embedding), ("input", "input_2")),  # type: ignore[arg-type]
            Observable("target_gram", lambda m: _gram(m.W), ("output", "output_2")),  # type: ignore[arg-type]
        )
        records = [
            Record(curves, Linear(self.points)),
            Record(at_start, Given((0.0,)), dim="start"),
        ]
        return Problem(model, loss, records)

    def truth(self) -> xr.Dataset:
        """Return the count tables of all runs."""
        tables = [self.bags(case, seed).counts.toarray() for case, seed in self.runs()]
        meaning = {"meaning": "C of eq 16"}
        return xr.Dataset({"counts": (("run", "input", "output"), np.stack(tables), meaning)})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict the derivative at time 0 and θ over time.

        ``early`` is softmax(2τC), right to first order; ``limit`` is the flow at infinite width;
        ``exact`` is the flow from the inner products of the actual start.
        """
        times = tree["observables/time"].to_numpy()
        words = ("run", "input", "output")
        along = ("run", "step", "input", "output")
        found: dict[str, list[np.ndarray]] = {}
        limits: dict[tuple[str, int], np.ndarray] = {}
        for case, seed in self.runs():
            bags, width = self.bags(case, seed), self.width(case)
            grams = self._grams(tree, case, seed)
            exact, limit = snell2021.exact_derivative(grams, bags), bags.counts
            # Widths share their pairs, and at infinite width nothing else is in the prediction.
            data = (case if case in (PERMUTATIONS, MIXTURE) else "", seed)
            if data not in limits:
                limits[data] = snell2021.proxy_flow(bags, times).probabilities
            early = [snell2021.early_probabilities(limit, time) for time in times]
            values = {
                "logits_limit": snell2021.limit_derivative(limit).logits,
                "logits_exact": exact.logits,
                "theta_rate_exact": exact.probabilities,
                "expected_error": np.array(snell2021.expected_error(bags, width)),
                "theta_early": np.stack(early),
                "theta_limit": limits[data],
                "theta_exact": snell2021.proxy_flow(bags, times, grams).probabilities,
            }
            for name, value in values.items():
                found.setdefault(name, []).append(value)
        dims: dict[str, tuple[str, ...]] = dict.fromkeys(
            ("logits_limit", "logits_exact", "theta_rate_exact"), words
        )
        dims |= dict.fromkeys(("theta_early", "theta_limit", "theta_exact"), along)
        return xr.Dataset(
            {name: (dims.get(name, ("run",)), np.stack(parts)) for name, parts in found.items()},
            coords={"time": ("step", times)},
        )

    def knowledge(self, case: str, seed: int = 0) -> snell2021.Knowledge:
        """Return what the count table of a run says of its pairs, without any training."""
        pairs, task = self.sample(case, seed), self.task(case)
        counts = self.bags(case, seed).counts
        return snell2021.predict_knowledge(
            counts, pairs.source.numpy(), pairs.target.numpy(), task.gold
        )

    def _grams(self, tree: xr.DataTree, case: str, seed: int) -> snell2021.Grams:
        logits = select(tree, "logits", case).isel(run=seed, step=0)
        source, target = (
            select(tree, name, case).isel(run=seed, start=0)
            for name in ("source_gram", "target_gram")
        )
        return snell2021.Grams(logits.to_numpy(), source.to_numpy(), target.to_numpy())

    def claims(self) -> tuple[Claim, ...]:
        """Return the statements about the derivative and the flow."""
        return _derivative_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw derivatives against counts, errors over widths, and β^px over time."""
        return _derivative_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate slopes and errors by width, and what counts say before training."""
        return _derivative_tables.tables(self, tree)


def _velocity(model: nn.Module, loss: ProxyObjective, probabilities: bool) -> Tensor:
    """Return d/dτ of W e or of its softmax along the negative gradient of the loss."""
    assert isinstance(model, WordProxy)
    with torch.enable_grad():
        gradients = torch.autograd.grad(loss(model), (model.embedding, model.W))

        def table(embedding: Tensor, outputs: Tensor) -> Tensor:
            logits = embedding @ outputs.T
            return torch.softmax(logits, dim=1) if probabilities else logits

        start = (model.embedding.detach(), model.W.detach())
        moved = tuple(-part for part in gradients)
        velocity: Tensor = torch.autograd.functional.jvp(table, start, moved)[1]
    return velocity


def _gram(rows: Tensor) -> Tensor:
    return rows @ rows.T
