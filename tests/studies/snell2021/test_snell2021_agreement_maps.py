"""The maps of a sentence: every cell is the recorded number, at every step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from _agreement_tree import STEPS, make
from scipy.special import expit

from attnscope.errors import AttnscopeError
from attnscope.report.attention_maps import AttentionMaps, weights_of
from attnscope.studies.snell2021.agreement.maps import maps_of
from attnscope.trajectory import Readings

NEAR = 0.004
"""What 254 levels of the square root can miss."""


def maps(sentence: int, tree: xr.DataTree) -> list[AttentionMaps]:
    spec: Any = SimpleNamespace(sentence=sentence)
    return maps_of(spec, Readings(tree))


def test_a_labelled_sentence_is_one_map_of_three_lines() -> None:
    tree = make("labelled").tree
    (shown,) = maps(2, tree)
    length = tree["data/length_dev"].to_numpy()
    start, stop = int(length[:2].sum()), int(length[:3].sum())
    assert shown.steps == tuple(STEPS)
    assert shown.levels.shape == (len(STEPS), 1, 1, 3, length[2])
    names = tree["data/word"].to_numpy()[tree["data/source_dev"].to_numpy()[start:stop]]
    assert shown.keys == (tuple(names),)
    label = tree["data/target_dev"].to_numpy()[2]
    assert ("bad", "good")[label] in shown.title
    weights = weights_of(shown.levels)[:, 0, 0]
    runs = tree["observables"].to_dataset().isel(cell_dev=slice(start, stop))
    normal, uniform = runs.isel(run=0), runs.isel(run=4)
    for row, right in enumerate(
        (normal["alpha_dev"], expit(normal["lexical_dev"]), expit(uniform["lexical_dev"]))
    ):
        np.testing.assert_allclose(weights[:, row], right, atol=NEAR)


def test_a_pair_is_a_map_for_each_quantity() -> None:
    tree = make("parallel").tree
    shown = maps(1, tree)
    assert [part.name for part in shown] == ["alpha", "beta", "beta-uf"]
    owner = tree["data/sentence_dev"].to_numpy()
    rows = np.flatnonzero(owner == 1)
    length = tree["data/length_dev"].to_numpy()
    start = int(length[: rows[0]].sum())
    shape = (len(rows), int(length[rows[0]]))
    assert all(part.levels.shape == (len(STEPS), 1, 1, *shape) for part in shown)
    words = tree["data/word"].to_numpy()
    assert shown[0].queries == (tuple(words[tree["data/target_dev"].to_numpy()[rows]]),)
    cells = slice(start, start + shape[0] * shape[1])
    lexical = tree["observables/lexical_dev"].isel(run=4, step=-1, cell_dev=cells).to_numpy()
    np.testing.assert_allclose(
        weights_of(shown[2].levels)[-1, 0, 0], np.exp(lexical).reshape(shape), atol=NEAR
    )


def test_steps_that_are_not_there_yet_are_left_out() -> None:
    tree = make("labelled").tree
    lexical = tree["observables/lexical_dev"].to_numpy()
    lexical[4, 6:] = np.nan
    (shown,) = maps(0, tree)
    assert shown.steps == tuple(STEPS[:6])
    lexical[4] = np.nan
    assert maps(0, tree) == []


def test_a_sentence_that_was_not_evaluated_is_refused() -> None:
    with pytest.raises(AttnscopeError, match="sentence = 60: expected 0 to 59"):
        maps(60, make("labelled").tree)
