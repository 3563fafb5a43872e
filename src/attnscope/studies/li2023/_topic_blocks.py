"""What the studies of Stage 1 share: a matrix over words that is read block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Count, Several
from attnscope.engines import Observable
from attnscope.probes.topics.topic_blocks import BLOCKS, block_gap, block_means, permuted
from attnscope.report import Heat
from attnscope.studies.li2023._topic_documents import TopicDocumentsStudy
from attnscope.tasks import TopicPopulation
from attnscope.theory import li2023
from attnscope.trajectory import Readings, final

Matrix = Callable[[nn.Module], np.ndarray]
"""Reads a matrix over words off a model, in double precision."""
GAP = "average same-topic minus different-topic entry, over c₃/v"
SHUFFLED = "topics permuted over the words at random"


@dataclass(frozen=True)
class TopicBlocksStudy(TopicDocumentsStudy):
    """Documents of infinite length and of those of the synthetic experiments."""

    seeds: Count = 3
    """Number of runs of each case, with seeds 0, 1, ..."""
    words: Several = 10
    """v, words of each topic; a block needs two of them."""
    tau: Count = 3
    """τ, topics of a document."""
    shortest: Count = 100
    """Words of the shortest documents."""
    longest: Count = 150
    """Words of the longest documents; all lengths between are equally likely."""

    labels: ClassVar = {"block": BLOCKS}

    def check(self) -> None:
        """Let theory say what is wrong with the numbers."""
        li2023.topic_gap(self.population())

    def population(self, tau: int | None = None) -> TopicPopulation:
        """Return all documents of infinite length with ``tau`` topics."""
        return TopicPopulation(
            self.topics, self.words, tau or self.tau, self.p_m, self.p_c, self.p_r
        )

    @property
    def expected(self) -> float:
        """Average same-topic minus different-topic entry in theory, c₃/v, whatever τ is."""
        return li2023.topic_gap(self.population())

    def gap(self, blocks: Any) -> Any:
        """Return the average same-topic minus different-topic entry over c₃/v."""
        return block_gap(blocks, self.words) / self.expected

    def final_gap(self, run: Readings, case: str) -> Any:
        """Return the gap over c₃/v at the end of the runs of a case."""
        return self.gap(final(run.of(case).blocks))

    def by_topic(
        self, name: str, case: str, measure: Callable[[np.ndarray, np.ndarray], Any]
    ) -> Callable[[Readings, bool], list[Any]]:
        """Return the statistic of a final matrix, by the words' topics or by shuffled ones."""
        topic = self.population().topic_of

        def statistic(run: Readings, shuffled: bool) -> list[Any]:
            matrices = enumerate(final(run.of(case).get(name)).to_numpy())
            return [measure(m, permuted(topic, i) if shuffled else topic) for i, m in matrices]

        return statistic

    def readings(
        self, key: str, matrix: Matrix, name: str, meaning: str
    ) -> tuple[Observable, Observable]:
        """Return the readings of the block means of a matrix, and of all its entries."""
        topic = self.population().topic_of
        words = f"of {name}: {', '.join(BLOCKS)}; means, but the largest of the mask row"

        def blocks(model: nn.Module) -> Tensor:
            return torch.from_numpy(block_means(matrix(model), topic))

        def whole(model: nn.Module) -> Tensor:
            return torch.from_numpy(matrix(model))

        return (
            Observable("blocks", blocks, ("block",), "", words),
            Observable(key, whole, ("row", "column"), "", meaning),
        )


def heat(values: np.ndarray | xr.DataArray, label: str) -> Heat:
    """Return a matrix over words as a mark, with a word's number at the middle of its cell."""
    edges = np.arange(len(values) + 1) - 0.5
    return Heat(edges, edges, np.asarray(values), label, diverging=True)
