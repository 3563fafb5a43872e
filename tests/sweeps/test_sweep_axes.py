"""What is swept: values as a field's own kind, crossed or in step, and sentences for the rest."""

from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.limits import POINTS
from attnscope.studies.li2023 import OnsetStudy
from attnscope.studies.song2024 import RegressionRun
from attnscope.sweeps.axes import Axis, Grid, axes_of, key, parse, said
from toy_study import Bowl


def rows(text: str, study: object = None) -> list[object]:
    study = Bowl() if study is None else study
    name, found = next(iter(parse(study, [text], []).items()))  # type: ignore[arg-type]
    assert name == text.split("=")[0]
    return list(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("points=5,10,20", [5, 10, 20]),
        ("points=5:80:5", [5, 24, 42, 61, 80]),
        ("points=5:80:log5", [5, 10, 20, 40, 80]),
        ("points=2:4:log9", [2, 3, 4]),
        ("lr=0.1:10:log3", [0.1, 1.0, 10.0]),
        ("weight=-1:1:3", [-1, 0.0, 1]),
        ("talkative=true,false", [True, False]),
        ("fault=bug", ["bug"]),
        ("start=1+2,3", [(1.0, 2.0), (3.0,)]),
        ("engine=flow,descent", ["flow", "descent"]),
    ],
)
def test_values_are_read_as_the_kind_of_their_field(text: str, expected: list[object]) -> None:
    assert rows(text) == expected


def test_a_single_number_of_a_field_of_several_is_a_tuple_of_one() -> None:
    assert rows("noises=1e-2:1e-4:log3", OnsetStudy()) == [(0.01,), (0.001,), (0.0001,)]
    axes = axes_of(OnsetStudy(), {"noises": [0.1, (0.2, 0.3)]})
    assert axes[0].rows == (((0.1,),), ((0.2, 0.3),))


@pytest.mark.parametrize(
    ("over", "zipped", "told"),
    [
        (["pionts=5"], [], "has no field 'pionts'. Did you mean 'points'?"),
        (["points"], [], "--over points: expected FIELD=VALUES"),
        (["points="], [], "expected FIELD=VALUES"),
        (["points=5:80"], [], "expected FIRST:LAST:COUNT"),
        (["points=five"], [], "points=five: expected a whole number"),
        (["points=5:eighty:3"], [], "expected numbers as the ends of a range"),
        (["lr=0:1:log3"], [], "ends above 0 for a logarithmic range"),
        (["points=5:80:1"], [], "2 values or more"),
        (["points=5:80:log1000000"], [], "1,000,000 values: expected at most 10,000 points"),
        (["fault=a:b:3"], [], "and fault is none"),
        (["engine=magic"], [], "engine=magic: expected flow or descent"),
        (["points=5", "points=6"], [], "'points' is swept twice"),
        ([], [["points=5,6", "lr=1"]], "2 values of points, 1 values of lr: expected two fields"),
        ([], [["points=5,6"]], "expected two fields or more with equally many values"),
    ],
)
def test_what_makes_no_sense_is_a_sentence_that_quotes_it(
    over: list[str], zipped: list[list[str]], told: str
) -> None:
    with pytest.raises(AttnscopeError, match=r".") as caught:
        parse(Bowl(), over, zipped)
    assert told in str(caught.value)


def test_axes_are_crossed_and_fields_in_step_are_one_axis() -> None:
    over = parse(Bowl(), ["weight=0,1"], [["points=5,9", "lr=0.1,0.2"]])
    grid = Grid(Bowl(), axes_of(Bowl(), over))
    assert [key(each) for each in grid.points()] == [
        key({"weight": w, "points": p, "lr": lr})
        for w in (0.0, 1.0)
        for p, lr in ((5, 0.1), (9, 0.2))
    ]
    assert [axis.name for axis in grid.axes] == ["weight", "points"]
    assert "weight" not in grid.base()
    assert "seeds" not in grid.base()


def test_a_point_out_of_bounds_is_named_before_anything_starts() -> None:
    grid = Grid(RegressionRun(), axes_of(RegressionRun(), {"sequences": [2, 20], "length": [2, 4]}))
    with pytest.raises(AttnscopeError, match=r"point sequences = 20, length = 4 \(4 of 4\)"):
        grid.check()


def test_a_million_points_by_a_slip_are_said_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = {"points": range(2, 1002), "weight": range(1000)}
    with pytest.raises(AttnscopeError, match=r"1000 of points × 1000 of weight has 1,000,000"):
        Grid(Bowl(), axes_of(Bowl(), over))
    monkeypatch.setenv(POINTS.variable, "2")
    with pytest.raises(AttnscopeError, match="--max-points"):
        Grid(Bowl(), axes_of(Bowl(), {"points": [2, 3, 4]}))


def test_nothing_swept_and_one_field_twice_are_sentences() -> None:
    with pytest.raises(AttnscopeError, match="nothing is swept"):
        Grid(Bowl(), ())
    with pytest.raises(AttnscopeError, match="'lr' is swept twice"):
        Grid(Bowl(), axes_of(Bowl(), {"lr": [0.1], ("points", "lr"): [(5, 0.1)]}))
    with pytest.raises(AttnscopeError, match="each a row of 2"):
        axes_of(Bowl(), {("points", "lr"): [(5,)]})


def test_axes_survive_json_and_join_in_order() -> None:
    axis = Axis(("points", "lr"), ((5, 0.1), (9, 0.2)), log=True)
    assert Axis.from_json(axis.to_json()) == axis
    joined = axis.joined(Axis(("points", "lr"), ((7, 0.5), (5, 0.1)), log=True))
    assert joined.rows == ((5, 0.1), (7, 0.5), (9, 0.2))
    assert (
        said({"points": 5, "start": (1.0, 2.5), "lr": 0.1}) == "points = 5, start = 1+2.5, lr = 0.1"
    )
