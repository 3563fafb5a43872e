"""Pieces of words: numbers of special ones, there and back, kept models and wrong ones."""

from __future__ import annotations

import builtins
import io
import os
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from attnscope.errors import AttnscopeError
from attnscope.tasks import pieces as module
from attnscope.tasks.pieces import UNKNOWN, Pieces, trained_pieces
from attnscope.tasks.sequence_pairs import END, PAD, START

TEXTS = [
    f"{who} {does} {what} {where} ."
    for who in ("the man", "a woman", "our dog", "some children")
    for does in ("sees", "draws", "paints")
    for what in ("a house", "the river", "old trains")
    for where in ("today", "in town", "at night")
]


@pytest.fixture
def made(tmp_path: Path) -> Pieces:
    return trained_pieces(TEXTS, 60, folder=tmp_path)


def test_special_pieces_have_the_models_numbers(made: Pieces) -> None:
    assert made.words[:4] == ("<pad>", "<s>", "</s>", "<unk>")
    assert (PAD, START, END, UNKNOWN) == (0, 1, 2, 3)
    assert len(set(made.words)) == len(made.words) <= 60


def test_there_and_back(made: Pieces) -> None:
    ids = made.encode(TEXTS)
    assert [made.decode(row) for row in ids] == TEXTS
    assert all((row > UNKNOWN).all() for row in ids)
    first = list(ids[0])
    assert made.decode([START, *first, END, *first, PAD]) == TEXTS[0]
    assert "".join(made.words[i] for i in first) == "▁" + TEXTS[0].replace(" ", "▁")


def test_letters_never_seen_are_unknown(made: Pieces) -> None:
    assert UNKNOWN in made.encode(["the ж dog"])[0]


def test_a_model_is_made_once_and_is_a_function_of_the_texts(
    tmp_path: Path, made: Pieces, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = tmp_path.glob("*.model")
    again = trained_pieces(TEXTS, 60, folder=tmp_path / "elsewhere")
    assert again.words == made.words
    (copy,) = (tmp_path / "elsewhere").glob("*.model")
    assert copy.name == kept.name
    assert copy.read_bytes() == kept.read_bytes()

    def refuse(**options: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", refuse)
    assert trained_pieces(TEXTS, 60, folder=tmp_path).words == made.words
    with pytest.raises(AssertionError, match="trained again"):
        trained_pieces(TEXTS[1:], 60, folder=tmp_path)
    with pytest.raises(AssertionError, match="trained again"):
        trained_pieces(TEXTS, 61, folder=tmp_path)


def test_a_folder_that_cannot_be_written_is_no_reason_to_stop(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("in the way")
    assert len(trained_pieces(TEXTS, 60, folder=taken).words) > 30


def test_models_are_kept_in_the_cache_and_never_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("ATTNSCOPE_DATA", str(data))
    monkeypatch.setattr(module, "cache_dir", lambda: cache)
    trained_pieces(TEXTS, 60)
    kept = list((cache / "attnscope" / "sentencepiece").iterdir())
    assert [path.suffix for path in kept] == [".model"]
    assert not os.listdir(data)


def test_fewer_pieces_than_letters(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"no 5 pieces can be made of 108 training texts \("):
        trained_pieces(TEXTS, 5, folder=tmp_path)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "some.model"
    path.write_text("words")
    with pytest.raises(AttnscopeError, match=r"some\.model' of 5 bytes cannot be read"):
        Pieces.read(path)
    with pytest.raises(AttnscopeError, match=r"none\.model' cannot be read: No such file"):
        Pieces.read(tmp_path / "none.model")


def test_a_model_with_other_special_numbers() -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        vocab_size=60,
        minloglevel=2,
        hard_vocab_limit=False,
    )
    with pytest.raises(
        AttnscopeError, match="has pad_id -1, bos_id 1, eos_id 2, unk_id 0: expected pad_id 0"
    ):
        Pieces(model.getvalue())


def test_a_vocabulary_that_does_not_fit_a_checkpoint(made: Pieces) -> None:
    words = list(made.words)
    made.require(words)
    with pytest.raises(AttnscopeError, match=rf"has {len(words)} pieces: expected the 7 "):
        made.require(words[:7])
    words[5], words[9] = words[9], words[5]
    with pytest.raises(AttnscopeError, match=r"piece 5 of .* \(2 pieces differ\): expected"):
        made.require(words)


def test_without_sentencepiece(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "sentencepiece":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AttnscopeError, match=r"`pip install attnscope\[text\]` brings it"):
        module.trained_pieces(TEXTS, 60, folder=tmp_path)
    assert not os.listdir(tmp_path)
