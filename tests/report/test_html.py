from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from attnscope.report.figure import Dots, Figure, Line, Panel
from attnscope.report.html import write_report
from attnscope.report.page import Page, Table
from attnscope.report.section import Section
from findings import finding

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \" ' <!--"


class Reader(HTMLParser):
    """Collects tags with attributes, scripts, and the text outside of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data) -> None:
        if self.cdata_elem == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self.cdata_elem is None:
            self.text += data


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


@pytest.fixture
def evil_report(tmp_path: Path) -> Path:
    x = np.arange(3.0)
    marks = (Line(x, x, EVIL), Dots(x, x, label=EVIL + "2"))
    figure = Figure("f", EVIL, EVIL, (Panel(EVIL, EVIL, EVIL, marks, xticks=((0.0, EVIL),)),))
    words = dict.fromkeys(("key", "sentence", "source", "paper", "criterion", "interval"), EVIL)
    more = dict.fromkeys(("control_sentence", "reason", "measure"), EVIL)
    return write_report(
        tmp_path / "report.html",
        Page(
            title=EVIL,
            summary=EVIL,
            status=EVIL,
            findings=[finding(**words, **more)],
            figures=[figure],
            tables=[Table("t", EVIL, (EVIL,), ((EVIL,),))],
            spec={EVIL: EVIL},
            command=EVIL,
            python=EVIL,
            provenance={EVIL: [EVIL]},
            images=("png",),
        ),
    )


def test_words_from_data_stay_words(evil_report: Path) -> None:
    page = read(evil_report)
    # Two scripts of the page's own and the data of one figure; nothing was broken open.
    assert [attrs.get("type") for attrs, _ in page.scripts] == ["application/json", None, None]
    assert [attrs for tag, attrs in page.tags if tag == "img"] == [
        {"src": "figures/f.png", "alt": EVIL}
    ]
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    # Each of the 23 places, some of them in JSON where quotes are escaped.
    assert page.text.count("<script>alert(1)</script>") == 23


def test_data_in_scripts_cannot_close_them(evil_report: Path) -> None:
    [(_, data), *_] = read(evil_report).scripts
    assert "<" not in data
    assert json.loads(data)["root_id"]
    assert "</script>" in json.dumps(json.loads(data))  # the words themselves are there


def test_the_policy_admits_only_the_pages_own_scripts(evil_report: Path) -> None:
    page = read(evil_report)
    [policy] = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    script_src = re.search(r"script-src ([^;]*)", policy)
    assert script_src is not None
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for attrs, text in page.scripts
        if attrs.get("type") is None
    ]
    assert script_src[1].split() == [f"'sha256-{digest}'" for digest in digests]
    assert "connect-src" not in policy


def test_nothing_is_loaded_from_elsewhere(evil_report: Path) -> None:
    for tag, attrs in read(evil_report).tags:
        for name in ("src", "href", "action", "data", "srcset"):
            target = attrs.get(name)
            assert target is None or re.match(r"#|figures/|tables/|data:,$", target), (tag, target)
        assert tag not in {"iframe", "object", "embed", "base"}
    styles = re.findall(r"<style>(.*?)</style>", evil_report.read_text(), re.S)
    assert "url(" not in "".join(styles)
    assert "@import" not in "".join(styles)


def test_the_verdict_comes_first(tmp_path: Path) -> None:
    findings = [
        finding(),
        finding(key="b", verdict="fails", reason="Too few epochs."),
        finding(key="c", control_fails=False),
    ]
    path = write_report(tmp_path / "r.html", Page("Study", "One sentence.", "Done.", findings))
    text = " ".join(read(path).text.split())
    order = [
        "Study One sentence. 2 of 3 claims hold, 1 fails, 1 control does not fail. Done.",
        "Corollary 1 2 of 3 claims hold, 1 fails, 1 control does not fail",
        "✗ fails The norm follows the score.",  # before anything is opened
        "CONTROL PASSES: this claim proves nothing The norm follows the score.",
        "✓ holds",
        "fails, as it must",
        "✗ fails",
        "Why: Too few epochs.",
        "CONTROL PASSES: this claim proves nothing",
    ]
    at = 0
    for part in order:
        at = text.index(part, at) + len(part)


def test_the_first_figure_comes_before_the_claims_and_once(tmp_path: Path) -> None:
    x = np.arange(3.0)
    figures = [Figure(n, n, n, (Panel(n, n, n, (Line(x, x, n),)),)) for n in ("one", "two")]
    page = Page("S", "s", "ok", [finding()], figures)
    ids = [a["id"] for _, a in read(write_report(tmp_path / "r.html", page)).tags if "id" in a]
    assert [each for each in ids if not each.startswith(("plot-", "content"))] == [
        "headline", "figure-one", "claims", "claim-sen", "figures", "figure-two"
    ]  # fmt: skip
    told = Section("told", "Told", ("A sentence.",))
    page = Page("S", "s", "ok", [finding()], figures, sections=[told])
    ids = [a["id"] for _, a in read(write_report(tmp_path / "r.html", page)).tags if "id" in a]
    assert "headline" not in ids
    assert ids.index("told") < ids.index("claims") < ids.index("figure-one")


def test_empty_sections_are_left_out(tmp_path: Path) -> None:
    page = read(write_report(tmp_path / "r.html", Page("Study", "One sentence.", "Done.")))
    assert [tag for tag, _ in page.tags if tag == "h2"] == []
    assert "claims" not in page.text


def test_numbers_of_a_table_are_aligned_and_rounded(tmp_path: Path) -> None:
    table = Table("t", "T", ("model", "loss"), (("FC", 0.123456789), ("TC", 2)))
    path = write_report(tmp_path / "r.html", Page("S", "", "", tables=[table]))
    cells = [attrs.get("class") for tag, attrs in read(path).tags if tag == "td"]
    assert cells == [None, "number", None, "number"]
    assert '<td class="number">0.12346</td>' in path.read_text()
