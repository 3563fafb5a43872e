"""What is made on the host goes to the device as a whole, with what is noted on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines.placement import placed
from attnscope.models.sequences import row_lengths
from attnscope.tasks.host import on_host, padding, words_of_rows

META = torch.device("meta")
HERE = np.array([[True, True, True], [True, False, False]])


def test_without_a_device_nothing_happens() -> None:
    made = object()
    assert on_host(lambda: made) is made


def test_what_is_made_sees_numbers_and_arrives_on_the_device() -> None:
    seen: list[int] = []

    def make() -> dict[str, Any]:
        ids = torch.from_numpy(np.arange(3)) + torch.arange(3)
        seen.append(int(ids.sum()))  # Meta has no numbers to add up.
        return {"ids": ids, "pair": on_host(lambda: (ids, 2)), "mask": padding(HERE)}

    with placed(META, nn.Linear(1, 1)):
        made = on_host(make)
        assert torch.arange(3).device == META
    assert seen == [6]
    assert {made["ids"].device, made["pair"][0].device, made["mask"].device} == {META}
    assert words_of_rows(made["mask"]).tolist() == [3, 1]


def test_lengths_of_a_mask_that_was_moved_are_known_on_the_host() -> None:
    mask = padding(HERE)
    assert mask is not None

    def loss(model: nn.Module, held: Tensor = mask) -> Tensor:
        assert held.device == META
        lengths = row_lengths(held.shape, held)
        assert lengths is not None
        assert lengths.tolist() == [3, 1]
        return torch.zeros(())

    with placed(META, model := nn.Linear(1, 1), loss) as (there,):
        there(model)


def test_a_mask_without_padding_is_none() -> None:
    assert padding(np.ones((2, 3), dtype=np.bool_)) is None


def test_lengths_are_the_same_with_and_without_the_note() -> None:
    noted, plain = padding(HERE), torch.from_numpy(HERE)
    assert noted is not None
    assert words_of_rows(plain) is None
    ours, theirs = row_lengths(HERE.shape, noted), row_lengths(HERE.shape, plain)
    assert ours is not None
    assert theirs is not None
    assert ours.tolist() == theirs.tolist()
