"""Pieces of words by SentencePiece, one vocabulary for both languages (Snell 2021, A.8)."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnscope.datasets.place import cache_dir
from attnscope.errors import AttnscopeError
from attnscope.files import write_bytes
from attnscope.tasks.sequence_pairs import END, PAD, START

UNKNOWN = 3
"""Number of ``<unk>``; pieces are numbered from 4."""
_SPECIALS = {"pad_id": PAD, "bos_id": START, "eos_id": END, "unk_id": UNKNOWN}


class Pieces:
    """A SentencePiece model whose special pieces have the numbers of the models' words.

    Args:
        model: the content of a SentencePiece model file.
        name: what the model is called in sentences.

    Raises:
        AttnscopeError: it is no such model, or its special pieces have other numbers.
    """

    def __init__(self, model: bytes, name: str = "the SentencePiece model") -> None:
        self.name = name
        try:
            self._processor: Any = _sentencepiece().SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError) as error:
            raise AttnscopeError(
                f"{name} of {len(model)} bytes cannot be read: expected a SentencePiece model "
                "(file.model)."
            ) from error
        found = {special: getattr(self._processor, special)() for special in _SPECIALS}
        if found != _SPECIALS:
            raise AttnscopeError(
                f"{name} has {_said(found)}: expected {_said(_SPECIALS)}; train it with "
                + " ".join(f"--{special}={number}" for special, number in _SPECIALS.items())
                + "."
            )

    @classmethod
    def read(cls, path: Path) -> Pieces:
        """Read a model file of one's own."""
        try:
            return cls(path.read_bytes(), f"'{path}'")
        except OSError as error:
            raise AttnscopeError(
                f"'{path}' cannot be read: {error.strerror or error}. Expected a SentencePiece "
                "model (file.model)."
            ) from error

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All pieces, special ones first; ``▁`` marks the beginning of a word."""
        return tuple(self._processor.id_to_piece(list(range(self._processor.get_piece_size()))))

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the piece numbers of every text, without START and END."""
        return [np.array(ids, dtype=np.int64) for ids in self._processor.encode(list(texts))]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of pieces up to the first END; other special pieces are left out."""
        kept = []
        for number in ids:
            if number == END:
                break
            if number not in (PAD, START):
                kept.append(int(number))
        return str(self._processor.decode(kept))

    def require(self, words: Sequence[str]) -> None:
        """Refuse to go on with a model whose vocabulary is another one.

        Args:
            words: the vocabulary of a checkpoint or of a run.
        """
        if len(words) != len(self.words):
            raise AttnscopeError(
                f"{self.name} has {len(self.words)} pieces: expected the {len(words)} that the "
                "checkpoint was trained with."
            )
        other = [
            k for k, (one, two) in enumerate(zip(self.words, words, strict=True)) if one != two
        ]
        if other:
            raise AttnscopeError(
                f"piece {other[0]} of {self.name} is '{self.words[other[0]]}' ({len(other)} pieces "
                f"differ): expected '{words[other[0]]}', as the checkpoint was trained with."
            )


def trained_pieces(texts: Sequence[str], vocabulary: int, *, folder: Path | None = None) -> Pieces:
    """Train a unigram model on texts, or take the one kept from an earlier time.

    The model is a function of the texts and of ``vocabulary`` alone. It is kept by their hash.

    Args:
        texts: of both languages, of training.
        vocabulary: pieces at most, special ones included; short texts give fewer.
        folder: where models are kept; ``attnscope/sentencepiece`` in the user's cache unless given.
            Not the data folder, which may be shared and is only read.

    Raises:
        AttnscopeError: the texts have more letters than ``vocabulary``, or too little text.
    """
    module = _sentencepiece()
    folder = cache_dir() / "attnscope" / "sentencepiece" if folder is None else folder
    said = json.dumps([module.__version__, vocabulary, list(texts)])
    path = folder / f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.model"
    if path.exists():
        return Pieces.read(path)
    model = io.BytesIO()
    try:
        module.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=vocabulary,
            # Texts too short for so many pieces give fewer, rather than none.
            hard_vocab_limit=False,
            num_threads=1,
            minloglevel=2,
            **_SPECIALS,
        )
    except RuntimeError as error:
        raise AttnscopeError(
            f"no {vocabulary} pieces can be made of {len(texts)} training texts ({_last(error)}): "
            "expected more text, or more pieces than there are letters."
        ) from error
    pieces = Pieces(model.getvalue())
    # Where nothing can be kept the model is made anew each time.
    with suppress(OSError):
        write_bytes(path, model.getvalue())
    return pieces


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise AttnscopeError(
            "SentencePiece is not installed: expected it for pieces of words. "
            "`pip install attnscope[text]` brings it."
        ) from error
    return sentencepiece


def _said(specials: dict[str, int]) -> str:
    return ", ".join(f"{special} {number}" for special, number in specials.items())


def _last(error: RuntimeError) -> str:
    """Return the words of a message of SentencePiece, without the place in its source."""
    return str(error).strip().splitlines()[-1].rpartition("] ")[2].rstrip(". ")
