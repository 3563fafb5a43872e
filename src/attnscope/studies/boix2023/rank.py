"""Attention of a transformer changes by low rank, the lower the smaller its start (Fig 4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Positive
from attnscope.claims import Claim, above, below
from attnscope.engines import Adam, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.factored_head import MATRICES
from attnscope.report import Figure, Panel, Table, bands
from attnscope.report.page import Cell
from attnscope.studies._markov import FreshLoss
from attnscope.studies.boix2023._head import CITATION
from attnscope.tasks.markov_chains import MarkovChains
from attnscope.trajectory import Readings, final
from attnscope.watching import as_observables


class SmallTransformer(nn.Module):
    """A causal transformer of PyTorch's own blocks, norms first, with learned positions.

    Args:
        states: vocabulary.
        length: longest sequence.
        width: of the stream.
        heads: of a layer.
        layers: how many.
        scale: factor on W^Q, W^K, W^V and W^O at the start.
        seed: of the start; starts of one seed differ in that factor alone.
    """

    def __init__(
        self, states: int, length: int, width: int, heads: int, layers: int, scale: float, seed: int
    ) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.words, self.places = nn.Embedding(states, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList(
                nn.TransformerEncoderLayer(
                    width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
                )
                for _ in range(layers)
            )
            self.readout = nn.Linear(width, states)
        with torch.no_grad():
            for layer in self.attention():
                layer.in_proj_weight.mul_(scale)
                layer.out_proj.weight.mul_(scale)

    def attention(self) -> list[nn.MultiheadAttention]:
        """Return the attention of every layer."""
        return [part for part in self.modules() if isinstance(part, nn.MultiheadAttention)]

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the next state, (row, position, state)."""
        length = tokens.shape[1]
        x = self.words(tokens) + self.places.weight[:length]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        for block in self.blocks:
            x = block(x, src_mask=mask)
        found: Tensor = self.readout(x)
        return found


def ranks_since_now(model: SmallTransformer, tokens: Tensor) -> Observable:
    """Return the reading of ``watch``: stable ranks of the change, (layer, head, product)."""
    return replace(as_observables(model, ["rank_growth"], probe=tokens)[0], name="rank")


@dataclass(frozen=True)
class RankStudy(Study):
    """A two-layer transformer on Markov chains from starts of three sizes, trained by Adam."""

    seeds: Count = 5
    training: Adam = Adam(rate=1e-3, steps=1500, batch=32)
    scales: tuple[Positive, ...] = (1.0, 0.3, 0.1)
    """Factors on the attention matrices at the start, falling; 1 is PyTorch's own start."""
    width: Count = 32
    """d, of the stream."""
    heads: Count = 4
    """Heads of a layer."""
    layers: Count = 2
    """Layers."""
    points: Count = 31
    """Record points, evenly spaced."""
    task: MarkovChains = MarkovChains(states=3, length=32)

    quick: ClassVar = {"seeds": 3, "steps": 600}
    citation = CITATION
    labels: ClassVar = {"product": MATRICES}

    def check(self) -> None:
        """Check the sizes."""
        if len(self.scales) < 2 or list(self.scales) != sorted(set(self.scales), reverse=True):
            raise AttnscopeError(f"scales = {self.scales}: expected two or more, falling.")
        if self.width % self.heads:
            raise AttnscopeError(
                f"width = {self.width} with heads = {self.heads}: expected a width that the number "
                "of heads divides."
            )

    @property
    def cases(self) -> tuple[str, ...]:
        """The starts."""
        return tuple(f"start × {scale:g}" for scale in self.scales)

    def model(self, case: str, seed: int) -> SmallTransformer:
        """Return the model of a run at its start."""
        scale = float(case.removeprefix("start × "))
        sizes = (self.width, self.heads, self.layers)
        return SmallTransformer(self.task.states, self.task.length, *sizes, scale, seed)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one start."""
        model = self.model(case, seed)
        held_out = self.task.sample(200, 1_000_003).tokens
        loss = FreshLoss(self.task.stream(seed))

        def error(module: nn.Module) -> Tensor:
            logits = module(held_out)[:, :-1].flatten(0, 1)
            return nn.functional.cross_entropy(logits, held_out[:, 1:].flatten())

        rows = (self.training.batch or 1) * (self.training.steps + 1)
        curves = (
            Observable("loss", error, (), "nats", "cross-entropy of held-out sequences"),
            ranks_since_now(model, held_out[:2]),
        )
        return Problem(
            model, loss, [Record(curves, Linear(self.points))], rows=rows, seed=seed, shuffle=False
        )

    def theory(self, run: Readings) -> dict[str, xr.DataArray]:
        """Return the stable rank of a random change of the same shape, for each start and seed."""
        found = xr.full_like(final(run.rank), np.nan)
        for case in self.cases:
            for seed in run.rank["seed"].to_numpy():
                one, other = (self.model(case, int(seed) + k) for k in (10_007, 20_011))
                since = ranks_since_now(one, self.task.sample(2, 0).tokens)
                one.load_state_dict(other.state_dict())
                found.loc[case, seed] = since.read(one).numpy()
        return {"random_rank": found.assign_attrs(meaning="of the difference of two random starts")}

    def claims(self) -> list[Claim]:
        """Return what section 4 says of trained transformers."""
        largest, smallest = self.cases[0], self.cases[-1]

        def end(run: Readings, case: str) -> xr.DataArray:
            return final(run.of(case).rank).mean(("layer", "head", "product"))

        def against(run: Readings, given: tuple[str, str]) -> np.ndarray:
            one, other = (end(run, case) for case in given)
            return np.asarray(one / other)

        def to_random(run: Readings, kind: str) -> np.ndarray:
            random = run.of(smallest).theory.random_rank.mean(("layer", "head", "product"))
            return np.asarray((random if kind == "random" else end(run, smallest)) / random)

        def apart(run: Readings, given: tuple[str, str]) -> np.ndarray:
            ranks = final(run.of(largest).rank).mean(("layer", "head"))
            one, other = (ranks.sel(product=name, drop=True) for name in given)
            return np.asarray(one - other)

        return [
            Claim(
                "low-rank",
                "What attention learns from a small start is of lower rank than a random change.",
                to_random,
                "learned",
                below(0.7),
                ("random", "the difference of two random starts"),
                "section 4, Fig 3",
                "low rank",
                f"stable rank of the change over that of a random one, {smallest}",
                each=False,
            ),
            Claim(
                "smaller-start",
                "The smaller the start, the lower the stable rank of what is learned.",
                against,
                (largest, smallest),
                above(1.1),
                ((smallest, largest), "the starts exchanged"),
                "section 4, Fig 4",
                "lower",
                f"stable rank, {largest} over {smallest}",
                each=False,
            ),
            Claim(
                "values",
                "W_V W_Oᵀ changes by a higher rank than W_K W_Qᵀ.",
                apart,
                ("VO", "KQ"),
                above(0.0),
                (("KQ", "KQ"), "W_K W_Qᵀ against itself"),
                "section 4, Fig 4",
                "higher",
                f"difference of stable ranks, {largest}",
                each=False,
                reason="on Markov chains it is the other way round; the paper says it of models of "
                "images and of text.",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw stable ranks and losses over training."""
        panels = [
            Panel(
                title,
                "step",
                "stable rank of the change",
                bands(
                    {
                        case: run.of(case).rank.sel(product=name).isel(step=slice(1, None))
                        for case in self.cases
                    }
                ),
            )
            for name, title in (("KQ", "W_K W_Qᵀ"), ("VO", "W_V W_Oᵀ"))
        ]
        losses = bands({case: run.of(case).loss for case in self.cases})
        panels.append(Panel("held-out loss", "step", "cross-entropy (nats)", losses))
        return [
            Figure(
                "rank",
                "A smaller start learns by lower rank",
                "Stable rank of the change of both products of attention since the start, mean "
                f"over {self.layers} layers, {self.heads} heads and {self.seeds} seeds with 95 % "
                "bands, and the loss, for starts of several sizes (Boix-Adsera 2023, Fig 4).",
                tuple(panels),
            )
        ]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the end of training."""
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                case,
                *(float(final(run.of(case).rank).sel(product=name).mean()) for name in MATRICES),
                float(run.of(case).theory.random_rank.mean()),
                float(final(run.of(case).loss).mean()),
            )
            for case in self.cases
        )
        heads = ("start", "rank KQ", "rank VO", "rank, random", "loss (nats)")
        return [Table("rank", "End of training, mean over layers, heads and seeds", heads, rows)]
