"""The page to play on, and the other end of its socket.

The page is HTML with the browser's own controls, and BokehJS draws the figures of the static
report. Panel was tried first: its template loads 3.5 MB, its first curves stood after 3.4 s against
0.9 s here, and its sliders have no name for a screen reader, since a label cannot reach into their
shadow trees. A range input has a name, keys, touch and both themes by itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.lab import shell, wishes
from attnscope.lab.player import Client, Player, Turns
from attnscope.lab.url import parse
from attnscope.lab.worlds import WORLDS, Slider, World, world
from attnscope.lab.worlds.base import LAST_DRAW
from attnscope.markup import fill, inert

SIDES = ("a", "b")


def document(query: str) -> str:
    """Return the whole page, at the setting that the address holds."""
    benches, notes = parse(query)
    config = {
        "worlds": [_described(each) for each in WORLDS],
        "benches": [{"world": bench.world.key, "setting": bench.setting} for bench in benches],
        "notes": notes,
        "last_draw": LAST_DRAW,
    }
    body = fill("lab/play", notes=notes, config=inert(json.dumps(config, ensure_ascii=False)))
    return shell.page(
        "Play",
        body,
        "play",
        scripts=("plots.js", "attention.js", "play.js"),
        styles=("play.css",),
    )


def _described(which: World) -> dict[str, Any]:
    controls = []
    for control in which.controls:
        known: dict[str, Any] = {"name": control.name, "label": control.label, "help": control.help}
        if isinstance(control, Slider):
            known["values"] = control.values
        else:
            known["options"] = control.options
        controls.append(known)
    return {
        "key": which.key,
        "title": which.title,
        "sentence": which.sentence,
        "controls": controls,
        "defaults": which.defaults(),
    }


class Session:
    """One open page: it asks for settings, side by side if two are compared.

    Messages of the page are ``{"side": "a", "ask": 7, "world": ..., "setting": ..., "have": ...}``
    with the figures that it has drawn already, and ``{"side": "a", "stop": true}``. Answers carry
    the side and the number of what was asked.

    Args:
        player: does the runs.
        send: takes an answer as text.
    """

    def __init__(self, player: Player, send: Callable[[str], None]) -> None:
        self.player, self.send, self.refused = player, send, 0
        turns = Turns()
        self.clients: dict[str, Client] = {side: player.client(turns) for side in SIDES}

    def receive(self, text: str) -> None:
        """Do what the page asks for; whatever cannot be done is said in a sentence."""
        try:
            wish = wishes.read(text, SIDES)
        except wishes.NonsenseError as error:
            self._refuse(error)
            return
        client = self.clients[wish.side]
        head: dict[str, Any] = {"side": wish.side, "ask": wish.ask}
        if wish.stop:
            self.player.forget(client)
            self._say({**head, "kind": "stopped"})
            return
        try:
            chosen = world(wish.world)
        except AttnscopeError as error:
            self.player.forget(client)
            self._say({**head, "kind": "sorry", "sentence": str(error)})
            return
        setting, notes = chosen.admit(wish.setting)
        needed = {"world": chosen.key, "setting": setting, "have": list(wish.have)}
        head |= {"world": chosen.key, "setting": setting, "notes": notes}
        self.player.request(client, needed, lambda answer: self._answer(head, answer))

    def _refuse(self, error: wishes.NonsenseError) -> None:
        """Say that a message makes no sense, in the terminal once only: there may be a flood."""
        said = f"The page said something without sense: {error}."
        self._say({"kind": "sorry", "sentence": said})
        if not self.refused:
            print(f"attnscope lab: a message was ignored: {error}.", file=sys.stderr)
        self.refused += 1

    def _answer(self, head: dict[str, Any], answer: dict[str, Any]) -> None:
        if answer["kind"] == "scene":
            text = json.dumps({**head, "kind": "scene"})
            self.send(f'{text[:-1]}, "scene": {answer["text"]}}}')
        else:
            self._say({**head, **answer})

    def _say(self, values: dict[str, Any]) -> None:
        self.send(json.dumps(values))

    def close(self) -> None:
        """Stop what the page waits for."""
        for client in self.clients.values():
            self.player.leave(client)
