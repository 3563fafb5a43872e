"""The docs: every link leads somewhere, every name exists, and the examples and tutorials run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import attnscope
from attnscope.cli import parser_of
from attnscope.cli.verbs import VERBS

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
PAGES = [page for page in PAGES if "_build" not in page.parts]
TUTORIALS = ("watch", "theorem", "trajectory", "paper", "predict")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", text_of(page), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_and_images_lead_somewhere(page: Path) -> None:
    for _, target in re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", text_of(page)):
        path = target.split("#")[0]
        if "://" in target or target.startswith("mailto:") or not path:
            continue
        if path.startswith(("reports/", "ledger/")):
            continue  # `make docs` writes these.
        assert (page.parent / path).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_in_the_docs_exist(page: Path) -> None:
    said = re.findall(r"(?:^    |`)attnscope ([a-z]+)((?: [^\n`#]*)?)", text_of(page), re.MULTILINE)
    for verb, rest in said:
        if verb == "watch":
            continue
        assert verb in VERBS, verb
        flags = [word.split("=")[0] for word in rest.split() if re.match(r"--[a-z]", word)]
        if verb in ("run", "sweep"):
            continue  # Settings of studies: the tests of the studies know them.
        known = parser_of(verb).flags()
        assert not [flag for flag in flags if flag.rstrip(".,)") not in known], (verb, rest)


def test_names_in_the_docs_exist() -> None:
    for page in PAGES:
        for name in re.findall(r"\battnscope\.([A-Za-z_]+)\(", text_of(page)):
            assert hasattr(attnscope, name), f"{page}: attnscope.{name}"


def test_every_public_name_has_a_page_and_an_example() -> None:
    page = ROOT / "docs" / "api.md"
    documented = set(re.findall(r"auto\w+:: attnscope\.(\w+)", text_of(page)))
    assert documented == set(attnscope.__all__)
    code = "\n".join(python_blocks(page))
    assert not [name for name in attnscope.__all__ if not re.search(rf"\b{name}\b", code)]


@pytest.mark.parametrize("number", range(6))
def test_the_examples_of_the_reference_run(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(ROOT / "docs" / "api.md")
    assert len(blocks) == 6
    module = ModuleType(f"example{number}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where dataclasses look
    exec(blocks[number], vars(module))


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials_run(name: str, tmp_path: Path) -> None:
    """Each in a process of its own, as a notebook's kernel is."""
    code = (
        "import runpy, sys; import matplotlib; matplotlib.use('Agg')\n"
        f"cells = runpy.run_path({str(ROOT / 'docs/make_reports.py')!r})['cells']\n"
        f"exec(compile(cells({name!r}), {name!r}, 'exec'), {{'__name__': 'tutorial'}})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr


def test_the_site_builds_without_a_warning_of_missing_pages(tmp_path: Path) -> None:
    pytest.importorskip("myst_nb", reason="the site is built by Sphinx: pip install .[docs]")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", ROOT / "docs", tmp_path / "html"],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "ATTNSCOPE_DOCS": "fast"},
    )
    assert done.returncode == 0, done.stderr
    assert "not included in any toctree" not in done.stderr
    assert (tmp_path / "html" / "searchindex.js").exists()
    assert "attnscope.watch" in (tmp_path / "html" / "api.html").read_text(encoding="utf-8")
