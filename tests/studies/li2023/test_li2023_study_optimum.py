"""``li2023.optimum`` at a size that trains in a moment, and its closed forms at any size."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Heat
from attnscope.studies.li2023.optimum import Optimum
from attnscope.studies.li2023.optimum.landscapes import HIGH, LOW, valley
from attnscope.theory import li2023
from attnscope.theory.li2023 import TopicSetting
from attnscope.trajectory import Readings, final

pytestmark = pytest.mark.xdist_group("li2023 optimum")  # one fixture for all

STUDY = Optimum().but(seeds=2, topics=5, words=6, taus=(2, 3), lr=250.0, epochs=1600, points=11)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(STUDY, tmp_path_factory.mktemp("optimum") / "run", workers=1)


@pytest.fixture(scope="module")
def read(tree: xr.DataTree) -> Readings:
    return STUDY.read(tree)


@pytest.fixture(scope="module")
def findings(tree: xr.DataTree) -> dict[str, Finding]:
    return {finding.key: finding for finding in attnscope.findings(tree)}


def test_every_claim_is_decided_and_every_control_fails(findings: dict[str, Finding]) -> None:
    assert all(finding.control_fails for finding in findings.values())
    verdicts = {key: finding.verdict for key, finding in findings.items()}
    assert verdicts.pop("trained-paper") == "fails"
    assert set(verdicts.values()) == {"holds"}


def test_the_minima_are_the_known_ones(read: Readings) -> None:
    found = read.theory.landscape_gamma.sel(mask="paper")
    np.testing.assert_allclose(found, [53.2, 66.3, 72.0, 75.3], rtol=2.5e-3)
    excess = read.theory.excess
    assert (excess > 0).all()
    assert (excess.min(("beta", "alpha")) < 0.01).all()


def test_training_ends_where_the_loss_has_no_slope_in_gamma(read: Readings) -> None:
    for case in STUDY.topic_cases:
        ended = final(read.of(case).ratios)
        for gamma, mask in ended.sel(ratio=["gamma", "mask"]).to_numpy():
            best = li2023.best_gamma_at(STUDY.setting(case), float(mask))
            assert gamma == pytest.approx(best, rel=0.02)


def test_figures_and_tables_are_drawn(read: Readings) -> None:
    figures = STUDY.figures(read)
    names = [figure.name for figure in figures]
    assert names == ["fig7-landscapes", "fig8-diagonal", "growth", "training", "attention"]
    heats = [m for f in figures for p in f.panels for m in p.marks if isinstance(m, Heat)]
    assert len(heats) == 4 + 4 + 3
    minima, diagonal, trained = STUDY.tables(read)
    assert [row[0] for row in minima.rows] == [row[0] for row in diagonal.rows] == [20, 40, 60, 80]
    assert [row[0] for row in trained.rows] == list(STUDY.cases)


def test_a_valley_has_one_gamma_and_stays_on_the_axes() -> None:
    setting = TopicSetting(100, 300, 20)
    for gamma in (10.0, 5e5):
        alpha, beta = valley(setting, gamma)
        np.testing.assert_allclose(li2023.mean_ratio(setting, alpha, beta), gamma, rtol=1e-9)
        for part in (alpha, beta):
            assert LOW <= part.min() <= part.max() <= HIGH


def test_shuffled_values_are_the_blocks_of_other_topics() -> None:
    blocks = STUDY.value_matrix(f"τ = {STUDY.compared}", 0)
    shuffled = STUDY.value_matrix(STUDY.shuffled_case, 0)
    assert not np.array_equal(blocks, shuffled)
    np.testing.assert_array_equal(np.sort(blocks.ravel()), np.sort(shuffled.ravel()))
    np.testing.assert_array_equal(shuffled[0], 0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"taus": (3,)}, "taus = (3,): expected two or more rising numbers from 2 to 9"),
        ({"taus": (3, 2)}, "taus = (3, 2)"),
        ({"taus": (1, 2)}, "taus = (1, 2)"),
        ({"landscape_taus": (20, 100)}, "landscape_taus = (20, 100): expected two or more rising"),
    ],
)
def test_bad_numbers_of_topics_are_refused(fields: dict[str, tuple[int, ...]], words: str) -> None:
    with pytest.raises(AttnscopeError) as caught:
        Optimum(**fields)
    assert words in str(caught.value)
