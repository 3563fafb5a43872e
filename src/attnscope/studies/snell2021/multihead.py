"""One good head among eight is enough to learn what a single bad head does not (Fig 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xarray as xr

from attnscope.studies.old import Claim
from attnscope.engines import Descent, Linear, Record
from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective
from attnscope.models.seq2seq_options import Cell, Pooled
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.experiment import Problem
from attnscope.studies.old import Study
from attnscope.studies.snell2021 import _multihead_claims, _multihead_figures, _multihead_tables
from attnscope.studies.snell2021._multihead_pools import (
    CANDIDATE,
    RANDOM,
    SCENARIOS,
    Head,
    candidate_head,
    chosen,
    judged,
    pools,
    random_heads,
    trials,
)
from attnscope.studies.snell2021._multihead_readings import observables
from attnscope.studies.snell2021._snell import CITATION
from attnscope.tasks.copying import Copying

HELD_OUT = 1_000_003
"""Seed of the sequences that are read; runs have small seeds."""
FRESH = 1000
"""First seed of the data of runs with several heads: no candidate was judged on it."""


@dataclass(frozen=True)
class Multihead(Study):
    """Permutations are copied with eight heads whose starts are known to be good or bad alone.

    Single heads with random starts are tried first, on several streams of data each. The rest of
    the model starts the same in all runs. Then eight bad ones, seven bad and a good one, or eight
    random ones are put together.
    """

    seeds: int = 20
    """Runs of each scenario with several heads."""
    engine: Literal["flow", "descent"] = "descent"
    """Adam, step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps; Adam's learning rate is the field `rate`."""
    epochs: int = 200
    """Steps, at the end of which heads are judged."""
    points: int = 21
    """Record points, evenly spaced."""
    rate: float = 1e-3
    """Adam's learning rate."""
    length: int = 40
    """L, words in a sequence; all sequences are permutations of them."""
    width: int = 256
    """Length of embeddings and of states."""
    batch: int = 128
    """Sequences in a step, never seen again."""
    held_out: int = 50
    """Sequences that are read at each record point."""
    heads: int = 8
    """K, heads of the runs with several."""
    candidates: int = 40
    """Starts of single heads that are tried."""
    streams: int = 3
    """Streams of data that each of them is tried on."""
    cell: Cell = "lstm"
    """``lstm`` as in the paper; the released code has ``gru``."""
    pooled: Pooled = "sum"
    """``sum`` of the heads' contexts as in eq 21; the released code has their ``mean``."""
    head_projections: bool = False
    """A projection for each head, part of its start, as in the released code; eq 21 has none."""
    separate_embeddings: bool = False
    """Encoder and decoder have their own embeddings, as in the released code."""
    backbone: int = 0
    """Seed of everything but the heads, the same in all runs."""

    citation: ClassVar[str] = CITATION
    quick: ClassVar[dict[str, Any]] = {
        "seeds": 3,
        "epochs": 300,
        "points": 16,
        "rate": 2e-3,
        "length": 24,
        "width": 64,
        "heads": 4,
        "candidates": 8,
        "streams": 2,
        "cell": "gru",
        "pooled": "mean",
        "head_projections": True,
        "separate_embeddings": True,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and Adam's learning rate is 'rate'."
            )
        for name, least in (
            ("length", 2),
            ("width", 1),
            ("batch", 1),
            ("held_out", 1),
            ("heads", 2),
            ("candidates", 2),
            ("streams", 1),
        ):
            if getattr(self, name) < least:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {least} or more.")
        if self.epochs % (self.points - 1):
            raise AttnscopeError(
                f"points = {self.points} over {self.epochs} steps: expected points a whole number "
                "of steps apart."
            )

    def task(self) -> Copying:
        """Return the task, the same for all runs."""
        return Copying(self.length, self.length)

    def cases(self) -> tuple[str, ...]:
        """Return single heads, and the three scenarios."""
        return (CANDIDATE, *SCENARIOS)

    def runs(self) -> list[tuple[str, int]]:
        """Return the trials of single heads, candidate by candidate, then the scenarios."""
        single = [(CANDIDATE, number) for number in range(self.candidates * self.streams)]
        return single + [(case, seed) for seed in range(self.seeds) for case in SCENARIOS]

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        """Return the trials of single heads, and then what is put together from them."""
        first, total = self.candidates * self.streams, len(self.runs())
        return tuple(range(first)), tuple(range(first, total))

    def course(self) -> str:
        """Say how long runs are."""
        return f"{self.epochs:,} steps of Adam on fresh sequences"

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return Adam on fresh mini-batches."""
        return Descent(
            lr=self.rate,
            optimizer="adam",
            batch_size=self.batch,
            samples=self.batch * (self.epochs + 1),
            seed=self._stream(case, seed),
            tick=1.0,
        )

    def _stream(self, case: str, seed: int) -> int:
        """Return the seed of a run's data; scenarios of one seed see the same."""
        return seed % self.streams if case == CANDIDATE else FRESH + seed

    def build(self, case: str, seed: int) -> Problem:
        """Make a single head, or several random ones."""
        if case == CANDIDATE:
            return self._problem([candidate_head(seed // self.streams, self.width)], case, seed)
        return self._problem(random_heads(seed, self.heads, self.width), case, seed)

    def build_after(self, case: str, seed: int, tree: xr.DataTree) -> Problem:
        """Put heads together whose trials are known."""
        if case == RANDOM:
            return self.build(case, seed)
        numbers = chosen(pools(trials(tree, self.streams)), case, seed, self.heads)
        return self._problem([candidate_head(n, self.width) for n in numbers], case, seed)

    def _problem(self, heads: Sequence[Head], case: str, seed: int) -> Problem:
        task = self.task()
        torch.manual_seed(self.backbone)
        model = Seq2Seq(
            task.vocabulary,
            task.vocabulary if self.separate_embeddings else None,
            embedding=self.width,
            hidden=self.width,
            heads=len(heads),
            heads_pooled=self.pooled,
            output="tanh",
            cell=self.cell,
            head_projections=self.head_projections,
        )
        with torch.no_grad():
            model.head_W.copy_(torch.stack([head.W for head in heads]))
            model.head_b.copy_(torch.stack([head.b for head in heads]))
            if (own := model.head_projections) is not None:
                own.weight.copy_(torch.stack([head.P for head in heads]))
                own.bias.copy_(torch.stack([head.p for head in heads]))
        pairs = task.sample(self.held_out, HELD_OUT)
        record = Record(observables(pairs, task.gold, self.heads), Linear(self.points))
        loss = Seq2SeqObjective(task.stream(self._stream(case, seed)))
        return Problem(model, loss, [record])

    def truth(self) -> xr.Dataset:
        """Return which candidate and which data a run of a single head is; -1 for the others."""
        numbers = np.array(
            [
                divmod(seed, self.streams) if case == CANDIDATE else (-1, -1)
                for case, seed in self.runs()
            ]
        )
        return xr.Dataset(
            {
                "candidate": ("run", numbers[:, 0], {"meaning": "number of the head's start"}),
                "stream": ("run", numbers[:, 1], {"meaning": "number of its data"}),
            }
        )

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict the share of runs with random heads that learn, if one good head is enough.

        With q the share of good heads among candidates it is 1 - (1 - q)^K.
        """
        q = float(judged(trials(tree, self.streams))[0].mean())
        return xr.Dataset(
            {
                "share_good": ((), q, {"meaning": "q, share of candidates that are good"}),
                "share_learned": (
                    (),
                    1 - (1 - q) ** self.heads,
                    {"meaning": "1 - (1 - q)^K, some head of K is good"},
                ),
            }
        )

    def claims(self) -> tuple[Claim, ...]:
        """Return what the paper says of the three scenarios."""
        return _multihead_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw Fig 6, the single heads, and which head attends."""
        return _multihead_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the scenarios and the candidates."""
        return _multihead_tables.tables(self, tree)
