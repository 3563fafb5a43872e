from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.report import Figure, Line, Page, Panel, Surface, publish, static
from attnscope.report.html_surface import surfaces
from attnscope.report.surfaces import drawable_surface, in_words
from attnscope.report.tables import write_marks

X, Y = np.linspace(-1, 1, 9), np.linspace(0, 3, 7)
BOWL = X**2 + Y[:, None]
PATH = np.array([[-1.0, 3.0, 4.0], [np.nan, 0.0, 0.0], [0.0, 0.0, 0.0]])
EVIL = "</script><img src=x onerror=alert(1)>"


def surface(**changes: Any) -> Surface:
    fields: dict[str, Any] = {
        "title": "Bowl",
        "xlabel": "step a",
        "ylabel": "step b",
        "zlabel": "loss (nats)",
        "x": X,
        "y": Y,
        "values": BOWL,
    }
    return Surface(**{**fields, **changes})


def test_heights_stay_within_the_range_and_the_path_on_finite_points() -> None:
    shown = drawable_surface(surface(path=PATH, zrange=(0.5, 2.0)))
    assert (shown.low, shown.high) == (0.5, 2.0)
    assert shown.surface.values.min() == 0.5
    assert shown.surface.values.max() == 2.0
    np.testing.assert_array_equal(shown.surface.path, [[-1, 3, 2], [0, 0, 0.5]])


def test_the_range_is_that_of_surface_and_path() -> None:
    shown = drawable_surface(surface(path=np.array([[0.0, 0.0, -5.0]])))
    assert (shown.low, shown.high) == (-5.0, 4.0)
    flat = drawable_surface(surface(values=np.ones_like(BOWL)))
    assert (flat.low, flat.high) == (0.5, 1.5)


def test_the_surface_in_words() -> None:
    words = in_words(surface(path=PATH[[0, 2]], path_label="Training"))
    assert "loss (nats) over step a from -1 to 1 and step b from 0 to 3" in words
    assert "lowest 0 at (0, 0), highest 4 at (-1, 3)" in words
    assert "Training, 2 points, leads from 4 at (-1, 3) to 0 at (0, 0)." in words
    assert "Drawn from 0 to 2." in in_words(surface(zrange=(0, 2)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"values": BOWL.T}, r"values has shape \(9, 7\)"),
        ({"x": X[::-1]}, "points x to be finite and rising"),
        ({"values": np.full_like(BOWL, np.inf)}, "nothing to draw"),
        ({"path": np.zeros((4, 2))}, r"path has shape \(4, 2\); expected \(points, 3\)"),
        ({"zrange": (1.0, 1.0)}, r"zrange = \(1\.0, 1\.0\)"),
    ],
)
def test_what_is_no_surface_gets_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=f"Surface 'Bowl': .*{sentence}"):
        drawable_surface(surface(**changes))


def test_matplotlib_draws_cells_path_and_colour_bar_before_the_panels(tmp_path: Path) -> None:
    holed = BOWL.copy()
    holed[2, 3] = np.nan
    panel = Panel("flat", "x", "y", (Line(X, X, "line"),))
    figure = Figure("f", "F", "", (panel,), 2, (surface(values=holed, path=PATH),))
    axes = static.draw(figure).axes
    assert [a.get_title("left") for a in axes if a.get_title("left")] == ["Bowl", "flat"]
    (cells,) = axes[0].collections
    assert len(cells.get_facecolor()) == 8 * 6 - 4  # the hole takes its four cells
    x, y, z = axes[0].lines[0].get_data_3d()
    np.testing.assert_array_equal(np.stack([x, y, z], 1), PATH[[0, 2]])
    assert any("loss (nats); line: path" in a.get_ylabel() for a in axes)
    first = [path.read_bytes() for path in static.save(figure, tmp_path)]
    assert [path.read_bytes() for path in static.save(figure, tmp_path)] == first


def test_surfaces_leave_pyplot_alone() -> None:
    code = "import sys, attnscope.report.static_surface; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_page_holds_data_words_and_buttons_and_no_foreign_markup(tmp_path: Path) -> None:
    evil = surface(title=EVIL, xlabel=EVIL, zlabel=EVIL, path=PATH, path_label=EVIL)
    markup = surfaces(Figure("f", "F", "", (), surfaces=(evil, surface())))
    assert "<img" not in markup
    assert markup.count("<canvas") == 2
    assert markup.count("</script>") == 2
    found = re.search(r'data-surface="surface-f-0">(.*?)</script>', markup)
    assert found is not None
    data = json.loads(found[1])
    assert data["labels"] == [EVIL, "step b", EVIL]
    assert data["range"] == [0.0, 4.0]
    np.testing.assert_allclose(data["z"], BOWL, rtol=1e-5)
    assert data["path"] == [[-1.0, 3.0, 4.0], [0.0, 0.0, 0.0]]
    assert len(data["colors"]) == 64
    assert 'aria-label="Turn left"' in markup
    assert 'role="img"' in markup


def test_the_script_is_there_only_if_needed(tmp_path: Path) -> None:
    plain = Figure("p", "P", "", (Panel("a", "x", "y", (Line(X, X),)),))
    turning = Figure("t", "T", "", (), surfaces=(surface(),))
    without = publish(tmp_path / "a", Page("S", "s", "ok", figures=[plain])).read_text()
    with_it = publish(tmp_path / "b", Page("S", "s", "ok", figures=[turning])).read_text()
    assert "data-surface]" not in without
    assert "data-surface]" in with_it
    assert 'class="plot"' not in with_it  # no panels, no Bokeh plot
    assert with_it.count("sha256-") == without.count("sha256-") + 1


def test_a_hole_is_null_in_json() -> None:
    holed = BOWL.copy()
    holed[0, 0] = np.nan
    markup = surfaces(Figure("f", "F", "", (), surfaces=(surface(values=holed),)))
    assert '"z": [[null, ' in markup


def test_surface_and_path_are_in_the_csv(tmp_path: Path) -> None:
    figure = Figure("f", "F", "", (), surfaces=(surface(path=PATH, path_label="way"),))
    rows = list(csv.DictReader(write_marks(figure, tmp_path).read_text().splitlines()))
    assert [row["mark"] for row in rows] == ["surface"] * BOWL.size + ["path"] * 3
    assert rows[0] == {
        "panel": "Bowl",
        "series": "1",
        "mark": "surface",
        "label": "loss (nats)",
        "x": "-1.0",
        "y": "0.0",
        "low": "",
        "high": "",
        "x_end": "",
        "y_end": "",
        "value": "1.0",
    }
    assert rows[-1]["value"] == "0.0"
    assert rows[-1]["label"] == "way"
