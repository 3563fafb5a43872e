"""The population of Li 2023 written out: every set of topics, every word seen, every target."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from attnscope.theory.li2023 import Topics

Documents = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def documents() -> Callable[[Topics], Documents]:
    """Return a function that gives masked and unmasked word shares of all documents."""

    def enumerate_documents(setting: Topics) -> Documents:
        p_m, p_c, p_r = setting.p_m, setting.p_c, setting.p_r
        size = setting.topics * setting.words
        words = np.zeros((0, size + 1))
        for chosen in itertools.combinations(range(setting.topics), setting.tau):
            inside = np.isin(np.arange(size) // setting.words, chosen)
            row = np.r_[0.0, inside / (setting.tau * setting.words)]
            words = np.vstack([words, row])
        # Position by position: not selected, selected and kept, random, [MASK].
        masked = (1 - p_m) * words + p_m * p_c * words
        masked[:, 1:] += p_m * p_r / size
        masked[:, 0] += p_m * (1 - p_c - p_r)
        return masked, words

    return enumerate_documents
