"""Links of words from weights of pieces, and how wrong they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from attnscope.engines import Descent
from attnscope.errors import AttnscopeError
from attnscope.models.seq2seq import Seq2Seq
from attnscope.studies.snell2021._agreement_gold import Gold, gold_table, read_gold, word_links
from attnscope.studies.snell2021._agreement_sentences import look
from attnscope.tasks.parallel_pieces import PiecePairs
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
def gold(files: str, pieces: Pieces) -> Gold:
    return read_gold(files, pieces)


def perfect(gold: Gold) -> list[np.ndarray]:
    """Return weights of 1 for pieces of words that are linked, and some at the end for ends."""
    tables = []
    for pair, (source, target) in enumerate(zip(gold.source_words, gold.target_words, strict=True)):
        links = gold.alignments.sure[pair] | gold.alignments.possible[pair]
        tables.append(np.array([[float((s, t) in links) for s in source] for t in target]))
    return tables


def test_words_are_cut_and_every_piece_knows_its_word(gold: Gold, pieces: Pieces) -> None:
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


def test_one_linked_piece_links_two_words() -> None:
    weights = np.array([[0.9, 0.0, 0.1], [0.0, 0.8, 0.2], [0.1, 0.2, 0.7], [0.0, 0.0, 0.0]])
    source, target = np.array([0, 1, -1]), np.array([0, 0, 1, 2])
    assert word_links(weights, source, target) == {(0, 0), (1, 0)}
    # The mark of the end is no target word either.
    assert word_links(weights, source, np.array([0, -1, 1, 2])) == {(0, 0)}


def test_perfect_weights_have_no_error(gold: Gold) -> None:
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


def test_cells_are_cut_in_their_order(gold: Gold) -> None:
    tables = perfect(gold)
    flat = np.concatenate([table.ravel() for table in tables])
    for ours, theirs in zip(gold.tables(flat), tables, strict=True):
        assert np.array_equal(ours, theirs)


def test_the_other_direction_flips_the_links(files: str, pieces: Pieces, gold: Gold) -> None:
    turned = read_gold(files, pieces, turned=True)
    assert turned.alignments.source == gold.alignments.target
    assert turned.alignments.sure[1] == {(1, 0), (0, 1)}
    assert turned.alignments.possible[0] == {(2, 2)}
    assert np.array_equal(turned.pairs.source[0], gold.pairs.target[0])
    assert turned.error_rate(turned.links(perfect(turned))) == 0.0


def test_a_record_reads_at_the_end(gold: Gold, pieces: Pieces) -> None:
    torch.manual_seed(0)
    model = Seq2Seq(len(pieces.words), embedding=3, hidden=4)
    record = gold.record()
    values = [observable.read(model) for observable in record.observables]
    seen = look(model, gold.pairs)
    assert torch.equal(values[0], seen.alpha)
    assert torch.equal(values[1], seen.lexical)
    assert list(record.times(30.0, 1.0)) == [0.0, 30.0]
    loss = lambda m: (m.head_W**2).sum()  # noqa: E731
    Descent(lr=0.1).run(model, loss, time=0.2, record=[record])


def test_the_table_reads_each_run_in_its_part(gold: Gold, pieces: Pieces) -> None:
    tables = perfect(gold)
    right = np.concatenate([table.ravel() for table in tables])
    wrong = 1 - right
    nothing = np.full_like(right, np.nan)
    alpha = np.stack([right, right, wrong, nothing])
    lexical = np.log(np.stack([wrong, wrong, right, right]) + 1e-9)
    observables = xr.Dataset(
        {
            "alpha_gold": (("run", "end", "cell_gold"), np.stack([wrong + 0 * alpha, alpha], 1)),
            "lexical_gold": (("run", "end", "cell_gold"), np.stack([lexical * 0, lexical], 1)),
        },
        coords={"case": ("run", ["normal", "normal", "uniform", "proxy"])},
    )
    data = xr.Dataset({"word": ("id", list(pieces.words))})
    tree = xr.DataTree.from_dict({"/observables": observables, "/data": data})
    train = PiecePairs(
        *([np.append(ids, END) for ids in pieces.encode(side)] for side in (GERMAN, ENGLISH))
    )
    table = gold_table(gold, tree, train)
    rates = {str(name).split(",")[0]: rate for name, rate, _ in table.rows}
    assert rates["attention α"] == 0.0
    assert rates["lexical probe β"] > 50
    assert rates["lexical probe β^uf"] == rates["lexical probe β^px"] == 0.0
    # The diagonal has the first pair right and the second wrong.
    assert rates["diagonal"] == pytest.approx(round(100 * (1 - (2 + 3) / (5 + 4)), 2))
    assert 0 <= float(rates["IBM Model 1"]) < 100  # type: ignore[arg-type]


def test_files_that_are_not_there(pieces: Pieces) -> None:
    with pytest.raises(AttnscopeError, match="gold = 'a:b': expected two files that exist"):
        read_gold("a:b", pieces)
