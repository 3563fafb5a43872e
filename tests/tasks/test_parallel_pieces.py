"""Parallel text as pieces: which pairs, which way round, cut where, padded how."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from attnscope.datasets.kinds import ParallelText
from attnscope.datasets.load import parallel
from attnscope.errors import AttnscopeError
from attnscope.tasks.parallel_pieces import ParallelPieces, PiecePairs, parallel_pieces
from attnscope.tasks.pieces import UNKNOWN, trained_pieces
from attnscope.tasks.sequence_pairs import END, PAD

NUMBERS = ("eins one", "zwei two", "drei three", "vier four", "acht eight", "neun nine")
WORDS = [tuple(pair.split()) for pair in NUMBERS]
# Every second sentence is shorter, and every third source.
GERMAN = [
    f"{a[0]} und {b[0]}" + " ." * (2 - i % 2) * (3 - j % 3)
    for i, a in enumerate(WORDS)
    for j, b in enumerate(WORDS)
]
ENGLISH = [f"{a[1]} and {b[1]}" + " ." * (2 - i % 2) for i, a in enumerate(WORDS) for b in WORDS]


def text(name: str = "mine", **splits: int) -> ParallelText:
    """Return a set whose splits have so many pairs, one after another."""
    found, first = {}, 0
    for split, count in splits.items():
        rows = slice(first, first + count)
        found[split] = (GERMAN[rows], ENGLISH[rows])
        first += count
    return ParallelText(name, ("de", "en"), found)


@pytest.fixture
def made(tmp_path: Path) -> ParallelPieces:
    return parallel_pieces(text(train=30, dev=6), vocabulary=50, folder=tmp_path)


def decoded(data: ParallelPieces, side: list[np.ndarray]) -> list[str]:
    return [data.pieces.decode(row) for row in side]


def test_both_sides_of_both_splits(made: ParallelPieces) -> None:
    assert decoded(made, made.train.source) == GERMAN[:30]
    assert decoded(made, made.train.target) == ENGLISH[:30]
    assert decoded(made, made.dev.source) == GERMAN[30:]
    assert made.dev_texts == ENGLISH[30:] == decoded(made, made.dev.target)
    rows = [*made.train.source, *made.train.target, *made.dev.source, *made.dev.target]
    assert all(row[-1] == END and (row[:-1] > UNKNOWN).all() for row in rows)
    assert made.languages == ("de", "en")
    assert (made.dev_from, made.unknown) == ("the dev split", 0.0)


def test_pieces_are_learned_from_the_training_texts_of_both_languages(
    made: ParallelPieces, tmp_path: Path
) -> None:
    alone = trained_pieces([*GERMAN[:30], *ENGLISH[:30]], 50, folder=tmp_path)
    assert made.words == alone.words
    assert len(list(tmp_path.glob("*.model"))) == 1


def test_the_other_way_round_shares_the_pieces(made: ParallelPieces, tmp_path: Path) -> None:
    turned = parallel_pieces(text(train=30, dev=6), source="en", vocabulary=50, folder=tmp_path)
    assert turned.languages == ("en", "de")
    assert turned.words == made.words
    assert len(list(tmp_path.glob("*.model"))) == 1
    for ours, theirs in (
        (turned.dev.source, made.dev.target),
        (turned.dev.target, made.dev.source),
    ):
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert turned.dev_texts == GERMAN[30:]


def test_sentences_are_cut_and_counted(made: ParallelPieces, tmp_path: Path) -> None:
    lengths = np.maximum(made.train.source_lengths, made.train.target_lengths) - 1
    limit = int(np.median(lengths))
    cut = parallel_pieces(text(train=30, dev=6), vocabulary=50, limit=limit, folder=tmp_path)
    assert cut.truncated["train"] == (lengths > limit).sum() > 0
    for whole, part in zip(made.train.source, cut.train.source, strict=True):
        assert np.array_equal(part, np.append(whole[:-1][:limit], END))
    assert cut.facts["cut to the limit"] == sum(cut.truncated.values())
    assert made.truncated == {"train": 0, "dev": 0}
    assert cut.dev_texts == made.dev_texts


def test_pairs_side_by_side(made: ParallelPieces) -> None:
    rows = [4, 0, 17]
    batch = made.train.batch(rows)
    assert batch.source_mask is not None
    for i, row in enumerate(rows):
        here = batch.source_mask[i]
        assert np.array_equal(batch.source[i][here].numpy(), made.train.source[row])
        assert (batch.source[i][~here] == PAD).all()
        assert here.sum() == made.train.source_lengths[row]
        length = made.train.target_lengths[row]
        assert np.array_equal(batch.target[i, :length].numpy(), made.train.target[row])
    assert made.train.batch(torch.tensor([4])).source_mask is None
    assert made.train.batch([4, 4]).target_mask is None


def test_where_validation_pairs_are_from(tmp_path: Path) -> None:
    def of(most: int = 4000, train_most: int | None = None, **splits: int) -> ParallelPieces:
        return parallel_pieces(
            text(**splits), vocabulary=50, most=most, train_most=train_most, folder=tmp_path
        )

    assert of(train=28, test=4).dev_texts == ENGLISH[28:32]
    apart = of(train=30)
    assert (len(apart.train), len(apart.dev)) == (27, 3)
    assert apart.dev_from == "a tenth of the training pairs, set apart"
    everything = [*decoded(apart, apart.train.target), *apart.dev_texts]
    assert sorted(everything) == sorted(ENGLISH[:30])
    assert of(train=30).dev_texts == apart.dev_texts
    few = of(most=2, train_most=20, train=28, dev=8)
    assert (len(few.train), len(few.dev)) == (20, 2)
    assert few.dev_from == "2 of the dev split, at random"
    assert set(few.dev_texts) <= set(ENGLISH[28:36])


def test_purely_numerical_pairs_of_news_commentary_are_left_out(tmp_path: Path) -> None:
    pairs = ([*GERMAN, "12 - 3", "7 a"], [*ENGLISH, "12, 3", "7 b"])
    for name, left in (("news_commentary", 1), ("mine", 0)):
        found = parallel_pieces(
            ParallelText(name, ("de", "en"), {"train": pairs}), vocabulary=60, folder=tmp_path
        )
        assert len(found.train) + len(found.dev) == len(pairs[0]) - left
        assert sum(found.left_out.values()) == left


def test_a_side_without_pieces_is_left_out(tmp_path: Path) -> None:
    # A space without width is nothing to SentencePiece.
    pairs = ([*GERMAN, "\u200b"], [*ENGLISH, "one"])
    data = ParallelText("mine", ("de", "en"), {"train": pairs, "dev": (GERMAN[:2], ENGLISH[:2])})
    found = parallel_pieces(data, vocabulary=50, folder=tmp_path)
    assert (len(found.train), found.left_out) == (len(GERMAN), {"no piece on a side": 1})


def test_a_model_of_ones_own_must_fit(made: ParallelPieces, tmp_path: Path) -> None:
    (path,) = tmp_path.glob("*.model")
    size = len(made.words)
    same = parallel_pieces(text(train=30, dev=6), vocabulary=size, model=path)
    assert same.words == made.words
    with pytest.raises(AttnscopeError, match=rf"has {size} pieces: expected 8000, the size of the"):
        parallel_pieces(text(train=30, dev=6), model=path)


def test_wrong_input(tmp_path: Path) -> None:
    for options, sentence in (
        ({"source": "fr"}, "source = 'fr': expected a language of 'mine', de or en"),
        ({"limit": 0}, "limit = 0: expected 1 piece"),
        ({"most": 0}, "most = 0: expected 1 validation pair"),
        ({"train_most": 0}, "train_most = 0: expected 1 training pair"),
    ):
        with pytest.raises(AttnscopeError, match=sentence):
            parallel_pieces(text(train=9, dev=2), folder=tmp_path, **options)  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match="'mine' has no training pairs"):
        parallel_pieces(text(dev=3), folder=tmp_path)
    with pytest.raises(AttnscopeError, match="'mine' has 1 pair: expected 2 or more"):
        parallel_pieces(text(train=1), folder=tmp_path)


def test_files_of_different_length_are_told_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    with pytest.raises(AttnscopeError, match=r"a\.de' has 2 lines and .*a\.en' has 3: expected"):
        parallel(f"{tmp_path / 'a.de'}:{tmp_path / 'a.en'}")


def test_some_of_the_pairs(made: ParallelPieces) -> None:
    some = made.dev.rows([3, 1])
    assert isinstance(some, PiecePairs)
    assert decoded(made, some.target) == [ENGLISH[33], ENGLISH[31]]
