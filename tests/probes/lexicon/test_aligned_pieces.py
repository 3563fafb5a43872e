"""Words that people aligned, as pieces; links of words from weights of pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.aligned_pieces import AlignedPieces, read_aligned_pieces
from attnscope.tasks.pieces import Pieces, trained_pieces
from attnscope.tasks.sequence_pairs import END

GERMAN = ("das haus", "ein haus", "der alte mann", "das alte haus", "ein mann")
ENGLISH = ("the house", "a house", "the old man", "the old house", "a man")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Pieces:
    return trained_pieces([*GERMAN, *ENGLISH] * 3, 26, folder=tmp_path_factory.mktemp("kept"))


@pytest.fixture
def files(tmp_path: Path) -> str:
    texts = tmp_path / "gold.txt"
    texts.write_text("das alte mannhaus ||| the old house\nein mann ||| man a\n")
    (tmp_path / "gold.links").write_text("1-1 2-2 3p3\n1-2 2-1\n")
    return f"{texts}:{tmp_path / 'gold.links'}"


@pytest.fixture
def gold(files: str, pieces: Pieces) -> AlignedPieces:
    return read_aligned_pieces(files, pieces)


def perfect(gold: AlignedPieces) -> list[np.ndarray]:
    """Return weights of 1 for pieces of words that are linked, and some at the end for ends."""
    tables = []
    for pair, (source, target) in enumerate(zip(gold.source_words, gold.target_words, strict=True)):
        links = gold.alignments.sure[pair] | gold.alignments.possible[pair]
        tables.append(np.array([[float((s, t) in links) for s in source] for t in target]))
    return tables


def test_words_are_cut_and_every_piece_knows_its_word(gold: AlignedPieces, pieces: Pieces) -> None:
    for ids, words, texts in (
        (gold.pairs.source, gold.source_words, gold.alignments.source),
        (gold.pairs.target, gold.target_words, gold.alignments.target),
    ):
        for numbers, owners, sentence in zip(ids, words, texts, strict=True):
            assert (numbers[-1], owners[-1]) == (END, -1)
            for number, word in enumerate(sentence):
                assert pieces.decode(numbers[owners == number]) == word
    # A word that was never seen falls apart.
    assert (gold.source_words[0] == 2).sum() > 1


def test_perfect_weights_have_no_error(gold: AlignedPieces) -> None:
    links = gold.links(perfect(gold))
    assert links == [
        sure | possible
        for sure, possible in zip(gold.alignments.sure, gold.alignments.possible, strict=True)
    ]
    assert gold.error_rate(links) == 0.0
    # All at the first word: of five links one is sure, and there are four sure ones.
    lazy = gold.links([np.eye(1, table.shape[1]).repeat(len(table), 0) for table in perfect(gold)])
    assert sum(map(len, lazy)) == 5
    assert gold.error_rate(lazy) == pytest.approx(100 * (1 - (2 + 2) / (5 + 4)))


def test_cells_are_cut_in_their_order(gold: AlignedPieces) -> None:
    tables = perfect(gold)
    flat = np.concatenate([table.ravel() for table in tables])
    for ours, theirs in zip(gold.weights(flat), tables, strict=True):
        assert np.array_equal(ours, theirs)


def test_the_other_direction_flips_the_links(
    files: str, pieces: Pieces, gold: AlignedPieces
) -> None:
    turned = read_aligned_pieces(files, pieces, turned=True)
    assert turned.alignments.source == gold.alignments.target
    assert turned.alignments.sure[1] == {(1, 0), (0, 1)}
    assert turned.alignments.possible[0] == {(2, 2)}
    assert np.array_equal(turned.pairs.source[0], gold.pairs.target[0])
    assert turned.error_rate(turned.links(perfect(turned))) == 0.0


def test_files_that_are_not_there(pieces: Pieces) -> None:
    with pytest.raises(AttnscopeError, match="gold = 'a:b': expected two files that exist"):
        read_aligned_pieces("a:b", pieces)
