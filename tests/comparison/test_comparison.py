"""Two runs beside each other: exact steps, stated thresholds, sentences for what shares nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import attnscope
from attnscope.cli import main
from attnscope.comparison import Difference
from attnscope.comparison.differences import difference
from attnscope.errors import AttnscopeError
from attnscope.watching.scope import Scope
from toy_study import Bowl
from watched_toys import Reader, scope, train

Watch = Callable[[Reader, torch.optim.Optimizer], Scope]


def tree(
    values: dict[str, np.ndarray], steps: np.ndarray | None = None, **attrs: str
) -> xr.DataTree:
    """A watched trajectory with the given readings, step first."""
    count = len(next(iter(values.values())))
    clock = np.arange(count) if steps is None else steps
    held = xr.Dataset(
        {
            name: (("run", "step", *("layer", "head")[: array.ndim - 1]), array[None])
            for name, array in values.items()
        },
        coords={"step": clock, "time": ("step", clock.astype(float))},
    ).assign_coords(case=("run", ["watched"]), seed=("run", [0]))
    stats = xr.Dataset({"seconds": ("run", [1.0])}).assign_coords(
        case=("run", ["watched"]), seed=("run", [0])
    )
    about = {"study": "watched", "spec": "{}", "status": "finished", **attrs}
    return xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs=about), "observables": held, "stats": stats}
    )


def reading(a: np.ndarray, b: np.ndarray, threshold: float = 1e-3) -> Difference:
    found = difference(
        *(tree({"x": v})["observables"].to_dataset()["x"] for v in (a, b)), threshold
    )
    assert isinstance(found, Difference)
    return found


def test_the_first_bit_and_the_first_step_beyond_the_threshold() -> None:
    a = np.ones((6, 2, 3))
    b = a.copy()
    b[2, 1, 0] = np.nextafter(1.0, 2.0)
    b[4, 0, 2] = 1.25
    found = reading(a, b)
    assert (found.first, found.beyond, found.place) == (2, 4, "layer 0, head 2")
    assert found.relative.tolist() == [0, 0, np.spacing(1.0) / b[2, 1, 0], 0, 0.2, 0]
    assert (found.largest, found.largest_step) == (0.2, 4)
    assert reading(a, b, 0.2).beyond is None
    assert reading(a, b, 0.2).place == "layer 1, head 0"


def test_what_is_no_number_in_both_is_the_same() -> None:
    a = np.array([1.0, np.nan, np.inf, np.nan, -np.inf])
    assert reading(a, a.copy()).first is None
    b = np.array([1.0, np.nan, np.inf, 2.0, np.inf])
    found = reading(a, b)
    assert (found.first, found.beyond) == (3, 3)
    assert found.relative.tolist() == [0, 0, 0, np.inf, np.inf]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9), st.floats(1e-12, 1e12), st.booleans(), st.integers(1, 40))
def test_a_bump_is_found_where_it_is(at: int, size: float, swap: bool, block: int) -> None:
    a = np.arange(1.0, 41.0).reshape(10, 2, 2)
    b = a.copy()
    b[at:, 1, 1] += size
    expected = size / b[at, 1, 1]
    pair = (b, a) if swap else (a, b)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnscope.comparison.differences.BLOCK", block)
        found = reading(*pair, 1e-3)
    if b[at, 1, 1] == a[at, 1, 1]:
        return  # a bump below the last bit
    assert found.first == at
    np.testing.assert_allclose(found.relative[at], expected, rtol=1e-2 if size < 1e-9 else 1e-9)
    assert (found.beyond == at) == (found.relative[at] > 1e-3)


def test_only_common_steps_are_compared() -> None:
    a = tree({"x": np.arange(5.0)}, np.array([0, 10, 20, 30, 40]))
    b = tree({"x": np.array([0.0, 2.0, 5.0])}, np.array([0, 20, 40]))
    found = attnscope.compare(a, b)
    (each,) = found.differences
    assert each.steps.tolist() == [0, 20, 40]
    assert (each.first, found.first, found.identical) == (40, 40, False)
    assert found.sentence == (
        "The runs differ first at step 40 (x), and by more than 0.001 at step 40 (x)."
    )


def test_readings_are_told_apart_in_order() -> None:
    a = tree({"late": np.zeros(4), "early": np.zeros(4), "never": np.zeros(4), "mine": np.zeros(4)})
    far, near = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 1, 1])
    b = tree({"late": far, "early": near, "never": np.zeros(4), "wide": np.zeros(4)})
    found = attnscope.compare(a, b)
    assert [d.name for d in found.differences] == ["early", "late", "never"]
    assert found.left_out == {"mine": "only A has it", "wide": "only B has it"}
    assert [row[:3] for row in found.table().rows] == [
        ("early", 1, 1),
        ("late", 2, 2),
        ("never", "never", "never"),
    ]


def test_settings_that_differ_are_named_to_the_last_key() -> None:
    x = {"x": np.zeros(2)}
    specs = [{"lr": {"groups": [{"lr": v, "betas": [0.9]}]}, "same": 1} for v in (0.1, 0.2)]
    a, b = (tree(x, spec=json.dumps(spec)) for spec in specs)
    found = attnscope.compare(a, b)
    assert found.settings == (("lr.groups[0].lr", "0.1", "0.2"),)
    assert "identical to the last bit in 1 reading at all" in found.sentence


def test_runs_that_share_nothing_are_refused_with_a_sentence(tmp_path: Path) -> None:
    x = tree({"x": np.zeros(3)})
    bowl = attnscope.run(Bowl().but(engine="descent"), tmp_path / "bowl", workers=1)
    cases = [
        (x, bowl, "'run' is a watched run and 'bowl' is a run of toy_study:Bowl: expected two"),
        (x, tree({"y": np.zeros(3)}), "have no reading in common: A has x; B has y"),
        (x, tree({"x": np.zeros(3)}, np.array([7, 8, 9])), "A was read at 3 steps from 0 to 2 and"),
        (x, tree({"x": np.zeros((3, 2))}), r"it has the axes \(\) in A and \(layer 2\) in B"),
    ]
    for a, b, said in cases:
        with pytest.raises(AttnscopeError, match=said):
            attnscope.compare(a, b)
    with pytest.raises(AttnscopeError, match="expected a finite number above 0"):
        attnscope.compare(x, x, relative=float("nan"))
    with pytest.raises(AttnscopeError, match="is not a run"):
        attnscope.compare(x, tmp_path / "gone")


def test_other_seeds_and_cases_of_a_study(tmp_path: Path) -> None:
    study = Bowl().but(engine="descent")
    a = attnscope.run(study, tmp_path / "a", workers=1)
    b = attnscope.run(replace(study, seeds=1), tmp_path / "b", workers=1)
    found = attnscope.compare(a, b)
    assert found.identical
    assert found.notes == ("2 of 4 runs of A are not in B.",)
    assert found.differences[0].a.sizes["run"] == 2
    other = attnscope.run(study.but(lr=0.12), tmp_path / "c", workers=1)
    found = attnscope.compare(a, other)
    assert found.first == found.differences[0].steps[1]
    assert any(name.endswith("lr") for name, _, _ in found.settings)
    assert found.differences[0].place.split(",")[0] in {"steep", "flat"}
    page = found.write_report(tmp_path / "page")
    assert "Where the runs part" in page.read_text()


@pytest.fixture(scope="module")
def watched_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two trainings that are the same up to step 6."""
    root = tmp_path_factory.mktemp("pair")

    def watch(name: str) -> Watch:
        return lambda model, optimizer: scope(model, root / name)

    def disturb(step: int, model: Reader, loss: float) -> None:
        if step == 6:
            with torch.no_grad():
                model.head.weight.mul_(1.5)

    train(12, watch("a"))
    train(12, watch("b"), disturb)
    return root / "a", root / "b"


def test_two_trainings_part_where_one_was_disturbed(watched_pair: tuple[Path, Path]) -> None:
    found = attnscope.compare(*watched_pair)
    assert found.first == 7
    assert {d.name: d.first for d in found.differences} == {"loss": 7, "norm": 7}


def test_the_command_prints_a_table_and_writes_a_page(
    watched_pair: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = map(str, watched_pair)
    assert main(["compare", a, b, "--out", str(tmp_path / "page")]) == 0
    told = capsys.readouterr().out
    assert "The runs differ first at step 7 (loss, norm)" in " ".join(told.split())
    assert (tmp_path / "page" / "report.html").is_file()
    assert (tmp_path / "page" / "tables" / "differences.csv").is_file()
    assert main(["compare", a, a, "--no-report"]) == 0
    assert "identical to the last bit in 2 readings" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", a, str(tmp_path)]) == 2
    assert "attnscope:" in capsys.readouterr().err


def test_the_page_has_both_curves_and_no_markup_of_a_name(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    x = np.linspace(1, 2, 4)
    y = np.array([1.0, 1.0, 1.5, 2.0])
    a = tree({"loss": x, "entropy": np.ones((4, 2, 2))}, path=f"/runs/{evil}")
    b = tree({"loss": y, "entropy": np.full((4, 2, 2), 1.1)}, path="/runs/b")
    text = attnscope.compare(a, b).write_report(tmp_path).read_text()
    assert "<script>alert" not in text
    assert "data-plot=" not in text
    assert text.count('data-curves="') == 2
    assert 'data-overview-of="' in text
