"""Text is read and written as UTF-8 whatever the locale: every call says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "attnscope"
PLACES = {"read_text": 0, "write_text": 1}
"""Where an encoding stands that is given without its name."""


def without_encoding(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that open, read, write or pipe text in whatever encoding the locale has."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {word.arg: word.value for word in node.keywords}
        if "encoding" in given:
            continue
        if name in PLACES and len(node.args) <= PLACES[name]:
            yield node.lineno
        texts = [given.get(word) for word in ("text", "universal_newlines")]
        if any(isinstance(value, ast.Constant) and value.value for value in texts):
            yield node.lineno
        modes = [*node.args, given.get("mode")]
        mode = [m.value for m in modes if isinstance(m, ast.Constant) and isinstance(m.value, str)]
        plain = isinstance(node.func, ast.Name) and name == "open" and len(node.args) == 1
        if name == "open" and (plain or any(set(m) <= set("rwax+t") and m for m in mode)):
            yield node.lineno


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_every_text_file_has_its_encoding(path: Path) -> None:
    assert list(without_encoding(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "code",
    [
        "p.read_text()",
        "p.write_text('x')",
        "open(p)",
        "open(p, 'w')",
        "p.open('r')",
        "run(words, text=True)",
    ],
)
def test_what_is_looked_for(code: str) -> None:
    assert list(without_encoding(ast.parse(code))) == [1]


@pytest.mark.parametrize(
    "code",
    [
        "p.read_text('utf-8')",
        "p.write_text('x', 'utf-8')",
        "open(p, 'rb')",
        "p.open('wb')",
        "open(p, 'w', encoding='utf-8')",
        "run(words, encoding='utf-8')",
    ],
)
def test_what_is_right(code: str) -> None:
    assert list(without_encoding(ast.parse(code))) == []
