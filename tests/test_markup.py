"""No text that somebody brings becomes markup, on any page.

The structure of a page (its tags, in their order, with the names of their attributes) is the same
whatever its texts are, and every text comes back out of it as it went in.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError

import attnscope
from attnscope.claims.diagnosis import Diagnosis
from attnscope.claims.findings import Findings
from attnscope.lab import browse, ledger, live, overlay, reports, shell
from attnscope.lab.entries import Entry
from attnscope.lab.sweep_page import _svg
from attnscope.markup import fill, inert
from attnscope.notebook import Bar, Shown, frame
from attnscope.report.attention_maps import AttentionMaps, levels_of
from attnscope.report.figure import Figure, Line, Panel, Surface
from attnscope.report.html import document
from attnscope.report.overview import Event, Overview, ReadingMap
from attnscope.report.page import Page, Table
from attnscope.report.section import Section, ShadedText
from attnscope.sweeps.diagram import Diagram
from findings import finding
from toy_study import Bowl

SOURCE = Path(attnscope.__file__).parent
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</style></title></textarea></noscript>",
    "]]><!--",
    "--></script><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "a\0b &lt;i&gt; &amp;",
    "javascript:alert(1)",
    "\udc80 name that is no text",
)
pieces = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=[]), max_size=8)
)
texts = st.lists(pieces, min_size=1, max_size=3).map("".join).map(lambda text: f"w{text}w")


class Skeleton(HTMLParser):
    """Collects tags with the names of their attributes, and all text and attribute values."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.said: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))
        self.said += [value for _, value in attrs if value]

    def handle_endtag(self, tag) -> None:
        self.tags.append((f"/{tag}",))

    def handle_comment(self, data) -> None:
        self.tags.append(("comment",))

    def handle_data(self, data) -> None:
        self.said.append(data)


def report(text: str) -> str:
    """Return a report with a text in every place that takes one."""
    x, surface = np.arange(1.0, 4.0), np.ones((2, 2))
    line = Line(x, x, text)
    curves = Figure("curves", text, text, (Panel(text, text, text, (line,)),))
    axes = np.arange(2.0)
    turning = Figure(
        "turn", text, text, (), surfaces=(Surface(text, text, text, text, axes, axes, surface),)
    )
    table = Table("t", text, (text,), ((text,),))
    words = dict.fromkeys(("key", "sentence", "paper", "criterion", "interval"), text)
    more = dict.fromkeys(("control_sentence", "reason", "measure"), text)
    readings = ReadingMap(text, text, "heads", ((text, 1),), (text,), x, x[None])
    maps = AttentionMaps(
        "layer-0",
        text,
        (0,),
        levels_of(np.ones((1, 1, 1, 1, 1))),
        ((text,),),
        ((text,),),
        note=text,
    )
    return document(
        Page(
            title=text,
            summary=text,
            status=text,
            findings=[finding(source=f"Figure 1, {text}", **words, **more, verdict="fails")],
            figures=[curves],
            tables=[table, replace(table, name="u", folded=True)],
            spec={text: text},
            command=text,
            python=text,
            provenance={text: [text]},
            diagnoses=[Diagnosis("uniform", text, 3, {text: 1.0}, text)],
            diagnosis_note=text,
            maps=[maps],
            overview=Overview((line,), (Event(3, text), Event(4, text, anchor=text)), (readings,)),
            sections=[
                Section(
                    "told",
                    text,
                    (text,),
                    (ShadedText((text,), np.ones(1), text),),
                    text,
                    (replace(table, name="v"),),
                    (turning,),
                    (text,),
                )
            ],
            images=("png",),
        )
    )


def entry(text: str, **changes) -> Entry:
    """Return a run whose name, study, status and settings are a text."""
    made = Entry(
        text.replace("\udc80", "x"),
        "going",
        text,
        text,
        text,
        {"word": text},
        ("holds",),
        **changes,
    )
    words = dict.fromkeys(("key", "sentence", "source", "paper", "criterion", "reason"), text)
    written = {each: value.replace("\udc80", "x") for each, value in words.items()}
    made.__dict__["_read_findings"] = ((finding(**written, control_sentence=text),), text)
    return made


def runs(text: str) -> list[Entry]:
    """Return runs in every condition."""
    one = entry(text, report=True)
    other = replace(one, name=f"{one.name}2", report=False)
    other.__dict__["_read_findings"] = one.__dict__["_read_findings"]
    return [one, other, replace(one, name="3", condition="unreadable", spec={})]


def diagram(text: str) -> str:
    """Return a phase diagram whose fields, title and claim are a text."""
    x, grid = np.array([1.0, 2.0]), np.ones((2, 2))
    verdicts = np.full((2, 2), "holds")
    return _svg(
        Diagram(text, text, (text, text), (x, x), (False, False), grid, grid, grid, verdicts,
                np.arange(4).reshape(2, 2), None, ((x, x, text),)),  # type: ignore[arg-type]
        "/sweeps/s/",
    )  # fmt: skip


def place(text: str) -> Path:
    """Return a folder of that name."""
    return Path("runs") / text.replace("\0", "")


PAGES: dict[str, Callable[[str], str]] = {
    "report": report,
    "list of runs": lambda text: browse.runs_page(place(text), runs(text), [text]),
    "no runs": lambda text: browse.runs_page(place(text), [], [text]),
    "ledger": lambda text: ledger.ledger_page(runs(text)),
    "live": lambda text: live.live_page(entry(text, report=True)),
    "overlay": lambda text: overlay.overlay_page(runs(text)[:2]),
    "no report": lambda text: reports.without_report(entry(text)),
    "bar": lambda text: reports.framed("<head></head><body></body>", entry(text), text),
    "sentence": lambda text: shell.sentence(text, text, text, hint=True),
    "diagram": diagram,
    "sweeps": lambda text: fill("lab/sweeps", rows=[("/a", text, (text,) * 4)]),
    "findings": lambda text: Findings([finding(sentence=text, reason=text)])._repr_html_(),
    "progress": lambda text: Bar(text, 2)._repr_html_(),
    "image": lambda text: fill("notebook/image", figure=Figure("f", text, text, ()), data="x"),
    "title": lambda text: fill("notebook/title", figure=Figure("f", text, text, ())),
    "frame": lambda text: frame(text, 300),
    "settings": lambda text: fill("notebook/settings", name=text, runs=2, rows=[(text, text, 1)]),
}  # fmt: skip


@pytest.mark.parametrize("which", PAGES)
@settings(max_examples=40)
@given(text=texts)
@example(text="w" + "".join(HOSTILE) + "w")
def test_no_text_becomes_markup(which: str, text: str) -> None:
    page = PAGES[which]
    plain, hostile = Skeleton(page("wxw")), Skeleton(page(text))
    assert hostile.tags == plain.tags
    # Words come out as they went in, somewhere: nothing was cut away either.
    shown = text.replace("\udc80", "x").replace("\0", "").replace("\r", "\n")
    said = " ".join(hostile.said).replace("\udc80", "x").replace("\0", "").replace("\r", "\n")
    assert " ".join(shown.split())[:12] in " ".join(said.split())


def test_a_report_with_a_name_that_is_no_text_is_written(tmp_path: Path) -> None:
    from attnscope.report.html import write_report

    path = write_report(tmp_path / "r.html", Page("a\udc80b", "s", "ok"))
    assert "<h1>a?b</h1>" in path.read_text(encoding="utf-8")


def test_a_gap_is_an_error_and_json_holds_no_tag() -> None:
    with pytest.raises(UndefinedError, match="'said' is undefined"):
        fill("notebook/progress", share=0.5)
    assert "<" not in inert('["</script><!--"]')
    assert ">" not in inert('["]]>"]')


def test_settings_of_numbers_are_shown_in_a_notebook() -> None:
    shown = Bowl(seeds=3)._repr_html_()
    assert "<td>seeds</td><td><b>3</b></td>" in shown


def test_a_report_in_a_notebook_is_escaped_once(tmp_path: Path) -> None:
    (tmp_path / "r.html").write_text('<p title="&amp;">', encoding="utf-8")
    shown = Skeleton(Shown(tmp_path / "r.html", 300)._repr_html_())
    assert shown.tags[0][0] == "iframe"
    assert '<p title="&amp;">' in shown.said


def sources() -> Iterator[tuple[str, str]]:
    """Yield the Python files of everything that writes pages."""
    for path in SOURCE.rglob("*.py"):
        yield str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8")


def test_there_is_one_way_to_markup() -> None:
    """Escaping by hand, or declaring markup by hand, would be forgotten one day."""
    by_hand = re.compile(r"from html import .*\bescape\b|html\.escape\(|\bMarkup\(|\|\s*safe\b")
    found = {name for name, text in sources() if by_hand.search(text)}
    assert found == {"markup.py"}
    assert {name for name, text in sources() if re.search(r"\btrusted\(", text)} == {
        "markup.py",
        "report/html.py",
    }
    templates = list((SOURCE / "templates").rglob("*.j2"))
    assert len(templates) > 20
    for path in templates:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|autoescape", text), path
        # An attribute without quotes ends at the first space of what is put into it.
        assert not re.search(r"=\{\{", re.sub(r'"[^"]*"', '""', text)), path
        used = path.relative_to(SOURCE / "templates").as_posix().removesuffix(".html.j2")
        asked = "\n".join(each for _, each in sources()) + "".join(
            other.read_text(encoding="utf-8") for other in templates
        )
        assert used in asked, path


def test_pages_are_written_by_templates_alone() -> None:
    tag = re.compile(r"""["'](?:[^"'\n]*)</?(?:p|div|span|a|td|tr|li|table|h\d|details)[ >]""")
    wrong = {
        name
        for name, text in sources()
        if name.startswith(("report/", "lab/", "notebook", "claims/", "experiment/"))
        and tag.search(re.sub(r'"""[\s\S]*?"""', "", text))
    }
    assert wrong <= {"lab/ledger.py"}, wrong  # which reads reports


def test_the_templates_are_loaded_when_the_first_page_is_written() -> None:
    code = "import sys, attnscope, attnscope.markup; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
