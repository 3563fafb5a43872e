"""The transformer of the study of ranks, what it reads, and bad settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope import AttnscopeError
from attnscope.experiment import solve
from attnscope.studies.boix2023 import RankStudy
from attnscope.studies.boix2023.rank import SmallTransformer, ranks_since_now

TINY = {"steps": 6, "batch": 4, "points": 3, "width": 8, "heads": 2, "seeds": 2}


def test_starts_differ_in_the_size_of_attention_alone() -> None:
    study = RankStudy(**TINY)
    one, small = (study.model(f"start × {scale:g}", 0) for scale in (1.0, 0.1))
    for large, little in zip(one.attention(), small.attention(), strict=True):
        torch.testing.assert_close(large.in_proj_weight * 0.1, little.in_proj_weight)
        torch.testing.assert_close(large.out_proj.weight * 0.1, little.out_proj.weight)
    assert torch.equal(one.words.weight, small.words.weight)


def test_the_model_does_not_look_ahead() -> None:
    model = SmallTransformer(3, 6, 8, 2, 2, 1.0, 0).eval()
    tokens = torch.tensor([[0, 1, 2, 0, 1, 2]])
    other = tokens.clone()
    other[0, -1] = 0
    torch.testing.assert_close(model(tokens)[:, :-1], model(other)[:, :-1])


def test_ranks_are_those_of_whole_products() -> None:
    old, new = (SmallTransformer(3, 6, 8, 2, 1, 1.0, seed) for seed in (0, 1))

    def product() -> torch.Tensor:
        """Return W_O W_V of the second head."""
        (layer,) = old.attention()
        return layer.out_proj.weight[:, 4:].detach().double() @ layer.in_proj_weight[20:].double()

    reading, before = ranks_since_now(old, torch.zeros(1, 6, dtype=torch.int64)), product()
    old.load_state_dict(new.state_dict())
    found = reading.read(old)
    assert found.shape == (1, 2, 2)
    values = torch.linalg.svdvals((product() - before).detach())
    assert found[0, 1, 1].item() == pytest.approx(float((values**2).sum() / values[0] ** 2))


def test_a_run_has_ranks_after_its_start_and_something_to_compare_them_with() -> None:
    study = RankStudy(**TINY)
    run = study.read(solve(study).tree)
    assert run.rank.dims == ("case", "seed", "step", "layer", "head", "product")
    assert np.isnan(run.rank.isel(step=0)).all()
    assert (run.rank.isel(step=-1) >= 1).all()
    assert (run.theory.random_rank > 1).all()
    assert len(study.figures(run)[0].panels) == 3
    assert [row[0] for row in study.tables(run)[0].rows] == list(study.cases)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"scales": (0.1, 1.0)}, "expected two or more, falling"),
        ({"scales": (1.0,)}, "expected two or more, falling"),
        ({"width": 10}, "expected a width that the number of heads divides"),
    ],
)
def test_bad_settings(settings: dict, sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        RankStudy(**settings)
