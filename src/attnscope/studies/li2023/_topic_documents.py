"""What the studies of Li 2023 share: the topics, the masks, where the paper is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.bounds import Count, Fraction, Several
from attnscope.experiment import Study
from attnscope.tasks import TopicDocuments

CITATION = (
    "Li, Li, Risteski. How Do Transformers Learn Topic Structure: Towards a Mechanistic "
    "Understanding. ICML 2023."
)


@dataclass(frozen=True)
class TopicDocumentsStudy(Study):
    """Fields that describe the topics and the masks, with the paper's values."""

    points: Several = 201
    """Record points, evenly spaced."""
    topics: Count = 10
    """T, number of topics."""
    words: Count = 10
    """v, words of each topic."""
    p_m: Fraction = 0.15
    """Share of positions that are selected."""
    p_c: Fraction = 0.1
    """Share of the selected positions that keep their word."""
    p_r: Fraction = 0.1
    """Share of the selected positions that get a random word."""

    citation = CITATION

    def task(self, **more: object) -> TopicDocuments:
        """Return the task; ``more`` are fields of :class:`TopicDocuments`, such as ``tau``."""
        return TopicDocuments(
            topics=self.topics,
            words=self.words,
            p_m=self.p_m,
            p_c=self.p_c,
            p_r=self.p_r,
            **more,  # type: ignore[arg-type]
        )

    def truth(self) -> xr.Dataset:
        """Return the topic of every word of the dictionary."""
        topic = np.asarray(self.task().topic_of)
        return xr.Dataset({"topic": ("vocab", topic, {"meaning": "topic, -1 for [MASK]"})})
