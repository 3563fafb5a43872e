"""Entropy collapsed: every query looks at one word, and not because that was learned."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.theory.zhai2023 import entropy_floor, largest_scale
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.losses import LEARNED, Losses, losses_of
from attnscope.watched.diagnosis.places import listed
from attnscope.watched.diagnosis.training import training_of

READINGS = ("relative_entropy", "loss")
COLLAPSED = 0.1
"""A layer whose heads have, on average, less than a tenth of the entropy of uniform attention: of
100 words that a query sees it looks at about 1.6. One sharp head is nothing bad; a whole layer is
what Zhai et al. (2023) call entropy collapse."""
HALF = 0.5
"""Attention sharpens from half of the largest entropy down to a tenth. If it does so because that
helps, the loss falls meanwhile."""


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if a whole layer is one-hot though the loss did not fall while it became so."""
    entropies, losses = chart.get("relative_entropy"), losses_of(chart)
    if entropies is None or losses is None or len(losses.values) < losses.width:
        return None
    spread = _mean_of_heads(entropies.values)
    now = Course(entropies.steps, spread).now()
    with np.errstate(invalid="ignore"):
        low = np.flatnonzero(now < COLLAPSED)
    if not low.size or losses.solved:
        return None
    steps = entropies.steps
    low = np.array([layer for layer in low if not _earned(steps, spread[:, layer], losses)])
    if not low.size:
        return None
    worst = int(low[np.argmin(now[low])])
    with np.errstate(invalid="ignore"):
        since = entropies.since(spread[:, worst] < COLLAPSED)
    then = losses.level(since)
    where = listed(low.tolist(), "layer", spread.shape[1])
    told, evidence, scaled = _scale(chart, worst)
    return Diagnosis(
        "collapsed",
        f"Attention entropy has collapsed in {where}: heads of layer {worst} have "
        f"{100 * now[worst]:.2g} % of the entropy of uniform attention, so a query looks at one "
        f"word, and the loss did not fall while it became so ({then:.3g} then, {losses.now:.3g} "
        f"now).{told}",
        since,
        {
            "entropy over its maximum, now": float(now[worst]),
            "entropy over its maximum, at first": float(spread[0, worst]),
            "loss when it collapsed": then,
            "loss now": losses.now,
        }
        | evidence,
        _advice(chart, since, scaled),
        worst,
        layers=tuple(low.tolist()),
    )


def _earned(steps: np.ndarray, spread: np.ndarray, losses: Losses) -> bool:
    """Whether the loss fell while entropy did, and has kept what it won.

    A loss that falls from its own spike has won nothing: it is compared with the best level that
    there was before attention sharpened.
    """
    with np.errstate(invalid="ignore"):
        wide = np.flatnonzero(spread >= HALF * max(np.nanmax(spread[:3]), COLLAPSED))
        sharp = np.flatnonzero(~(spread < COLLAPSED))
    began = int(steps[wide[-1]]) if wide.size else 0
    ended = int(steps[min(sharp[-1] + 1, len(steps) - 1)]) if sharp.size else 0
    if ended <= began:
        # It was sharp from the start, or became so between two readings: nothing was earned.
        return False
    early = losses.until(began)
    best = float(early.levels().min()) if len(early.values) >= losses.width else losses.first
    best = min(best, losses.first)
    return losses.level(ended) < LEARNED * best and losses.now < LEARNED * best


def _scale(chart: Chart, layer: int) -> tuple[str, dict[str, float], float]:
    """Return what the scale of the logits allows, by the floor of Zhai et al. for one row.

    The third number is the factor that takes logits to where half of the entropy is certain.
    """
    scales, entropies = chart.get("logit_scale"), chart.get("entropy")
    relative = chart.get("relative_entropy")
    if scales is None or entropies is None or relative is None:
        return "", {}, np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        lengths = entropies.values[:3, layer] / relative.values[:3, layer]
    if not np.isfinite(lengths).any():
        return "", {}, np.nan
    keys = float(np.exp(np.nanmedian(lengths)))
    scale = float(np.nanmedian(scales.now()[layer]))
    if not (np.isfinite(scale) and keys > 1.5 and scale > 0):
        return "", {}, np.nan
    floor = float(entropy_floor(scale, keys) / np.log(keys))
    wanted = largest_scale(0.5 * np.log(keys), keys)
    told = (
        f" Logits of norm {scale:.3g} over {keys:.0f} keys allow an entropy of {100 * floor:.2g} % "
        f"and no less; from {wanted:.3g} down half of the entropy is certain."
    )
    evidence = {"norm of a query's logits": scale, "least entropy that it allows": floor}
    return told, evidence, wanted / scale


def _advice(chart: Chart, since: int, factor: float) -> str:
    training = training_of(chart)
    said = "Entropy falls as the logits grow (Zhai et al. 2023). "
    if training.architecture.get("query_key_norm"):
        said += "Queries and keys are normalised here, so it is their gains that grow: bound them. "
    else:
        said += "Bound them: normalise queries and keys, or sigmaReparam on W^Q and W^K. "
    if np.isfinite(factor) and factor < 1:
        said += f"W^Q and W^K each times {np.sqrt(factor):.2g} would do at once. "
    if training.optimizer:
        said += f"Take smaller steps for them: {training.slower(since)}. "
        if not training.settings.get("weight_decay"):
            said += "There is no weight decay; on W^Q and W^K it bounds the logits too. "
    else:
        said += "A smaller learning rate, warm-up and weight decay on W^Q and W^K help too. "
    return said + (
        "A saturated softmax passes on next to no gradient and can hold training at a bad point. A "
        "dip that comes back is normal (JoMA, Tian et al. 2024)."
    )


def _mean_of_heads(values: np.ndarray) -> np.ndarray:
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
