from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from attnscope.errors import AttnscopeError
from attnscope.experiment import run
from attnscope.probes.landscapes.landscape import StagedLoss
from attnscope.report import publish
from attnscope.report.page import Page
from attnscope.results import findings
from attnscope.studies.song2024.landscape import Landscape
from attnscope.studies.song2024.landscape.claims import BLOCKS, surfaces_of
from attnscope.trajectory import Readings, final

TINY = {
    "seeds": 1,
    "steps": 8,
    "points": 3,
    "first": 4,
    "rate": 2e-3,
    "batch": 4,
    "dropout": 0.0,
    "window": 8,
    "contour_length": 1,
    "train": 40,
    "probe": 4,
    "draws": 2,
    "grid": 9,
    "radius": 0.2,
    "path_points": 5,
}

pytestmark = pytest.mark.xdist_group("song2024-landscape")


@pytest.fixture(scope="module")
def study() -> Landscape:
    return Landscape().but(**TINY)


@pytest.fixture(scope="module")
def tree(study: Landscape, tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return run(study, tmp_path_factory.mktemp("landscape") / "run", workers=1)


@pytest.fixture(scope="module")
def read(study: Landscape, tree: xr.DataTree) -> Readings:
    return study.read(tree)


def test_both_kernels_share_the_first_stage(study: Landscape, tree: xr.DataTree) -> None:
    params = tree["params"].to_dataset()
    name = "layers.0.attention.W_Q"
    softmax, gaussian = (
        params[name].isel(run=study.runs().index((case, 0))).to_numpy() for case in study.cases[:2]
    )
    np.testing.assert_array_equal(softmax[:2], gaussian[:2])  # the start, and the change
    assert not np.array_equal(softmax[-1], gaussian[-1])


def test_surfaces_and_spectra_are_those_of_the_last_model(
    study: Landscape, tree: xr.DataTree, read: Readings
) -> None:
    model = study.task().model("gaussian", 0)
    params = tree["params"].to_dataset().isel(run=study.runs().index(("gaussian", 0)), snapshot=-1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.as_tensor(params[name].to_numpy()))
        center = study.fixed_loss()(model.eval()).item()
    surfaces = surfaces_of(read, "gaussian")
    assert surfaces.shape == (1, 2, 9, 9)
    np.testing.assert_allclose(surfaces[0, :, 4, 4], center, rtol=1e-5)
    sharp = final(read.largest)
    assert sharp["block"].to_numpy().tolist() == list(BLOCKS)
    assert np.isfinite(sharp).all()
    # A block's spectrum lies within that of all parameters.
    assert (sharp <= sharp.sel(block="all") * (1 + 1e-3)).all()
    mass = final(read.mass)
    np.testing.assert_allclose(mass.sel(case=["softmax", "normalised-gaussian"]), 1, rtol=1e-5)
    assert (np.abs(mass.sel(case="gaussian") - 1) > 0.1).all()
    start = tree["observables/surface"].isel(end=0).to_numpy()
    assert np.isnan(start).all()


def test_the_path_of_the_second_stage_has_its_true_loss(
    study: Landscape, tree: xr.DataTree
) -> None:
    theory = tree["theory"].to_dataset()
    assert theory["path_step"].to_numpy().tolist() == [4, 5, 6, 7, 8]
    np.testing.assert_array_equal(theory["off_plane"][:, -1], 0)
    probe = tree["observables/probe"].isel(step=-1, measure=0).to_numpy()
    ends = [probe[study.runs().index((case, 0))] for case in study.cases]
    np.testing.assert_allclose(theory["path_loss"][:, -1], ends, rtol=1e-5)
    assert (theory["path_share"].sum("component") <= 1 + 1e-9).all()


def test_claims_are_decided_and_figures_drawn(
    study: Landscape, tree: xr.DataTree, read: Readings, tmp_path: Path
) -> None:
    found = findings(tree)
    assert [one.key for one in found] == [claim.key for claim in study.claims()]
    assert all(np.isfinite(one.ours) for one in found)
    figures, tables = study.figures(read), study.tables(read)
    assert len(figures[0].surfaces) == 3
    assert "filter-normalised" in figures[0].surfaces[0].title
    assert "off it up to" in figures[3].panels[0].title
    assert [len(table.rows) for table in tables] == [3, 6, 15]
    page = Page("S", "s", "ok", found, figures[:1], tables, images=("png", "svg", "pdf"))
    publish(tmp_path, page)


def test_the_loss_comes_in_two_parts_that_make_the_whole(study: Landscape) -> None:
    loss, model = study.fixed_loss(), study.task().model("softmax", 0).eval()
    assert isinstance(loss, StagedLoss)
    with torch.no_grad():
        torch.testing.assert_close(loss.finish(model, loss.stage(model)), loss(model))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data": "images"}, "data = 'images': expected 'pathfinder' or 'text'"),
        ({"first": 8}, "first = 8 of 8 steps"),
        ({"draws": 1}, "draws = 1: expected 2 or more"),
        ({"radius": 0.0}, r"radius = 0\.0"),
        ({"path_points": 6}, "path_points = 6: expected 3 to 5"),
        ({"engine": "flow"}, "engine = 'flow'"),
        ({"grid": 4}, "grid = 4: expected 5 or more"),
        ({"contour_length": 0}, "contour_length = 0"),
    ],
)
def test_what_cannot_run_gets_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Landscape().but(**{**TINY, **changes})


def test_more_than_there_is_to_learn_from_is_refused() -> None:
    with pytest.raises(AttnscopeError, match="batch = 50: expected at most the 40"):
        Landscape().but(**{**TINY, "batch": 50}).build("softmax", 0)


def test_old_specs_are_read() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 140, "correct": False, "rate": 1e-3}
    more = {"first": 100, "window": 8, "contour_length": 1, "data": "pathfinder"}
    study = Landscape.from_json({**old, **more})
    assert study == Landscape().but(steps=140, rate=1e-3, **more)
    assert study.task().task == study.images  # type: ignore[union-attr]
