"""What can be said of a single run on topic documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.trajectory import select
from attnscope.theory import li2023

if TYPE_CHECKING:
    from attnscope.lab.worlds.li2023 import TopicDocumentsPlay

LEARNED = "learned"


def claims(study: TopicDocumentsPlay) -> tuple[Claim, ...]:
    """Return the statements."""
    return (_onset(), _asleep(), _values(), _masks(), _useful(), _topics())


def measured(tree: xr.DataTree) -> float:
    """Return when ‖W^Kᵀ W^Q‖₂ reached 1; NaN if it did not, or began there."""
    norms = select(tree, "score_norm", LEARNED)
    return float(li2023.measured_onset(norms["time"].to_numpy(), norms.to_numpy()[0]).time)


def _onset() -> Claim:
    def error(tree: xr.DataTree, factor: float) -> np.ndarray:
        times = tree["observables/time"].to_numpy()
        # A linear system: a tenth of the noise is a hundredth of the product, at all times.
        ahead = tree["theory/score_norm"].to_numpy()[1] * factor**2
        known = np.isfinite(ahead)
        onset = li2023.measured_onset(times[known], ahead[known]).time
        if factor < 1 and np.isnan(onset):
            onset = times[-1]
        return np.array([abs(onset / measured(tree) - 1)])

    return Claim(
        key="onset",
        sentence="A run without any attention says when attention starts.",
        source="Beyond Li 2023, Fig 4",
        paper="one onset",
        statistic=lambda tree: error(tree, 1.0),
        criterion=below(0.05),
        control_sentence="the prediction for a tenth of the noise",
        control=lambda tree: error(tree, 0.1),
        measure="relative error of the onset",
    )


def _asleep() -> Claim:
    def size(tree: xr.DataTree, late: bool) -> np.ndarray:
        norms = select(tree, "score_norm", LEARNED).to_numpy()[0]
        return np.array([norms[-1] if late else norms[len(norms) // 4]])

    return Claim(
        key="two-stages",
        sentence="There are two stages: after a quarter of training, attention still sleeps.",
        source="Li 2023, section 5, Fig 4",
        paper="W^V first, then W^K and W^Q",
        statistic=lambda tree: size(tree, False),
        criterion=below(0.3),
        control_sentence="the end of training",
        control=lambda tree: size(tree, True),
        measure="‖W^Kᵀ W^Q‖₂, where 1 counts as awake",
    )


def _values() -> Claim:
    def gap(tree: xr.DataTree, moment: int) -> np.ndarray:
        same, other = select(tree, "blocks", LEARNED).to_numpy()[0, moment]
        return np.array([same - other])

    return Claim(
        key="values",
        sentence="The values learn topics: words of one topic vote for each other.",
        source="Li 2023, Theorem 2",
        paper="blocks",
        statistic=lambda tree: gap(tree, -1),
        criterion=above(0.3),
        control_sentence="before training",
        control=lambda tree: gap(tree, 0),
        measure="mean entry of W^V within a topic minus across topics",
    )


def _topics() -> Claim:
    def ratio(tree: xr.DataTree, moment: int) -> np.ndarray:
        _, same, other, _ = select(tree, "kinds", LEARNED).to_numpy()[0, moment]
        return np.array([same / other])

    return Claim(
        key="attention",
        sentence="Words attend more to other words of their topic than to those of other topics.",
        source="Li 2023, Theorem 3",
        paper="same topic above different topics",
        statistic=lambda tree: ratio(tree, -1),
        criterion=above(1.05),
        control_sentence="before training",
        control=lambda tree: ratio(tree, 0),
        measure="same topic over different topics",
    )


def _masks() -> Claim:
    return Claim(
        key="masks",
        sentence="The first thing attention learns is that a hidden word need not look at hidden "
        "words.",
        source="Beyond Li 2023",
        paper="not stated",
        statistic=lambda tree: select(tree, "kinds", LEARNED).to_numpy()[:, -1, -1],
        criterion=below(0.5),
        control_sentence="before training",
        control=lambda tree: select(tree, "kinds", LEARNED).to_numpy()[:, 0, -1],
        measure="attention of [MASK] to [MASK], over uniform attention",
    )


def _useful() -> Claim:
    def gain(tree: xr.DataTree, moment: int) -> np.ndarray:
        with_it, without = (
            select(tree, "loss", case).to_numpy()[0, moment] for case in (LEARNED, "uniform")
        )
        return np.array([without - with_it])

    return Claim(
        key="useful",
        sentence="Once it is awake, attention lowers the loss.",
        source="Beyond Li 2023",
        paper="not stated",
        statistic=lambda tree: gain(tree, -1),
        criterion=above(0.01),
        control_sentence="before training",
        control=lambda tree: gain(tree, 0),
        measure="loss without attention minus loss with it, in nats",
    )
