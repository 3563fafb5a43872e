"""``song2024.pathfinder`` on tiny images, from drawing to verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Heat, Line
from attnscope.studies.song2024 import pathfinder
from attnscope.studies.song2024._training_claims import RANDOM, UNIFORM
from attnscope.studies.song2024.pathfinder import PathfinderStudy

pytestmark = pytest.mark.xdist_group("song2024 pathfinder")  # one fixture for all

SMALL = PathfinderStudy().but(
    seeds=2,
    steps=8,
    points=3,
    rate=1e-3,
    warmup=2,
    batch=4,
    held_out=10,
    last=100,
    probe=4,
    window=10,
    contour_length=2,
    train=300,
    test=100,
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("path") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert "all 10 runs are complete" in done.attrs["status"]
    for name in ("held_out", "train_loss", "gradient_norm", "attention", "end_held_out"):
        assert np.isfinite(done[f"observables/{name}"]).all()


def test_labels_are_checked(done: xr.DataTree) -> None:
    assert done["data/agrees"].to_numpy().all()
    table = {row[0]: row[1] for row in SMALL.tables(SMALL.read(done))[-1].rows}
    assert table["images checked"] == pathfinder.CHECKED
    assert table["flood fill from disc to disc agrees with the label"] == pathfinder.CHECKED


def test_counts_of_grey_values_tell_nothing(done: xr.DataTree) -> None:
    # 100 images: three standard errors are 15 points.
    assert abs(float(done["theory/bag_accuracy"]) - 0.5) < 0.15


def test_the_distance_of_the_discs_tells_something(done: xr.DataTree) -> None:
    assert 0.65 < float(done["theory/distance_accuracy"]) < 0.9
    assert 0.65 < float(done["theory/places_accuracy"]) < 0.9


def test_claims_are_examined(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert set(found) == {claim.key for claim in SMALL.claims()}
    assert all(finding.seeds == 2 for finding in found.values())
    # The published order: the Gaussian kernel is the better one here.
    assert found["order"].paper == "by 5.47 points"
    assert found["order"].sentence.startswith("At the end gaussian")
    for key, finding in found.items():
        assert finding.control_fails, (key, finding.control)


def test_the_scales_that_learn_show_only_pairs() -> None:
    small = PathfinderStudy().but(
        **{**PathfinderStudy.quick, "train": 3000, "test": 2000, "steps": 2, "points": 2}
    )
    train, test = small.sequences()
    assert 0 < len(train) < 3000
    for rows in (train, test):
        labels = rows.batch(torch.arange(len(rows))).labels
        assert int(labels.sum()) * 2 == len(rows)
    problem = small.build("softmax", 0)
    attention = problem.model.attention_weights(train.batch(torch.arange(2)).ids)  # type: ignore[operator]
    assert attention[0].shape == (2, 2, 36, 36)  # patches of 2 x 2 of 12 x 12
    frozen = small.build(UNIFORM, 0)
    weights = frozen.model.attention_weights(train.batch(torch.arange(2)).ids)  # type: ignore[operator]
    for layer in weights:
        assert torch.equal(layer, torch.full_like(layer, 1 / 36))
    assert not frozen.model.attention[0].W_Q.requires_grad  # type: ignore[index, union-attr]


def test_figures_show_images(done: xr.DataTree) -> None:
    figures = SMALL.figures(SMALL.read(done))
    assert [figure.name for figure in figures] == ["curves", "anatomy", "samples"]
    panels = figures[-1].panels
    assert len(panels) == 2 * pathfinder.SHOWN
    heat = panels[0].marks[0]
    assert isinstance(heat, Heat)
    np.testing.assert_array_equal(heat.values[::-1], done["data/shown"].to_numpy()[0])
    lines = [mark for mark in panels[-1].marks if isinstance(mark, Line)]
    # The first point of the first contour, where y goes up as in the heat map.
    first = done["data/shown_snakes"].to_numpy()[-1, 0, 0, 0]
    assert (lines[0].x[0], lines[0].y[0]) == pytest.approx((first[0], 10 - first[1]))


def test_images_are_drawn_once_for_all_runs() -> None:
    one, other = SMALL.sequences()[0], SMALL.sequences()[0]
    assert one.images is other.images  # type: ignore[attr-defined]
    batch = one.batch(torch.tensor([3, 1]))
    expected = SMALL.task.sample(4, pathfinder.TRAIN)
    np.testing.assert_array_equal(batch.ids, expected.images.reshape(4, -1)[[3, 1]])
    assert batch.labels.tolist() == expected.labels[[3, 1]].tolist()
    assert batch.mask is None


def test_the_published_setting() -> None:
    paper = PathfinderStudy()
    assert paper.shape() == (256, 1024)
    training = paper.training
    assert (training.batch, training.rate, training.warmup) == (128, 2e-4, 312)
    assert (paper.train, paper.test, paper.task.contour_length) == (160_000, 20_000, 14)
    assert len(paper.sequences()[0]) == 160_000
    assert SMALL.build("softmax", 0).rows == 300
    assert paper.cases[-1] == RANDOM
    assert paper.departures() == ""


def test_old_specs_are_read() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 300, "correct": False, "rate": 1e-3}
    more = {"warmup": 30, "batch": 32, "window": 10, "contour_length": 2}
    assert PathfinderStudy.from_json({**old, **more}) == PathfinderStudy().but(
        steps=300, rate=1e-3, **more
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": 3}, "window = 3: expected 8 or more"),
        ({"contour_length": 0}, "contour_length = 0"),
        ({"train": 0}, "train = 0: expected 1 or more"),
        ({"patch": 5}, "patch = 5 with a window of 32 pixels"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, int], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        PathfinderStudy().but(**change)
