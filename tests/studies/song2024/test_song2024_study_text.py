"""``song2024.text`` on texts of one's own, from tables to verdicts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.engines import Descent, OneCycle
from attnscope.errors import AttnscopeError
from attnscope.report.drawable import drawable
from attnscope.studies.song2024._training_claims import chance, gradient_share, mean_loss
from attnscope.studies.song2024._training_names import RANDOM, bag, end_accuracy
from attnscope.studies.song2024.text import Text
from attnscope.trajectory import select

pytestmark = pytest.mark.xdist_group("song2024 text")  # one fixture for all

TINY = {
    "seeds": 2,
    "epochs": 60,
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
    study = Text(data=str(write_tables(folder)), **TINY)  # type: ignore[arg-type]
    return study, attnscope.run(study, folder / "run", workers=1)


def test_all_runs_are_complete(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    assert study.cases() == ("softmax", "gaussian", RANDOM)
    assert "all 6 runs are complete" in tree.attrs["status"]
    for name in ("held_out", "train_loss", "gradient_norm", "attention", "end_held_out"):
        assert np.isfinite(tree[f"observables/{name}"]).all()
    assert tree["observables/gradient_norm"].sizes["layer"] == 2


def test_what_can_be_learned_is_learned(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    for kernel in ("softmax", "gaussian"):
        assert (end_accuracy(tree, kernel) > chance(study)).all()
        assert mean_loss(tree, kernel).max() < mean_loss(tree, RANDOM).min()
    assert (end_accuracy(tree, RANDOM) < chance(study)).all()
    assert bag(tree) > chance(study)


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
    softmax, gaussian = (end_accuracy(tree, kernel) for kernel in ("softmax", "gaussian"))
    assert found["order"].ours == pytest.approx(100 * float((softmax - gaussian).mean()))
    ratio = gradient_share(tree, "gaussian") / gradient_share(tree, "softmax")
    assert found["query-gradient"].ours == pytest.approx(float(ratio.mean()))


def test_figures_and_tables_are_drawn(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    figures = study.figures(tree)
    assert [figure.name for figure in figures] == ["curves", "anatomy"]
    for figure in figures:
        for panel in figure.panels:
            assert drawable(panel).marks
    accuracy, training = study.tables(tree)
    names = [row[0] for row in accuracy.rows]
    assert names[:3] == list(study.cases())
    assert "a bag of bytes" in names
    assert accuracy.rows[0][5] == pytest.approx(61.95)
    assert [row[0] for row in training.rows] == ["softmax", "gaussian", RANDOM]


def test_kernels_share_start_and_batches(done: tuple[Text, xr.DataTree]) -> None:
    study, tree = done
    one, other = (study.build(case, 1).model for case in ("softmax", "gaussian"))
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert study.make_engine("softmax", 1) == study.make_engine("gaussian", 1)
    start = select(tree, "end_held_out", "softmax").isel(end=0, run=0)
    again = select(tree, "held_out", "softmax").isel(step=0, run=0)
    assert start.shape == again.shape == (2,)


def test_the_published_setting(done: tuple[Text, xr.DataTree]) -> None:
    study, _ = done
    paper = dataclasses.replace(Text(), data=study.data)
    assert (paper.length, paper.batch, paper.epochs) == (4000, 32, 50_000)
    engine = paper.make_engine("softmax", 0)
    assert isinstance(engine, Descent)
    assert (engine.lr, engine.eps, engine.clip) == (1e-4, 1e-6, 1.0)
    assert engine.schedule == OneCycle(80)
    assert engine.samples == 400


def test_dropout_is_the_same_however_a_run_begins(done: tuple[Text, xr.DataTree]) -> None:
    study = dataclasses.replace(done[0], dropout=0.3)
    rows, losses = torch.arange(8), []
    for noise in (0, 5):
        torch.manual_seed(noise)
        problem = study.build("softmax", 0)
        losses.append(float(problem.loss(problem.model, rows).detach()))
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": 0}, "length = 0: expected 1 byte or more"),
        ({"lr": 0.5}, "the learning rate is `rate`"),
        ({"engine": "flow"}, "time counts steps"),
        ({"probe": 0}, "probe = 0: expected 1 or more"),
        ({"dropout": 1.0}, r"dropout = 1.0: expected a share"),
        ({"points": 8}, "expected points a whole number of steps apart"),
        ({"warmup": 60}, "warmup = 60 in a run of 60 steps"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        Text(**{**TINY, **change})  # type: ignore[arg-type]


def test_more_than_there_is_is_refused(done: tuple[Text, xr.DataTree], tmp_path: Path) -> None:
    study, _ = done
    with pytest.raises(AttnscopeError, match="batch = 500: expected at most the 400"):
        dataclasses.replace(study, batch=500).make_engine("softmax", 0)
    (tmp_path / "train.tsv").write_text("label\ttext\na\tx\nb\ty\nc\tz\n")
    (tmp_path / "test.tsv").write_text("label\ttext\na\tx\nb\ty\nc\tz\n")
    with pytest.raises(AttnscopeError, match="classes a, b, c: expected two"):
        dataclasses.replace(study, data=str(tmp_path)).sequences()


def test_a_set_that_is_not_there_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    with pytest.raises(AttnscopeError, match="attnscope data get imdb"):
        Text().sequences()
