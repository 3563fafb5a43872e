"""A setting is an address, and nonsense in one is a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.lab.url import Bench, parse, write
from attnscope.lab.worlds import KEYS, Slider, world


@st.composite
def benches(draw: st.DrawFn) -> Bench:
    here = world(draw(st.sampled_from(KEYS)))
    setting: dict[str, Any] = here.defaults()
    for control in here.controls:
        options: list[Any] = (
            list(control.values)
            if isinstance(control, Slider)
            else [name for name, _ in control.options]
        )
        setting[control.name] = draw(st.sampled_from(options))
    setting["draw"] = draw(st.integers(0, 9999))
    return Bench(here, setting)


@given(st.lists(benches(), min_size=1, max_size=2))
def test_every_setting_survives_its_address(wanted: list[Bench]) -> None:
    found, said = parse(write(wanted))
    assert [(b.world.key, b.setting) for b in found] == [(b.world.key, b.setting) for b in wanted]
    assert said == []


def test_an_empty_address_is_the_first_world_as_it_opens() -> None:
    (bench,), said = parse("")
    assert bench.world.key == KEYS[0]
    assert bench.setting == bench.world.defaults()
    assert said == []
    assert write([bench]) == "world=lu2021"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("world=nowhere", "there is no world 'nowhere'"),
        ("m=lots", "m = 'lots' is not a number"),
        ("m=9999", "m = 9999 became 60"),
        ("classifier=XX", "classifier = 'XX': expected one of FC, TC, TL"),
        ("zzz=1", "has no control 'zzz'"),
        ("world=lu2021&b.world=nope", "there is no world 'nope'"),
        ("m=%00%ff<script>", "is not a number"),
        ("m=" + "1" * 3000, "expected 2,000 or fewer"),
    ],
)
def test_nonsense_is_a_sentence_and_the_page_opens(query: str, sentence: str) -> None:
    found, said = parse(query)
    assert any(sentence in each for each in said)
    assert [bench.world.key for bench in found] == ["lu2021"] * len(found)


@given(st.text(max_size=80))
def test_no_address_raises(query: str) -> None:
    found, _ = parse(query)
    assert 1 <= len(found) <= 2
