"""What a notebook shows: progress, figures, the report.

Nothing here needs a notebook: elsewhere the same values say in a line of text what they are.
"""

from __future__ import annotations

import base64
import io
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.errors import AttnscopeError
from attnscope.markup import fill
from attnscope.needs import need, sentence, there

if TYPE_CHECKING:
    import xarray as xr

    from attnscope.report import Figure

TICK = 1.0
"""Seconds after which a bar shows at the latest that time goes on."""


def in_notebook() -> bool:
    """Return whether a notebook shows what is displayed."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


class Figures(list["Figure"]):
    """The figures of a run; a notebook draws them below each other.

    Args:
        figures: what is drawn.
        interactive: by Bokeh, to hover and zoom; by Matplotlib otherwise. Bokeh if it is there,
            unless given.
    """

    def __init__(self, figures: list[Figure], interactive: bool | None = None) -> None:
        super().__init__(figures)
        if interactive:
            need("bokeh")
        self.interactive = there("bokeh") if interactive is None else interactive

    def __repr__(self) -> str:
        return f"Figures: {', '.join(each.name for each in self) or 'none'}"

    def _repr_html_(self) -> str:
        if self.interactive:
            return bokeh_frame(self)
        if not there("matplotlib"):
            said = f"{self!r}. {sentence('matplotlib')}"
            return str(fill("notebook/sentence", said=said))
        return "".join(map(image, self))


class Shown:
    """A report: in a notebook the page itself, elsewhere where it lies.

    Args:
        path: the report's file.
        height: of the frame, in pixels.
    """

    def __init__(self, path: Path, height: int) -> None:
        self.path, self.height = path, height

    def __repr__(self) -> str:
        return f"report: {self.path} (open it in a browser)"

    def _repr_html_(self) -> str:
        return frame(self.path.read_text(encoding="utf-8"), self.height)


def show(run: xr.DataTree, height: int = 700) -> Shown:
    """Show the report of a run in the notebook.

    Args:
        run: the trajectory, as :func:`attnscope.run` and :func:`attnscope.open_run` return it.
        height: of the frame, in pixels.
    """
    from attnscope.results import write_report

    return Shown(write_report(run), height)


def figures(run: xr.DataTree, *, interactive: bool | None = None) -> Figures:
    """Return the figures of a run's report; a notebook draws them.

    Args:
        run: the trajectory.
        interactive: by Bokeh, to hover and zoom, or by Matplotlib. By Bokeh if it is installed,
            unless given.
    """
    from attnscope.catalogue import of_tree

    experiment = of_tree(run)
    return Figures(list(experiment.figures(experiment.read(run))), interactive)


def image(figure: Figure) -> str:
    """Return a figure as an HTML image with its title and caption."""
    need("matplotlib", "contourpy")
    from attnscope.report.static import draw

    drawn, file = draw(figure), io.BytesIO()
    drawn.savefig(file, format="png", dpi=90)
    data = base64.b64encode(file.getvalue()).decode()
    return str(fill("notebook/image", figure=figure, data=data))


def bokeh_frame(shown: list[Figure]) -> str:
    """Return figures as one frame that needs no network; BokehJS is in it once."""
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.models.widgets.markups import Div
    from bokeh.resources import INLINE

    from attnscope.report.interactive import layout

    parts: list[Any] = []
    for figure in shown:
        title = fill("notebook/title", figure=figure)
        parts += [Div(text=str(title), sizing_mode="stretch_width"), layout(figure)]
    rows = sum(-(-len(each.panels) // each.columns) for each in shown)
    page = file_html(column(*parts, sizing_mode="stretch_width"), INLINE, "figures")
    return frame(page, 380 * rows + 110 * len(shown))


def frame(page: str, height: int) -> str:
    """Return a page as a frame that a notebook shows as it is."""
    return str(fill("notebook/frame", page=page, height=height))


class Bar:
    """How far the work is, as a line of HTML that is shown again and again.

    Args:
        name: of the work.
        total: how many runs it has.
    """

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.fractions: dict[int, float] = {}
        self._begun = time.monotonic()

    def __call__(self, run: int, fraction: float) -> None:
        """Hear that a run has come so far."""
        self.fractions[run] = fraction

    def __repr__(self) -> str:
        return self.said()

    def said(self) -> str:
        """Say how far it is, how long it took and how long the rest may take."""
        done = sum(self.fractions.values())
        complete = sum(value >= 1 for value in self.fractions.values())
        gone = time.monotonic() - self._begun
        left = f", about {gone * (self.total - done) / done:.0f} s left" if done else ""
        if complete == self.total:
            left = ""
        return f"{self.name}: {complete} of {self.total} runs, {gone:.0f} s{left}"

    def _repr_html_(self) -> str:
        share = sum(self.fractions.values()) / self.total
        return str(fill("notebook/progress", share=share, said=self.said()))


@contextmanager
def progress_bar(name: str, total: int) -> Iterator[Bar]:
    """Show a bar that moves at least once a second, whatever the runs say.

    Raises:
        AttnscopeError: there is no IPython that could show one.
    """
    try:
        from IPython.display import display
    except ImportError:
        raise AttnscopeError(
            f"progress=True: {sentence('IPython')} Or leave progress out."
        ) from None
    bar, ended = Bar(name, total), threading.Event()
    handle = display(bar, display_id=True)

    def tick() -> None:
        while handle is not None and not ended.wait(TICK):
            handle.update(bar)

    ticking = threading.Thread(target=tick, daemon=True)
    ticking.start()
    try:
        yield bar
    finally:
        ended.set()
        ticking.join()
        if handle is not None:
            handle.update(bar)
