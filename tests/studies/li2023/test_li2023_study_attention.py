"""``li2023.attention`` on few words and few steps: from run to tables, and its claims by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.claims import examine
from attnscope.errors import AttnscopeError
from attnscope.models import TopicTransformer
from attnscope.studies.li2023 import _attention_claims as said
from attnscope.studies.li2023.attention import SCALED, Attention

pytestmark = pytest.mark.xdist_group("li2023 attention")

TINY: dict[str, Any] = {
    "seeds": 2,
    "epochs": 120,
    "points": 4,
    "topics": 4,
    "words": 3,
    "batch": 10,
    "documents": 8,
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Attention, xr.DataTree]:
    study = Attention(**TINY)
    return study, attnscope.run(study, tmp_path_factory.mktemp("attention") / "run", workers=1)


def test_all_runs_are_complete(done: tuple[Attention, xr.DataTree]) -> None:
    study, tree = done
    assert tree["observables/attention"].shape == (14, 4, 3)
    for name, array in tree["observables"].data_vars.items():
        assert np.isfinite(array).all(), name
    steps = tree["stats/steps"].to_numpy()
    assert (steps == study.epochs).all()


def test_a_trained_model_looks_at_its_topic_and_every_control_fails(
    done: tuple[Attention, xr.DataTree],
) -> None:
    study, tree = done
    findings = {claim.key: examine(claim, tree) for claim in study.claims()}
    assert findings["topics-adam-0.03"].verdict == "holds"
    assert findings["topics-sgd-0.01"].verdict == "fails"
    assert "unit variance" in findings["topics-sgd-0.01"].reason
    assert all(finding.control_fails for finding in findings.values())


def test_before_training_attention_is_uniform(done: tuple[Attention, xr.DataTree]) -> None:
    study, tree = done
    for case in study.settings():
        np.testing.assert_allclose(said.ends(tree, case, 0), 0.01, rtol=0.05)


def test_figures_and_tables_hold_the_papers_values(done: tuple[Attention, xr.DataTree]) -> None:
    study, tree = done
    assert [figure.name for figure in study.figures(tree)] == ["table3", "over-training", "table4"]
    table3, runs, table4 = study.tables(tree)
    assert [row[0] for row in table3.rows] == list(study.cases())
    assert [row[3] for row in table3.rows[:5]] == [0.00759, 0.00811, 0.00453, 0.0105, 0.0140]
    assert len(runs.rows) == 4
    assert table4.rows[0][1] == 4
    assert table4.rows[2][1:] == (7, *said.TABLE4)


def test_a_diagonal_is_chosen_and_blocks_are_not() -> None:
    study = Attention(**TINY)
    topic = study.task().topic_of
    rng = np.random.default_rng(0)
    blocks = np.where(topic[:, None] == topic, 1.0, 0.0) + 0.1 * rng.standard_normal((13, 13))
    kinds = np.array([[0.02, 0.004, 0.005], [0.01, 0.01, 0.01]])
    runs = len(study.runs())
    cases = [case for case, _ in study.runs()]
    matrices = np.broadcast_to(blocks, (runs, 2, 13, 13)).copy()
    matrices[0] += np.eye(13)
    attention = np.broadcast_to(kinds[1], (runs, 2, 3)).copy()
    attention[0] = kinds[0]
    tree = xr.DataTree.from_dict(
        {
            "observables": xr.Dataset(
                {
                    "value_matrix": (("run", "snapshot", "word_out", "word_in"), matrices),
                    "attention": (("run", "step", "kind"), attention),
                },
                coords={"case": ("run", cases)},
            )
        }
    )
    assert cases[0] == "Adam 0.003"
    np.testing.assert_array_equal(said.diagonal_runs(study, tree), kinds[:1])
    matrices[0] -= np.eye(13)
    assert len(said.diagonal_runs(study, tree)) == 0


def test_the_factor_is_that_of_the_worst_mean_in_either_direction() -> None:
    ours = np.array([[2.0, 1.0, 1.0], [1.0, 1.1, 0.25]])
    np.testing.assert_allclose(said.factor(ours, (1.0, 1.0, 1.0)), [2.0, 4.0])


def test_larger_inputs_are_a_larger_rate_and_start_for_sgd() -> None:
    """Steps with inputs c x at rate η equal steps with inputs x at rate c² η from c times W."""
    study = Attention(**TINY)
    case = f"SGD 0.03{SCALED}"
    plain, scaled = (study.build(name, 3).model for name in ("SGD 0.03", case))
    assert isinstance(plain, TopicTransformer)
    assert isinstance(scaled, TopicTransformer)
    assert plain.W_V is not None
    assert scaled.W_V is not None
    torch.testing.assert_close(scaled.W_V, plain.W_V * 13**0.5)
    assert study.make_engine(case).lr == pytest.approx(0.03 * 13)
    assert study.make_engine("SGD 0.03").lr == 0.03
    assert study.make_engine("Adam 0.003").optimizer == "adam"


def test_rates_that_the_paper_did_not_run_have_no_values_to_compare() -> None:
    study = Attention(adam=(0.02,), sgd=(0.5,))
    keys = [claim.key for claim in study.claims()]
    assert keys == ["topics-adam-0.02", "topics-sgd-0.5", "scaled-sgd-0.5"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"engine": "flow"}, "expected 'descent' with 1"),
        ({"lr": 0.1}, "time counts steps"),
        ({"sgd": ()}, "expected a learning rate or more of each"),
        ({"documents": 0}, "documents = 0: expected 1 or more"),
        ({"adam": (-1.0,)}, "expected a finite learning rate above 0"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        Attention(**fields)
