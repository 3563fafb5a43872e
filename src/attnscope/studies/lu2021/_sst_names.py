"""How cases are called in sentences, and in the keys of claims."""

from __future__ import annotations


def named(case: str) -> str:
    """Return the model in words.

    >>> named("FC, paper"), named("TC, released")
    ('Attn-FC', 'Attn-TC, as released')
    """
    model, _, variant = case.partition(", ")
    return f"Attn-{model}" + (", as released" if variant == "released" else "")


def key(what: str, case: str) -> str:
    """Return a key that is unique among the cases.

    >>> key("fig4", "TC, released")
    'fig4-TC-released'
    """
    model, _, variant = case.partition(", ")
    return f"{what}-{model}" + ("-released" if variant == "released" else "")
