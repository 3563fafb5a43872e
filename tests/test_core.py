"""The core alone: what watching, reports and the command line need, with every extra hidden.

Packages of extras are hidden from the import system of a fresh process, as if they were not
installed; so are those that only they bring.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from attnscope import needs
from test_wheel import WATCH

ROOT = Path(__file__).parents[1]
HIDE = """
import sys

HIDDEN = {hidden!r}

class Blind:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in HIDDEN
        return None if hidden else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Blind(finder) for finder in sys.meta_path]
"""
HIDDEN = (*needs.EXTRAS, "PIL", "mpl_toolkits", "kiwisolver", "fontTools", "lightning", "ray")
CALLS = """
import contextlib, io, json
from pathlib import Path
from attnscope.cli import main

attnscope.write_report(attnscope.open_run("watched"))
answers = {}
for words in json.loads(sys.stdin.read()):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words.split())
    answers[words] = [code, out.getvalue(), err.getvalue()]
own = 'attnscope.open_run("own")'
for call in ('attnscope.run("lu2021.sen", scale="quick")', 'attnscope.predict("x.csv")',
             'attnscope.sweep(None, {})', f'attnscope.figures({own})._repr_html_()',
             f'attnscope.figures({own}, interactive=True)'):
    try:
        answers[call] = [0, str(eval(call)), ""]
    except attnscope.AttnscopeError as error:
        answers[call] = [2, "", str(error)]
answers["loaded"] = [0, " ".join(set(HIDDEN) & set(sys.modules)), ""]
Path("answers.json").write_text(json.dumps(answers))
"""
WORKS = (
    "list",
    "list lu2021",
    "data",
    "show watched",
    "report watched",
    "check watched",
    "compare watched watched --out both",
    "export watched --to csv",
    "new mine.py",
    "run mine.py --seeds 2 --out own --workers 1",
)
SAYS = {
    "run lu2021.sen --scale quick": "SciPy|studies",
    "report watched --figures png --out again": "Matplotlib|studies",
    "lab": "Tornado|lab",
    "predict x.csv": "SciPy|studies",
    "sweep mine.py --over seeds=2,3": "SciPy|studies",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """Do everything in one process that has the core alone."""
    folder = tmp_path_factory.mktemp("core")
    code = HIDE.replace("{hidden!r}", repr(HIDDEN)) + WATCH + CALLS
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([*WORKS, *SAYS]),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "answers.json").read_text())
    return {
        **found,
        "watched report": [0, (folder / "watched/report.html").read_text(), ""],
        "own report": [0, (folder / "own/report.html").read_text(), ""],
    }


def test_nothing_of_an_extra_is_loaded(answers: dict[str, list]) -> None:
    assert answers["loaded"][1] == ""


@pytest.mark.parametrize("words", WORKS)
def test_what_the_core_does(words: str, answers: dict[str, list]) -> None:
    code, _, err = answers[words]
    assert code == 0, err


@pytest.mark.parametrize("words", SAYS)
def test_what_needs_more_says_so(words: str, answers: dict[str, list]) -> None:
    package, extra = SAYS[words].split("|")
    code, _, err = answers[words]
    assert code == 2
    assert err == (
        f"attnscope: {package} is not installed, and this needs it: "
        f"`pip install 'attnscope[{extra}]'` brings it.\n"
    )


def test_the_same_from_python(answers: dict[str, list]) -> None:
    said = [value[2] for call, value in answers.items() if call.startswith("attnscope.")]
    assert sum("is not installed, and this needs it: `pip install" in each for each in said) == 4
    [shown] = [v[1] for call, v in answers.items() if call.endswith("_repr_html_()")]
    assert shown.startswith("<p>Figures: ")
    assert "attnscope[studies]" in shown


def test_reports_without_bokeh(answers: dict[str, list]) -> None:
    """Curves are drawn by the page's own script; what only Bokeh draws says how to get it."""
    watched, own = answers["watched report"][1], answers["own report"][1]
    assert "data-overview-of" in watched
    assert "data-curves" in watched
    assert "To draw this figure" not in watched
    assert "data-plot=" not in own
    assert "data-curves=" in own or "To draw this figure: Bokeh is not installed" in own
    assert "2 of 2 claims hold" in own


def test_every_extra_that_a_sentence_names_brings_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def brought(extra: str) -> set[str]:
        packages = set()
        for each in extras[extra]:
            if others := re.match(r"attnscope\[(.*)\]", each):
                packages |= {name for other in others[1].split(",") for name in brought(other)}
            else:
                packages.add(re.split(r"[<>=\[ ]", each)[0].lower())
        return packages

    spelled = {"sklearn": "scikit-learn", "IPython": "ipython"}
    core = {re.split(r"[<>=\[ ]", each)[0] for each in project["dependencies"]}
    for package, (_, extra) in needs.EXTRAS.items():
        assert spelled.get(package, package) in brought(extra)
        assert spelled.get(package, package) not in core
    assert {"scipy", "bokeh", "matplotlib", "tornado", "ipython"} <= brought("all")
