"""Specs: checked, named by what they hold, and found by where they lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attnscope import catalogue
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment, Study
from attnscope.experiment.spec import settings
from attnscope.studies.lu2021 import Query, Sen
from attnscope.trajectory.documents import write_json
from toy_study import Bowl


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"seeds": 0}, "seeds = 0: expected 1 or more"),
        ({"epochs": 0}, "epochs = 0: expected 1 or more"),
        ({"points": 1}, "points = 1: expected 2 or more"),
        ({"lr": 0.0}, "lr = 0.0: expected a finite number above 0"),
        ({"lr": float("nan")}, "lr = nan"),
        ({"lr": float("inf")}, "lr = inf"),
        ({"engine": "steam"}, "engine = 'steam': expected 'flow' or 'descent'"),
    ],
)
def test_fields_out_of_range_are_refused(spec: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Bowl().but(**spec)


OWN = ("crossing", "predict")
"""Studies that are about no single paper."""


def test_names_come_from_where_the_module_lies() -> None:
    assert Sen.name() == "lu2021.sen"
    assert Bowl.name() == "toy_study:Bowl"


def test_identity_is_of_the_spec() -> None:
    assert Sen().identity().startswith("lu2021.sen-")
    assert Bowl().identity().startswith("Bowl-")
    assert Sen().identity() == Sen().but(seeds=Sen().seeds).identity()
    assert Sen().identity() != Sen().but(seeds=3).identity()


def test_scales() -> None:
    assert Sen.at("paper") == Sen()
    assert Sen.at("quick") == Sen().but(**Sen.quick)
    assert Sen.at("quick") != Sen()
    with pytest.raises(
        AttnscopeError, match="scale = 'huge': expected 'quick' or 'desk' or 'paper'"
    ):
        Sen.at("huge")  # type: ignore[arg-type]


def test_json_round_trip_keeps_tuples() -> None:
    study = Query().but(query_variances=(0.1, 3.0), seeds=1)
    assert Query.from_json(json.loads(json.dumps(study.to_json()))) == study


def test_unknown_fields_in_json_get_the_nearest_name() -> None:
    with pytest.raises(AttnscopeError, match=r"no field 'seed'\. Did you mean 'seeds'\?"):
        Sen.from_json({"seed": 3})


def test_engines() -> None:
    training = Bowl().but(lr=0.2, correct=True, epochs=10).training
    assert training == Flow(lr=0.2, epochs=10, correct=True)
    assert Bowl().but(lr=0.2, engine="descent").training == Descent(lr=0.2, epochs=300)
    assert Bowl().but(lr=0.5, epochs=10).end == 5.0


def test_seeds_are_outermost() -> None:
    assert Bowl().but(seeds=2).runs() == [("steep", 0), ("flat", 0), ("steep", 1), ("flat", 1)]


def test_every_study_is_found_and_has_a_summary() -> None:
    lu = [f"lu2021.{n}" for n in ("capacity", "cnn", "query", "sen", "sst", "synergy")]
    lu.append("lu2021.topic_words")
    assert [name for name in catalogue.names() if name.startswith("lu2021.")] == lu
    for name in catalogue.names():
        found = catalogue.load(name)
        assert issubclass(found, Experiment)
        assert found.name() == name
        assert found.citation
        # A study of a paper says where in it; one of our own has no such place.
        assert catalogue.summary(name).endswith("." if name.split(".")[0] in OWN else ").")
        settings(found())  # every name of a setting is there once


def test_an_unknown_study_gets_the_nearest_name() -> None:
    with pytest.raises(
        AttnscopeError, match=r"no study 'lu2021\.senn'\. Did you mean 'lu2021\.sen'"
    ):
        catalogue.load("lu2021.senn")


def test_a_tree_knows_its_study(tmp_path: Path) -> None:
    import attnscope

    study = Bowl().but(seeds=1, start=(3.0, 4.0))
    assert catalogue.of_tree(attnscope.run(study, tmp_path / "run", workers=1)) == study


def test_only_build_must_be_written() -> None:
    empty = Study()
    assert empty.cases == ("run",)
    assert len(empty.runs()) == 5
    for found in (empty.truth(), empty.claims(), empty.tables(None), empty.figures(None)):  # type: ignore[arg-type]
        assert not found
    with pytest.raises(NotImplementedError):
        empty.build("run", 0)


def test_a_manifest_out_of_bounds_gets_a_sentence_and_can_still_be_read(tmp_path: Path) -> None:
    import attnscope

    attnscope.run(Bowl(seeds=1), tmp_path / "run", workers=1)
    path = tmp_path / "run" / "run.json"
    manifest = json.loads(path.read_text())
    manifest["spec"]["points"] = 1
    write_json(path, manifest)
    tree = attnscope.open_run(tmp_path / "run")
    assert tree["observables/x"].sizes["step"] == 31
    with pytest.raises(AttnscopeError, match="points = 1: expected 2 or more"):
        attnscope.findings(tree)


def test_flat_names_reach_into_task_and_training() -> None:
    study = Sen(m=30, epochs=100, seeds=2)
    assert (study.task.m, study.training.epochs, study.seeds) == (30, 100, 2)
    assert study == Sen(seeds=2).but(m=30, epochs=100)
    with pytest.raises(AttnscopeError, match=r"lu2021\.sen has no field 'mm'\. Did you mean 'm'"):
        Sen(mm=30)
    with pytest.raises(AttnscopeError, match="m = 0: expected 1 or more"):
        Sen(m=0)


def test_what_is_no_setting_any_more_is_refused_now_and_read_in_old_runs() -> None:
    from attnscope.studies.snell2021 import CopyingStudy

    old = {"engine": "descent", "lr": 1.0, "correct": False, "epochs": 200, "rate": 0.01}
    assert CopyingStudy.from_json(old).training.steps == 200
    for changes in ({"lr": 0.5}, {"correct": True}, {"engine": "descent"}):
        with pytest.raises(AttnscopeError, match=r"[Ee]xpected"):
            CopyingStudy(**changes)
