"""The pages over the runs folder: list, reports, runs over each other, ledger, live runs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tornado.iostream import StreamClosedError

from attnscope.errors import AttnscopeError
from attnscope.lab import live, overlay, reports
from attnscope.lab.browse import SHOWN, run_rows, runs_page
from attnscope.lab.entries import Entry, entries, entry, read
from attnscope.lab.handler import Handler
from attnscope.lab.ledger import figure_of, ledger_page
from attnscope.lab.renderer import Renderer
from attnscope.lab.safety import confined
from attnscope.lab.sweep_page import point_report, sweep_body, sweeps_section

STYLES = ("browse.css",)
DRAWING = ("plots.js", "live.js")


class RunsPage(Handler):
    """The list of runs."""

    current = "runs"

    async def get(self) -> None:
        """List them."""
        runs, others = await asyncio.to_thread(entries, self.lab.runs, self.lab.kept)
        part = self.get_query_argument("part", "")
        if part == "rest":
            self.finish(await asyncio.to_thread(run_rows, runs, runs[SHOWN:], hidden=True))
            return
        section, others = await asyncio.to_thread(sweeps_section, self.lab.runs, others)
        body = await asyncio.to_thread(runs_page, self.lab.runs, runs, others, whole=part == "all")
        body += section
        self.lab.expect_drawing()
        self.show("Runs", body, scripts=("browse.js",), styles=STYLES)


class ClaimsPage(Handler):
    """The claims ledger."""

    current = "claims"

    async def get(self) -> None:
        """Show every claim that a run decides."""
        runs, _ = await asyncio.to_thread(entries, self.lab.runs, self.lab.kept)
        body = await asyncio.to_thread(ledger_page, runs)
        self.show("Claims", body, scripts=("browse.js",), styles=STYLES)


class ToRunPage(Handler):
    """An address without its last slash, from which a report's links would lead astray."""

    def get(self, name: str) -> None:
        """Add the slash."""
        self.redirect(f"/runs/{quote(name, safe='')}/", permanent=False)


class RunPage(Handler):
    """The report of a run."""

    current = "runs"

    async def get(self, name: str) -> None:
        """Show the report, or say that there is none yet."""
        run = await asyncio.to_thread(_known, self.lab.runs, name)
        if not run.report:
            self.show(run.name, reports.without_report(run), styles=STYLES)
            return
        text = await asyncio.to_thread(_file, self.lab.runs, name, "report.html")
        self.set_header("Content-Security-Policy", reports.POLICY)
        self.finish(
            reports.framed(
                text.decode(errors="replace"), run, self.get_cookie("attnscope-theme") or ""
            )
        )


def _known(root: Path, name: str) -> Entry:
    run = entry(root, name)
    if run.condition == "unreadable":
        raise AttnscopeError(f"'{name}' cannot be read: {run.status}")
    return run


def _file(root: Path, name: str, *parts: str) -> bytes:
    """Read a file of a run; what keeps it from being read is a sentence."""
    try:
        return read(Path(os.path.realpath(root)), confined(root, name), *parts)
    except OSError as error:
        raise AttnscopeError(
            f"'{'/'.join((name, *parts))}' cannot be read: {error.strerror}."
        ) from None


class FigureOfClaim(Handler):
    """The way from a claim to the figure that shows it."""

    async def get(self, name: str) -> None:
        """Go to the figure in the report; to the claim if the report has no figure."""
        run = await asyncio.to_thread(_known, self.lab.runs, name)
        key = self.get_query_argument("claim", "")
        finding = next((each for each in run.findings if each.key == key), None)
        if finding is None:
            raise AttnscopeError(f"The run '{name}' decides no claim '{key}'.")
        report = await asyncio.to_thread(_file, self.lab.runs, name, "report.html")
        figure = await asyncio.to_thread(figure_of, report.decode(errors="replace"), finding)
        anchor = f"figure-{figure}" if figure else f"claim-{quote(key, safe='')}"
        self.redirect(f"{run.address}#{anchor}")


class ReportFile(Handler):
    """A file that a report links to."""

    async def get(self, name: str, folder: str, file: str) -> None:
        """Send it, as nothing but what its ending says."""
        path, kind = reports.linked_file(self.lab.runs, name, folder, file)
        self.set_header("Content-Security-Policy", reports.FILE_POLICY)
        self.set_header("Content-Type", kind)
        if path.suffix.removeprefix(".") not in reports.SHOWN:
            self.set_header("Content-Disposition", "attachment")
        self.finish(await asyncio.to_thread(_file, self.lab.runs, name, folder, file))


class ComparePage(Handler):
    """Several runs over each other."""

    current = "runs"

    async def get(self) -> None:
        """Show the frame; the figures come when they are drawn."""
        asked = self.get_query_arguments("run")
        runs = await asyncio.to_thread(overlay.chosen, self.lab.runs, asked)
        body = overlay.overlay_page(runs)
        self.show("Runs over each other", body, scripts=DRAWING, styles=STYLES)


class SceneHandler(Handler):
    """Answers the page's script with JSON, a value a line, as they are drawn.

    What goes wrong is a line with a sentence in it.
    """

    async def draw(
        self,
        function: Callable[..., Iterator[dict[str, Any]]],
        *given: Any,
        renderer: Renderer | None = None,
    ) -> None:
        """Send what is drawn over there, by another process than that of the figures if given."""
        try:
            async with aclosing((renderer or self.lab.renderer).draw(function, *given)) as parts:
                async for part in parts:
                    self.tell(part)
                    await self.flush()
        except AttnscopeError as error:
            self.tell({"sorry": str(error)})
        except StreamClosedError:
            return  # The page was left.
        await self.finish()

    def tell(self, value: dict[str, Any]) -> None:
        """Send one line."""
        self.set_header("Content-Type", "application/x-ndjson; charset=utf-8")
        self.write(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say what is the matter."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        said = isinstance(error, AttnscopeError)
        self.set_status(200 if said else status_code)
        self.tell({"sorry": str(error) if said else "The lab could not draw this and goes on."})
        self.finish()


class SweepPage(Handler):
    """The phase diagrams of a sweep."""

    current = "runs"

    async def get(self, name: str) -> None:
        """Draw those of one claim."""
        claim = self.get_query_argument("claim", "")
        drawn = await self._drawn(sweep_body, name, claim)
        self.show(name, drawn["html"], styles=STYLES)

    async def _drawn(self, function: Callable[..., Any], *given: Any) -> dict[str, Any]:
        async with aclosing(self.lab.renderer.draw(function, self.lab.runs, *given)) as parts:
            async for part in parts:
                return part
        raise AttnscopeError("There is nothing to draw.")


class SweepPoint(SweepPage):
    """The run of one cell."""

    async def get(self, name: str, point: str = "0") -> None:
        """Show its report, as that of any run."""
        drawn = await self._drawn(point_report, name, int(point))
        shown = Entry(f"{name}: {drawn['title']}", "finished", "")
        self.set_header("Content-Security-Policy", reports.POLICY)
        theme = self.get_cookie("attnscope-theme") or ""
        self.finish(reports.framed(drawn["html"], shown, theme))


class SweepReport(Handler):
    """The report of a sweep."""

    async def get(self, name: str) -> None:
        """Show it in its frame."""
        text = await asyncio.to_thread(_file, self.lab.runs, name, "report.html")
        self.set_header("Content-Security-Policy", reports.POLICY)
        theme = self.get_cookie("attnscope-theme") or ""
        shown = Entry(name, "finished", "")
        self.finish(reports.framed(text.decode(errors="replace"), shown, theme))


class CompareScene(SceneHandler):
    """The figures of runs over each other."""

    async def get(self) -> None:
        """Draw them."""
        asked = self.get_query_arguments("run")
        await self.draw(overlay.scene, self.lab.runs, asked)


class LivePage(Handler):
    """A run while it is going."""

    current = "runs"

    async def get(self, name: str) -> None:
        """Show the frame; the script asks for what is in it."""
        run = await asyncio.to_thread(_known, self.lab.runs, name)
        self.show(run.name, live.live_page(run), scripts=DRAWING, styles=STYLES)


class LiveScene(SceneHandler):
    """What a run has come to by now."""

    async def get(self, name: str) -> None:
        """Draw it, unless nothing has changed since the page asked last."""
        seen = await asyncio.to_thread(live.stamp, self.lab.runs, name)
        if seen == self.get_query_argument("stamp", ""):
            run = await asyncio.to_thread(_known, self.lab.runs, name)
            self.tell({"same": True, "going": run.condition == "going"})
            return
        have = frozenset(self.get_query_argument("have", "").split())
        await self.draw(live.scene, self.lab.runs, name, have)


def routes(own: dict[str, Any]) -> list[Any]:
    """Return the rules of these pages; ``own`` is what every handler is given."""
    return [
        (r"/runs/?", RunsPage, own),
        (r"/runs/([^/]+)", ToRunPage, own),
        (r"/runs/([^/]+)/", RunPage, own),
        (r"/runs/([^/]+)/figure", FigureOfClaim, own),
        (r"/runs/([^/]+)/(figures|tables)/([^/]+)", ReportFile, own),
        (r"/sweeps/([^/]+)/", SweepPage, own),
        (r"/sweeps/([^/]+)/report", SweepReport, own),
        (r"/sweeps/([^/]+)/points/(\d{1,9})", SweepPoint, own),
        (r"/compare", ComparePage, own),
        (r"/compare/scene", CompareScene, own),
        (r"/claims/?", ClaimsPage, own),
        (r"/live/([^/]+)", LivePage, own),
        (r"/live/([^/]+)/scene", LiveScene, own),
    ]
