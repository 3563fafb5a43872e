"""What both sides of the agreement study, labelled and parallel text, train and read alike."""

from __future__ import annotations

import numpy as np

from attnscope.engines import Descent


def adam_in_order(steps: int, *, rate: float, seed: int, length: int) -> Descent:
    """Return Adam on batches that are numbered from 0 and served in order.

    A batch is a function of seed and number, so a run that was killed goes on bit for bit.

    Args:
        steps: of this run.
        rate: learning rate.
        seed: of the run.
        length: steps of the study's other runs, on whose axis this run's are mapped.
    """
    return Descent(
        lr=rate,
        optimizer="adam",
        batch_size=1,
        samples=steps + 1,
        seed=seed,
        tick=length / steps,
        shuffle=False,
    )


def sampled(available: int, wanted: int) -> np.ndarray:
    """Return which training rows are read, in random order."""
    return np.random.default_rng(1).permutation(available)[:wanted]
