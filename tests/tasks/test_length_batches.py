import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import AttnscopeError
from attnscope.tasks.length_batches import LengthBatches, passes


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=300),
    batch=st.integers(1, 40),
    seed=st.integers(0, 5),
    pool=st.integers(1, 5),
)
def test_every_sequence_is_seen_once_an_epoch(lengths, batch, seed, pool):
    batch = min(batch, len(lengths))
    batches = LengthBatches(lengths, batch, seed, pool=pool)
    for epoch in range(2):
        first = epoch * batches.per_epoch
        seen = np.concatenate([batches.rows(first + i) for i in range(batches.per_epoch)])
        assert sorted(seen) == list(range(len(lengths)))


def test_a_batch_depends_on_seed_and_step_alone():
    lengths = np.random.default_rng(0).integers(3, 50, size=500)
    one, other = (LengthBatches(lengths, 32, 7) for _ in range(2))
    for step in range(40):
        one.rows(step)
    assert np.array_equal(one.rows(21), other.rows(21))
    assert not np.array_equal(one.rows(21), LengthBatches(lengths, 32, 8).rows(21))
    assert not np.array_equal(one.rows(21), one.rows(21 + one.per_epoch))


def test_little_of_a_batch_is_padding():
    lengths = np.random.default_rng(0).integers(3, 50, size=3200)
    batches = LengthBatches(lengths, 32, 0)

    def padding(draw):
        held = [lengths[draw(step)] for step in range(100)]
        return sum(int((row.max() - row).sum()) for row in held) / lengths.sum()

    dice = np.random.default_rng(1)
    assert padding(batches.rows) < 0.02
    assert padding(lambda step: dice.integers(len(lengths), size=32)) > 0.5


def test_batches_come_in_random_order_of_length():
    lengths = np.repeat(np.arange(1, 101), 32)
    batches = LengthBatches(lengths, 32, 0)
    means = [lengths[batches.rows(step)].mean() for step in range(100)]
    assert abs(np.corrcoef(means, np.arange(100))[0, 1]) < 0.4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([], 1, 0), "lengths of shape"),
        (([3, 4], 3, 0), "batch_size = 3: expected 1 to 2"),
        (([3, 4], 0, 0), "batch_size = 0"),
    ],
)
def test_bad_input_is_a_sentence(arguments, sentence):
    with pytest.raises(AttnscopeError, match=sentence):
        LengthBatches(*arguments)


def test_a_negative_step_is_refused():
    with pytest.raises(AttnscopeError, match="step = -1"):
        LengthBatches([3, 4], 2, 0).rows(-1)


@given(
    sizes=st.lists(st.integers(1, 60), max_size=100).map(lambda s: np.array(s, dtype=np.int64)),
    most=st.integers(1, 100),
)
def test_passes_keep_the_order_and_their_size(sizes, most):
    order = np.argsort(sizes, kind="stable")
    parts = passes(order, sizes, most)
    assert np.array_equal(np.concatenate([*parts, order[:0]]), order)
    assert all(len(part) for part in parts)
    # A sequence is not cut, so a part may be larger by less than the last one of the part before.
    assert all(sizes[part].sum() < most + sizes.max() for part in parts)
