"""``song2024.text`` on texts of one's own, from tables to verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.engines import Adam
from attnscope.errors import AttnscopeError
from attnscope.report.drawable import drawable
from attnscope.studies.song2024._training_claims import (
    NORMALISED,
    RANDOM,
    UNIFORM,
    end_accuracy,
    gradient_share,
    mean_loss,
)
from attnscope.studies.song2024.text import Text
from attnscope.trajectory import initial

pytestmark = pytest.mark.xdist_group("song2024 text")  # one fixture for all

TINY = {
    "seeds": 2,
    "steps": 60,
    "points": 4,
    "rate": 5e-3,
    "warmup": 6,
    "batch": 16,
    "dropout": 0.0,
    "held_out": 30,
    "last": 400,
    "probe": 16,
    "length": 12,
}


def write_tables(folder: Path) -> Path:
    """Write texts that hold more of 'a' or of 'b'."""
    source = np.random.default_rng(0)
    for split, rows in (("train", 400), ("test", 400)):
        lines = ["label\ttext"]
        for i in range(rows):
            letters = source.choice(list("ab"), size=12, p=(0.7, 0.3) if i % 2 else (0.3, 0.7))
            lines.append(f"{('bad', 'good')[i % 2]}\t{''.join(letters)[: 6 + i % 7]}")
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Text, xr.DataTree]:
    folder = tmp_path_factory.mktemp("text")
    study = Text().but(data=str(write_tables(folder)), **TINY)
    return study, attnscope.run(study, folder / "run", workers=1)


def test_all_runs_are_complete(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    assert study.cases == ("softmax", "gaussian", NORMALISED, UNIFORM, RANDOM)
    assert "all 10 runs are complete" in tree.attrs["status"]
    for name in ("held_out", "train_loss", "gradient_norm", "attention", "end_held_out"):
        assert np.isfinite(tree[f"observables/{name}"]).all()
    assert tree["observables/gradient_norm"].sizes["layer"] == 2


def test_what_can_be_learned_is_learned(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    read, chance = study.read(tree), study.chance()
    for kernel in ("softmax", "gaussian"):
        assert (end_accuracy(read, kernel) > chance).all()
        assert mean_loss(read, kernel).max() < mean_loss(read, RANDOM).min()
    assert (end_accuracy(read, RANDOM) < chance).all()
    assert read.theory.bag_accuracy > chance


def test_claims_are_decided_and_controls_fail(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    found = {finding.key: finding for finding in attnscope.findings(tree)}
    assert set(found) == {claim.key for claim in study.claims()}
    for key in ("softmax-learns", "gaussian-learns"):
        assert found[key].verdict == "holds", found[key].ours
    for key, finding in found.items():
        assert finding.control_fails, (key, finding.control)
    # The published order: softmax is the better one on text.
    assert found["order"].paper == "by 1.73 points"
    read = study.read(tree)
    softmax, gaussian = (end_accuracy(read, kernel) for kernel in ("softmax", "gaussian"))
    assert found["order"].ours == pytest.approx(100 * float((softmax - gaussian).mean()))
    ratio = gradient_share(read, "gaussian") / gradient_share(read, "softmax")
    assert found["query-gradient"].ours == pytest.approx(float(ratio.mean()))


def test_figures_and_tables_are_drawn(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    read = study.read(tree)
    figures = study.figures(read)
    assert [figure.name for figure in figures] == ["curves", "anatomy"]
    for figure in figures:
        for panel in figure.panels:
            assert drawable(panel).marks
    accuracy, training = study.tables(read)
    names = [row[0] for row in accuracy.rows]
    assert names[:5] == list(study.cases)
    assert "a bag of bytes" in names
    assert accuracy.rows[0][5] == pytest.approx(61.95)
    assert [row[0] for row in training.rows] == list(study.cases)
    # A frozen twin has no gradient by queries to compare.
    assert [row[2] is None for row in training.rows] == [False, False, False, True, False]


def test_kernels_share_start_and_batches(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    one, other = (study.build(case, 1) for case in ("softmax", "gaussian"))
    pairs = zip(one.model.parameters(), other.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert study.engine("softmax", 1) == study.engine("gaussian", 1)
    assert (one.rows, one.seed) == (other.rows, other.seed) == (400, 1)
    read = study.read(tree).of("softmax")
    assert initial(read.end_held_out).shape == initial(read.held_out).shape == (2, 2)


def test_the_published_setting(done: tuple[Text, xr.DataTree]) -> None:
    study, _ = done
    paper = Text().but(data=study.data)
    assert paper.length == 4000
    assert paper.engine("softmax", 0) == Adam(
        rate=1e-4, steps=50_000, batch=32, eps=1e-6, clip=1.0, warmup=80
    )
    assert paper.build("softmax", 0).rows == 400


def test_dropout_is_the_same_however_a_run_begins(done: tuple[Text, xr.DataTree]) -> None:
    study = done[0].but(dropout=0.3)
    rows, losses = torch.arange(8), []
    for noise in (0, 5):
        torch.manual_seed(noise)
        problem = study.build("softmax", 0)
        losses.append(float(problem.loss(problem.model, rows).detach()))
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": 0}, "length = 0: expected 1 or more"),
        ({"lr": 0.5}, "lr = 0.5: song2024.text has no such setting any more"),
        ({"engine": "flow"}, "engine = 'flow': expected 'adam'"),
        ({"probe": 0}, "probe = 0: expected 1 or more"),
        ({"dropout": 1.0}, r"dropout = 1\.0: expected a number from 0 to below 1"),
        ({"points": 8}, "expected points a whole number of steps apart"),
        ({"warmup": 60}, "warmup = 60 in a run of 60 steps"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        Text().but(**{**TINY, **change})


def test_old_specs_are_read() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 360, "correct": False, "rate": 1e-3}
    more = {"warmup": 36, "batch": 64, "length": 64, "points": 7}
    assert Text.from_json({**old, **more}) == Text().but(steps=360, rate=1e-3, **more)


def test_more_than_there_is_is_refused(done: tuple[Text, xr.DataTree], tmp_path: Path) -> None:
    study, _ = done
    with pytest.raises(AttnscopeError, match="batch = 500: expected at most the 400"):
        study.but(batch=500).build("softmax", 0)
    (tmp_path / "train.tsv").write_text("label\ttext\na\tx\nb\ty\nc\tz\n")
    (tmp_path / "test.tsv").write_text("label\ttext\na\tx\nb\ty\nc\tz\n")
    with pytest.raises(AttnscopeError, match="classes a, b, c: expected two"):
        study.but(data=str(tmp_path)).sequences()


def test_a_set_that_is_not_there_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    with pytest.raises(AttnscopeError, match="attnscope data get imdb"):
        Text().sequences()


def test_a_convolution_and_max_pooling_are_settings(tmp_path: Path) -> None:
    study = Text().but(data=str(write_tables(tmp_path)), **TINY, reach=5, pooling="max")
    model = study.build("gaussian", 0).model
    assert model.stem is not None
    assert model.stem.beside.in_features == 5 * 64  # type: ignore[union-attr, operator]
    assert model.pooling == "max"
    with pytest.raises(AttnscopeError, match="reach = 4: expected an odd number"):
        study.but(reach=4)
    with pytest.raises(AttnscopeError, match="reach = 13: expected an odd number of bytes, 12 at"):
        study.but(reach=13)


def test_a_run_on_a_published_set_is_judged_where_its_texts_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    study = Text().but(**Text.desk)
    assert study.unseen(10**6) == 25_000
    assert study.chance() == pytest.approx(0.5 + 1.5 / 5000**0.5)
    assert "order" in [claim.key for claim in study.claims()]
