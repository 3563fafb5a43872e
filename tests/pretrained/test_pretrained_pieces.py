"""Words found by their places in the text, whatever pieces a tokenizer makes of them."""

from __future__ import annotations

import numpy as np

from attnscope.pretrained.pieces import find_words, readable

KNOWN = {"cruiser", "ship", "moon"}


def test_pieces_belong_to_the_word_they_overlap() -> None:
    text = "A Cruiser, the ship"
    # A piece with the space before it, as byte-level tokenizers have them, belongs to its word too.
    places = [(0, 0), (0, 1), (1, 7), (7, 9), (9, 10), (10, 14), (14, 19), (0, 0)]
    found = find_words(text, places, KNOWN, complete=True)
    assert found.words == ("cruiser", "ship")
    assert found.pieces.tolist() == [2, 3, 6]
    assert found.owner.tolist() == [0, 0, 1]
    assert found.first.tolist() == [2, 6]
    assert found.pooling.tolist() == [[0.5, 0.5, 0], [0, 0, 1]]


def test_a_word_that_is_cut_off_does_not_count() -> None:
    places = [(0, 4), (5, 9)]
    assert find_words("moon ships", places, KNOWN).words == ("moon",)
    assert find_words("moon ship", places, KNOWN).words == ("moon",)
    assert find_words("moon ship", places, KNOWN, complete=True).words == ("moon", "ship")
    assert find_words("moon ship on", places, KNOWN).words == ("moon",)


def test_unknown_words_and_empty_texts() -> None:
    none = find_words("nothing here", [(0, 7), (8, 12)], KNOWN, complete=True)
    assert none.words == ()
    assert none.pieces.dtype == np.int64
    assert find_words("", [(0, 0)], KNOWN).pooling.shape == (0, 0)


def test_wikitext_is_made_readable() -> None:
    assert readable("a <unk> 1 @.@ 5 @-@ inch") == "a  1.5-inch"
