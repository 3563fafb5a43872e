"""A fit of topics is kept under the corpus and its settings, and a missing corpus is a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.topics import TopicFit, kept

pytest.importorskip(
    "sklearn", reason="topics are fitted by scikit-learn: pip install attnscope[topics]"
)


def test_a_fit_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lines = [f"{words} number{n % 4}" for n in range(12) for words in ("ship fleet", "moon orbit")]
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(lines))
    fit = TopicFit(str(corpus), topics=2, passes=1)
    assert list(fit.documents(3)) == lines[:3]
    first = fit.model(0)

    def refuse(*given: object, **more: object) -> None:
        raise AssertionError("fitted again")

    monkeypatch.setattr(kept, "fit_topics", refuse)
    np.testing.assert_array_equal(fit.model(0).topic_word, first.topic_word)
    with pytest.raises(AssertionError, match="fitted again"):
        fit.model(1)


def test_what_cannot_be_fitted_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="topics = 1"):
        TopicFit(topics=1)
    with pytest.raises(AttnscopeError, match="the corpus 'none' is not there"):
        _ = TopicFit("none").path
