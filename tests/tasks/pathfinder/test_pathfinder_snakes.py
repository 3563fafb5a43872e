"""How snakes grow: turns, gaps and distances from each other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from attnscope.tasks.pathfinder.occupancy import Geometry, Occupancy, distance
from attnscope.tasks.pathfinder.snakes import TURNS, Growth, grow

GEOMETRY = Geometry(window=32, padding=1.0, length=2.0, thickness=0.5, margin=1.0)


def growth(**change: object) -> Growth:
    fields = {
        "geometry": GEOMETRY,
        "seed_distance": 7.0,
        "continuity": 1.0,
        "contour_length": 6,
        "distractor_length": 3,
        "distractors": 4,
    }
    return Growth(**{**fields, **change})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def grown() -> tuple[np.ndarray, np.ndarray]:
    return grow(growth(), [np.random.default_rng([3, i]) for i in range(12)])


def turns(snakes: np.ndarray) -> np.ndarray:
    along = snakes[..., 1, :] - snakes[..., 0, :]
    angle = np.arctan2(along[..., 1], along[..., 0])
    return (np.diff(angle, axis=-1) + np.pi) % (2 * np.pi) - np.pi


def test_paddles_follow_each_other(grown: tuple[np.ndarray, np.ndarray]) -> None:
    for snakes in (grown[0], grown[1][np.isfinite(grown[1]).all(axis=(2, 3, 4))][None]):
        along = (snakes[..., 1, :] - snakes[..., 0, :]) / 2
        np.testing.assert_allclose(np.linalg.norm(along, axis=-1), 1)
        # Both neighbours are a margin away from the pivot between them.
        before = snakes[..., :-1, 1, :] + along[..., :-1, :]
        after = snakes[..., 1:, 0, :] - along[..., 1:, :]
        np.testing.assert_allclose(before, after, atol=1e-12)
        assert np.abs(turns(snakes)).max() <= TURNS.max() + 1e-9


def test_separate_strokes_keep_clear(grown: tuple[np.ndarray, np.ndarray]) -> None:
    targets, distractors = grown
    along = np.linspace(0, 1, 9)[:, None]
    for both, others in zip(targets, distractors, strict=True):
        snakes = [*both, *(o for o in others if np.isfinite(o).all())]
        strokes = [
            (s, p, stroke) for s, snake in enumerate(snakes) for p, stroke in enumerate(snake)
        ]
        for s, p, one in strokes:
            points = one[0] + along * (one[1] - one[0])
            for t, q, other in strokes:
                if s != t or abs(p - q) > 1:
                    # Places are looked at half a pixel apart, hence not to the last digit.
                    assert distance(points, other).min() > GEOMETRY.clearance - 0.05


def test_turns_follow_cosine_squared() -> None:
    """Where nothing is in the way: two paddles, far from each other and from the border."""
    sources = [np.random.default_rng([4, i]) for i in range(800)]
    wide = dataclasses.replace(GEOMETRY, window=60)
    shape = growth(geometry=wide, contour_length=2, distractors=0, seed_distance=16.0)
    snakes, none = grow(shape, sources)
    assert none.shape[1] == 0
    steps = np.rint(np.degrees(turns(snakes)) / 5).astype(int).ravel() + 17
    expected = np.cos(TURNS) ** 2
    observed = np.bincount(steps, minlength=len(TURNS))
    # Rare turns are counted together, for the test wants five of each.
    parts = [slice(0, 3), *(slice(i, i + 1) for i in range(3, 32)), slice(32, 35)]
    seen = np.array([observed[part].sum() for part in parts])
    due = np.array([expected[part].sum() for part in parts]) / expected.sum()
    assert stats.chisquare(seen, due * seen.sum()).pvalue > 0.01


def test_continuity_straightens() -> None:
    sources = [[np.random.default_rng([5, i]) for i in range(20)] for _ in range(2)]
    loose, _ = grow(growth(distractors=0, contour_length=3), sources[0])
    straight, _ = grow(growth(distractors=0, contour_length=3, continuity=3.0), sources[1])
    assert np.abs(turns(straight)).mean() < 0.7 * np.abs(turns(loose)).mean()
    assert np.abs(turns(straight)).max() < np.pi / 6


def test_what_is_added_can_be_removed() -> None:
    occupancy = Occupancy(GEOMETRY, 2)
    lanes, stroke = np.array([0, 1]), np.array([[[10.0, 10.0], [12.0, 10.0]]] * 2)
    points = np.array([[[11.0, 12.0], [11.0, 14.0], [0.5, 5.0], [40.0, 5.0]]] * 2)
    assert not occupancy.taken(lanes, points)[:, :2].any()
    occupancy.add(lanes, stroke)
    np.testing.assert_array_equal(occupancy.taken(lanes, points), [[True, False, True, True]] * 2)
    # What is continued does not stand in the way; the border does.
    own = occupancy.taken(lanes, points, stroke)
    np.testing.assert_array_equal(own, [[False, False, True, True]] * 2)
    occupancy.remove(lanes[:1], stroke[:1])
    np.testing.assert_array_equal(occupancy.taken(lanes, points)[:, 0], [False, True])
    occupancy.clear(lanes)
    assert not occupancy.taken(lanes, points)[:, :2].any()


def test_distance_from_a_stroke() -> None:
    stroke = np.array([[0.0, 0.0], [2.0, 0.0]])
    points = np.array([[1.0, 3.0], [5.0, 4.0], [-3.0, 4.0], [0.5, 0.0]])
    np.testing.assert_allclose(distance(points, stroke), [3.0, 5.0, 5.0, 0.0])
