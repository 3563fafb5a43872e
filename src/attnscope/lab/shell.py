"""The frame that every page of the lab stands in: header, navigation, theme, skip link.

Styles and scripts are files of the lab's own server, so that the content security policy needs to
admit nothing inline and no other host. Text is escaped by the templates; ``body`` is markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnscope.markup import fill

if TYPE_CHECKING:
    from markupsafe import Markup

NAVIGATION = (
    ("play", "/", "Play"),
    ("data", "/data", "Data"),
    ("runs", "/runs", "Runs"),
    ("claims", "/claims", "Claims"),
)


def page(
    title: str,
    body: Markup,
    current: str = "",
    *,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> str:
    """Return a whole page.

    Args:
        title: of the window, as text.
        body: markup of what stands below the header.
        current: which entry of the navigation this is: ``play``, ``data``,
            ``runs`` or ``claims``.
        scripts: files below ``/static``, run in this order after the page is there.
            ``plots.js`` brings BokehJS with it.
        styles: further style sheets below ``/static``.
    """
    bokeh = ["bokeh.min.js"] if "plots.js" in scripts else []
    filled = fill(
        "lab/page",
        title=title,
        body=body,
        current=current,
        navigation=NAVIGATION,
        styles=["shell.css", *styles],
        scripts=[*bokeh, *scripts],
    )
    return str(filled)


def sentence(title: str, text: str, current: str = "", *, hint: bool = False) -> str:
    """Return a page that says one sentence, as for an error that a person can mend.

    Args:
        title: a short heading.
        text: the sentence.
        current: which entry of the navigation this is.
        hint: whether to say where the other pages are.
    """
    return page(title, fill("lab/sentence", title=title, text=text, hint=hint), current)
