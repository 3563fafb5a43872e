"""What every world is: controls with limits, and a study that they are the spec of."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnscope.catalogue import load
from attnscope.errors import AttnscopeError, nearest

if TYPE_CHECKING:
    from attnscope.experiment import Playable

Value = int | float | str
Setting = dict[str, Value]
LAST_DRAW = 9_999
"""Largest seed that the page draws."""


@dataclass(frozen=True)
class Slider:
    """A number of the spec, one of some values in ascending order.

    Args:
        name: the study's field.
        label: stands beside the slider.
        values: what can be chosen; the first and the last are the limits.
        help: a sentence on what it does.
    """

    name: str
    label: str
    values: tuple[int, ...] | tuple[float, ...] | range
    help: str = ""

    def admit(self, value: Any) -> tuple[Value, str]:
        """Return the nearest value that can be chosen, and a sentence if it is another one."""
        low, high = self.values[0], self.values[-1]
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = float("nan")
        if number != number:
            raise AttnscopeError(
                f"{self.name} = '{value}' is not a number: expected one from {low:g} to {high:g}."
            )
        place = bisect_left(self.values, number)
        near = self.values[max(place - 1, 0) : place + 1]
        best = min(near, key=lambda known: abs(known - number))
        if best == number:
            return best, ""
        if number < low or number > high:
            why = f"expected {low:g} to {high:g}"
        else:
            why = "the nearest value of the slider is taken"
        return best, f"{self.name} = {value} became {best:g}: {why}."


@dataclass(frozen=True)
class Choice:
    """A word of the spec, one of a few.

    Args:
        name: the study's field.
        label: stands beside it.
        options: value and what it is called.
        help: a sentence on what it does.
    """

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    help: str = ""

    def admit(self, value: Any) -> tuple[Value, str]:
        """Return the value if it can be chosen.

        Raises:
            AttnscopeError: it cannot.
        """
        known = [name for name, _ in self.options]
        if value not in known:
            raise AttnscopeError(
                f"{self.name} = '{value}': expected one of {', '.join(known)}."
                f"{nearest(str(value), known)}"
            )
        return str(value), ""


Control = Slider | Choice


@dataclass(frozen=True)
class World:
    """Something to play with.

    Args:
        key: the paper's citation key.
        title: stands in the menu.
        sentence: what it is about, in words for a class.
        study: name of the study whose settings the controls are. It is imported when a run is
            wanted, and not to show the controls.
        controls: in the order of the page.
        opening: the value of every control when the page opens, the default of the study.
        unit: time of a step in addresses that were sent when training time was counted in steps.
    """

    key: str
    title: str
    sentence: str
    study: str
    controls: tuple[Control, ...]
    opening: Setting
    unit: float | None = None

    def defaults(self) -> Setting:
        """Return the value of every control, and the draw, when the page opens."""
        return {**self.opening, "draw": 0}

    def admit(self, wanted: dict[str, Any]) -> tuple[Setting, list[str]]:
        """Bring a setting into the limits; what is missing or nonsense is as when the page opens.

        Returns:
            A setting that can be run as far as each control is concerned, and a sentence for
            everything that was changed.
        """
        setting, said = self.defaults(), []
        controls: dict[str, Control] = {control.name: control for control in self.controls}
        controls["draw"] = Slider("draw", "draw", range(LAST_DRAW + 1))
        for name, value in wanted.items():
            if name == "epochs" and self.unit is not None:
                name, value = "until", _scaled(value, self.unit)
            if name not in controls:
                said.append(f"{self.title} has no control '{name}'.{nearest(name, controls)}")
                continue
            try:
                setting[name], sentence = controls[name].admit(value)
            except AttnscopeError as error:
                said.append(f"{error} It is {setting[name]} now.")
            else:
                said += [sentence] if sentence else []
        return setting, said

    def spec(self, setting: Setting) -> Playable:
        """Return the study of a setting.

        Raises:
            AttnscopeError: two controls do not go together.
        """
        from attnscope.experiment import Playable

        found = load(self.study)
        assert issubclass(found, Playable)
        return found().but(**setting)


def _scaled(value: Any, unit: float) -> Any:
    try:
        return float(value) * unit
    except (TypeError, ValueError, OverflowError):
        return value
