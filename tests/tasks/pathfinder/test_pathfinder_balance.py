"""Balanced images: the discs tell nothing any more, and every image has its partner."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.tasks.pathfinder import (
    BalancedSet,
    Pathfinder,
    balanced_rows,
    disc_distance,
    distance_accuracy,
    paired_rows,
    places_accuracy,
)
from attnscope.tasks.pathfinder.balance import BIN

TASK = Pathfinder(window=16, contour_length=3)


@pytest.fixture(scope="module")
def sets() -> tuple[BalancedSet, BalancedSet]:
    return BalancedSet(TASK, 8000, 0), BalancedSet(TASK, 8000, 1)


def labels_of(images: BalancedSet) -> np.ndarray:
    return images[np.arange(len(images))][1]


def test_both_labels_are_as_common_at_every_distance(sets: tuple[BalancedSet, BalancedSet]) -> None:
    for images in sets:
        labels, bins = labels_of(images), np.floor(images.distance / BIN)
        assert 0.2 * 8000 < len(images) < 0.6 * 8000
        for number in np.unique(bins):
            here = labels[bins == number]
            assert here.sum() * 2 == len(here)


def test_the_discs_tell_nothing_where_they_told_much(
    sets: tuple[BalancedSet, BalancedSet],
) -> None:
    train, test = sets
    error = 0.5 / np.sqrt(len(test))
    distance = distance_accuracy(train.distance, labels_of(train), test.distance, labels_of(test))
    places = places_accuracy(train.discs, labels_of(train), test.discs, labels_of(test), 16)
    assert distance == 0.5
    assert abs(places - 0.5) < 3 * error
    plain, other = TASK.sample(4000, 2), TASK.sample(2000, 3)
    distance = distance_accuracy(
        disc_distance(plain), plain.labels, disc_distance(other), other.labels
    )
    places = places_accuracy(
        plain.truth.markers, plain.labels, other.truth.markers, other.labels, 16
    )
    assert distance > 0.65
    assert places > 0.65
    # By distance alone the places still give the label away, which is why there are pairs.
    rows, more = (balanced_rows(disc_distance(each), each.labels) for each in (plain, other))
    places = places_accuracy(
        plain.truth.markers[rows],
        plain.labels[rows],
        other.truth.markers[more],
        other.labels[more],
        16,
    )
    assert places > 0.6


def test_images_are_those_of_the_task(sets: tuple[BalancedSet, BalancedSet]) -> None:
    images, labels = sets[0][np.array([0, 5])]
    drawn = TASK.sample(8000, 0)
    known = {
        image.tobytes(): label for image, label in zip(drawn.images, drawn.labels, strict=True)
    }
    for image, label in zip(images, labels, strict=True):
        assert known[image.tobytes()] == label


def test_mirrored_and_exchanged_discs_are_a_pair() -> None:
    one = np.array([[3.0, 4.0], [9.0, 12.5]])
    mirrored = np.array([16 - one[:, 0], one[:, 1]]).T
    turned = np.array([one[:, 1], 16 - one[:, 0]]).T[::-1]
    far = one + 2.0
    discs = np.stack([one, mirrored, one, turned, far])
    assert paired_rows(discs, np.array([0, 1, 1, 0, 0]), 16).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("labels", [[0, 0], [0, 1]])
def test_nothing_to_pair_gets_a_sentence(labels: list[int]) -> None:
    discs = np.array([[[1.0, 1.0], [2.0, 2.0]], [[1.0, 1.0], [12.0, 2.0]]])
    with pytest.raises(AttnscopeError, match="2 images have no two of different labels"):
        paired_rows(discs, np.array(labels), 16)
    with pytest.raises(AttnscopeError, match="expected more images"):
        balanced_rows(np.array([1.0, 5.0]), np.array(labels))


def test_no_image_gets_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="count = 0"):
        BalancedSet(TASK, 0, 0)
