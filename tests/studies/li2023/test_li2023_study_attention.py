"""``li2023.attention`` on few words and few steps: from run to tables, and its claims by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.engines import Adam, Sgd, Steps
from attnscope.errors import AttnscopeError
from attnscope.models import TopicTransformer
from attnscope.studies.li2023.attention import AttentionStudy
from attnscope.studies.li2023.attention.claims import SCALED, TABLE4, diagonal_runs, factor
from attnscope.trajectory import Readings, initial

pytestmark = pytest.mark.xdist_group("li2023 attention")

TINY = AttentionStudy().but(seeds=2, steps=120, points=4, topics=4, words=3, batch=10, documents=8)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(TINY, tmp_path_factory.mktemp("attention") / "run", workers=1)


@pytest.fixture(scope="module")
def read(tree: xr.DataTree) -> Readings:
    return TINY.read(tree)


def test_all_runs_are_complete(tree: xr.DataTree) -> None:
    assert tree["observables/attention"].shape == (14, 4, 3)
    for name, array in tree["observables"].data_vars.items():
        assert np.isfinite(array).all(), name
    assert (tree["stats/steps"] == TINY.training.steps).all()


def test_a_trained_model_looks_at_its_topic_and_every_control_fails(tree: xr.DataTree) -> None:
    findings = {finding.key: finding for finding in attnscope.findings(tree)}
    assert findings["topics-adam-0.03"].verdict == "holds"
    assert findings["topics-sgd-0.01"].verdict == "fails"
    assert "unit variance" in findings["topics-sgd-0.01"].reason
    assert all(finding.control_fails for finding in findings.values())


def test_before_training_attention_is_uniform(read: Readings) -> None:
    for case in TINY.settings:
        np.testing.assert_allclose(initial(read.of(case).attention), 0.01, rtol=0.05)


def test_figures_and_tables_hold_the_papers_values(read: Readings) -> None:
    assert [figure.name for figure in TINY.figures(read)] == ["table3", "over-training", "table4"]
    table3, runs, table4 = TINY.tables(read)
    assert [row[0] for row in table3.rows] == list(TINY.cases)
    assert [row[3] for row in table3.rows[:5]] == [0.00759, 0.00811, 0.00453, 0.0105, 0.0140]
    assert len(runs.rows) == 4
    assert table4.rows[0][1] == 4
    assert table4.rows[2][1:] == (7, *TABLE4)


def test_a_diagonal_is_chosen_and_blocks_are_not() -> None:
    topic = TINY.task().topic_of
    rng = np.random.default_rng(0)
    blocks = np.where(topic[:, None] == topic, 1.0, 0.0) + 0.1 * rng.standard_normal((13, 13))
    kinds = np.array([[0.02, 0.004, 0.005], [0.01, 0.01, 0.01]])
    runs = len(TINY.runs())
    cases = [case for case, _ in TINY.runs()]
    matrices = np.broadcast_to(blocks, (runs, 2, 13, 13)).copy()
    matrices[0] += np.eye(13)
    attention = np.broadcast_to(kinds[1], (runs, 2, 3)).copy()
    attention[0] = kinds[0]
    names = {"case": ("run", cases), "seed": ("run", [seed for _, seed in TINY.runs()])}
    clocks = {"time": ("step", [0, 1]), "time_snapshot": ("snapshot", [0, 1])}

    def chosen() -> np.ndarray:
        observables = {
            "value_matrix": (("run", "snapshot", "word_out", "word_in"), matrices),
            "attention": (("run", "step", "kind"), attention),
        }
        groups = {
            "observables": xr.Dataset(observables, coords={**names, **clocks}),
            "stats": xr.Dataset(coords=names),
            "data": TINY.truth(),
        }
        return diagonal_runs(TINY.read(xr.DataTree.from_dict(groups)), TINY.pool)

    assert cases[0] == "Adam 0.003"
    np.testing.assert_array_equal(chosen(), kinds[:1])
    matrices[0] -= np.eye(13)
    assert len(chosen()) == 0


def test_the_factor_is_that_of_the_worst_mean_in_either_direction() -> None:
    ours = np.array([[2.0, 1.0, 1.0], [1.0, 1.1, 0.25]])
    np.testing.assert_allclose(factor(ours, (1.0, 1.0, 1.0)), [2.0, 4.0])


def test_larger_inputs_are_a_larger_rate_and_start_for_sgd() -> None:
    """Steps with inputs c x at rate η equal steps with inputs x at rate c² η from c times W."""
    case = f"SGD 0.03{SCALED}"
    plain, scaled = (TINY.build(name, 3).model for name in ("SGD 0.03", case))
    assert isinstance(plain, TopicTransformer)
    assert isinstance(scaled, TopicTransformer)
    assert plain.W_V is not None
    assert scaled.W_V is not None
    torch.testing.assert_close(scaled.W_V, plain.W_V * 13**0.5)
    assert TINY.engine(case, 0).rate == pytest.approx(0.03 * 13)
    assert TINY.engine("SGD 0.03", 0) == Sgd(rate=0.03, steps=120, batch=10)
    assert TINY.engine("Adam 0.003", 0) == Adam(rate=0.003, steps=120, batch=10)


def test_rates_that_the_paper_did_not_run_have_no_values_to_compare() -> None:
    study = AttentionStudy(adam=(0.02,), sgd=(0.5,))
    keys = [claim.key for claim in study.claims()]
    assert keys == ["topics-adam-0.02", "topics-sgd-0.5", "scaled-sgd-0.5"]


def test_a_spec_of_an_older_version_is_understood() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 300, "correct": False, "batch": 20}
    study = AttentionStudy.from_json({"sgd": [0.5], **old})
    assert study.training == Steps(steps=300, batch=20)
    assert study.sgd == (0.5,)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"engine": "flow"}, "expected 'steps'"),
        ({"sgd": ()}, "expected a learning rate or more of each"),
        ({"documents": 0}, "documents = 0: expected 1 or more"),
        ({"batch": None}, "expected the documents of a step"),
        ({"adam": (-1.0,)}, "expected each to be a finite number above 0"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        AttentionStudy().but(**fields)
