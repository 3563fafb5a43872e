"""Planted topics are found again; what cannot be fitted is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnscope.cli import main
from attnscope.errors import AttnscopeError
from attnscope.topics import fit_topics, load_topics, topic_words
from attnscope.topics.lda import Corpus

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

PLANTED = (
    ["ship", "harbour", "sailor", "anchor", "fleet", "cannon"],
    ["song", "melody", "chorus", "album", "guitar", "drummer"],
    ["river", "mountain", "valley", "glacier", "forest", "lake"],
    ["senate", "election", "minister", "parliament", "treaty", "law"],
)
SENTENCE = "the {} and a {} of the {} was in {} "


def planted(count: int = 120) -> list[str]:
    """Draw documents of one topic each, with the words between that text has."""
    draw = np.random.default_rng(0)
    return [
        "".join(SENTENCE.format(*draw.choice(PLANTED[number % 4], 4)) for _ in range(8))
        for number in range(count)
    ]


def test_planted_topics_are_found() -> None:
    # Variational Bayes may end in a mixture of two topics; from this start it does not.
    model = fit_topics(planted(240), topics=4)
    found = {frozenset(top) for top in model.top(6)}
    assert found == {frozenset(words) for words in PLANTED}
    np.testing.assert_allclose(model.topic_word.sum(axis=1), 1, rtol=1e-5)
    assert set(model.words) == {word for words in PLANTED for word in words}
    kept = topic_words(model, 0.25)
    assert all(
        kept.same(a, b) == (group is other)
        for group in PLANTED
        for other in PLANTED
        for a in group
        for b in other
    )


def test_the_same_seed_gives_the_same_topics() -> None:
    documents = planted()
    one, two, other = (fit_topics(documents, topics=4, passes=2, seed=n) for n in (3, 3, 4))
    np.testing.assert_array_equal(one.topic_word, two.topic_word)
    assert not np.array_equal(one.topic_word, other.topic_word)


def test_topics_are_kept_and_read_again(tmp_path: Path) -> None:
    model = fit_topics(planted(), topics=4, passes=1)
    read = load_topics(model.save(tmp_path / "deep" / "topics.safetensors"))
    np.testing.assert_array_equal(read.topic_word, model.topic_word)
    np.testing.assert_array_equal(read.coherence, model.coherence)
    assert (read.words, read.settings) == (model.words, model.settings)
    assert read.settings["documents"] == 120


def test_files_that_are_no_topics(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(AttnscopeError, match="holds tensors, but no topics"):
        load_topics(tmp_path / "other.safetensors")
    (tmp_path / "pickle").write_bytes(b"\x80\x04N.")
    with pytest.raises(AttnscopeError, match="cannot be read"):
        load_topics(tmp_path / "pickle")
    with pytest.raises(AttnscopeError, match=r"'.*none' is not there"):
        load_topics(tmp_path / "none")


def test_progress_ends_at_the_number_of_documents() -> None:
    told: dict[str, tuple[int, int]] = {}
    fit_topics(
        planted(),
        topics=4,
        passes=2,
        progress=lambda what, done, total: told.update({what: (done, total)}),
    )
    assert told == {
        "counting words": (120, 0),
        "numbering words": (120, 120),
        "pass 1 of 2": (120, 120),
        "pass 2 of 2": (120, 120),
        "measuring coherence": (120, 120),
    }


@pytest.mark.parametrize(
    ("corpus", "sentence"),
    [
        ([], "the corpus is empty"),
        (["ship"] * 3, "has 3 documents, fewer than the 4 topics: .* ask for 3 topics or fewer"),
        (["it was the one of them 1914"] * 9, "9 documents of the corpus hold no word that is"),
        ([f"ship {chr(97 + n) * 3}" for n in range(9)], "0 words of the corpus stand in at least"),
    ],
)
def test_what_cannot_be_fitted(corpus: Corpus, sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        fit_topics(corpus, topics=4)


def test_documents_that_can_be_read_once() -> None:
    with pytest.raises(AttnscopeError, match=r"had 120 documents when .* read, and then 0"):
        fit_topics(iter(planted()), topics=4)  # type: ignore[arg-type]


def test_numbers_below_one() -> None:
    with pytest.raises(AttnscopeError, match="passes is 0: expected 1 or more"):
        fit_topics(planted(), passes=0)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, out = tmp_path / "corpus.txt", tmp_path / "topics.safetensors"
    corpus.write_text("\n".join(planted()))
    words = ["topics", str(corpus), "--topics", "4", "--passes", "3", "--out", str(out)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("topic   NPMI  top words\n")
    assert "120 documents, 3,840 words of a vocabulary of 24" in printed
    assert "s of them on a processor" in printed
    assert printed.endswith(f"topics: {out}\n")
    assert load_topics(out).settings["passes"] == 3
    assert main(["topics", str(tmp_path / "none")]) == 2
    assert "is not there: expected a folder of text files" in capsys.readouterr().err
