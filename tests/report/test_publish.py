from __future__ import annotations

import re
from pathlib import Path

import pytest

import attnscope.report as report
from attnscope.report import Figure, Page, Table, publish


def test_every_link_of_the_page_leads_to_a_file(every_mark: Figure, tmp_path: Path) -> None:
    page = Page("S", "s", "ok", figures=[every_mark], tables=[Table("t", "T", ("a",), ((1,),))])
    path = publish(tmp_path / "out", page)
    assert path == tmp_path / "out" / "report.html"
    links = set(re.findall(r'(?:href|src)="((?:figures|tables)/[^"]*)"', path.read_text()))
    endings = ("csv", "pdf", "png", "svg")
    assert sorted(links) == [f"figures/every-mark.{e}" for e in endings] + ["tables/t.csv"]
    assert all((path.parent / link).stat().st_size > 0 for link in links)
    found = {str(p.relative_to(path.parent)) for p in path.parent.rglob("*") if p.is_file()}
    assert found == links | {"report.html"}


def test_the_surface_is_what_it_says() -> None:
    assert "publish" in report.__all__
    for name in report.__all__:
        # Unions, such as that of all marks, have no name of their own.
        assert getattr(getattr(report, name), "__name__", name) == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = report.nothing
