"""At a scale that teaches something, theory holds where it must and every control fails."""

from __future__ import annotations

import pytest

import attnscope
from attnscope.claims import Finding
from attnscope.experiment import Study
from attnscope.studies.lu2021 import Capacity, Cnn, Query, Sen, Synergy

pytestmark = pytest.mark.xdist_group("controls")  # one fixture for all

STUDIES: dict[str, Study] = {
    "sen": Sen().but(seeds=1, epochs=5000, dictionary=2000, train=400, points=51),
    "capacity": Capacity().but(
        seeds=3, epochs=5000, topics=2, dictionary=2000, train=200, m=10, points=21
    ),
    "synergy": Synergy().but(seeds=1, epochs=20_000, dictionary=1000, train=200, points=101),
    "query": Query().but(
        seeds=1,
        epochs=2000,
        dictionary=300,
        train=100,
        test=50,
        m=10,
        points=51,
        query_variances=(0.1, 2.0),
    ),
    "cnn": Cnn().but(seeds=2, epochs=1000, dictionary=40, train=300, test=200, points=31),
}
HOLDS = {
    "sen": ("corollary1-FC", "corollary1-TC", "corollary1-TL", "theorem2-attention"),
    "capacity": ("score-FC-TC", "score-TC-TL", "norm-FC-TC", "norm-TC-TL"),
    "synergy": ("enhancement-norm", "enhancement-loss", "diminution-score", "diminution-norm"),
    "query": ("positive-FC", "positive-TC", "positive-TL"),
    "cnn": ("positive",),
}


@pytest.fixture(scope="module", params=STUDIES)
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, Finding]]:
    out = tmp_path_factory.mktemp("controls") / "run"
    tree = attnscope.run(STUDIES[request.param], out, workers=2)
    return request.param, {finding.key: finding for finding in attnscope.findings(tree)}


def test_what_the_paper_says_holds(found: tuple[str, dict[str, Finding]]) -> None:
    name, findings = found
    wrong = {key: findings[key].ours for key in HOLDS[name] if findings[key].verdict != "holds"}
    assert wrong == {}


def test_every_control_fails(found: tuple[str, dict[str, Finding]]) -> None:
    _, findings = found
    passing = {
        key: (finding.control, finding.criterion)
        for key, finding in findings.items()
        if not finding.control_fails
    }
    assert passing == {}
