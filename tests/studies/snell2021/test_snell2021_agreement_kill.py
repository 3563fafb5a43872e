"""A study on real text, killed again and again: the table does not change by a bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.results import command_line
from attnscope.studies.snell2021.agreement import Agreement
from attnscope.studies.snell2021.agreement.evidence import Evidence
from attnscope.studies.snell2021.agreement.study import setup_of
from attnscope.trajectory import Readings, RunFolder, open_run

pytestmark = pytest.mark.xdist_group("kill")

OFTEN = """
from attnscope.trajectory import ZarrSink, store
store.SHARE = 0
ZarrSink.__init__.__kwdefaults__["every"] = 0.2
"""
"""Checkpoints come often, so that processes are killed between them as well as after them."""
PATIENCE = 120


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Agreement:
    dice = np.random.default_rng(0)
    lines = ["label,text"]
    for number in range(120):
        words = dice.choice(["a", "film", "it"], size=dice.integers(2, 9))
        telling = ["dull", "fine"][number % 2]
        lines.append(f"{number % 2},{telling} {' '.join(words)}")
    file = tmp_path_factory.mktemp("texts") / "mine.csv"
    file.write_text("\n".join(lines) + "\n")
    return Agreement().but(
        data=str(file), steps=260, seeds=1, hidden=8, embedding=8, proxy_epochs=40, glove="none"
    )


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Agreement:
    pytest.importorskip("sentencepiece", reason="attnscope[text] is not installed.")
    pytest.importorskip("sacrebleu", reason="attnscope[text] is not installed.")
    words = {
        "ein": "a",
        "hund": "dog",
        "rennt": "runs",
        "mann": "man",
        "sieht": "sees",
        "haus": "home",
    }
    dice = np.random.default_rng(0)
    rows = [dice.choice(list(words), size=dice.integers(2, 7)) for _ in range(150)]
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "mine.de").write_text("\n".join(" ".join(row) for row in rows) + "\n")
    turned = (" ".join(words[word] for word in row[::-1]) for row in rows)
    (folder / "mine.en").write_text("\n".join(turned) + "\n")
    return Agreement().but(
        data=f"{folder / 'mine.de'}:{folder / 'mine.en'}",
        steps=200,
        seeds=1,
        hidden=8,
        embedding=8,
        proxy_epochs=20,
        vocabulary=40,
        salient=4,
    )


def start(study: Agreement, out: Path) -> subprocess.Popen[bytes]:
    (out.parent / "sitecustomize.py").write_text(OFTEN)
    words = command_line(study).split()[1:]
    words += ["--workers", "1", "--no-report", "--out", str(out), "--resume"]
    return subprocess.Popen(
        [sys.executable, "-m", "attnscope.cli", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(out.parent), "OMP_NUM_THREADS": "1"},
    )


def progress(out: Path, runs: int) -> float:
    """Return how many record points are on disk."""
    folder = RunFolder(out)
    return sum(folder.state(run).get("recorded", {}).get("step", 0) for run in range(runs))


@pytest.mark.parametrize("kind", ["study", "parallel"])
def test_a_table_after_kills_is_that_of_an_undisturbed_run(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    study: Agreement = request.getfixturevalue(kind)
    whole = attnscope.run(study, tmp_path / "whole", workers=1)
    out, runs = tmp_path / "killed" / "run", len(study.runs())
    out.parent.mkdir()
    kills = 0
    deadline = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < deadline
        process = start(study, out)
        before = progress(out, runs) if out.exists() else 0
        # Every life is long enough for some record points, and three of them end by SIGKILL.
        while kills < 3 and process.poll() is None:
            if out.exists() and progress(out, runs) > before + 4:
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.02)
        _, said = process.communicate(timeout=PATIENCE)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, said.decode()
    assert kills == 3
    again = open_run(out)
    for name, array in whole["observables"].data_vars.items():
        other = again["observables"][name]
        assert np.array_equal(array.to_numpy(), other.to_numpy(), equal_nan=True), name
    tables = [Evidence(Readings(tree)).table() for tree in (again, whole)]
    assert tables[0] == tables[1]


def test_a_vocabulary_that_does_not_fit_the_checkpoint_is_refused(
    study: Agreement, tmp_path: Path
) -> None:
    file, out = tmp_path / "mine.csv", tmp_path / "run"
    text = Path(study.data).read_text()
    file.write_text(text)
    changing = study.but(data=str(file), steps=20, proxy_epochs=1)
    attnscope.run(changing, out, workers=1)
    # As if the last run had been cut short: resuming it needs the same words.
    RunFolder(out).write_state(len(changing.runs()) - 1, {})
    file.write_text(text.replace("film", "play").replace(" it", " is"))
    setup_of.cache_clear()  # Another process would read the file again.
    with pytest.raises(AttnscopeError, match="have changed since it was begun"):
        attnscope.run(changing, out, workers=1, resume=True)
    file.write_text(text)
    setup_of.cache_clear()
    attnscope.run(changing, out, workers=1, resume=True)
