"""What a notebook shows, and what the same values say without one."""

from __future__ import annotations

import time
from pathlib import Path

import nbformat
import pytest
import xarray as xr
from nbclient import NotebookClient

import attnscope
from attnscope import needs, notebook
from attnscope.errors import AttnscopeError
from attnscope.notebook import Bar, Figures, progress_bar
from toy_study import Bowl

pytestmark = pytest.mark.xdist_group("notebook")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    """Return a small run."""
    return attnscope.run(Bowl(seeds=3), tmp_path_factory.mktemp("bowl") / "run", workers=1)


def test_reprs_are_one_line(run: xr.DataTree) -> None:
    found = attnscope.findings(run)
    drawn = attnscope.figures(run)
    for value in (Bowl(seeds=3), found, found[0], drawn, drawn[0], attnscope.Flow(), Bar("x", 2)):
        assert "\n" not in repr(value)
        assert len(repr(value)) < 200
    assert repr(Bowl(seeds=3)) == "Bowl(seeds=3)"


def test_findings_are_a_table(run: xr.DataTree) -> None:
    found = attnscope.findings(run)
    shown = found._repr_html_()
    assert shown.count("<tr>") == len(found) + 1
    assert f"{len(found)} claims" in shown
    table = found.to_dataframe()
    assert list(table["verdict"]) == [each.verdict for each in found]


def test_figures_are_drawn_by_bokeh_or_by_matplotlib(
    run: xr.DataTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    inline = attnscope.figures(run)._repr_html_()
    assert inline.startswith("<iframe srcdoc=")
    assert "<script" not in inline  # escaped, for the frame
    drawn = attnscope.figures(run, interactive=False)
    assert drawn._repr_html_().startswith("<figure><img alt=")
    assert drawn[0]._repr_png_().startswith(b"\x89PNG")
    monkeypatch.setattr(needs, "there", lambda _: False)
    monkeypatch.setattr(notebook, "there", lambda _: False)
    assert not attnscope.figures(run).interactive
    assert "pip install &#39;attnscope[studies]&#39;" in attnscope.figures(run)._repr_html_()
    with pytest.raises(AttnscopeError, match="Bokeh is not installed"):
        Figures([], interactive=True)


def test_the_report_in_a_frame(run: xr.DataTree) -> None:
    shown = attnscope.show(run, height=300)
    assert repr(shown).endswith("report.html (open it in a browser)")
    assert "height:300px" in shown._repr_html_()
    assert "&lt;!DOCTYPE html&gt;" in shown._repr_html_()


def test_a_run_by_name_and_what_is_no_study() -> None:
    for given, said in (
        ("lu2021.senn", "Did you mean 'lu2021.sen'"),
        ("lu2021", "'lu2021' is a paper: expected one of its studies"),
        (Bowl, "expected a study with its settings"),
        (3, "expected a study with its settings"),
    ):
        with pytest.raises(AttnscopeError, match=said):
            attnscope.run(given)  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match=r"as in Bowl.at\('quick'"):
        attnscope.run(Bowl(), scale="quick")
    with pytest.raises(AttnscopeError, match="scale = 'huge'"):
        attnscope.run("lu2021.sen", scale="huge")  # type: ignore[arg-type]


def test_a_bar_moves_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "TICK", 0.02)
    shown: list[str] = []

    class Handle:
        def update(self, bar: Bar) -> None:
            shown.append(bar._repr_html_())

    monkeypatch.setattr("IPython.display.display", lambda *_, **__: Handle())
    with progress_bar("mine", 2) as bar:
        while len(shown) < 3:
            time.sleep(0.01)
        bar(0, 1.0)
    assert 'value="0.500"' in shown[-1]
    assert "1 of 2 runs" in shown[-1]


def test_in_a_real_kernel(tmp_path: Path) -> None:
    """A kernel shows the bar, the table and the frame."""
    code = (
        "import attnscope\n"
        "run = attnscope.run('capacity', settings=dict(seeds=1, epochs=20, dictionary=60, train=40,"
        " test=8, m=4, points=3), workers=1)\n"
        "attnscope.findings(run)"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    bar, table = book.cells[0].outputs
    assert "3 of 3 runs" in bar["data"]["text/html"]
    assert "<table" in table["data"]["text/html"]
    assert table["data"]["text/plain"].startswith("Findings: 6 claims")
