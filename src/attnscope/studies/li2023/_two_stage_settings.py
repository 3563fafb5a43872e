"""The settings that ``li2023.two_stage`` compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attnscope.models.topic_transformer import Attention


@dataclass(frozen=True)
class Setting:
    """How one case is trained.

    Args:
        lr: learning rate.
        noise: standard deviation of the initial entries of W^K and W^Q.
        optimizer: plain SGD or Adam.
        attention: learned, or frozen at uniform.
        source: the case without attention that predicts this one; none for Adam, to which the
            theory does not apply.
    """

    lr: float
    noise: float
    optimizer: Literal["gd", "adam"] = "gd"
    attention: Attention = "learned"
    source: str = ""


UNIFORM = "uniform, SGD 5"
UNIFORM_FAST = "uniform, SGD 20"
TWO_STAGES = "SGD 5"
FAST = "SGD 20"
FAST_QUIET = "SGD 20, noise 1e-4"
SLOW = "SGD 1"
STILL = "SGD 0.03"
ZERO = "SGD 5, noise 0"
ADAM = "Adam 0.01"
ADAM_QUIET = "Adam 0.01, noise 1e-6"
ADAM_SLOW = "Adam 0.003"

SETTINGS = {
    UNIFORM: Setting(5, 0, attention="uniform"),
    UNIFORM_FAST: Setting(20, 0, attention="uniform"),
    TWO_STAGES: Setting(5, 1e-2, source=UNIFORM),
    FAST: Setting(20, 1e-2, source=UNIFORM_FAST),
    FAST_QUIET: Setting(20, 1e-4, source=UNIFORM_FAST),
    SLOW: Setting(1, 1e-2, source=UNIFORM),
    STILL: Setting(0.03, 1e-2, source=UNIFORM),
    ZERO: Setting(5, 0),
    ADAM: Setting(0.01, 1e-3, "adam"),
    ADAM_QUIET: Setting(0.01, 1e-6, "adam"),
    ADAM_SLOW: Setting(0.003, 1e-3, "adam"),
}
MATRICES = ("K", "Q", "V")
KEY, QUERY, VALUE = range(3)
