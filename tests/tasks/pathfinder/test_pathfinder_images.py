"""Pathfinder images: labels against a flood fill, and images that depend on their number alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from attnscope.errors import AttnscopeError
from attnscope.tasks.pathfinder import (
    Pathfinder,
    PathfinderImages,
    PathfinderSet,
    check_labels,
    sample_sheet,
    strokes,
)

SMALL = Pathfinder(window=16, contour_length=3)


@pytest.fixture(scope="module")
def small() -> PathfinderImages:
    return SMALL.sample(60, 0)


@pytest.mark.parametrize(
    "task",
    [SMALL, Pathfinder(contour_length=7), Pathfinder(window=12, contour_length=3)],
    ids=["16", "32", "12"],
)
def test_a_flood_fill_agrees_with_the_labels(task: Pathfinder) -> None:
    data = task.sample(12, 5)
    assert check_labels(task, data).all()
    assert 0 < data.labels.mean() < 1


def test_the_flood_fill_notices_wrong_labels(small: PathfinderImages) -> None:
    wrong = PathfinderImages(small.images, 1 - small.labels, small.truth)
    assert not check_labels(SMALL, wrong).any()


def test_the_published_size(small: PathfinderImages) -> None:
    data = Pathfinder().sample(2, 0)
    assert data.images.shape == (2, 32, 32)
    assert data.images.dtype == np.uint8
    assert data.truth.snakes.shape == (2, 2, 14, 2, 2)
    assert data.truth.distractors.shape == (2, 5, 4, 2, 2)
    assert small.truth.distractors.shape == (60, 5, 1, 2, 2)
    assert len(data) == 2


def test_an_image_depends_on_its_seed_and_number_alone(small: PathfinderImages) -> None:
    again = SMALL.at([41, 3], 0)
    np.testing.assert_array_equal(again.images, small.images[[41, 3]])
    np.testing.assert_array_equal(again.labels, small.labels[[41, 3]])
    np.testing.assert_array_equal(again.truth.snakes, small.truth[np.array([41, 3])].snakes)
    np.testing.assert_array_equal(SMALL.sample(7, 0).images, small.images[:7])
    assert not np.array_equal(SMALL.sample(7, 1).images, small.images[:7])


def test_discs_sit_on_the_tips_that_the_label_says(small: PathfinderImages) -> None:
    truth, rows = small.truth, np.arange(len(small))
    np.testing.assert_array_equal(truth.markers[:, 0], truth.tips[rows, truth.marked[:, 0], 0])
    np.testing.assert_array_equal(truth.markers[:, 1], truth.tips[rows, truth.marked[:, 1], 1])
    np.testing.assert_array_equal(truth.marked[:, 0] == truth.marked[:, 1], small.labels == 1)
    x, y = np.floor(truth.markers).astype(int).transpose(2, 0, 1)
    assert (small.images[rows[:, None], y, x] == 255).all()


def test_origins_are_seed_distance_apart_and_labels_are_fair(small: PathfinderImages) -> None:
    origins = small.truth.tips[:, :, 0]
    np.testing.assert_allclose(np.linalg.norm(origins[:, 0] - origins[:, 1], axis=1), 4.0)
    wide = Pathfinder(window=32, contour_length=3, seed_distance=9.0).sample(4, 0).truth.tips
    np.testing.assert_allclose(np.linalg.norm(wide[:, 0, 0] - wide[:, 1, 0], axis=1), 9.0)
    assert 0.2 < small.labels.mean() < 0.8


def test_strokes_hold_targets_and_distractors(small: PathfinderImages) -> None:
    lines = strokes(small.truth)
    assert lines.shape == (60, 2 * 3 + 5, 2, 2)
    there = lines[np.isfinite(lines).all(axis=(2, 3))]
    np.testing.assert_allclose(np.linalg.norm(there[:, 1] - there[:, 0], axis=1), 2.0)
    assert there.min() >= 1
    assert there.max() <= 15


def test_a_set_draws_what_is_asked_for(small: PathfinderImages) -> None:
    images = PathfinderSet(SMALL, 60, 0)
    rows = np.array([50, 2, 50])
    pixels, labels = images[rows]
    np.testing.assert_array_equal(pixels, small.images.reshape(60, -1)[rows])
    np.testing.assert_array_equal(labels, small.labels[rows])
    pixels, labels = images[np.arange(60)]
    np.testing.assert_array_equal(pixels, small.images.reshape(60, -1))
    np.testing.assert_array_equal(labels, small.labels)
    assert len(images) == 60


def test_a_set_draws_no_image_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    original = Pathfinder.at

    def at(task: Pathfinder, indices: np.ndarray, seed: int) -> PathfinderImages:
        drawn.extend(np.asarray(indices).tolist())
        return original(task, indices, seed)

    monkeypatch.setattr(Pathfinder, "at", at)
    monkeypatch.setattr("attnscope.tasks.pathfinder.images.LANES", 4)
    images = PathfinderSet(SMALL, 12, 0)
    for rows in ([11, 3], [3, 0], [5, 6, 7, 8, 9], [11, 10]):
        images[np.array(rows)]
    assert len(drawn) == len(set(drawn)) <= 12


def test_a_sheet_of_samples(tmp_path: Path) -> None:
    path = sample_sheet(tmp_path / "sheet.png", SMALL, rows=1, zoom=2)
    # Four framed images of each label, 18 pixels wide, and 4 pixels between.
    assert imread(path).shape[:2] == (2 * 18, 2 * (8 * 18 + 4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": 4}, "window = 4: expected 8 or more"),
        ({"contour_length": 0}, "contour_length = 0: expected 1 or more"),
        ({"distractors": -1}, "distractors = -1: expected 0 or more"),
        ({"distractor_length": 0}, "distractor_length = 0: expected 1 or more"),
        ({"paddle_length": 0.0}, r"paddle_length = 0.0: expected a finite number above 0"),
        ({"padding": 8.0}, r"padding = 8.0: .* half of window = 16"),
        ({"seed_distance": 8.0}, r"seed_distance = 8.0: .* half of window = 16"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]


def test_a_contour_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnscope.tasks.pathfinder.snakes.ATTEMPTS", 20)
    with pytest.raises(AttnscopeError, match=r"contour_length = 40 .* window of 16"):
        Pathfinder(window=16, contour_length=40).sample(1, 0)
    # Of many images at once none is found: they do not all try to the end.
    with pytest.raises(AttnscopeError, match=r"in 200 attempts in a window of 16"):
        Pathfinder(window=16, contour_length=40).sample(100, 0)
    for count in (0, -1):
        with pytest.raises(AttnscopeError, match=f"count = {count}"):
            SMALL.sample(count, 0)
        with pytest.raises(AttnscopeError, match=f"count = {count}"):
            PathfinderSet(SMALL, count, 0)
