"""Repeated pairs: by hand, and against looking back word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attnscope.probes.repeated_pairs import repeated_pairs


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=30), max_size=4), st.integers(1, 12))
def test_counts_are_those_of_looking_back(texts: list[list[str]], window: int) -> None:
    pairs = repeats = kept = 0
    for words in texts:
        for start in range(0, len(words), window):
            part = words[start : start + window]
            for at in range(len(part) - 1):
                pairs += 1
                earlier = [k for k in range(at) if part[k] == part[at]]
                if earlier:
                    repeats += 1
                    kept += part[earlier[-1] + 1] == part[at + 1]
    found = repeated_pairs(texts, window)
    assert (found.pairs, found.repeats, found.kept) == (pairs, repeats, kept)
    assert sum(found.by_first.values()) == repeats
    assert sum(found.by_pair.values()) == kept
    assert sum(found.unigram.values()) == sum(map(len, texts))
