"""The shape of the house: one direction, one place each, and nothing named in a string."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "attnscope"
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {
    ".".join(("attnscope", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for path in FILES
}
ENTRY_POINTS = "attnscope.studies"
"""The group of entry points has the name of the room; it names no module to import."""


def strings(path: Path) -> Iterator[str]:
    """Yield the texts of a file that are not docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_holds_one_concept_and_names_no_module_in_a_string(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    named = {
        found
        for text in strings(path)
        for found in re.findall(r"^attnscope(?:\.\w+)+", text)
        if found in MODULES and found != ENTRY_POINTS
    }
    assert not named


def test_no_folder_is_full() -> None:
    files = Counter(path.parent for path in FILES)
    crowded = {str(folder.relative_to(SOURCE)): n for folder, n in files.items() if n > 25}
    assert not crowded


def test_there_is_one_place_for_an_interval_over_seeds() -> None:
    users = [
        path.name
        for path in FILES
        if re.search(r"stdtrit|def student", path.read_text(encoding="utf-8"))
    ]
    assert users == ["intervals.py"]


def test_arrays_are_created_and_processes_started_in_one_place() -> None:
    def users(word: str) -> set[str]:
        found = (path for path in FILES if word in path.read_text(encoding="utf-8"))
        return {str(path.relative_to(SOURCE)) for path in found}

    assert users(".create_array(") == {"trajectory/arrays.py"}
    assert users("subprocess.Popen(") == {"workers/process.py"}
    assert users("get_context(") == set()
