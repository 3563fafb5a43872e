from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from attnscope.errors import AttnscopeError
from attnscope.experiment import run
from attnscope.models.kernel_classifier_probe import least_smoothed
from attnscope.probes.landscapes.landscape import StagedLoss
from attnscope.report import publish
from attnscope.report.page import Page
from attnscope.results import findings
from attnscope.studies.song2024.landscape import Landscape
from attnscope.studies.song2024.landscape.claims import BLOCKS, CASES, TWIN, reached, surfaces_of
from attnscope.studies.song2024.landscape.tasks import KERNELS, loss_and_gradient
from attnscope.trajectory import Readings, final

TINY = {
    "seeds": 1,
    "data": "letters",
    "steps": 60,
    "first": 10,
    "points": 7,
    "rate": 3e-3,
    "batch": 8,
    "dropout": 0.0,
    "tokens": 4,
    "letters": 2,
    "train": 40,
    "held_out": 20,
    "probe": 8,
    "draws": 2,
    "grid": 5,
    "radii": (0.1, 0.2),
    "path_points": 6,
    "smoothing": 0.03,
    "loss_target": 0.6,
    "gradient_target": 9.0,
}
"""Easy targets: every run comes to them within a few looks."""

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


def snapshots(study: Landscape, tree: xr.DataTree, case: str) -> np.ndarray:
    params = tree["params"].to_dataset()["layers.0.attention.W_Q"]
    return params.isel(run=study.runs().index((case, 0))).to_numpy()


def test_all_kernels_share_the_first_stage_and_the_twin_does_not(
    study: Landscape, tree: xr.DataTree
) -> None:
    softmax, gaussian, twin = (snapshots(study, tree, c) for c in ("softmax", "gaussian", TWIN))
    np.testing.assert_array_equal(softmax[:2], gaussian[:2])  # the start, and the change
    np.testing.assert_array_equal(softmax[0], twin[0])
    assert not np.array_equal(softmax[1], twin[1])
    assert not np.array_equal(softmax[2], gaussian[2])


def test_runs_end_where_both_targets_are_reached(
    study: Landscape, tree: xr.DataTree, read: Readings
) -> None:
    for case in CASES:
        assert reached(read, case).all()
        steps = int(read.of(case).stats.get("steps")[0])
        assert study.first <= steps < study.training.steps
    assert (final(read.end_loss) <= study.loss_target).all()
    assert (final(read.end_loss) > least_smoothed(0.03)).all()
    assert (final(read.gradient_norm) <= study.gradient_target).all()
    rows = study.tables(read)[0].rows
    assert {row[2] for row in rows} == {"reached"}


def test_a_target_that_is_never_reached_leaves_claims_undecided(tmp_path: Path) -> None:
    study = Landscape().but(**{**TINY, "steps": 14, "loss_target": 0.14, "path_points": 4})
    tree = run(study, tmp_path / "run", workers=1)
    read = study.read(tree)
    assert not any(reached(read, case).any() for case in CASES)
    found = findings(tree)
    assert {one.verdict for one in found} == {"undecided"}
    assert all(np.isnan(one.ours) for one in found)
    assert all("never came to the targets" in one.reason for one in found)
    assert {row[2] for row in study.printed(read)[0].rows} == {"never reached"}
    assert all(np.isnan(row[2]) for row in study.tables(read)[1].rows)  # type: ignore[arg-type]
    assert study.figures(read)


def test_surfaces_and_spectra_are_those_of_the_last_model(
    study: Landscape, tree: xr.DataTree, read: Readings
) -> None:
    surfaces, split = surfaces_of(read, "gaussian"), final(read.of("gaussian").split)
    assert surfaces.shape == (1, 2, 2, 5, 5)
    center = final(read.of("gaussian").end_loss).to_numpy()
    np.testing.assert_allclose(surfaces[:, :, :, 2, 2], center[0], rtol=1e-5)
    # Sums or shares held: the same model in the middle, another one around it.
    held = split.sel(moves=["sums", "shares"])
    np.testing.assert_allclose(held[..., 2, 2], center[0], rtol=1e-5)
    assert (np.abs(held - surfaces[:, study.middle]).max(("seed", "draw", "a", "b")) > 1e-6).all()
    assert np.isnan(split.sel(moves="both")).all()
    freed = final(read.of("softmax").split).sel(moves="both")
    np.testing.assert_allclose(freed[..., 2, 2], final(read.of("softmax").end_loss)[0], rtol=1e-5)
    sharp = final(read.largest)
    assert sharp["block"].to_numpy().tolist() == list(BLOCKS)
    # A block's spectrum lies within that of all parameters.
    assert (sharp <= sharp.sel(block="all") * (1 + 1e-3)).all()
    mass = final(read.mass)
    np.testing.assert_allclose(mass.sel(case=["softmax", "normalised-gaussian"]), 1, rtol=1e-5)
    assert (np.abs(mass.sel(case="gaussian") - 1) > 0.05).all()
    start = tree["observables/surface"].isel(end=0).to_numpy()
    assert np.isnan(start).all()


def test_the_path_of_the_second_stage_has_its_true_loss(
    study: Landscape, tree: xr.DataTree
) -> None:
    theory, model = tree["theory"].to_dataset(), study.task().model("softmax", 0)
    assert theory["path_step"].to_numpy().tolist() == [10, 12, 18, 28, 42, 60]
    params = tree["params"].to_dataset().isel(run=study.runs().index(("softmax", 0)), snapshot=1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.as_tensor(params[name].to_numpy()))
    known = theory["path_loss"].isel(kernel=0).to_numpy()
    if np.isfinite(known).any():
        np.testing.assert_allclose(known[0], study.fixed_loss()(model.eval()).item(), rtol=1e-5)


def test_the_gradient_norm_is_that_of_all_parameters(study: Landscape) -> None:
    model, loss = study.task().model("softmax", 0), study.fixed_loss()
    value, norm = loss_and_gradient(model, loss)
    whole = loss(model.eval())
    whole.backward()
    squares = sum(float(p.grad.square().sum()) for p in model.parameters() if p.grad is not None)
    assert value.item() == pytest.approx(whole.item())
    assert norm.item() == pytest.approx(np.sqrt(squares), rel=1e-5)


def test_claims_have_numbers_and_figures_are_drawn(
    study: Landscape, tree: xr.DataTree, read: Readings, tmp_path: Path
) -> None:
    found = findings(tree)
    assert [one.key for one in found] == [claim.key for claim in study.claims()]
    # So near the start a surface may fall on average, which has no logarithm.
    assert all(np.isfinite(one.ours) for one in found if one.key.startswith(("sharp", "lap")))
    figures, tables = study.figures(read), study.tables(read)
    assert len(figures[0].surfaces) == 3
    assert "filter-normalised" in figures[0].surfaces[0].title
    assert [len(table.rows) for table in tables[:3]] == [6, 6 * 6 + 4, 24]
    page = Page("S", "s", "ok", found, figures[:2], tables, images=("png",))
    publish(tmp_path, page)


def test_every_case_has_a_kernel_and_only_the_twin_repeats_one() -> None:
    assert tuple(sorted(KERNELS)) == tuple(sorted(CASES))
    assert len({str(kernel) for case, kernel in KERNELS.items() if case != TWIN}) == 5


def test_the_loss_comes_in_two_parts_that_make_the_whole(study: Landscape) -> None:
    loss, model = study.fixed_loss(), study.task().model("softmax", 0).eval()
    assert isinstance(loss, StagedLoss)
    with torch.no_grad():
        torch.testing.assert_close(loss.finish(model, loss.stage(model)), loss(model))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data": "images"}, "data = 'images': expected 'pathfinder', 'text' or 'letters'"),
        ({"first": 60}, "first = 60 of 60 steps"),
        ({"draws": 1}, "draws = 1: expected 2 or more"),
        ({"radii": (0.5, 0.2)}, r"radii = \(0\.5, 0\.2\): expected one or more rising numbers"),
        ({"radii": (0.0, 0.2)}, r"radii = \(0\.0, 0\.2\)"),
        ({"path_points": 52}, "path_points = 52: expected 3 to 51"),
        ({"engine": "flow"}, "engine = 'flow'"),
        ({"grid": 4}, "grid = 4: expected 5 or more"),
        ({"grid": 6}, "grid = 6: expected an odd number"),
        ({"contour_length": 0}, "contour_length = 0"),
        ({"loss_target": 0.13}, r"loss_target = 0\.13 with smoothing = 0\.03: .* above 0\.1347"),
        ({"gradient_target": 0.0}, "gradient_target = 0.0"),
        ({"smoothing": 0.5}, "smoothing = 0.5"),
    ],
)
def test_what_cannot_run_gets_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Landscape().but(**{**TINY, **changes})


def test_more_than_there_is_to_learn_from_is_refused() -> None:
    with pytest.raises(AttnscopeError, match="batch = 50: expected at most the 40"):
        Landscape().but(**{**TINY, "batch": 50}).build("softmax", 0)


def test_images_come_in_patches_at_desk() -> None:
    study = Landscape.at("desk", train=200, held_out=100, probe=4)
    train, _ = study.task().sequences()
    assert study.task().model("softmax", 0).stem is not None
    assert study.task().vary() is not None
    assert len(train) < 200  # in pairs of both labels


def test_old_specs_are_read() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 140, "correct": False, "rate": 1e-3}
    more = {"first": 100, "window": 8, "contour_length": 1, "data": "pathfinder"}
    study = Landscape.from_json({**old, **more, "radius": 0.5})
    assert study == Landscape().but(steps=140, rate=1e-3, **more)
    assert study.task().task == study.images  # type: ignore[attr-defined]
