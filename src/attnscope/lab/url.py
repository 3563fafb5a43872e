"""A setting as the address of the page, both ways.

``/?world=lu2021&m=30`` holds what differs from the world as it opens. The second side of a
comparison has the same names with ``b.`` before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from attnscope.errors import AttnscopeError
from attnscope.lab.worlds import KEYS, Setting, World, world

OTHER = "b."
LONGEST = 2_000
"""Characters of an address that are read."""


@dataclass(frozen=True)
class Bench:
    """A world and its setting."""

    world: World
    setting: Setting


def parse(query: str) -> tuple[list[Bench], list[str]]:
    """Read an address.

    Returns:
        One bench or two, and a sentence for everything that made no sense and was left out.
    """
    said: list[str] = []
    if len(query) > LONGEST:
        said.append(f"The address has {len(query):,} characters: expected {LONGEST:,} or fewer.")
        query = ""
    wanted = dict(parse_qsl(query, keep_blank_values=True))
    first = {name: text for name, text in wanted.items() if not name.startswith(OTHER)}
    second = {name[len(OTHER) :]: text for name, text in wanted.items() if name.startswith(OTHER)}
    benches = [_bench(first, said)]
    if second:
        benches.append(_bench(second, said))
    return benches, said


def _bench(wanted: dict[str, str], said: list[str]) -> Bench:
    wanted = dict(wanted)
    key = wanted.pop("world", KEYS[0])
    try:
        chosen = world(key)
    except AttnscopeError as error:
        chosen = world(KEYS[0])
        said.append(f"{error} This is {chosen.title}.")
        wanted = {}
    setting, sentences = chosen.admit(wanted)
    said += sentences
    return Bench(chosen, setting)


def write(benches: list[Bench]) -> str:
    """Return the query string of one bench or two; what is as the world opens is left out."""
    parts: list[tuple[str, str]] = []
    for prefix, bench in zip(("", OTHER), benches, strict=False):
        parts.append((f"{prefix}world", bench.world.key))
        default = bench.world.defaults()
        for name, value in bench.setting.items():
            if value != default[name]:
                parts.append(
                    (prefix + name, f"{value:g}" if isinstance(value, float) else str(value))
                )
    return urlencode(parts)
