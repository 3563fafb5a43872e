"""A PyTorch that is too old is a sentence."""

from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.needs import check_torch


@pytest.mark.parametrize("version", ["2.9.0", "2.13.0+cpu", "3.0.1", "2.15.0.dev2027", "git"])
def test_new_enough(version: str) -> None:
    check_torch(version)


def test_too_old() -> None:
    with pytest.raises(AttnscopeError, match=r"PyTorch 2\.8\.1 is installed: expected 2\.9 or lat"):
        check_torch(["2.8.1", "cu121"][0])
