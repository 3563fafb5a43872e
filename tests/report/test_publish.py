from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import attnscope.report as report
from attnscope.errors import AttnscopeError
from attnscope.report import Figure, Page, Table, publish


def test_every_link_of_the_page_leads_to_a_file(every_mark: Figure, tmp_path: Path) -> None:
    table = Table("t", "T", ("a",), ((1,),))
    page = Page("S", "s", "ok", figures=[every_mark], tables=[table], images=("png", "svg", "pdf"))
    path = publish(tmp_path / "out", page)
    assert path == tmp_path / "out" / "report.html"
    links = set(re.findall(r'(?:href|src)="((?:figures|tables)/[^"]*)"', path.read_text()))
    endings = ("csv", "pdf", "png", "svg")
    assert sorted(links) == [f"figures/every-mark.{e}" for e in endings] + ["tables/t.csv"]
    assert all((path.parent / link).stat().st_size > 0 for link in links)
    found = {str(p.relative_to(path.parent)) for p in path.parent.rglob("*") if p.is_file()}
    assert found == links | {"report.html"}


def test_images_are_drawn_when_asked_for(every_mark: Figure, tmp_path: Path) -> None:
    page = Page("S", "s", "ok", figures=[every_mark])
    path = publish(tmp_path / "none", page)
    assert {p.name for p in path.parent.rglob("*.*")} == {"report.html", "every-mark.csv"}
    assert "which this browser does not run" in path.read_text()
    assert "<img" not in path.read_text()
    path = publish(tmp_path / "one", replace(page, images=("svg",)))
    assert {p.name for p in (path.parent / "figures").iterdir()} == {
        "every-mark.csv",
        "every-mark.svg",
    }
    assert '<img src="figures/every-mark.svg" alt="Every mark">' in path.read_text()


@pytest.mark.parametrize("images", ["png", ("png", "gif")])
def test_other_images_are_refused(images: str) -> None:
    with pytest.raises(AttnscopeError, match=r"figures = .*expected a sequence of png, svg, pdf"):
        Page("S", "s", "ok", images=images)


def test_the_surface_is_what_it_says() -> None:
    assert "publish" in report.__all__
    for name in report.__all__:
        # Unions, such as that of all marks, have no name of their own.
        assert getattr(getattr(report, name), "__name__", name) == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = report.nothing
