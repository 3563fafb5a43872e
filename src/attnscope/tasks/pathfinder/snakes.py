"""Snakes of paddles that keep clear of each other, grown in many Pathfinder images at once.

Every image draws from a source of random numbers of its own. Growing them side by side is therefore
only faster: which images share a call changes none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.tasks.pathfinder.occupancy import CELLS, Geometry, Occupancy

HOPELESS = 10
"""Times :data:`ATTEMPTS`, over all images of a call: without any success by then it is given up."""
TURNS = np.radians(np.arange(-85, 90, 5))
"""Changes of orientation from one paddle to the next; larger ones have probability 0."""
DRAWS = 3
"""A paddle that would not be free is drawn again twice."""
PLACES = 8
"""Places that a distractor may try to begin at."""
RETRIALS = 4
"""A distractor that does not fit is begun again at most so many times."""
ATTEMPTS = 2000
"""Pairs of target snakes that an image may begin before it counts as impossible."""
CENTRE = 4.0
"""Least side of the square in the middle where the first snake begins, in pixels."""
_START = 5
_DEGREES = np.stack([np.cos(np.radians(range(360))), np.sin(np.radians(range(360)))], axis=-1)


@dataclass(frozen=True)
class Growth:
    """How snakes grow.

    Args:
        geometry: room and paddles.
        seed_distance: distance between the tails of the two target snakes.
        continuity: how much a turn counts; the probability of a turn by an angle a is
            proportional to cos²(min(continuity |a|, 90°)).
        contour_length: paddles of a target snake.
        distractor_length: paddles of a distractor.
        distractors: number of distractors asked for.
    """

    geometry: Geometry
    seed_distance: float
    continuity: float
    contour_length: int
    distractor_length: int
    distractors: int


def grow(growth: Growth, sources: list[np.random.Generator]) -> tuple[np.ndarray, np.ndarray]:
    """Grow the snakes of one image for each source of random numbers.

    Returns:
        The target snakes ``(image, snake, paddle, end, xy)`` and the distractors, in the same
        form; a distractor that found no room is NaN.
    """
    occupancy = Occupancy(growth.geometry, len(sources))
    targets = _targets(growth, occupancy, sources)
    return targets, _distractors(growth, occupancy, sources)


def _targets(
    growth: Growth, occupancy: Occupancy, sources: list[np.random.Generator]
) -> np.ndarray:
    paddles = growth.contour_length
    strokes = np.empty((len(sources), 2, paddles, 2, 2))
    left = np.arange(len(sources))
    tried = ATTEMPTS
    for attempt in range(ATTEMPTS):
        if not left.size:
            return strokes
        # Of many images side by side none has been found: more of the same finds none either.
        if len(left) == len(sources) and attempt * len(left) >= HOPELESS * ATTEMPTS:
            tried = attempt * len(left)
            break
        lots = np.stack([sources[i].random(_START + 2 * paddles * DRAWS) for i in left])
        occupancy.clear(left)
        done = _pairs(growth, occupancy, left, lots, strokes)
        left = left[~done]
    raise AttnscopeError(
        f"no two snakes of contour_length = {paddles} were found in {tried:,} attempts in a "
        f"window of {growth.geometry.window}: expected a shorter contour or a larger window."
    )


def _pairs(
    growth: Growth,
    occupancy: Occupancy,
    lanes: np.ndarray,
    lots: np.ndarray,
    strokes: np.ndarray,
) -> np.ndarray:
    """Try one pair of target snakes in each lane; return in which it succeeded."""
    window, apart = growth.geometry.window, growth.seed_distance
    # The first tail lies twice the seed distance from the border, or nearly so in a small window.
    side = max(window - 4 * apart, CENTRE)
    first = (window - side) / 2 + lots[:, :2] * side
    tails = np.stack([first, first + apart * _unit(lots[:, 2])], axis=1)
    alive = np.arange(len(lanes))
    draws = lots[:, _START:].reshape(len(lanes), growth.contour_length, 2, DRAWS)
    for paddle in range(growth.contour_length):
        for snake in range(2):
            here = lanes[alive]
            if not here.size:
                break
            if paddle == 0:
                turn = _unit(lots[alive, 3 + snake])
                tail = tails[alive, snake]
                new = np.stack([tail, tail + growth.geometry.length * turn], axis=1)
                free = ~occupancy.taken(here, _points(new, growth.geometry.length)).any(axis=1)
            else:
                last = strokes[here, snake, paddle - 1]
                new, free = _extend(growth, occupancy, here, last, draws[alive, paddle, snake])
            alive, here, new = alive[free], here[free], new[free]
            strokes[here, snake, paddle] = new
            occupancy.add(here, new)
    done = np.zeros(len(lanes), dtype=bool)
    done[alive] = True
    return done


def _distractors(
    growth: Growth, occupancy: Occupancy, sources: list[np.random.Generator]
) -> np.ndarray:
    count, paddles = growth.distractors, growth.distractor_length
    found = np.full((len(sources), count, paddles, 2, 2), np.nan)
    size = 2 * PLACES + 1 + paddles * DRAWS
    lots = np.stack([source.random((count, RETRIALS + 1, size)) for source in sources])
    for number in range(count):
        left = np.arange(len(sources))
        for trial in range(RETRIALS + 1):
            if not left.size:
                break
            snake, done = _distractor(growth, occupancy, left, lots[left, number, trial])
            found[left[done], number] = snake[done]
            left = left[~done]
    return found


def _distractor(
    growth: Growth, occupancy: Occupancy, lanes: np.ndarray, lots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Try one distractor in each lane; return it and in which lanes it succeeded."""
    geometry, paddles = growth.geometry, growth.distractor_length
    room = geometry.window - 2 * geometry.padding
    places = geometry.padding + room * lots[:, : 2 * PLACES].reshape(-1, PLACES, 2)
    tail, free = _first_free(places, ~occupancy.taken(lanes, places))
    new = np.stack([tail, tail + geometry.length * _unit(lots[:, 2 * PLACES])], axis=1)
    free &= ~occupancy.taken(lanes, _points(new, growth.geometry.length)).any(axis=1)
    draws = lots[:, 2 * PLACES + 1 :].reshape(-1, paddles, DRAWS)
    snake = np.empty((len(lanes), paddles, 2, 2))
    alive = np.arange(len(lanes))
    for paddle in range(paddles):
        if not alive.size:
            break
        if paddle:
            last = snake[alive, paddle - 1]
            new, free = _extend(growth, occupancy, lanes[alive], last, draws[alive, paddle])
        for earlier in range(paddle):
            failed = alive[~free]
            occupancy.remove(lanes[failed], snake[failed, earlier])
        alive, new = alive[free], new[free]
        snake[alive, paddle] = new
        occupancy.add(lanes[alive], new)
    done = np.zeros(len(lanes), dtype=bool)
    done[alive] = True
    return snake, done


def _extend(
    growth: Growth,
    occupancy: Occupancy,
    lanes: np.ndarray,
    last: np.ndarray,
    draws: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Add a paddle to a snake in each lane; return it, and whether it is free.

    The new end lies on a circle of radius length + margin about the pivot, which is a margin ahead
    of the last end. Ends that are taken have probability 0; of a few draws the first counts whose
    whole paddle is free.
    """
    geometry = growth.geometry
    along = (last[:, 1] - last[:, 0]) / geometry.length
    pivot = last[:, 1] + geometry.margin * along
    cosine, sine = np.cos(TURNS), np.sin(TURNS)
    turned = np.stack(
        [
            along[:, :1] * cosine - along[:, 1:] * sine,
            along[:, :1] * sine + along[:, 1:] * cosine,
        ],
        axis=-1,
    )
    ends = pivot[:, None] + (geometry.length + geometry.margin) * turned
    bend = growth.continuity * np.abs(TURNS)
    # The cosine of 90° is not quite 0 in floating point, and nothing else may be left.
    weights = np.where(bend < np.pi / 2, np.cos(bend) ** 2, 0) * ~occupancy.taken(lanes, ends, last)
    reached = np.cumsum(weights, axis=1)
    lots = draws * reached[:, -1:]
    chosen = (reached[:, None, :] <= lots[..., None]).sum(axis=-1).clip(max=len(TURNS) - 1)
    head = np.take_along_axis(ends, chosen[..., None], axis=1)
    step = np.take_along_axis(turned, chosen[..., None], axis=1)
    strokes = np.stack([head - geometry.length * step, head], axis=2)
    points = _points(strokes, geometry.length).reshape(len(lanes), -1, 2)
    taken = occupancy.taken(lanes, points, last).reshape(len(lanes), DRAWS, -1).any(axis=-1)
    return _first_free(strokes, ~taken & (reached[:, -1:] > 0))


def _first_free(items: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first free item of each row, and whether there is one."""
    first = free.argmax(axis=1)
    return items[np.arange(len(items)), first], np.asarray(free.any(axis=1))


def _unit(lots: np.ndarray) -> np.ndarray:
    """Return unit vectors; directions are uniform in whole degrees."""
    return np.asarray(_DEGREES[(360 * lots).astype(np.int64)])


def _points(strokes: np.ndarray, length: float) -> np.ndarray:
    """Return places along strokes ``(..., end, xy)`` of a length, as ``(..., place, xy)``."""
    tail, head = strokes[..., :1, :], strokes[..., 1:, :]
    along = np.linspace(0, 1, int(np.ceil(length * CELLS)) + 1)
    return np.asarray(tail + along[:, None] * (head - tail))
