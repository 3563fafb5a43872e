"""XOR of two words: labels are right, and single words say nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks.keyword import FIRST, SECOND, WordParity


def test_labels_are_the_parity_of_the_two_words() -> None:
    drawn = WordParity(5, 9).sample(4000, 0)
    held = [(drawn.source == word).sum(dim=1) for word in (FIRST, SECOND)]
    assert max(int(one.max()) for one in held) == 1
    assert torch.equal(drawn.label.long(), held[0] ^ held[1])
    for one in held:
        share = one[drawn.label > 0].double().mean() - one[drawn.label < 1].double().mean()
        assert abs(float(share)) < 0.06
    assert float(held[0].double().mean()) == pytest.approx(0.5, abs=0.03)
    assert int(drawn.source.max()) < WordParity(5, 9).vocabulary


def test_batches_are_a_function_of_seed_and_rows() -> None:
    stream = WordParity().stream(3)
    rows = torch.tensor([4, 9])
    assert torch.equal(stream.batch(rows).source, stream.batch(rows).source)
    assert not torch.equal(stream.batch(rows).source, stream.batch(rows + 1).source)
    assert len(stream.batch(rows)) == 2
    assert np.isin(stream.batch(rows).position, -1).all()


def test_bad_settings_are_quoted() -> None:
    with pytest.raises(AttnscopeError, match="length = 1"):
        WordParity(1, 9)
    with pytest.raises(AttnscopeError, match="types = 2"):
        WordParity(5, 2)
    with pytest.raises(AttnscopeError, match="count = 0"):
        WordParity().sample(0, 0)
