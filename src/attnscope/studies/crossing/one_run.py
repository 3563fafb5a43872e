"""One training run and four theories on one axis of time: which of them speaks when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count
from attnscope.claims import Claim, above, below
from attnscope.engines import Adam, Observable
from attnscope.experiment import Problem
from attnscope.models.relative_attention import RelativeTransformer
from attnscope.probes.attention_shape import distance_to_uniform
from attnscope.report import Figure, Mark, Panel, Rule, Table, each_seed
from attnscope.studies._markov import BIGRAM, UNIGRAM, HeldOut, MarkovStudy, closest, entropies
from attnscope.theory import zhai2023
from attnscope.theory.edelman2024 import STRATEGIES
from attnscope.trajectory import Readings, crossing

CIRCUITS = ("QK", "VO")
BEGUN = 0.05
"""Total variation to uniform attention from which on attention has begun, as in watched runs."""
EVENTS = (
    "closest to the unigram rule (edelman2024)",
    "attention of layer 1 begins (li2023)",
    "attention of layer 2 begins (li2023)",
    "layer 1 looks back (edelman2024)",
    "closest to the bigram rule (edelman2024)",
)


@dataclass(frozen=True)
class OneRun(MarkovStudy):
    """A two-layer transformer on Markov chains, read with the eyes of four papers.

    Phases (edelman2024), the onset of attention (li2023, snell2021), the rank of what has been
    learned (boix2023), and entropy with its floor (zhai2023).
    """

    seeds: Count = 4
    training: Adam = Adam(rate=3e-3, steps=500, batch=64)
    length: int = 48
    distance_std: float = 0.2
    held_out: int = 64
    every: int = 5

    quick = {"seeds": 3, "steps": 400}
    citation = "Edelman 2024, Li 2023, Boix-Adsera 2023, Zhai 2023"

    def build(self, case: str, seed: int) -> Problem:
        """Make a run, with everything that the theories ask for read at every record point."""
        held_out = HeldOut(self.task(case), self.held_out)
        model = self.model(case, seed)
        start = _products(model)

        def ranks(module: nn.Module) -> Tensor:
            return _stable_rank(_products(_own(module)) - start)

        def shape(module: nn.Module) -> Tensor:
            return _shape(_own(module), held_out.tokens)

        read = (
            *held_out.observables(layers=2),
            Observable(
                "rank",
                ranks,
                ("layer", "circuit"),
                "",
                "stable rank of the change of W_K W_Q^T and of W_V W_O^T",
                {"circuit": CIRCUITS},
            ),
            Observable(
                "shape",
                shape,
                ("layer", "measure"),
                "",
                "distance to uniform attention; entropy and its row floor over ln L",
                {"measure": ("distance", "entropy", "floor")},
            ),
        )
        return self.problem(model, self.task(case), seed, read)

    def theory(self, run: Readings) -> dict[str, object]:
        """Return the stable rank of the products at the start, which is that of random ones."""
        found = [_stable_rank(_products(self.model(case, seed))) for case, seed in self.runs()]
        return {"random_rank": (("run", "layer", "circuit"), torch.stack(found).numpy())}

    def events(self, run: Readings) -> xr.DataArray:
        """Return the step of every event, by seed; NaN for what does not come."""
        own = run.of("run")
        near, steps = closest(own.kl), own.kl["step"]

        def phase(number: int) -> xr.DataArray:
            there = near == number
            return steps.isel(step=there.argmax("step")).where(there.any("step")).astype(float)

        distance = own.get("shape").isel(measure=0)
        found = [
            phase(UNIGRAM),
            crossing(distance.isel(layer=0), BEGUN),
            crossing(distance.isel(layer=1), BEGUN),
            crossing(own.looks_back.isel(layer=0), 0.3),
            phase(BIGRAM),
        ]
        plain = [xr.DataArray(each.to_numpy(), dims="seed") for each in found]
        return xr.concat(plain, "event")

    def claims(self) -> list[Claim]:
        """Return the order of what the theories announce."""

        def later(run: Readings, events: tuple[int, int]) -> xr.DataArray:
            times = self.events(run)
            return times.isel(event=events[1]) - times.isel(event=events[0])

        def rank(run: Readings, when: str) -> xr.DataArray:
            if when == "start":
                return run.of("run").theory.random_rank.isel(layer=0, circuit=0)
            own, at = run.of("run").rank.isel(layer=0, circuit=0), self.events(run).isel(event=3)
            picked = [
                float(own.isel(seed=i).sel(step=step, method="nearest"))
                if np.isfinite(step)
                else np.nan
                for i, step in enumerate(at.to_numpy())
            ]
            return xr.DataArray(picked, dims="seed")

        def slack(run: Readings, factor: float) -> xr.DataArray:
            own = run.of("run").get("shape")
            gap = own.isel(measure=1) - factor * own.isel(measure=2)
            return gap.min(["step", "layer"])

        def order(
            key: str,
            sentence: str,
            events: tuple[int, int],
            source: str,
            control: tuple[tuple[int, int], str],
            reason: str = "",
        ) -> Claim:
            return Claim(
                key,
                sentence,
                later,
                events,
                above(0.0),
                control,
                source,
                "",
                "steps from the one to the other",
                reason=reason,
            )

        return [
            order(
                "unigram-first",
                "The unigram rule is there before attention of layer 1 has begun: it needs none.",
                (0, 1),
                "li2023: values before attention; edelman2024: layer 2 first",
                ((4, 1), "the bigram rule in the place of the unigram rule"),
                f"in some seeds attention of layer 1 passes {BEGUN} within the same first steps in "
                "which the unigram rule is learned.",
            ),
            order(
                "onset-before-transition",
                "Attention of layer 1 leaves uniform before the bigram rule is there: onset "
                "announces the transition.",
                (1, 4),
                "li2023 and edelman2024",
                ((4, 1), "the other way round"),
            ),
            Claim(
                "low-rank",
                "When layer 1 looks back, what W_K W_Q^T of layer 1 has learned is of stable rank "
                "below 2.",
                rank,
                "transition",
                below(2.0),
                ("start", "the random matrices of the start"),
                "boix2023: rank grows one by one",
                "",
                "stable rank of the change of W_K W_Q^T, layer 1",
            ),
            Claim(
                "floor",
                "The mean entropy of a layer is never below the mean floor of its rows.",
                slack,
                1.0,
                above(-1e-9),
                (2.0, "twice the floor"),
                "zhai2023, for single rows",
                "",
                "least difference over layers and steps, over ln L",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw all four on one axis, with the events as rules of the first seed."""
        own, events = run.of("run"), self.events(run).isel(seed=0).to_numpy()
        rules = tuple(
            Rule(float(events[i]), name, vertical=True)
            for i, name in ((0, "unigram rule"), (1, "layer 1 begins"), (4, "bigram rule"))
            if np.isfinite(events[i])
        )

        def panel(title: str, label: str, curves: dict[str, Any]) -> Panel:
            marks: list[Mark] = []
            for i, (name, reading) in enumerate(curves.items()):
                marks += each_seed(reading.isel(seed=[0]), name, i)
            return Panel(title, "step", label, (*marks, *rules))

        shape = own.get("shape")
        return [
            Figure(
                "one-run",
                "Which theory speaks when",
                "The first seed of a two-layer transformer on Markov chains. Vertical lines: the "
                "unigram rule is closest, attention of layer 1 begins, the bigram rule is closest.",
                (
                    panel(
                        "phases (edelman2024)",
                        "KL (nats)",
                        {
                            f"from the {n} rule": own.kl.isel(answer=i)
                            for i, n in enumerate(STRATEGIES)
                        },
                    ),
                    panel(
                        "onset (li2023)",
                        "distance to uniform attention",
                        {f"layer {i + 1}": shape.isel(layer=i, measure=0) for i in range(2)},
                    ),
                    panel(
                        "rank (boix2023)",
                        "stable rank of the change",
                        {
                            f"{c}, layer {i + 1}": own.rank.isel(layer=i, circuit=j)
                            for i in range(2)
                            for j, c in enumerate(CIRCUITS)
                        },
                    ),
                    panel(
                        "entropy and floor (zhai2023)",
                        "share of ln L",
                        {
                            f"{m}, layer {i + 1}": shape.isel(layer=i, measure=j)
                            for i in range(2)
                            for j, m in ((1, "entropy"), (2, "floor"))
                        },
                    ),
                ),
                columns=2,
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the events."""
        events = self.events(run)
        rows = tuple(
            (name, float(own.mean()), float(own.min()), float(own.max()))
            for name, own in zip(EVENTS, events, strict=True)
        )
        head = ("event", "mean step", "first", "last")
        return [Table("events", "Which theory speaks when, over seeds", head, rows)]


def _own(module: nn.Module) -> RelativeTransformer:
    assert isinstance(module, RelativeTransformer)
    return module


def _products(model: RelativeTransformer) -> Tensor:
    """Return W_K W_Q^T and W_V W_O^T of every layer, shape (layer, circuit, d, d)."""
    with torch.no_grad():
        found = [
            torch.stack(
                [
                    each.key.weight.T @ each.query.weight,  # type: ignore[union-attr, operator]
                    each.value.weight.T @ each.output.weight.T,  # type: ignore[union-attr, operator]
                ]
            )
            for each in model.layers
        ]
    return torch.stack(found).double()


def _stable_rank(matrices: Tensor) -> Tensor:
    """Return the squared Frobenius norm over the squared spectral norm; NaN for 0."""
    values = torch.linalg.svdvals(matrices)
    return values.square().sum(dim=-1) / values[..., 0].square()


def _shape(model: RelativeTransformer, tokens: Tensor) -> Tensor:
    answer, length = model.answer(tokens), tokens.shape[1]
    see = np.broadcast_to(
        np.tril(np.ones((length, length), dtype=bool)), (len(tokens), length, length)
    )
    keys = np.arange(2, length + 1)
    found = []
    for weights, logits in zip(answer.attention, answer.attention_logits, strict=True):
        own = logits[:, 1:].double()
        floor = zhai2023.entropy_floor(zhai2023.row_scale(own), keys) / np.log(keys)
        entropy = entropies(own).numpy() / np.log(keys)
        distance = distance_to_uniform(weights[:, None].numpy(), see)
        found.append([float(distance[0]), entropy.mean(), floor.mean()])
    return torch.tensor(found, dtype=torch.float64)
