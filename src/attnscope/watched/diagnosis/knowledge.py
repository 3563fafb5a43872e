"""Knowledge learned but attention not yet: the first stage of Snell 2021 and Li 2023."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.losses import LEARNED, Losses, losses_of
from attnscope.watched.diagnosis.uniform import UNIFORM, layers_still_uniform

READINGS = ("distance_to_uniform", "loss")
ADVICE = (
    "This is the first of two stages: words are learned under uniform attention, and attention "
    "follows what is known about them (Snell 2021, knowledge to translate individual words; Li "
    "2023, W^V before W^K and W^Q). Train on. Then the embeddings of words that matter and the "
    "attention they get raise each other (Lu 2021). If the loss stands and attention stays away, "
    "give W^Q and W^K a larger start (Li 2023); where words cannot be told from their frequencies "
    "attention does not follow at all (Snell 2021). Too long under uniform attention lets the "
    "knowledge drift to other positions (Snell 2021, section 6.1)."
)


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if the loss has fallen while all heads of all layers are uniform."""
    distances, losses = chart.get("distance_to_uniform"), losses_of(chart)
    if distances is None or losses is None:
        return None
    with np.errstate(invalid="ignore"):
        away = (distances.now() >= UNIFORM).any()
    if away or not layers_still_uniform(distances).any():
        return None
    start, now = losses.first, losses.now
    if not losses.learned:
        return None
    evidence = {
        "loss at first": start,
        "loss now": now,
        "largest distance to uniform, now": float(np.nanmax(distances.now())),
    }
    known = _words_known(chart.courses.get("lexical_probe"))
    if known is not None:
        evidence["probability of the answer given the best word, at first"] = known[0]
        evidence["probability of the answer given the best word, now"] = known[1]
    return Diagnosis(
        "knowledge",
        f"The model has learned, its attention has not yet: the loss fell from {start:.3g} to "
        f"{now:.3g} while every head stayed within {np.nanmax(distances.now()):.2g} of uniform "
        "attention. So far it knows what single words say, not where to look.",
        _learned_since(losses),
        evidence,
        ADVICE,
        kind="stage",
    )


def _learned_since(losses: Losses) -> int:
    """Return the step from which on the level of the loss has been below what counts as learned."""
    levels = losses.levels() if len(losses.values) >= losses.width else losses.values
    high = np.flatnonzero(levels >= LEARNED * losses.first)
    ends = losses.steps[len(losses.steps) - len(levels) :]
    return int(ends[min(high[-1] + 1, len(ends) - 1)] if high.size else losses.steps[0])


def _words_known(probe: Course | None) -> tuple[float, float] | None:
    if probe is None:
        return None
    best = np.where(np.isnan(probe.values), -np.inf, probe.values).max(axis=-1)
    best = np.where(np.isfinite(best), best, np.nan)
    if np.isnan(best[[0, -1]]).all(axis=-1).any():
        return None
    return float(np.nanmean(best[0])), float(np.nanmean(best[-1]))
