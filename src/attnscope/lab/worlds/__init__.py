"""What one can play with: small worlds, each a study whose spec is a handful of sliders.

A world is data: its controls, and the study that they describe. Nothing here knows of a browser, so
that a world can be run from Python and from the command line just as well, with the same numbers.
"""

from __future__ import annotations

from attnscope.errors import AttnscopeError, nearest
from attnscope.lab.worlds.base import Choice, Control, Setting, Slider, World
from attnscope.lab.worlds.controls import WORLDS

__all__ = ["KEYS", "WORLDS", "Choice", "Control", "Setting", "Slider", "World", "world"]

KEYS = tuple(each.key for each in WORLDS)
"""The worlds, in the order of the menu."""


def world(key: str) -> World:
    """Return the world called ``key``.

    Raises:
        AttnscopeError: there is none of that name.
    """
    for each in WORLDS:
        if each.key == key:
            return each
    raise AttnscopeError(
        f"there is no world '{key}'.{nearest(key, KEYS)} Expected one of: {', '.join(KEYS)}."
    )
