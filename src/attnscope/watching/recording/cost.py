"""What readings cost, as measured: seconds and bytes of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

PROBE = "a forward pass of the probe batch"
SMALL = 0.5
"""Readings of fewer milliseconds are named together."""


@dataclass(eq=False)
class Costs:
    """Seconds and bytes of readings, added up as they are taken.

    Args:
        seconds: by reading, and of the probe batch; how often, and how long in all.
        sizes: bytes of one reading, by its name.
    """

    seconds: dict[str, tuple[int, float]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, seconds: float, size: int | None = None) -> None:
        """Add one reading."""
        count, total = self.seconds.get(name, (0, 0.0))
        self.seconds[name] = count + 1, total + seconds
        if size is not None:
            self.sizes[name] = size

    def milliseconds(self) -> dict[str, float]:
        """Return the mean of every reading, the dearest first."""
        mean = {name: 1000 * total / count for name, (count, total) in self.seconds.items()}
        return dict(sorted(mean.items(), key=lambda item: -item[1]))

    def to_json(self) -> dict[str, dict[str, float]]:
        """Return milliseconds and bytes by reading."""
        return {
            "milliseconds": {name: round(ms, 4) for name, ms in self.milliseconds().items()},
            "bytes": dict(self.sizes),
        }

    def sentence(self, names: Sequence[str]) -> str:
        """Say what readings took.

        Args:
            names: of all readings; those without a number yet have one when a step was taken.
        """
        mean = self.milliseconds()
        later = [name for name in names if name not in mean and name != "loss"]
        if not mean and not later:
            return "next to nothing per reading"
        large = [
            f"{_sized(name, self.sizes)} {ms:.1f} ms" for name, ms in mean.items() if ms >= SMALL
        ]
        small = [_sized(name, self.sizes) for name, ms in mean.items() if ms < SMALL]
        parts = [", ".join(large)] if large else []
        if small:
            parts.append(f"less than {SMALL} ms each: {', '.join(small)}")
        if later:
            parts.append(f"measured when a step was taken: {', '.join(later)}")
        size = sum(self.sizes.values()) / 1e6
        return f"{sum(mean.values()):.1f} ms and {size:.3f} MB measured; " + "; ".join(parts)


def _sized(name: str, sizes: dict[str, int]) -> str:
    size = sizes.get(name, 0)
    return f"{name} ({size / 1e6:.2f} MB)" if size >= 10_000 else name
