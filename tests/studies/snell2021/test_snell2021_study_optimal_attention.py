"""``snell2021.optimal_attention`` on short sequences, from runs to verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq
from attnscope.studies.snell2021 import OptimalAttentionStudy
from attnscope.studies.snell2021.optimal_attention.claims import curve
from attnscope.studies.snell2021.optimal_attention.study import QUANTITIES, reader, word_logits
from attnscope.tasks.copying import Copying
from attnscope.theory.snell2021 import optimal_attention

pytestmark = pytest.mark.xdist_group("snell2021 optimal_attention")  # one fixture for all

SMALL = OptimalAttentionStudy().but(
    seeds=1,
    steps=200,
    points=11,
    rate=5e-3,
    length=6,
    types=12,
    width=24,
    batch=32,
    held_out=6,
    outputs=(2, 3, 8),
    spreads=(3.0, 10.0),
    positions=10,
    problems=50,
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("optimal") / "run", workers=1)


def test_logits_are_those_of_the_model_and_its_probe() -> None:
    task = Copying(5, 8)
    torch.manual_seed(0)
    model = Seq2Seq(task.vocabulary, embedding=6, hidden=6, output="added").double()
    pairs = task.sample(4, 0)
    logits, offset = word_logits(model, pairs)
    look = model.evaluate(pairs)
    best = optimal_attention(logits[:, None], pairs.target.numpy(), offset)
    assert np.abs(np.log(best.beta) - look.log_beta.numpy()).max() < 1e-12
    values = np.einsum("btl,blo->bto", look.weights[:, 0].numpy(), logits) + offset
    log_p = torch.log_softmax(torch.tensor(values), dim=2)
    right = log_p.gather(2, pairs.target[:, :, None])[:, :, 0]
    assert torch.allclose(right, look.log_p, atol=1e-12)
    read = dict(zip(QUANTITIES, reader(pairs, task.gold)(model).tolist(), strict=True))
    assert read["loss_optimal"] < read["loss_largest"] < read["loss"]
    assert read["loss"] == pytest.approx(-look.log_p.mean().item(), rel=1e-12)


def test_attention_learns_and_the_optimum_is_ahead(done: xr.DataTree) -> None:
    run = SMALL.read(done)
    gold, best = (curve(run, name)[0] for name in ("gold_attention", "gold_optimal"))
    assert gold[-1] > 0.5 > gold[0]
    assert (best[2:] > gold[2:]).all()
    losses = [curve(run, name) for name in ("loss_optimal", "loss_largest", "loss")]
    assert (losses[0] <= losses[1] + 1e-8).all()
    assert (losses[0] <= losses[2] + 1e-6).all()
    assert curve(run, "gold_attention", "uniform").to_numpy() == pytest.approx(1 / 7, rel=1e-6)


def test_claims_are_decided_and_every_control_fails(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    assert {key for key, f in found.items() if f.verdict == "undecided"} == set()
    for key in ("counterexample", "two-outputs", "more-outputs", "certified", "agreement"):
        assert found[key].verdict == "holds", (key, found[key].ours)
    assert {key: f.control for key, f in found.items() if not f.control_fails} == {}


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    assert [figure.name for figure in SMALL.figures(SMALL.read(done))] == [
        "training",
        "losses",
        "random",
    ]
    example, training, random = SMALL.tables(SMALL.read(done))
    assert "0.8590" in example.title
    assert [row[2] for row in example.rows] == pytest.approx([0, 0.5, 0.5], abs=1e-6)
    assert len(training.rows) == 2 * len(QUANTITIES) - 2
    assert len(random.rows) == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"outputs": (3, 5)}, r"outputs = \(3, 5\)"),
        ({"spreads": (100.0,)}, "up to 50"),
        ({"points": 8}, "whole number of steps"),
        ({"engine": "flow"}, "engine = 'flow': expected 'adam'"),
        ({"held_out": 0}, "held_out = 0"),
        ({"types": 5}, "no word occurs twice"),
    ],
)
def test_bad_fields_are_quoted(change: dict, words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        SMALL.but(**change)


def test_a_spec_of_an_older_run_still_opens() -> None:
    old = {**SMALL.to_json(), "engine": "descent", "lr": 1.0, "epochs": 200, "correct": False}
    for name in ("steps", "eps", "clip", "warmup"):
        del old[name]
    assert OptimalAttentionStudy.from_json(old) == SMALL
