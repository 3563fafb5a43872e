"""Large learning rates collapse the entropy of attention; σReparam holds the loss (section 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Positive
from attnscope.claims import Claim, above, below
from attnscope.engines import Adam, Observable, Steps
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models.relative_attention import RelativeTransformer, next_state_loss
from attnscope.models.sigma_reparam import sigma_reparam
from attnscope.report import Figure, Mark, Panel, Rule, Table, each_seed, ends
from attnscope.studies._markov import HeldOut, MarkovStudy, entropies
from attnscope.theory.edelman2024 import one_look
from attnscope.trajectory import Readings, final

PLAIN, NORM, ONE, CLIPPED = "plain", "σReparam", "σReparam from γ = 1", "clipped"
DECAYED = "weight decay"
KINDS = (PLAIN, NORM, ONE, CLIPPED, DECAYED)
COLLAPSED = 0.05
CURED = 0.63


@dataclass(frozen=True)
class Collapse(MarkovStudy):
    """One small transformer at several learning rates: plain, σReparam, clipping, weight decay."""

    seeds: Count = 5
    training: Steps = Steps(steps=250, batch=64)
    length: int = 48
    held_out: int = 128
    every: int = 10
    rates: tuple[Positive, ...] = (0.003, 0.03, 0.1, 0.3)
    """Learning rates of Adam; the first one is the control, the last two are to collapse."""
    clip: Positive = 1e-3
    """Every entry of the gradient is brought to ± this in the clipped case."""
    decay: Positive = 0.1
    """Share of themselves, times the rate, that weights lose at every step with weight decay."""

    quick = {"seeds": 3, "steps": 120, "rates": (0.003, 0.1, 0.3)}
    citation = "Zhai et al. 2023, arXiv 2303.06296"

    def check(self) -> None:
        """Check that there are rates to compare."""
        super().check()
        if len(self.rates) < 2 or list(self.rates) != sorted(set(self.rates)):
            raise AttnscopeError(
                f"rates = {self.rates}: expected two or more rising learning rates."
            )

    @property
    def cases(self) -> tuple[str, ...]:
        """Kind and rate."""
        return tuple(_name(kind, rate) for rate in self.rates for kind in KINDS)

    def engine(self, case: str, seed: int) -> Adam:
        """Return Adam at the rate of a case."""
        kind, rate = case.split(" at ")
        more = {CLIPPED: {"clip": self.clip}, DECAYED: {"decay": self.decay}}
        return self.training.adam(float(rate), **more.get(kind, {}))

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; all kinds of a seed have the same start but for a γ of one."""
        kind = case.split(" at ")[0]
        model: nn.Module = self.model(case, seed)
        if kind in (NORM, ONE):
            sigma_reparam(model, gain="norm" if kind == NORM else "one")
        tokens = HeldOut(self.task(case), self.held_out).tokens

        def loss(module: nn.Module) -> Tensor:
            return next_state_loss(module(tokens), tokens).double()

        def shares(module: nn.Module) -> Tensor:
            logits = _own(module).answer(tokens).attention_logits
            last = torch.stack([entropies(each[:, -1]).mean() for each in logits])
            return last / np.log(self.length)

        def norms(module: nn.Module) -> Tensor:
            found = [each.query.weight.T @ each.key.weight for each in _own(module).layers]  # type: ignore[union-attr, operator]
            return torch.linalg.matrix_norm(torch.stack(found), 2).double()

        read = (
            Observable("loss", loss, (), "nats", "cross-entropy on held-out sequences"),
            Observable("entropy", shares, ("layer",), "", "entropy of the last query over ln T"),
            Observable("scale", norms, ("layer",), "", "spectral norm of W_Q^T W_K"),
        )
        return self.problem(model, self.task(case), seed, read)

    def claims(self) -> list[Claim]:
        """Return collapse, cure and what is no cure at the two largest rates."""

        def sharp(run: Readings, case: str) -> xr.DataArray:
            return final(run.of(case).entropy).isel(layer=-1)

        def loss(run: Readings, case: str) -> xr.DataArray:
            return final(run.of(case).loss)

        calm = _name(PLAIN, self.rates[0])
        found = []
        for rate in self.rates[1:][-2:]:
            plain, cured = _name(PLAIN, rate), _name(NORM, rate)
            found += [
                Claim(
                    f"collapse-{rate:g}",
                    f"At a rate of {rate:g} the entropy of layer 2 collapses.",
                    sharp,
                    plain,
                    below(COLLAPSED),
                    (calm, f"a rate of {self.rates[0]:g}"),
                    "section 3",
                    "entropy collapse",
                    "entropy of the last query of layer 2 over ln T at the end",
                    reason="the rate decides how fast logits grow, and after so few steps some "
                    "seeds still look at a few states: below a quarter of ln T, not a twentieth.",
                ),
                Claim(
                    f"useless-{rate:g}",
                    f"At a rate of {rate:g} the model ends worse than answering uniformly.",
                    loss,
                    plain,
                    above(np.log(self.states)),
                    (calm, f"a rate of {self.rates[0]:g}"),
                    "section 3",
                    "training fails",
                    "held-out loss at the end (nats)",
                    reason="attention that sees one state can answer from it, at best with "
                    f"{one_look(self.states):.3f} nats, so that collapse does not force a loss "
                    "above the uniform answer's: seeds end on either side of it.",
                ),
                Claim(
                    f"cure-{rate:g}",
                    f"With σReparam the same model learns at a rate of {rate:g}.",
                    loss,
                    cured,
                    below(CURED),
                    (plain, "without it"),
                    "section 4",
                    "stable training",
                    "held-out loss at the end (nats)",
                    reason="γ learns at that rate too: where it fails, the norm of W_QᵀW_K grows "
                    "all the same, through γ.",
                ),
            ]
            found += [
                Claim(
                    f"{key}-{rate:g}",
                    f"{remedy} is no cure at a rate of {rate:g}.",
                    loss,
                    _name(kind, rate),
                    above(CURED),
                    (_name(kind, self.rates[0]), f"a rate of {self.rates[0]:g}"),
                    "not in the paper",
                    "not stated",
                    "held-out loss at the end (nats)",
                    reason=reason,
                )
                for key, kind, remedy, reason in (
                    ("clip", CLIPPED, f"Clipping entries of the gradient at {self.clip:g}", ""),
                    (
                        "decay",
                        DECAYED,
                        f"Weight decay of {self.decay:g}",
                        "in some seeds W_QᵀW_K shrinks again, attention spreads and the model "
                        "learns, though less than at a small rate.",
                    ),
                )
            ]
        return found

    def figures(self, run: Readings) -> list[Figure]:
        """Draw entropy, loss and the norm of W_Q^T W_K, a row of panels for each rate."""
        panels = []
        for rate in self.rates:
            for name, label in (
                ("entropy", "entropy of layer 2 over ln T"),
                ("loss", "held-out loss (nats)"),
                ("scale", "norm of W_QᵀW_K, layer 2"),
            ):
                marks: list[Mark] = []
                for i, kind in enumerate(KINDS):
                    reading = run.of(_name(kind, rate)).get(name)
                    reading = reading.isel(layer=-1) if "layer" in reading.dims else reading
                    marks += each_seed(reading, kind, i)
                if name == "loss":
                    marks.append(Rule(float(np.log(self.states)), "uniform answer"))
                    marks.append(Rule(one_look(self.states), "best answer from one state"))
                yscale = "log" if name == "scale" else "linear"
                panels.append(Panel(f"rate {rate:g}", "step", label, tuple(marks), yscale=yscale))  # type: ignore[arg-type]
        return [
            Figure(
                "collapse",
                "Entropy collapses where the learning rate is large",
                f"Rows: learning rates of Adam; {self.seeds} seeds, the first one thick. "
                "Plain weights grow without bound at large rates, attention of layer 2 looks at "
                "one state, and the loss stays at that of the uniform answer.",
                tuple(panels),
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the end of training."""
        more = {
            "entropy of layer 1 over ln T": run.entropy.isel(layer=0),
            "entropy of layer 2 over ln T": run.entropy.isel(layer=-1),
            "loss (nats)": run.loss,
            "norm of W_QᵀW_K, layer 2": run.scale.isel(layer=-1),
        }
        return [ends(run, key="collapse", title="End of training, mean over seeds", more=more)]


def _own(module: nn.Module) -> RelativeTransformer:
    assert isinstance(module, RelativeTransformer)
    return module


def _name(kind: str, rate: float) -> str:
    return f"{kind} at {rate:g}"
