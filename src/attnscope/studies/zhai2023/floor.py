"""Attention has at least the entropy that its logits' scale allows, row by row (Theorem 3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from scipy.special import entr, softmax
from torch import Tensor, nn

from attnscope.bounds import Count
from attnscope.claims import Claim, above, below
from attnscope.engines import Adam, Observable
from attnscope.experiment import Problem
from attnscope.models.relative_attention import RelativeTransformer
from attnscope.report import Figure, Mark, Panel, Table, each_seed, ends
from attnscope.studies._markov import HeldOut, MarkovStudy, entropies
from attnscope.theory import zhai2023
from attnscope.trajectory import Readings, final

READ = ("entropy", "row floor", "published floor", "least slack", "least slack, half the scale")
TIGHT = [(keys, scale) for keys in (2, 8, 64, 512) for scale in (0.5, 2.0, 5.0, 10.0, 20.0)]


@dataclass(frozen=True)
class Floor(MarkovStudy):
    """A transformer on Markov chains, its rows of attention beside both floors, step by step."""

    seeds: Count = 5
    training: Adam = Adam(rate=3e-3, steps=1000, batch=64)
    length: int = 48
    held_out: int = 64
    every: int = 20
    random_rows: Count = 100_000
    """Rows of random logits that the floor is tried on besides."""

    quick = {"seeds": 2, "steps": 300}
    citation = "Zhai et al. 2023, arXiv 2303.06296"

    def build(self, case: str, seed: int) -> Problem:
        """Make a run; every row of every layer is read at every record point."""
        held_out = HeldOut(self.task(case), self.held_out)
        return self.problem(
            self.model(case, seed),
            self.task(case),
            seed,
            (
                Observable(
                    "rows",
                    lambda model: _rows(model, held_out.tokens),
                    ("layer", "reading"),
                    "nats",
                    "entropy of attention and its floors, mean over rows, and the least of "
                    "entropy less row floor",
                    {"reading": READ},
                ),
            ),
        )

    def theory(self, run: Readings) -> dict[str, object]:
        """Try the floor on random rows, and on the rows that attain it."""
        slack, half = _random_slack(self.random_rows)
        tight = [
            _entropy(zhai2023.tight_row(s, t)) - zhai2023.entropy_floor(s, t) for t, s in TIGHT
        ]
        loose = [_entropy(_two_high(s, t)) - zhai2023.entropy_floor(s, t) for t, s in TIGHT[5:]]
        return {
            "random": ((), slack, {"meaning": "least entropy less floor over random rows"}),
            "random_half": ((), half, {"meaning": "the same with half the scale"}),
            "tight": ("row", np.abs(tight), {"meaning": "entropy less floor of the tight rows"}),
            "two_high": ("other", np.abs(loose), {"meaning": "of rows with two high logits"}),
        }

    def claims(self) -> list[Claim]:
        """Return the floor, that it is attained, and what the published scale makes of it."""

        def trained(run: Readings, which: str) -> xr.DataArray:
            rows = run.of("run").rows.isel(reading=READ.index(which))
            return rows.min(["step", "layer"])

        def of_theory(run: Readings, name: str) -> float:
            return float(run.theory.get(name).min())

        def largest(run: Readings, name: str) -> float:
            return float(run.theory.get(name).max())

        def end(run: Readings, which: str) -> xr.DataArray:
            rows = final(run.of("run").rows).isel(reading=READ.index(which), layer=-1)
            return xr.DataArray(np.log10(rows.clip(1e-300)))

        return [
            Claim(
                "trained",
                "No row of a model in training has less entropy than its own scale allows.",
                trained,
                "least slack",
                above(-1e-9),
                ("least slack, half the scale", "the floor of half the scale"),
                "Theorem 3.1, for a single row",
                "",
                "least of entropy less floor, over rows, layers and steps",
            ),
            Claim(
                "random",
                f"Nor has any of {self.random_rows:,} rows of random logits.",
                of_theory,
                "random",
                above(-1e-9),
                ("random_half", "the floor of half the scale"),
                "Theorem 3.1, for a single row",
                "",
                "least of entropy less floor",
            ),
            Claim(
                "tight",
                "One logit against equal ones attains the floor.",
                largest,
                "tight",
                below(1e-12),
                ("two_high", "two high logits of the same norm"),
                "proof of Theorem 3.1",
                "",
                f"largest difference over {len(TIGHT)} rows",
            ),
            Claim(
                "published-is-empty",
                "With the published scale, a product of norms, the floor says nothing of a "
                "trained model: it is below a millionth of a nat.",
                end,
                "published floor",
                below(-6.0),
                ("row floor", "the floor of single rows"),
                "Theorem 3.1 as printed",
                "not measured there",
                "log10 of the mean floor of layer 2 at the end",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw entropy between its floors, layer by layer."""
        panels = []
        for layer in range(2):
            marks: list[Mark] = []
            for i, name in enumerate(READ[:3]):
                marks += each_seed(run.of("run").rows.isel(layer=layer, reading=i), name, i)
            panels.append(Panel(f"layer {layer + 1}", "step", "nats", tuple(marks)))
        return [
            Figure(
                "floor",
                "Entropy of attention and what is certain about it",
                f"Mean over rows of {self.held_out} held-out sequences, {self.seeds} seeds. The "
                "floor of single rows follows the entropy; the published one, from norms of "
                "weights and tokens, is gone after a few steps. (It covers the part of the "
                "logits that comes from content; relative positions add to them.)",
                tuple(panels),
                columns=2,
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the end of training."""
        rows = run.rows.isel(layer=-1)
        more = {name: final(rows.isel(reading=i)) for i, name in enumerate(READ[:3])}
        return [ends(run, key="floor", title="Layer 2 at the end, mean over rows", more=more)]


def _rows(model: nn.Module, tokens: Tensor) -> Tensor:
    assert isinstance(model, RelativeTransformer)
    found = []
    x = model.embedding[tokens]
    for norm, layer, logits in zip(
        model.norms, model.layers, model.answer(tokens).attention_logits, strict=False
    ):
        keys = np.arange(2, tokens.shape[1] + 1)
        own = logits[:, 1:].double()
        entropy, scale = entropies(own).numpy(), zhai2023.row_scale(own)
        floor, half = (zhai2023.entropy_floor(s, keys) for s in (scale, scale / 2))
        given = norm(x)
        weights = layer.key.weight.T, layer.query.weight.T / np.sqrt(x.shape[-1])  # type: ignore[union-attr]
        whole = zhai2023.spectral_scale(*weights, given)  # type: ignore[arg-type]
        printed = zhai2023.entropy_floor(whole[:, None], keys)
        slack = (entropy - floor).min(), (entropy - half).min()
        found.append([entropy.mean(), floor.mean(), printed.mean(), *slack])
        x = x + layer(given)[0]
    return torch.tensor(found, dtype=torch.float64)


def _entropy(logits: np.ndarray) -> float:
    return float(entr(softmax(logits)).sum())


def _two_high(scale: float, keys: int) -> np.ndarray:
    row = np.zeros(keys)
    row[:2] = 1.0
    row -= row.mean()
    return np.asarray(row * scale / np.linalg.norm(row))


def _random_slack(count: int) -> tuple[float, float]:
    """Return the least of entropy less floor over random rows, and with half the scale."""
    chance = np.random.default_rng(0)
    least, half, kinds = np.inf, np.inf, range(2, 66)
    each = -(-count // len(kinds))
    for keys in kinds:
        size = np.exp(chance.uniform(-2, 3.5, size=(each, 1)))
        # Normal logits, and rows with few high ones, which come near the floor.
        rows = size * chance.normal(size=(each, keys)) ** chance.choice([1, 3, 5], size=(each, 1))
        scale = zhai2023.row_scale(rows)
        entropy = entr(softmax(rows, axis=-1)).sum(axis=-1)
        least = min(least, float((entropy - zhai2023.entropy_floor(scale, keys)).min()))
        half = min(half, float((entropy - zhai2023.entropy_floor(scale / 2, keys)).min()))
    return least, half
