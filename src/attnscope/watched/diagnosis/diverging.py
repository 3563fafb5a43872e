"""Diverging or spiked: the loss is no number any more, or gives back what it had won."""

from __future__ import annotations

import numpy as np

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.losses import Losses, above, losses_of
from attnscope.watched.diagnosis.training import Training, training_of

READINGS = ("loss",)
GIVEN_BACK = 0.5
"""A loss that has given back half of what it had won is on its way up, not between two batches."""
OF_FIRST = 0.1
"""A loss that had won nothing has to rise by a tenth of its first value."""
NOT_BACK = 0.1
"""A loss that exploded is back when it is within a tenth of what it had won."""
BLAZE = 4
"""Four losses in a row that are half as large again as all before them need no further proof."""
AROUND = 3
"""A jump is told from the medians of three losses before and behind it."""
STRETCH = 20
"""A jump is over within so many steps; what takes longer is a rise."""
LATER = (
    " If attention entropy fell before the loss rose, the attention logits drive it: bound the "
    "spectral norm of W^Q and W^K (sigmaReparam, Zhai et al. 2023)."
)


def diagnose(chart: Chart) -> Diagnosis | None:
    """Say so if the loss is no longer finite, rises for good, or jumped and did not come back."""
    course = chart.courses.get("loss")
    losses = losses_of(chart)
    if course is None or losses is None:
        return None
    training = training_of(chart)
    return _broken(course, chart, training) or _rising(losses, chart, training)


def _broken(course: Course, chart: Chart, training: Training) -> Diagnosis | None:
    values = course.values
    finite = np.isfinite(values)
    infinite = np.flatnonzero(np.isinf(values))
    last = int(np.flatnonzero(finite)[-1])
    lost = [int(infinite[0])] if infinite.size else []
    lost += [last + 1] if last + 1 < len(values) else []
    if not lost:
        return None
    at = min(lost)
    before = values[:at][np.isfinite(values[:at])]
    # It began when the loss last was no higher than at first.
    fine = np.flatnonzero(values[:at] <= before[0]) if before.size else np.empty(0, int)
    since = min(int(fine[-1]) + 1, at) if fine.size else at
    step = int(course.steps[since])
    told = f" The last loss before it was {before[-1]:.3g}." if before.size else ""
    why, advice = _cause(training, step)
    return Diagnosis(
        "diverging",
        f"Training has diverged: the loss is not finite at step {int(course.steps[at]):,}.{told}"
        f"{why}",
        step,
        ({"last finite loss": float(before[-1])} if before.size else {}) | _updates(chart),
        advice,
    )


def _rise(losses: Losses) -> tuple[int, float, float] | None:
    """Return where the lowest level ends, it, and the level now, if the loss has risen for good."""
    width = losses.width
    if len(losses.values) < 2 * width:
        return None
    levels = losses.levels()
    last = BLAZE if _blazing(losses.values) else width
    # The lowest level that has no loss in common with the last one.
    at = int(np.argmin(levels[: len(levels) - last]))
    lowest, now = float(levels[at]), float(np.median(losses.values[-last:]))
    if now - lowest <= max(GIVEN_BACK * (losses.first - lowest), OF_FIRST * abs(losses.first)):
        return None
    if not (last == BLAZE or above(losses.values[at : at + width], losses.values[-width:])):
        return None
    # It began when the level last was about where it was lowest; a level stands for its middle.
    won = max(losses.first - lowest, OF_FIRST * abs(losses.first))
    low = np.flatnonzero(levels[: len(levels) - last] <= lowest + 0.1 * min(won, now - lowest))
    return int(low[-1]) + width // 2, lowest, now


def _blown_up(losses: Losses) -> tuple[int, float, float] | None:
    """Return the same for a loss that once was far above all before it, and is not back.

    What it has to be above its old level is less then: that something happened is beyond doubt.
    """
    values, width = losses.values, losses.width
    if len(values) < 2 * width + BLAZE:
        return None
    highest = np.maximum.accumulate(np.abs(values))
    least = np.lib.stride_tricks.sliding_window_view(values, BLAZE).min(axis=-1)
    high = np.flatnonzero(least[width:] > 1.5 * highest[width - 1 : len(least) - 1])
    if not high.size or int(high[0]) + 2 * width > len(values):
        return None
    at = int(high[0]) + width
    before, after = values[at - width : at], values[-width:]
    level, now = float(np.median(before)), float(np.median(after))
    won = losses.first - level
    if now - level <= max(NOT_BACK * won, OF_FIRST * NOT_BACK * abs(losses.first)):
        return None
    return (at - 1, level, now) if above(before, after) else None


def _blazing(values: np.ndarray) -> bool:
    """Whether the last few losses are far above all others that there have been."""
    return bool(values[-BLAZE:].min() > 1.5 * np.abs(values[:-BLAZE]).max())


def _rising(losses: Losses, chart: Chart, training: Training) -> Diagnosis | None:
    risen = _rise(losses) or _blown_up(losses)
    if risen is None:
        return None
    at, lowest, now = risen
    first, rise = losses.first, now - lowest
    jump = _jump(losses, max(at - losses.width, 0), rise)
    evidence = {"loss at first": first, "lowest loss": lowest, "loss now": now} | _updates(chart)
    if jump is None or _slowly(losses, jump, int(losses.steps[at]), training):
        since = int(losses.steps[at])
        why, advice = _cause(training, since)
        return Diagnosis(
            "diverging",
            f"Training is diverging: the loss is {now:.3g}, was {lowest:.3g} at step {since:,} and "
            f"{first:.3g} at first.{why}",
            since,
            evidence,
            advice,
        )
    since, peak = int(losses.steps[jump]), float(losses.values[jump:].max())
    why, advice = _cause(training, since)
    return Diagnosis(
        "spike",
        f"The loss jumped at step {since:,} and has not come back: {lowest:.3g} before, "
        f"{peak:.3g} at its highest, {now:.3g} now.{why}",
        since,
        evidence | {"highest loss since": peak},
        "Go back to a checkpoint from before the jump and pass over its batches (as for PaLM, "
        f"Chowdhery et al. 2022): a model that was thrown so far rarely returns. {advice}",
    )


def _slowly(losses: Losses, jump: int, lowest: int, training: Training) -> bool:
    """Whether the loss rose before it jumped, or with a learning rate that grows and grows."""
    at = int(losses.steps[jump])
    if training.jump(at) is not None:
        return False
    early = Losses(losses.steps[:jump], losses.values[:jump])
    return training.grown(lowest) > 2 or _rise(early) is not None


def _jump(losses: Losses, lowest: int, rise: float) -> int | None:
    """Return where the loss made most of its rise at once, ``None`` if it rose little by little."""
    values = losses.values
    places = np.arange(max(lowest, AROUND), len(values) - AROUND + 1)
    if not places.size:
        return None
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(values, AROUND), axis=-1)
    before = smooth[places - AROUND]
    # The highest level within the stretch that follows.
    padded = np.concatenate([smooth, np.full(STRETCH, -np.inf)])
    after = np.lib.stride_tricks.sliding_window_view(padded, STRETCH).max(axis=-1)[places]
    grown = after - before
    found = int(np.argmax(grown))
    if grown[found] < rise * 0.9:
        return None
    threshold = before[found] + 0.5 * rise
    start = int(places[found])
    high = np.flatnonzero(values[start:] > threshold)
    return start + int(high[0]) if high.size else start


def _cause(training: Training, step: int) -> tuple[str, str]:
    """Return what is known of the cause, and advice for this optimizer."""
    jump = training.jump(step)
    if jump is not None:
        at, before, after = jump
        return (
            f" The learning rate went from {before:.2g} to {after:.2g} by step {at:,}.",
            f"Mend the schedule first: a learning rate that grows {after / before:,.0f}-fold is "
            f"the cause to rule out before any other. Then {training.slower(step)}.",
        )
    grown = training.grown(step)
    if grown > 2:
        return (
            f" The learning rate has grown {grown:.2g}-fold since step {step // 2:,}.",
            f"The learning rate is still growing: end the warm-up. Then {training.slower(step)}."
            + LATER,
        )
    words = training.slower(step)
    return "", words[0].upper() + words[1:] + "." + LATER


def _updates(chart: Chart) -> dict[str, float]:
    """Return how large steps are for the weights of attention, if that was recorded."""
    updates = chart.courses.get("update_ratio")
    if updates is None:
        return {}
    largest = updates.values[np.isfinite(updates.values)]
    if not largest.size:
        return {}
    return {"largest step of W^Q, W^K, W^V or W^O over its size": float(largest.max())}
