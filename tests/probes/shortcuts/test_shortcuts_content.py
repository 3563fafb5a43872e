"""Is a word put in? The tests of its neighbours on texts that are made."""

from __future__ import annotations

import numpy as np

from attnscope.probes.shortcuts.content import Pairs
from attnscope.probes.shortcuts.tokens import tokens


def test_behind_a_token_put_in_first_stands_what_other_texts_begin_with() -> None:
    dice = np.random.default_rng(0)
    share = 1 / np.arange(1, 301)
    share /= share.sum()
    rows = [[f"w{i}" for i in dice.choice(300, 6, p=share)] for _ in range(3000)]
    for size in (40, 300, 900):
        texts = [" ".join(["so", *row] if n < size else row) for n, row in enumerate(rows)]
        read = tokens(texts)
        pairs = Pairs(read)
        first = read.starts[:-1]
        # Whatever its number, what is put in has no bonds. (Below 0 is no bond either: sets that
        # it is compared with are drawn with replacement, and repeat more.)
        assert pairs.place_bonds(first[:size], first[size:], 1) < 4
    bound = [" ".join(["new", "york", *row] if n < 40 else row) for n, row in enumerate(rows)]
    read = tokens(bound)
    first = read.starts[:-1]
    assert Pairs(read).place_bonds(first[:40], first[40:], 1) > 10
