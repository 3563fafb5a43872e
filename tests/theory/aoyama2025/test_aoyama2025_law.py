"""The law of emergence: both fits, their exponents, and what they refuse."""

from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.aoyama2025 import FITS, SCATTER, emergence_tokens


def test_pythia_in_both_fits() -> None:
    # Public checkpoints put the cliff between 1.07e9 and 2.1e9 tokens: later than both fits say,
    # within the scatter of both.
    for fit, tokens in (("2025", 7.26e8), ("2026", 1.07e9)):
        found = emergence_tokens(1024, 2048, fit)
        assert found.tokens == pytest.approx(tokens, rel=5e-3)
        assert found.low * SCATTER == pytest.approx(found.tokens)
        assert found.low < 1.07e9 < found.high
        assert found.updates == pytest.approx(found.tokens / (1024 * 2048))
        assert not found.caution


@pytest.mark.parametrize("fit", FITS)
def test_exponents(fit: str) -> None:
    one = emergence_tokens(32, 256, fit).tokens
    assert emergence_tokens(128, 256, fit).tokens / one == pytest.approx(4 ** FITS[fit].batch)
    assert emergence_tokens(32, 1024, fit).tokens / one == pytest.approx(4 ** FITS[fit].context)


def test_an_update_of_few_tokens_is_extrapolated_and_says_so() -> None:
    assert "An update of 64 tokens" in str(emergence_tokens(1, 64))


@pytest.mark.parametrize(
    ("given", "quoted"),
    [((0, 64), "batch = 0"), ((8, float("nan")), "context = nan"), ((8, 64, "v3"), "fit = 'v3'")],
)
def test_what_is_refused_is_quoted(given: tuple[float, float], quoted: str) -> None:
    with pytest.raises(AttnscopeError, match=quoted):
        emergence_tokens(*given)
