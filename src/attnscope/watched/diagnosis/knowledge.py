"""Knowledge learned but attention not yet: the first stage of Snell 2021 and Li 2023."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.course import Course, course
from attnscope.watched.diagnosis.uniform import UNIFORM, layers_still_uniform

READINGS = ("distance_to_uniform", "loss")
LEARNED = 0.9
"""Something is known when the loss is below nine tenths of its first value."""
ADVICE = (
    "This is the first of two stages: words are learned under uniform attention, and attention "
    "follows what is known about them (Snell 2021, knowledge to translate individual words; Li "
    "2023, W^V before W^K and W^Q). Train on. Then the embeddings of words that matter and the "
    "attention they get raise each other (Lu 2021). If the loss stands and attention stays away, "
    "give W^Q and W^K a larger start (Li 2023); where words cannot be told from their frequencies "
    "attention does not follow at all (Snell 2021). Too long under uniform attention lets the "
    "knowledge drift to other positions (Snell 2021, section 6.1)."
)


def diagnose(tree: xr.DataTree) -> Diagnosis | None:
    """Say so if the loss has fallen while all heads of all layers are uniform."""
    distances = course(tree, "distance_to_uniform", "layer", "head")
    losses = course(tree, "loss")
    if distances is None or not distances.enough or losses is None or not losses.enough:
        return None
    with np.errstate(invalid="ignore"):
        away = (distances.now() >= UNIFORM).any()
    if away or not layers_still_uniform(distances).any():
        return None
    start, now = losses.start(), float(losses.now())
    if not (start > 0 and now < LEARNED * start):
        return None
    evidence = {
        "loss at first": start,
        "loss now": now,
        "largest distance to uniform, now": float(np.nanmax(distances.now())),
    }
    known = _words_known(course(tree, "lexical_probe", "row", "position"))
    if known is not None:
        evidence["probability of the answer given the best word, at first"] = known[0]
        evidence["probability of the answer given the best word, now"] = known[1]
    return Diagnosis(
        "knowledge",
        f"The model has learned, its attention has not yet: the loss fell from {start:.3g} to "
        f"{now:.3g} while every head stayed within {np.nanmax(distances.now()):.2g} of uniform "
        "attention. So far it knows what single words say, not where to look.",
        losses.since(_smooth(losses) < LEARNED * start),
        evidence,
        ADVICE,
    )


def _smooth(losses: Course) -> np.ndarray:
    width = min(5, len(losses.values))
    padded = np.pad(losses.values, (width // 2, width - 1 - width // 2), mode="edge")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=-1))


def _words_known(probe: Course | None) -> tuple[float, float] | None:
    if probe is None:
        return None
    best = np.where(np.isnan(probe.values), -np.inf, probe.values).max(axis=-1)
    best = np.where(np.isfinite(best), best, np.nan)
    if np.isnan(best[[0, -1]]).all(axis=-1).any():
        return None
    return float(np.nanmean(best[0])), float(np.nanmean(best[-1]))
