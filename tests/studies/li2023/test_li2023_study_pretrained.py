"""A model with planted topics, its twin, and checkpoints, end to end on planted documents."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.cli import main
from attnscope.engines.sink import Checkpoint
from attnscope.errors import AttnscopeError
from attnscope.report.figure import Heat
from attnscope.studies.li2023.pretrained import Pretrained, paper
from attnscope.studies.li2023.pretrained.measured import DIFFERENT, SAME, facts, measured
from attnscope.trajectory import Readings
from fake_device import NAMED

pytest.importorskip(
    "sklearn", reason="topics are fitted by scikit-learn: pip install attnscope[topics]"
)

_PLACE = Path(__file__).parents[2] / "pretrained" / "pretrained_toys.py"
_SPEC = importlib.util.spec_from_file_location("pretrained_toys", _PLACE)
assert _SPEC is not None
assert _SPEC.loader is not None
toys = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(toys)

DOCUMENTS = 48
SMALL: dict[str, Any] = {
    "topics": 4,
    "thresholds": (0.15, 0.25),
    "documents": DOCUMENTS,
    "length": 48,
    "batch": 4,
}

pytestmark = pytest.mark.xdist_group("li2023-pretrained")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained")
    toys.save(folder / "toy")
    run = folder / "run"
    for step, strength in ((0, 0.0), (10, 0.5), (30, 2.0)):
        toys.planted(strength).save_pretrained(run / f"checkpoint-{step}")
    toys.tokenizer().save_pretrained(run)
    # Words in more than so many documents are left out, so some documents are about one topic.
    texts = toys.documents(80)
    (folder / "corpus.txt").write_text("\n".join(texts))
    return folder


@pytest.fixture(scope="module")
def study(place: Path) -> Pretrained:
    models = (str(place / "toy"), str(place / "run"))
    return Pretrained().but(model=models, corpus=str(place / "corpus.txt"), **SMALL)


@pytest.fixture(scope="module")
def tree(study: Pretrained, place: Path) -> xr.DataTree:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(place / "cache"))
        return attnscope.run(study, place / "out", workers=1)


@pytest.fixture(scope="module")
def run(study: Pretrained, tree: xr.DataTree) -> Readings:
    return study.read(tree)


def test_runs_are_models_checkpoints_and_twins(study: Pretrained, run: Readings) -> None:
    names = ["toy", "toy, random twin"]
    names += ["run, step 0", "run, step 10", "run, step 30", "run, random twin"]
    assert list(study.cases) == names
    assert [one.case.name for one in measured(run)] == names
    assert [one.case.name for one in measured(run, "trained")] == ["toy", "run, step 30"]
    assert all(one.data.sizes["document"] == DOCUMENTS for one in measured(run))
    twin = measured(run, "twin")[0]
    assert len(np.unique(twin.data["group"])) == DOCUMENTS // 4


def test_ratios_are_those_of_the_recorded_sums(run: Readings) -> None:
    one = measured(run)[0]
    thresholds = one.thresholds()
    label = thresholds[0.25]
    data = run["observables"].to_dataset().isel(run=0, label=list(thresholds).index(0.25))
    sums = data["attention"].mean(("layer", "head")).sum("document")
    counts = data["pairs"].mean("layer").sum("document")
    means = (sums / counts).to_numpy()
    found = one.ratio(label)
    assert float(found.value) == pytest.approx(means[0] / means[1], rel=1e-6)
    assert float(found.low) < float(found.value) < float(found.high)


def test_planted_topics_are_found_and_random_ones_are_not(tree: xr.DataTree, run: Readings) -> None:
    found = {finding.key: finding for finding in attnscope.findings(tree)}
    for key in ("attention", "beyond-document-and-distance", "cosine"):
        assert found[key].verdict == "holds"
        assert found[key].control_fails
    assert not math.isnan(found["random-twin"].ours)
    assert found["random-twin"].control_fails
    for one in measured(run, "twin"):
        label = one.thresholds()[0.25]
        assert float(one.ratio(label).value) == pytest.approx(1, abs=0.02)
    toy = measured(run, "trained")[0]
    assert float(toy.attention(label, SAME).value) > float(toy.attention(label, DIFFERENT).value)
    assert toy.head_ratio(label).value[0, 0] > 1.5
    assert abs(float(toy.shuffled(label).mean()) - 1) < 0.1


def test_attention_to_topics_grows_over_checkpoints(run: Readings) -> None:
    steps = [one for one in measured(run) if one.case.step >= 0]
    values = [float(one.ratio(one.thresholds()[0.25]).value) for one in steps]
    assert values == sorted(values)
    assert values[0] == pytest.approx(1, abs=0.02)


def test_figures_and_tables(study: Pretrained, run: Readings) -> None:
    names = [figure.name for figure in study.figures(run)]
    assert names == ["ratios", "heads", "distance", "depths", "training-run"]
    tables = {table.name: table for table in study.tables(run)}
    first = tables["table1-no-overlap"]
    assert ("Bert (published)", 0.0005, "1.21", "1.19", "1.32", None, None) in first.rows
    assert [row[0] for row in first.rows].count("toy") == 2
    assert len(tables["topics"].rows) == 4
    heat = study.figures(run)[1].panels[0].marks[0]
    assert isinstance(heat, Heat)
    assert heat.values.shape == (2, 2)
    assert heat.values[0, 0] > 0.5


def test_the_tables_of_the_paper_are_complete() -> None:
    for table in (paper.NO_OVERLAP, paper.OVERLAP):
        assert list(table) == ["Bert", "Albert", "Bart", "Electra", "Roberta", "Bert, random"]
        assert np.shape(list(table.values())) == (6, 3, 3)
    assert paper.published(False)["Electra"][0.002] == (7.46, 8.08, 1.95)


def test_an_interrupted_pass_goes_on_where_it_stopped(
    study: Pretrained, run: Readings, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnscope.engines.sink import Memory

    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    kept: list[Checkpoint] = []

    class Stops(Memory):
        def step(self, time: float, loss: float, checkpoint: Any) -> bool:
            return time < 20

        def close(self, checkpoint: Any) -> None:
            if checkpoint is not None:
                kept.append(checkpoint())

    own = study.measure("toy, random twin", 0)
    first = own.run(Stops(), None)
    assert first.outcome.value == "interrupted"
    sink = Memory()
    own.run(sink, kept[0])
    whole = measured(run)[1].data["attention"].to_numpy()
    np.testing.assert_array_equal(sink.arrays[0]["attention"][20:], whole[20:].astype(np.float32))


def test_the_device_that_is_asked_for_reaches_the_model_and_its_twin(
    study: Pretrained, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    monkeypatch.setattr("attnscope.studies.li2023.pretrained.study.wanted", lambda: NAMED)
    asked: list[Any] = []

    def to(module: Any, device: Any) -> Any:
        asked.append(device)
        raise InterruptedError

    monkeypatch.setattr("torch.nn.Module.to", to)
    for case in ("toy", "toy, random twin"):
        with pytest.raises(InterruptedError):
            next(iter(study.measure(case, 0).read(0)))
    assert asked == [NAMED, NAMED]


def test_a_short_corpus_ends_the_pass(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    spec = {**SMALL, "documents": 90}
    study = Pretrained().but(model=(str(place / "toy"),), corpus=str(place / "corpus.txt"), **spec)
    found = attnscope.run(study, tmp_path / "out", workers=1)
    assert found.attrs["status"].startswith("finished")
    assert measured(study.read(found))[0].data.sizes["document"] == 80


def test_the_command_line_prints_the_paper_and_this_model(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    monkeypatch.setenv("COLUMNS", "160")
    words = ["run", "li2023.pretrained", "--model", str(place / "toy")]
    words += ["--corpus", str(place / "corpus.txt"), "--topics", "4", "--thresholds", "0.25"]
    words += ["--documents", "12", "--length", "32", "--batch", "2", "--workers", "1"]
    assert main([*words, "--no-report", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "Electra (published)" in text
    assert "toy, random twin" in text


def test_no_pair_left_by_the_filter(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    spec = {**SMALL, "thresholds": (0.0005,)}
    study = Pretrained().but(model=(str(place / "toy"),), corpus=str(place / "corpus.txt"), **spec)
    with pytest.raises(AttnscopeError, match="leaves no pair of words with the same topic"):
        study.truth()


def test_fewer_documents_than_topics(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "few.txt").write_text("ship fleet\nmoon orbit\n")
    study = Pretrained().but(model=(str(place / "toy"),), corpus=str(tmp_path / "few.txt"), **SMALL)
    with pytest.raises(AttnscopeError, match="4 topics"):
        study.truth()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"model": ()}, "model is empty"),
        ({"thresholds": (0.1, 0.1)}, "each once"),
        ({"documents": 1}, "documents = 1"),
        ({"batch": 400}, "batch = 400"),
        ({"topics": 1}, "topics = 1"),
        ({"length": 7}, "length = 7"),
        ({"engine": "flow"}, "no such setting any more"),
    ],
)
def test_bad_settings_are_sentences(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Pretrained().but(**given)


def test_what_is_missing_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AttnscopeError, match=r"attnscope models get minilm"):
        _ = Pretrained().cases
    with pytest.raises(AttnscopeError, match="attnscope data get wikitext2"):
        Pretrained().truth()
    with pytest.raises(AttnscopeError, match="the corpus 'none' is not there"):
        Pretrained().but(corpus="none").truth()


def test_specs_of_old_runs_open() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 1, "points": 2, "correct": False}
    study = Pretrained.from_json({**old, "topics": 4, "model": ["toy"], "documents": 48})
    assert study == Pretrained().but(topics=4, model=("toy",), documents=48)


def test_the_facts_are_json(run: Readings) -> None:
    known = facts(run)
    assert json.loads(json.dumps(known)) == known
    assert known["topics"] == 4
