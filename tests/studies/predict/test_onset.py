"""When attention starts, said from a small text and then trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.studies.predict import Onset


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    dice = np.random.default_rng(3)
    ends = ("one", "two", "three", "four", "five", "six")
    topics = [[f"{name}{end}" for end in ends] for name in "pqrst"]
    lines = []
    for _ in range(150):
        first, second = dice.choice(5, 2, replace=False)
        lines.append(" ".join(dice.choice(topics[first] + topics[second], 24)))
    path = tmp_path_factory.mktemp("texts") / "small.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_attention_starts_when_it_was_said(text: str, tmp_path: Path) -> None:
    study = Onset(sets=(text,), seeds=1, until=4000.0, points=201)
    run = attnscope.run(study, out=tmp_path / "run", workers=1)
    found = {finding.key: finding for finding in attnscope.findings(run)}
    assert set(found) == {"onset-small.txt, flow", "onset-small.txt, descent"}
    for claim in found.values():
        assert claim.verdict == "holds", claim
        assert claim.control_fails
    (flow, descent) = study.tables(study.read(run))[0].rows
    assert flow[1] == "judged on"
    assert flow[5] > descent[5]
    assert attnscope.write_report(run)


def test_bad_settings_are_quoted() -> None:
    with pytest.raises(AttnscopeError, match="'sst2' is there twice"):
        Onset(sets=("sst2", "sst2"))
    with pytest.raises(AttnscopeError, match="there is none"):
        Onset(sets=())
    with pytest.raises(AttnscopeError, match=r"rate = 7 with record points 20 apart"):
        Onset(rate=7.0)
