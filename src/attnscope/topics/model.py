"""Fitted topics, and the file they are kept in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnscope.errors import AttnscopeError
from attnscope.files import write_bytes

_FORMAT = "attnscope topics 1"


@dataclass(frozen=True, eq=False)
class TopicModel:
    """Topics as distributions over words.

    Args:
        words: the vocabulary, W words.
        topic_word: P(word | topic), of shape (topics, W); rows sum to 1.
        coherence: one number a topic, see :func:`attnscope.topics.coherence.npmi`.
        settings: what the topics were fitted with, and to.
    """

    words: tuple[str, ...]
    topic_word: NDArray[np.float32]
    coherence: NDArray[np.float64]
    settings: dict[str, Any]

    def top(self, count: int = 10) -> list[tuple[str, ...]]:
        """Return the words of highest probability for each topic, the most probable first."""
        return [tuple(self.words[n] for n in row) for row in top_words(self.topic_word, count)]

    def save(self, path: str | Path) -> Path:
        """Write a safetensors file: two arrays, and words and settings as JSON beside them."""
        from safetensors.numpy import save

        arrays: dict[str, NDArray[Any]] = {
            "topic_word": np.ascontiguousarray(self.topic_word),
            "coherence": np.ascontiguousarray(self.coherence),
        }
        text = {
            "format": _FORMAT,
            "words": json.dumps(self.words),
            "settings": json.dumps(self.settings),
        }
        return write_bytes(Path(path), save(arrays, text))


def load_topics(path: str | Path) -> TopicModel:
    """Read what :meth:`TopicModel.save` wrote. The file holds numbers and text, never code.

    Raises:
        AttnscopeError: there is no such file, or it is not one of topics.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise AttnscopeError(f"'{path}' is not there: expected a file of topics.")
    try:
        with safe_open(path, framework="numpy") as file:
            text = file.metadata() or {}
            if text.get("format") != _FORMAT:
                raise AttnscopeError(
                    f"'{path}' holds tensors, but no topics: expected a file that "
                    "`attnscope topics CORPUS --out FILE` wrote."
                )
            model = TopicModel(
                tuple(json.loads(text["words"])),
                file.get_tensor("topic_word"),
                file.get_tensor("coherence"),
                json.loads(text["settings"]),
            )
            _check(model)
            return model
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise AttnscopeError(
            f"'{path}' cannot be read ({error}): expected a file that "
            "`attnscope topics CORPUS --out FILE` wrote."
        ) from error


def _check(model: TopicModel) -> None:
    """Refuse what does not fit together.

    Raises:
        ValueError: with what it is.
    """
    if not all(isinstance(word, str) for word in model.words):
        raise ValueError("words that are no texts")
    if not isinstance(model.settings, dict):
        raise ValueError("settings that are no object")
    topics = len(model.coherence) if model.coherence.ndim == 1 else 0
    if not topics or not model.words or model.topic_word.shape != (topics, len(model.words)):
        raise ValueError(
            f"{len(model.words)} words, numbers of shape {model.topic_word.shape} and "
            f"{model.coherence.shape}"
        )
    if not (model.topic_word.dtype == np.float32 and model.coherence.dtype == np.float64):
        raise ValueError("numbers of another kind")
    if not np.isfinite(model.topic_word).all():
        raise ValueError("probabilities that are not finite")


def top_words(topic_word: NDArray[np.floating[Any]], count: int) -> NDArray[np.intp]:
    """Return the numbers of the most probable words of each topic, shape (topics, count).

    Words of equal probability stand in the order of the vocabulary.
    """
    return np.argsort(-topic_word, axis=1, kind="stable")[:, :count]
