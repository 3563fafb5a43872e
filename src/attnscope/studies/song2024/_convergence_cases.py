"""The cases of ``song2024.convergence``: kernel, number of labels, start and engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Start = Literal["usual", "certified"]


@dataclass(frozen=True)
class Setting:
    """One case.

    Args:
        kernel: name of the kernel.
        above: whether H D >= N n.
        start: ``"usual"`` for entries of size one, or ``"certified"`` for W^V = 0 and a W^O large
            enough for the certificate to hold for all time.
        descent: step by step instead of gradient flow.
    """

    kernel: str
    above: bool = True
    start: Start = "usual"
    descent: bool = False


KERNELS = ("softmax", "gaussian")
SETTINGS = {
    f"{kernel}, {name}": Setting(kernel, **values)  # type: ignore[arg-type]
    for kernel in KERNELS
    for name, values in {
        "HD > Nn": {},
        "HD < Nn": {"above": False},
        "HD > Nn, descent": {"descent": True},
        "certified start": {"start": "certified"},
    }.items()
}
USUAL = tuple(case for case, s in SETTINGS.items() if s.above and s.start == "usual")
BELOW = tuple(case for case, s in SETTINGS.items() if not s.above)
CERTIFIED = tuple(case for case, s in SETTINGS.items() if s.start == "certified")
FLOWS = tuple(case for case in USUAL if not SETTINGS[case].descent)
DESCENTS = tuple(case for case in USUAL if SETTINGS[case].descent)
