"""Averages over the blocks of a matrix, against the theory's own matrices."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnscope.probes.topics.topic_blocks import (
    BLOCKS,
    DIAGONAL,
    SAME,
    block_gap,
    block_matrix,
    block_means,
    contrast,
    permuted,
)
from attnscope.tasks import TopicPopulation
from attnscope.theory import li2023

POPULATION = TopicPopulation(topics=4, words=3, tau=2)
TOPIC = POPULATION.topic_of


def test_blocks_of_theorem_2_come_back() -> None:
    blocks = li2023.value_blocks(POPULATION)
    means = block_means(blocks.matrix(POPULATION), TOPIC)
    expected = [blocks.mask, blocks.same, blocks.different, blocks.diagonal, 0.0]
    assert means == pytest.approx(expected, abs=1e-15)
    assert block_matrix(means, TOPIC) == pytest.approx(blocks.matrix(POPULATION), abs=1e-15)


def test_the_diagonal_is_a_block_of_its_own() -> None:
    means = block_means(li2023.corrected_example(POPULATION), TOPIC)
    assert means[SAME] == 0
    assert means[DIAGONAL] == pytest.approx(li2023.constants(POPULATION).c3)


def test_the_gap_is_the_one_of_the_theorems() -> None:
    matrix = np.random.default_rng(0).normal(size=(2, len(TOPIC), len(TOPIC)))
    means = block_means(matrix, TOPIC)
    expected = [li2023.measured_gap(one, POPULATION) for one in matrix]
    assert block_gap(means, POPULATION.words) == pytest.approx(expected, rel=1e-12)
    labelled = xr.DataArray(means, coords={"block": list(BLOCKS)}, dims=("seed", "block"))
    found = block_gap(labelled, POPULATION.words)
    assert found.dims == ("seed",)
    assert found.to_numpy() == pytest.approx(expected, rel=1e-12)


def test_several_matrices_are_made_of_their_means_at_once() -> None:
    means = np.arange(10.0).reshape(2, 5)
    both = block_matrix(means, TOPIC)
    assert np.array_equal(both[1], block_matrix(means[1], TOPIC))
    assert block_means(both, TOPIC)[:, :4] == pytest.approx(means[:, :4])


def test_contrast_knows_neither_diagonal_nor_scale() -> None:
    matrix = np.random.default_rng(0).normal(size=(len(TOPIC), len(TOPIC)))
    other = 3 * matrix + 100 * np.eye(len(TOPIC))
    assert contrast(other, TOPIC) == pytest.approx(contrast(matrix, TOPIC), rel=1e-12)
    shifted = matrix + (TOPIC[:, None] == TOPIC)
    spread = matrix[(TOPIC[:, None] != TOPIC) & (TOPIC >= 0) & (TOPIC[:, None] >= 0)].std()
    assert contrast(shifted, TOPIC) - contrast(matrix, TOPIC) == pytest.approx(1 / spread)


def test_permuted_topics_keep_their_number_and_leave_the_mask_out() -> None:
    mixed = permuted(TOPIC, 0)
    assert mixed[0] == -1
    assert sorted(mixed) == sorted(TOPIC)
    assert not np.array_equal(mixed, TOPIC)
    assert not np.array_equal(mixed, permuted(TOPIC, 1))
