"""The spec of ``snell2021.optimal_attention``, its runs, and problems with random logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.engines import Adam, Observable
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models.seq2seq import Seq2Seq
from attnscope.models.sequences import evaluating
from attnscope.probes.lexicon.agreement import mean_agreement, shuffled_baseline
from attnscope.studies.snell2021._copying_study import HELD_OUT, SequenceStudy
from attnscope.studies.snell2021.optimal_attention.claims import claims_of
from attnscope.studies.snell2021.optimal_attention.figures import figures_of, tables_of
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import SequencePairs
from attnscope.theory import snell2021
from attnscope.trajectory import Readings

QUANTITIES = {
    "optimal_beta": "A(α_opt, β)",
    "optimal_shuffled": "A(α_opt, β in random order)",
    "attention_beta": "A(α, β)",
    "optimal_attention": "A(α_opt, α)",
    "neglected": "share of words whose largest β gets no optimal attention",
    "positions": "positions with optimal attention, mean",
    "gold_optimal": "α_opt at the gold position, mean",
    "gold_attention": "α at the gold position, mean",
    "gold_beta": "share of words whose gold position has the largest β",
    "loss": "loss with the model's attention (nats)",
    "loss_optimal": "loss with optimal attention (nats)",
    "loss_largest": "loss with all attention at the largest β (nats)",
    "accuracy": "share of words predicted rightly",
    "gap": "largest Frank-Wolfe gap of any word",
    "gap_uniform": "largest Frank-Wolfe gap of uniform attention",
}
"""What is read at each record point, with its meaning."""
_SHUFFLE = 0x0A2


@dataclass(frozen=True)
class OptimalAttentionStudy(SequenceStudy):
    """Optimal attention of a model with added output (eq 32), along its training.

    For every target word of some held-out sequences the attention that minimises its loss is found,
    certified to 1e-8, and compared with β and with the model's own attention. Beside it stand the
    paper's counterexample and problems with random logits, by the number of outputs. The paper's
    number, A(α_opt, β) = 0.53, is for a model of Multi30k; here sequences are copied.
    """

    seeds: Count = 5
    training: Adam = Adam(rate=1e-3, steps=300, batch=128)
    points: Several = 31
    """Record points, evenly spaced."""
    held_out: Count = 10
    """Held-out sequences whose words are read at each record point."""
    types: Count = 60
    """Words that a sequence is drawn from."""
    outputs: tuple[int, ...] = (2, 3, 5, 10, 30, 100)
    """|O| of the problems with random logits, the first of them 2."""
    spreads: tuple[float, ...] = (1.0, 3.0, 10.0)
    """Standard deviations of random logits."""
    positions: Count = 20
    """Positions of a problem with random logits."""
    problems: Count = 400
    """Problems with random logits, for each number of outputs, spread and seed."""

    cases = ("learned", "uniform")
    quantities: ClassVar = QUANTITIES
    labels: ClassVar = {"quantity": tuple(QUANTITIES)}
    quick: ClassVar = {
        "seeds": 2,
        "length": 20,
        "types": 30,
        "width": 64,
        "batch": 64,
        "points": 16,
        "outputs": (2, 3, 10, 30),
        "problems": 200,
    }
    claims, figures, tables = claims_of, figures_of, tables_of

    def check(self) -> None:
        """Check the task, and the problems with random logits."""
        super().check()
        self.task()
        ascending = list(self.outputs) == sorted(set(self.outputs))
        if len(self.outputs) < 2 or self.outputs[0] != 2 or not ascending:
            raise AttnscopeError(
                f"outputs = {self.outputs}: expected 2 and then larger numbers, ascending."
            )
        if not self.spreads or not all(0 < spread <= 50 for spread in self.spreads):
            raise AttnscopeError(f"spreads = {self.spreads}: expected numbers above 0, up to 50.")

    def task(self) -> Copying:
        """Return the task."""
        return Copying(self.length, self.types)

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; both cases of a seed start from the same numbers and see the same pairs."""
        task = self.task()
        torch.manual_seed(seed)
        model = Seq2Seq(
            task.vocabulary,
            embedding=self.width,
            hidden=self.width,
            output="added",
            attention=case,  # type: ignore[arg-type]
        )
        read = reader(task.sample(self.held_out, HELD_OUT), task.gold)
        optimal = Observable("optimal", read, ("quantity",), "", "; ".join(QUANTITIES.values()))
        return self.problem(model, task, (optimal,), seed)

    def truth(self) -> dict[str, object]:
        """Return the gold positions."""
        meaning = {"meaning": "source position of each target position, END included"}
        return {"gold": ("target", self.task().gold.numpy(), meaning)}

    def theory(self, run: Readings) -> dict[str, object]:
        """Solve the counterexample, and problems with random logits, seed by seed."""
        best = snell2021.optimal_attention(snell2021.EQUATION_30, 0)
        dims = ("draw", "spread", "outputs")
        shape = (self.seeds, len(self.spreads), len(self.outputs))
        neglected, agreed = np.zeros(shape), np.zeros(shape)
        for at in np.ndindex(shape):
            seed, spread, outputs = at[0], self.spreads[at[1]], self.outputs[at[2]]
            found = snell2021.random_optimum(self.problems, self.positions, outputs, spread, seed)
            neglected[at] = found.neglects.mean()
            agreed[at] = mean_agreement(found.alpha, found.beta).value
        near = [snell2021.near_equation_30(self.problems, 0.1, seed) for seed in range(self.seeds)]
        return {
            "counterexample": ("place", best.alpha, {"meaning": "α_opt of eq 30"}),
            "counterexample_beta": ("place", best.beta, {"meaning": "β of eq 30"}),
            "counterexample_p": ((), best.probability, {"meaning": "p at α_opt"}),
            "near": ("draw", np.array([each.neglects.mean() for each in near])),
            "neglected": (dims, neglected, {"meaning": QUANTITIES["neglected"]}),
            "agreed": (dims, agreed, {"meaning": QUANTITIES["optimal_beta"]}),
        }


def reader(pairs: SequencePairs, gold: Tensor) -> Callable[[nn.Module], Tensor]:
    """Return a function that reads all quantities off a model with added output, eq 32."""
    target, places = pairs.target.numpy(), gold.numpy()

    def read(model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        look = model.evaluate(pairs)
        logits, offset = word_logits(model, pairs)
        best = snell2021.optimal_attention(logits[:, None], target, offset)
        alpha = look.weights[:, 0].double().numpy()
        steps = np.arange(len(places))
        uniform = np.full(best.alpha.shape, 1 / best.alpha.shape[-1])
        gap_uniform = snell2021.frank_wolfe_gap(logits[:, None], target, offset, uniform)
        values = {
            "optimal_beta": mean_agreement(best.alpha, best.beta).value,
            "optimal_shuffled": shuffled_baseline(best.alpha, best.beta, seed=_SHUFFLE).value,
            "attention_beta": mean_agreement(alpha, best.beta).value,
            "optimal_attention": mean_agreement(best.alpha, alpha).value,
            "neglected": best.neglects.mean(),
            "positions": (best.alpha > 1e-6).sum(axis=-1).mean(),
            "gold_optimal": best.alpha[:, steps, places].mean(),
            "gold_attention": alpha[:, steps, places].mean(),
            "gold_beta": (best.beta.argmax(axis=-1) == places).mean(),
            "loss": -look.log_p.double().mean().item(),
            "loss_optimal": -np.log(best.probability).mean(),
            "loss_largest": -np.log(best.beta.max(axis=-1)).mean(),
            "accuracy": (look.predicted == pairs.target).double().mean().item(),
            "gap": best.gap.max(),
            "gap_uniform": gap_uniform.max(),
        }
        return torch.tensor([float(values[name]) for name in QUANTITIES], dtype=torch.float64)

    return read


def word_logits(model: Seq2Seq, pairs: SequencePairs) -> tuple[np.ndarray, np.ndarray]:
    """Return γ_l ``(row, L, word)`` and γ_s ``(row, T, word)`` of a model with added output."""
    with torch.no_grad(), evaluating(model):
        states = model.states(pairs)
        weight = model.readout.weight.double()
        source, target = (
            (part.double() @ weight.T).numpy() for part in (states.encoder, states.decoder)
        )
    return source, target
