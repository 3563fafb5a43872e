"""The words of the probe batch, by row and position."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import attnscope
from attnscope import AttnscopeError
from attnscope.watching.tokens import read_tokens

IDS = torch.tensor([[1, 0], [2, 1]])
NAMED = [["b", "a"], ["c", "b"]]


class _HuggingFace:
    def convert_ids_to_tokens(self, word: int) -> str:
        return "abc"[word]

    def decode(self, words: list[int]) -> str:
        raise AssertionError(words)


class _Rust:
    def id_to_token(self, word: int) -> str:
        return "abc"[word]


class _Bytes:
    def decode(self, words: list[int]) -> str:
        return "".join("abc"[word] for word in words)


@pytest.mark.parametrize("tokenizer", [_HuggingFace(), _Rust(), _Bytes(), lambda word: "abc"[word]])
def test_any_tokenizer_names_the_words_of_the_probe(tokenizer: Any) -> None:
    assert read_tokens(None, tokenizer, IDS) == NAMED


def test_words_are_given_by_row_or_once_for_all_rows() -> None:
    assert read_tokens(NAMED, None, None) == NAMED
    assert read_tokens(["x", "y"], None, IDS, rows=2) == [["x", "y"]] * 2
    assert read_tokens(None, None, IDS) == []


@pytest.mark.parametrize(
    ("tokens", "tokenizer", "ids", "said"),
    [
        (["a"], _Rust(), IDS, "one of them"),
        (None, _Rust(), None, "no|none whose word ids"),
        (None, _Rust(), IDS + 5, "cannot name the word 5"),
        (None, 3, IDS, "tokenizer of type int"),
        ("the cat", None, IDS, "'the cat'"),
        ([[1, 2]], None, IDS, r"\[\[1, 2\]\]"),
    ],
)
def test_what_names_no_words_is_a_sentence(
    tokens: Any, tokenizer: Any, ids: Any, said: str
) -> None:
    with pytest.raises(AttnscopeError, match=said):
        read_tokens(tokens, tokenizer, ids)


def test_words_are_kept_with_the_run(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Embedding(3, 8), nn.TransformerEncoderLayer(8, 2, 8, batch_first=True))
    with attnscope.watch(model, tmp_path / "run", probe=IDS, tokenizer=_Rust()):
        pass
    spec = json.loads(attnscope.open_run(tmp_path / "run").attrs["spec"])
    assert spec["tokens"] == NAMED
    assert spec["ids"] == IDS.tolist()
