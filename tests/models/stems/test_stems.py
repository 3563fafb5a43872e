"""Patches and neighbours: shapes, places, and what padding does."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import conv1d, gelu

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.stems import Neighbours, Patches


def test_a_patch_is_its_own_pixels_and_place() -> None:
    torch.manual_seed(0)
    stem = Patches(6, 3, 4)
    image = torch.randint(0, 256, (2, 36))
    out = stem(image)
    assert out.shape == (2, 4, 4)
    square = image.view(2, 6, 6).float() * 2 / 255
    for number, (row, column) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        pixels = square[:, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3].reshape(2, 9)
        expected = stem.dense(pixels) + stem.rows[row] + stem.columns[column]
        torch.testing.assert_close(out[:, number], expected)


def test_a_margin_shows_what_lies_around() -> None:
    torch.manual_seed(0)
    stem = Patches(6, 2, 4, margin=1)
    image = torch.randint(0, 256, (1, 36))
    around = torch.nn.functional.pad(image.view(6, 6).float() * 2 / 255, (1, 1, 1, 1))
    expected = stem.dense(around[2:6, 4:8].reshape(16)) + stem.rows[1] + stem.columns[2]
    torch.testing.assert_close(stem(image)[0, 5], expected)


def test_neighbours_are_a_convolution(float64: None) -> None:
    torch.manual_seed(0)
    stem = Neighbours(7, 9, 4, 3)
    ids = torch.randint(0, 7, (2, 9))
    kernel = stem.beside.weight.view(4, 4, 3)  # a window is (entry, token)
    seen = conv1d(stem.embedding(ids).mT, kernel, stem.beside.bias, padding=1).mT
    torch.testing.assert_close(stem(ids), gelu(seen) + stem.positions.weight)


def test_padding_changes_no_token_that_is_there() -> None:
    torch.manual_seed(0)
    model = KernelClassifier(
        7,
        9,
        2,
        width=8,
        head_width=4,
        dropout=0.0,
        pooling="max",
        stem=lambda w: Neighbours(7, 9, w, 3),
    )
    ids = torch.randint(1, 7, (2, 5))
    longer = torch.cat([ids, torch.zeros(2, 4, dtype=torch.long)], dim=1)
    torch.testing.assert_close(model(longer, longer != 0), model(ids, ids != 0))


def test_the_largest_entry_counts() -> None:
    model = KernelClassifier(7, 9, 2, width=8, head_width=4, dropout=0.0, pooling="max")
    x = torch.randn(2, 5, 8)
    pooled = model.norm(x).amax(dim=1)
    expected = model.head_2(torch.relu(model.head_1(pooled)))
    torch.testing.assert_close(model.classify(x), expected)


def test_bad_input_gets_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="patch = 4 with a window of 6 pixels"):
        Patches(6, 4, 8)
    with pytest.raises(AttnscopeError, match="margin = -1: expected 0 or more"):
        Patches(6, 3, 8, margin=-1)
    with pytest.raises(AttnscopeError, match="a convolution over 4 tokens"):
        Neighbours(7, 9, 8, 4)
    with pytest.raises(AttnscopeError, match="a convolution over 11 tokens of a sequence of 9"):
        Neighbours(7, 9, 8, 11)
