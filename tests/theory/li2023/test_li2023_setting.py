from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023 import TopicSetting, constants, value_blocks


def test_masked_shares_are_those_of_the_documents(documents: Callable) -> None:
    setting = TopicSetting(topics=4, words=3, tau=2, p_m=0.3, p_c=0.2, p_r=0.15)
    known = constants(setting)
    masked, words = documents(setting)
    expected = np.where(words > 0, known.present, known.absent)
    expected[:, 0] = known.mask
    np.testing.assert_allclose(masked, expected, rtol=1e-14)
    np.testing.assert_allclose(masked.sum(axis=1), 1, rtol=1e-14)


def test_any_object_with_the_six_numbers_will_do() -> None:
    task = SimpleNamespace(topics=10, words=10, tau=3, p_m=0.15, p_c=0.1, p_r=0.1, documents=200)
    assert value_blocks(task) == value_blocks(TopicSetting(topics=10, words=10, tau=3))
    assert TopicSetting.of(task) == TopicSetting(topics=10, words=10, tau=3)


def test_a_task_without_a_fixed_number_of_topics_has_no_closed_form() -> None:
    task = SimpleNamespace(topics=10, words=10, tau=None, p_m=0.15, p_c=0.1, p_r=0.1)
    for use in (TopicSetting.of, value_blocks):
        with pytest.raises(AttnscopeError, match="tau = None: expected a whole number"):
            use(task)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"tau": 4}, r"tau = 4 with topics = 3: expected tau ≤ topics"),
        ({"tau": 0}, "tau = 0: expected a whole number of 1 or more"),
        ({"words": 2.5}, "words = 2.5: expected a whole number"),
        ({"topics": float("nan")}, "topics = nan: expected a whole number"),
        ({"p_m": 0.0}, "p_m = 0: expected a number between 0 and 1"),
        ({"p_m": 1.0}, "p_m = 1: expected a number between 0 and 1"),
        ({"p_m": float("nan")}, "p_m = nan"),
        ({"p_c": 0.5, "p_r": 0.5}, r"p_c = 0.5 and p_r = 0.5: expected .* p_c \+ p_r < 1"),
        ({"p_r": -0.1}, "p_r = -0.1"),
    ],
)
def test_what_no_document_can_have_is_refused(numbers: dict, message: str) -> None:
    with pytest.raises(AttnscopeError, match=message):
        TopicSetting(**({"topics": 3, "words": 5, "tau": 2} | numbers))


def test_documents_with_every_topic_have_no_topic_structure() -> None:
    setting = TopicSetting(topics=3, words=5, tau=3)
    assert constants(setting).present > constants(setting).absent
    with pytest.raises(AttnscopeError, match="tau = topics = 3: expected tau < topics"):
        value_blocks(setting)
